// A session and a cursor for each thread: WiredTiger's are not to be used by two threads at once.
//
// A thread keeps its seat until it ends or works on another database; the next one that comes takes it over.
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

struct Seat {
  WT_SESSION* session = nullptr;
  WT_CURSOR* cursor = nullptr;                 // on the table
  std::uint64_t cache_wait_us = 0;             // of the session, when it was last looked at
  std::atomic<std::int64_t> writes_since = 0;  // steady clock, ns; 0: not writing
};

class Sessions {
 public:
  Sessions(WT_CONNECTION* connection, std::string uri);

  // This thread's; null and an error of WiredTiger's in *error when it cannot be made.
  Seat* mine(int* error);
  // Of all threads; the seats may be in use.
  void each(const std::function<void(const Seat& seat)>& look) const;
  // Closes all sessions. REQUIRES: no thread is in an operation, and none calls mine() again.
  void close();

 private:
  struct Pool;
  struct Lease;

  const std::shared_ptr<Pool> pool_;
};

}  // namespace spillway::engine
