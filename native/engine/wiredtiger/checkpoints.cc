#include "engine/wiredtiger/checkpoints.h"

#include <chrono>
#include <utility>

#include "engine/wiredtiger/file_system.h"
#include "engine/writer_stalls.h"

namespace spillway::engine {

namespace {

// Interval between checks of the log's growth: at 1 GB/s it grows by a twentieth of the default log_size meanwhile.
constexpr std::chrono::milliseconds kLogLooks{100};

}  // namespace

int Checkpoints::start(WT_CONNECTION* connection, const Rules& rules, std::function<std::uint64_t()> log_bytes) {
  if (rules.wait_s == 0 && rules.log_bytes == 0) return 0;
  rules_ = rules;
  log_bytes_ = std::move(log_bytes);
  WT_SESSION* session = nullptr;
  if (const int error = connection->open_session(connection, nullptr, nullptr, &session); error != 0) return error;
  thread_ = std::thread([this, session] { work(session); });
  return 0;
}

void Checkpoints::stop() {
  {
    const std::lock_guard lock(mutex_);
    stops_ = true;
  }
  wakes_.notify_all();
  if (thread_.joinable()) thread_.join();
}

int Checkpoints::run(WT_SESSION* session) {
  const CheckpointThread writes_for_it;
  const std::int64_t begin_ns = steady_now_ns();
  ++running_;
  const int error = session->checkpoint(session, nullptr);
  const std::int64_t end_ns = steady_now_ns();
  last_end_ns_ = end_ns;
  --running_;
  const std::lock_guard lock(mutex_);
  events_.push_back({.at_ns = begin_ns,
                     .name = "wiredtiger.checkpoint",
                     .figures = {{"duration_s", static_cast<double>(end_ns - begin_ns) * 1e-9}},
                     .message = error == 0 ? "" : wiredtiger_strerror(error)});
  return error;
}

std::vector<Event> Checkpoints::take_events() {
  const std::lock_guard lock(mutex_);
  return std::exchange(events_, {});
}

void Checkpoints::work(WT_SESSION* session) {
  std::int64_t since_ns = steady_now_ns();
  std::uint64_t log_at_last = log_bytes_();
  for (;;) {
    {
      std::unique_lock lock(mutex_);
      if (wakes_.wait_for(lock, kLogLooks, [this] { return stops_; })) break;
    }
    const auto waited_s = static_cast<double>(steady_now_ns() - since_ns) * 1e-9;
    const bool by_time = rules_.wait_s > 0 && waited_s >= static_cast<double>(rules_.wait_s);
    const std::uint64_t log_now = log_bytes_();
    const bool by_log = rules_.log_bytes > 0 && log_now - log_at_last >= rules_.log_bytes;
    if (!by_time && !by_log) continue;
    log_at_last = log_now;
    last_error_ = run(session);
    since_ns = steady_now_ns();
    if (last_error_ != 0) break;  // WiredTiger makes no more checkpoints after a failed one
  }
  (void)session->close(session, nullptr);
}

}  // namespace spillway::engine
