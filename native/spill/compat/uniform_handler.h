// A WriteBatch::Handler with the records of every version of RocksDB.
#pragma once

#include <rocksdb/write_batch.h>

#include <cstdint>

#include "spill/compat/rocksdb_version.h"

namespace spillway::spill {

class UniformHandler : public rocksdb::WriteBatch::Handler {
 public:
  // A put with the time at which the value was written. Not called before RocksDB 9.1, which has no such record.
  virtual rocksdb::Status timed_put(std::uint32_t family, const rocksdb::Slice& key, const rocksdb::Slice& value) = 0;
#if SPILLWAY_ROCKSDB_AT_LEAST(9, 1)
  rocksdb::Status TimedPutCF(std::uint32_t family, const rocksdb::Slice& key, const rocksdb::Slice& value,
                             std::uint64_t) final {
    return timed_put(family, key, value);
  }
#endif
};

}  // namespace spillway::spill
