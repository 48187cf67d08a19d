#include "engine/wiredtiger/sessions.h"

#include <utility>

namespace spillway::engine {

struct Sessions::Pool {
  WT_CONNECTION* const connection;
  const std::string uri;

  mutable std::mutex mutex;
  std::vector<std::unique_ptr<ThreadSession>> threads;  // guarded by mutex, as the following members are
  std::vector<ThreadSession*> idle;
  bool closed = false;

  ThreadSession* borrow(int* error) {
    const std::lock_guard lock(mutex);
    if (!idle.empty()) {
      ThreadSession* const thread = idle.back();
      idle.pop_back();
      return thread;
    }
    auto thread = std::make_unique<ThreadSession>();
    *error = connection->open_session(connection, nullptr, nullptr, &thread->session);
    if (*error != 0) return nullptr;
    *error = thread->session->open_cursor(thread->session, uri.c_str(), nullptr, nullptr, &thread->cursor);
    if (*error != 0) {
      (void)thread->session->close(thread->session, nullptr);
      return nullptr;
    }
    threads.push_back(std::move(thread));
    return threads.back().get();
  }

  void give_back(ThreadSession* thread) {
    const std::lock_guard lock(mutex);
    if (!closed) idle.push_back(thread);
  }
};

struct Sessions::Lease {
  std::shared_ptr<Pool> pool;
  ThreadSession* thread = nullptr;

  Lease() = default;
  ~Lease() { leave(); }
  Lease(const Lease&) = delete;
  Lease& operator=(const Lease&) = delete;

  void leave() {
    if (thread != nullptr) pool->give_back(thread);
    thread = nullptr;
    pool.reset();
  }
};

Sessions::Sessions(WT_CONNECTION* connection, std::string uri)
    : pool_(new Pool{
          .connection = connection, .uri = std::move(uri), .mutex = {}, .threads = {}, .idle = {}, .closed = false}) {}

ThreadSession* Sessions::of_this_thread(int* error) {
  thread_local Lease lease;
  if (lease.pool == pool_) return lease.thread;
  lease.leave();
  lease.thread = pool_->borrow(error);
  if (lease.thread != nullptr) lease.pool = pool_;
  return lease.thread;
}

void Sessions::each(const std::function<void(const ThreadSession& thread)>& visit) const {
  const std::lock_guard lock(pool_->mutex);
  for (const auto& thread : pool_->threads) visit(*thread);
}

void Sessions::close() {
  const std::lock_guard lock(pool_->mutex);
  pool_->closed = true;
  pool_->idle.clear();
  for (const auto& thread : pool_->threads) (void)thread->session->close(thread->session, nullptr);
}

}  // namespace spillway::engine
