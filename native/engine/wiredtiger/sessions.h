// A session and a cursor for each thread, because two threads must not use one of WiredTiger's at the same time.
//
// A thread keeps its session until it ends or uses another database. Then another thread may take the session over.
#pragma once

#include <wiredtiger.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/result.h"

namespace spillway::engine {

struct ThreadSession {
  WT_SESSION* session = nullptr;
  WT_CURSOR* cursor = nullptr;                 // on the table
  std::uint64_t cache_wait_us = 0;             // of the session, at the last reading
  std::atomic<std::int64_t> writes_since = 0;  // steady clock, ns; 0: not writing
};

class Sessions {
 public:
  Sessions(WT_CONNECTION* connection, std::string uri);

  // Null if it cannot be created, with WiredTiger's error in *error.
  ThreadSession* of_this_thread(int* error);
  // Calls `visit` for all sessions, which other threads may be using.
  void each(const std::function<void(const ThreadSession& thread)>& visit) const;
  // Closes all sessions. REQUIRES: no thread is in an operation, and none calls of_this_thread() again.
  void close();

 private:
  struct Pool;
  struct Lease;

  const std::shared_ptr<Pool> pool_;
};

}  // namespace spillway::engine
