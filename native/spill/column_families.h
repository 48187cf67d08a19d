// What the spill store has to know of each column family: its order, its merge operator, its handle.
#pragma once

#include <rocksdb/comparator.h>
#include <rocksdb/db.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <shared_mutex>
#include <unordered_map>
#include <vector>

#include "spill/controller.h"
#include "spill/segments.h"

namespace spillway::spill {

struct ColumnFamily {
  std::uint32_t id = 0;
  rocksdb::ColumnFamilyHandle* handle = nullptr;
  const rocksdb::Comparator* comparator = nullptr;
  std::shared_ptr<rocksdb::MergeOperator> merge_operator;
  Signals limits;  // its triggers; the rest is as of nothing
};

// By id. Thread-safe. A family stays here after it was dropped, for its entries still have to be ordered.
class ColumnFamilies {
 public:
  // Asks the handle's descriptor for the order, the merge operator and the triggers; a known family is replaced, so
  // that changed options are seen.
  rocksdb::Status add(rocksdb::ColumnFamilyHandle* handle);
  void add(ColumnFamily family);
  void forget_handle(std::uint32_t id);                           // dropped: nothing can be written to it any more
  ColumnFamily of(std::uint32_t id) const;                        // an unknown id: bytewise, no handle
  const rocksdb::Comparator* comparator(std::uint32_t id) const;  // without a lock: sorting asks it often

  // `each` must not call back here.
  void for_each(const std::function<void(const ColumnFamily&)>& each) const;

 private:
  mutable std::shared_mutex mutex_;
  std::unordered_map<std::uint32_t, ColumnFamily> families_;
  Segments<std::atomic<const rocksdb::Comparator*>> comparators_;
};

}  // namespace spillway::spill
