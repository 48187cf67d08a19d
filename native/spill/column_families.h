// What the spill store has to know of each column family: its order, its merge operator, its handle.
#pragma once

#include <rocksdb/comparator.h>
#include <rocksdb/db.h>

#include <cstdint>
#include <memory>
#include <shared_mutex>
#include <unordered_map>
#include <vector>

namespace spillway::spill {

struct ColumnFamily {
  std::uint32_t id = 0;
  rocksdb::ColumnFamilyHandle* handle = nullptr;
  const rocksdb::Comparator* comparator = nullptr;
  std::shared_ptr<rocksdb::MergeOperator> merge_operator;
};

// By id. Thread-safe. A family stays here after it was dropped, for its entries still have to be ordered.
class ColumnFamilies {
 public:
  void add(rocksdb::ColumnFamilyHandle* handle);  // known ones are replaced
  void forget_handle(std::uint32_t id);           // dropped: nothing can be written to it any more
  ColumnFamily of(std::uint32_t id) const;        // an unknown id: bytewise, no handle
  const rocksdb::Comparator* comparator(std::uint32_t id) const;

 private:
  mutable std::shared_mutex mutex_;
  std::unordered_map<std::uint32_t, ColumnFamily> families_;
};

}  // namespace spillway::spill
