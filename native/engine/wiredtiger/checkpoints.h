// Checkpoints of a WiredTiger database. Those of its `checkpoint=(wait,log_size)` are made by a thread of the engine
// instead of WiredTiger's. Callers can request others.
//
// At the file-system seam, WiredTiger's own checkpoint thread cannot be distinguished from its eviction threads. A
// thread of the engine can, so host bytes have a cause. It follows WiredTiger's rules: a checkpoint `wait` seconds
// after the end of the last one, or when log_size bytes of log were written since its beginning. MongoDB does the same
// since 4.2.
//
// Thread-safe.
#pragma once

#include <wiredtiger.h>

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "engine/engine.h"

namespace spillway::engine {

class Checkpoints {
 public:
  struct Rules {
    std::uint64_t wait_s = 0;     // 0: no checkpoints by time
    std::uint64_t log_bytes = 0;  // 0: no checkpoints by log size
  };

  ~Checkpoints() { stop(); }

  // Starts the thread, unless the rules need none. `log_bytes` returns the bytes of log written since the database was
  // opened. Returns an error code of WiredTiger.
  int start(WT_CONNECTION* connection, const Rules& rules, std::function<std::uint64_t()> log_bytes);
  // REQUIRES: called before the connection is closed.
  void stop();

  // Makes a checkpoint in this thread, after one in progress. Returns an error code of WiredTiger.
  int run(WT_SESSION* session);

  bool running() const { return running_.load() > 0; }
  // Steady clock, ns; 0: no checkpoint has ended yet.
  std::int64_t last_end_ns() const { return last_end_ns_.load(); }
  // The error code of the thread's last checkpoint.
  int last_error() const { return last_error_.load(); }
  std::vector<Event> take_events();

 private:
  void work(WT_SESSION* session);

  Rules rules_;
  std::function<std::uint64_t()> log_bytes_;
  std::atomic<int> running_ = 0;
  std::atomic<std::int64_t> last_end_ns_ = 0;
  std::atomic<int> last_error_ = 0;

  std::mutex mutex_;
  std::condition_variable wakes_;
  bool stops_ = false;         // guarded by mutex_
  std::vector<Event> events_;  // guarded by mutex_
  std::thread thread_;
};

}  // namespace spillway::engine
