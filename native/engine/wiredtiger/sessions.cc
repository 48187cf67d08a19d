#include "engine/wiredtiger/sessions.h"

#include <utility>

namespace spillway::engine {

struct Sessions::Pool {
  WT_CONNECTION* const connection;
  const std::string uri;

  mutable std::mutex mutex;
  std::vector<std::unique_ptr<Seat>> seats;  // guarded by mutex, and so are those below
  std::vector<Seat*> idle;
  bool closed = false;

  Seat* borrow(int* error) {
    const std::lock_guard lock(mutex);
    if (!idle.empty()) {
      Seat* const seat = idle.back();
      idle.pop_back();
      return seat;
    }
    auto seat = std::make_unique<Seat>();
    *error = connection->open_session(connection, nullptr, nullptr, &seat->session);
    if (*error != 0) return nullptr;
    *error = seat->session->open_cursor(seat->session, uri.c_str(), nullptr, nullptr, &seat->cursor);
    if (*error != 0) {
      (void)seat->session->close(seat->session, nullptr);
      return nullptr;
    }
    seats.push_back(std::move(seat));
    return seats.back().get();
  }

  void give_back(Seat* seat) {
    const std::lock_guard lock(mutex);
    if (!closed) idle.push_back(seat);
  }
};

struct Sessions::Lease {
  std::shared_ptr<Pool> pool;
  Seat* seat = nullptr;

  Lease() = default;
  ~Lease() { leave(); }
  Lease(const Lease&) = delete;
  Lease& operator=(const Lease&) = delete;

  void leave() {
    if (seat != nullptr) pool->give_back(seat);
    seat = nullptr;
    pool.reset();
  }
};

Sessions::Sessions(WT_CONNECTION* connection, std::string uri)
    : pool_(new Pool{
          .connection = connection, .uri = std::move(uri), .mutex = {}, .seats = {}, .idle = {}, .closed = false}) {}

Seat* Sessions::mine(int* error) {
  thread_local Lease lease;
  if (lease.pool == pool_) return lease.seat;
  lease.leave();
  lease.seat = pool_->borrow(error);
  if (lease.seat != nullptr) lease.pool = pool_;
  return lease.seat;
}

void Sessions::each(const std::function<void(const Seat& seat)>& look) const {
  const std::lock_guard lock(pool_->mutex);
  for (const auto& seat : pool_->seats) look(*seat);
}

void Sessions::close() {
  const std::lock_guard lock(pool_->mutex);
  pool_->closed = true;
  pool_->idle.clear();
  for (const auto& seat : pool_->seats) (void)seat->session->close(seat->session, nullptr);
}

}  // namespace spillway::engine
