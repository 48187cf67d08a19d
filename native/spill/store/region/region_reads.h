// Reads of parts of records from the logs of the software region: one, many together, or begun and waited for later.
// They read only the requested bytes, so only scans verify a frame's checksum. Values have their own checksums.
#pragma once

#include <rocksdb/file_system.h>

#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "spill/store/region/region_logs.h"
#include "spill/store/store.h"

namespace spillway::spill {

// `log`: that of the request's generation, or null.
void read_one(const RegionLog* log, ReadRequest* request);
// Side by side. `which` of the requests are of this log, in the order of their offsets.
void read_together(const RegionLog* log, std::span<ReadRequest> requests, std::span<const std::size_t> which);

// Reads that were begun. The file system lets any thread wait for them.
class RegionReads final : public ReadsInFlight {
 public:
  explicit RegionReads(rocksdb::FileSystem& files) : files_(files) {}
  ~RegionReads() override;
  RegionReads(const RegionReads&) = delete;
  RegionReads& operator=(const RegionReads&) = delete;

  void begin(std::shared_ptr<const RegionLog> log, ReadRequest* request);
  void wait() override;

 private:
  struct Read {
    std::shared_ptr<const RegionLog> log;
    ReadRequest* request = nullptr;
    void* handle = nullptr;
    rocksdb::IOHandleDeleter delete_handle;
    bool is_pending = true;
  };

  std::vector<void*> handles_of_pending() const;

  rocksdb::FileSystem& files_;
  std::deque<Read> reads_;  // at addresses that stay
};

}  // namespace spillway::spill
