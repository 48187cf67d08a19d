// Pacing of low-priority writes (WriteOptions::low_pri).
#pragma once

#include <rocksdb/rate_limiter.h>
#include <rocksdb/status.h>

#include <cstdint>
#include <cstring>
#include <memory>

namespace spillway::spill {

// While compactions are behind, RocksDB delays these writes in their own threads, to a share of 1 MiB/s. This library
// must not block inside RocksDB. Therefore it asks RocksDB not to wait, and delays the writes itself.
class LowPriority {
 public:
  // Whether RocksDB refused the write because of its priority, not because of a stall.
  static bool is_throttled(const rocksdb::Status& status) {
    return status.IsIncomplete() && status.getState() != nullptr &&
           std::strncmp(status.getState(), "Low priority", std::strlen("Low priority")) == 0;
  }

  void wait(std::size_t bytes) {
    while (bytes > 0) bytes -= limiter_->RequestToken(bytes, 0, rocksdb::Env::IO_HIGH, nullptr, kWrite);
  }

 private:
  static constexpr std::int64_t kBytesPerSecond = 1 << 20;  // RocksDB 7.8's own value
  static constexpr rocksdb::RateLimiter::OpType kWrite = rocksdb::RateLimiter::OpType::kWrite;

  const std::unique_ptr<rocksdb::RateLimiter> limiter_{rocksdb::NewGenericRateLimiter(kBytesPerSecond)};
};

}  // namespace spillway::spill
