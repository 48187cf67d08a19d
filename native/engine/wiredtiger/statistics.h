// WiredTiger's connection statistics under their own names ("cache: bytes currently in the cache"). Names differ
// between versions. A name that this version does not have reads as 0.
//
// Thread-safe.
#pragma once

#include <wiredtiger.h>

#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <vector>

namespace spillway::engine {

class ConnectionStatistics {
 public:
  // Opens a session of its own. Returns an error code of WiredTiger.
  int open(WT_CONNECTION* connection);
  // REQUIRES: no thread reads any more.
  void close();

  std::map<std::string, std::uint64_t> all();
  // Values of `names`, in their order, as of one time.
  std::vector<std::uint64_t> read(const std::vector<const char*>& names);

 private:
  std::mutex mutex_;
  WT_SESSION* session_ = nullptr;         // guarded by mutex_
  WT_CURSOR* cursor_ = nullptr;           // guarded by mutex_
  std::map<std::string, int> number_of_;  // by name; constant after open()
};

// "session: time waiting for cache (usecs)" of a session. REQUIRES: the calling thread may use it.
std::uint64_t cache_wait_us_of(WT_SESSION* session);

}  // namespace spillway::engine
