// Checkpoints of a WiredTiger database: those that its `checkpoint=(wait,log_size)` asks for, made by a thread of the
// engine rather than WiredTiger's, and those that callers want now.
//
// WiredTiger's own checkpoint thread cannot be told from its eviction threads at the file-system seam; a thread of the
// engine's can, so that host bytes have a cause. It keeps WiredTiger's rules: a checkpoint `wait` seconds after the
// last one ended, or when log_size bytes of log were written since it began. MongoDB does the same since 4.2.
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
    std::uint64_t wait_s = 0;     // 0: not by time
    std::uint64_t log_bytes = 0;  // 0: not by log
  };

  ~Checkpoints() { stop(); }

  // Starts the thread, unless the rules ask for none. `log_bytes` says how much log was written since the database was
  // opened. Returns an error of WiredTiger's.
  int start(WT_CONNECTION* connection, const Rules& rules, std::function<std::uint64_t()> log_bytes);
  // REQUIRES: called before the connection is closed.
  void stop();

  // One now, in this thread, behind one that runs. Returns an error of WiredTiger's.
  int run(WT_SESSION* session);

  bool running() const { return running_.load() > 0; }
  // steady clock, ns; 0: none has ended yet
  std::int64_t last_end_ns() const { return last_end_ns_.load(); }
  // What the thread's last checkpoint returned.
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
