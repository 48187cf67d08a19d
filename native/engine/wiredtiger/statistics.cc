#include "engine/wiredtiger/statistics.h"

namespace spillway::engine {

namespace {

// A negative gauge counts as 0. WiredTiger shows one for a moment while it sums over threads.
std::uint64_t unsigned_of(std::int64_t value) { return value < 0 ? 0 : static_cast<std::uint64_t>(value); }

}  // namespace

int ConnectionStatistics::open(WT_CONNECTION* connection) {
  const std::lock_guard lock(mutex_);
  if (const int error = connection->open_session(connection, nullptr, nullptr, &session_); error != 0) return error;
  const int error = session_->open_cursor(session_, "statistics:", nullptr, "statistics=(fast)", &cursor_);
  if (error != 0) return error;
  while (cursor_->next(cursor_) == 0) {
    int number = 0;
    const char* name = nullptr;
    const char* shown = nullptr;
    std::int64_t value = 0;
    if (cursor_->get_key(cursor_, &number) != 0) continue;
    if (cursor_->get_value(cursor_, &name, &shown, &value) == 0) number_of_.emplace(name, number);
  }
  return 0;
}

void ConnectionStatistics::close() {
  const std::lock_guard lock(mutex_);
  if (session_ != nullptr) (void)session_->close(session_, nullptr);
  session_ = nullptr;
  cursor_ = nullptr;
}

std::map<std::string, std::uint64_t> ConnectionStatistics::all() {
  std::map<std::string, std::uint64_t> values;
  const std::lock_guard lock(mutex_);
  if (cursor_ == nullptr || cursor_->reset(cursor_) != 0) return values;
  while (cursor_->next(cursor_) == 0) {
    const char* name = nullptr;
    const char* shown = nullptr;
    std::int64_t value = 0;
    if (cursor_->get_value(cursor_, &name, &shown, &value) == 0) values[name] = unsigned_of(value);
  }
  return values;
}

std::vector<std::uint64_t> ConnectionStatistics::read(const std::vector<const char*>& names) {
  std::vector<std::uint64_t> values(names.size(), 0);
  const std::lock_guard lock(mutex_);
  if (cursor_ == nullptr || cursor_->reset(cursor_) != 0) return values;
  for (std::size_t i = 0; i < names.size(); ++i) {
    const auto number = number_of_.find(names[i]);
    if (number == number_of_.end()) continue;
    const char* name = nullptr;
    const char* shown = nullptr;
    std::int64_t value = 0;
    cursor_->set_key(cursor_, number->second);
    if (cursor_->search(cursor_) != 0) continue;
    if (cursor_->get_value(cursor_, &name, &shown, &value) == 0) values[i] = unsigned_of(value);
  }
  return values;
}

std::uint64_t cache_wait_us_of(WT_SESSION* session) {
  WT_CURSOR* cursor = nullptr;
  if (session->open_cursor(session, "statistics:session", nullptr, nullptr, &cursor) != 0) return 0;
  const char* name = nullptr;
  const char* shown = nullptr;
  std::int64_t value = 0;
  cursor->set_key(cursor, WT_STAT_SESSION_CACHE_TIME);
  const bool found = cursor->search(cursor) == 0 && cursor->get_value(cursor, &name, &shown, &value) == 0;
  (void)cursor->close(cursor);
  return found ? unsigned_of(value) : 0;
}

}  // namespace spillway::engine
