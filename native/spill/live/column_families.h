// What the spill store has to know of each column family: its order, its merge operator, its handle.
#pragma once

#include <rocksdb/comparator.h>
#include <rocksdb/db.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <future>
#include <memory>
#include <unordered_map>
#include <vector>

#include "base/mutex.h"
#include "spill/live/segments.h"
#include "spill/live/signals.h"

namespace spillway::spill {

struct ColumnFamily {
  std::uint32_t id = 0;
  rocksdb::ColumnFamilyHandle* handle = nullptr;  // called only while it is in use, see below; null: there is none
  // Set if the family was not dropped and its only handle was destroyed.
  std::shared_ptr<const rocksdb::ColumnFamilyDescriptor> options_without_handle = nullptr;
  bool is_dropped = false;  // what is there of it in the spill store is of no more use
  const rocksdb::Comparator* comparator = nullptr;
  std::shared_ptr<rocksdb::MergeOperator> merge_operator;
  bool deletes_ranges = true;  // its table factory can
  // Not with FIFO compaction: it deletes the files of the deepest level first, whatever their age, and RocksDB puts
  // files there that it ingests. Nor with tables that are not block-based: RocksDB 7.8 takes the last key of a plain
  // table to be its first, and its cuckoo and plain tables know no number of a file for their keys.
  bool can_be_diverted = true;
  Signals limits;  // its triggers; the rest is as of nothing
};

// A column family whose handle, if it has one, is not destroyed before this is.
struct UsedColumnFamily : ColumnFamily {
  std::shared_ptr<const void> in_use;
};

// Not OK of a family that was not dropped and has no handle: what the spill store has of it cannot be brought back.
rocksdb::Status check_handle(const ColumnFamily& family);

// By id. Thread-safe. A family stays here after it was dropped, for its entries still have to be ordered.
//
// The user may delete a handle at any time. A rollback, a commit or the detector, which use handles that no call of the
// user's has passed in, take them from use() or for_each(); the deletion waits for them.
class ColumnFamilies {
 public:
  // Asks the handle's descriptor for the order, the merge operator and the triggers.
  rocksdb::Status add(rocksdb::ColumnFamilyHandle* handle);
  void add(ColumnFamily family);
  // Asks the descriptor for the triggers again.
  void refresh(std::uint32_t id);

  // The handle cannot be found here any more. The future is ready when it is not in use any more.
  std::shared_future<void> take_handle(std::uint32_t id);
  void keep_options(std::uint32_t id, rocksdb::ColumnFamilyDescriptor options);
  void drop(std::uint32_t id);  // REQUIRES: the handle was taken

  ColumnFamily of(std::uint32_t id) const;  // an unknown id: bytewise, dropped
  UsedColumnFamily use(std::uint32_t id) const;
  const rocksdb::Comparator* comparator(std::uint32_t id) const;  // without a lock: sorting asks it often

  // `each` must not call back here; it may call the handle.
  void for_each(const std::function<void(const ColumnFamily&)>& each) const;

 private:
  // The users of one handle. The last to release it fulfils the promise.
  struct Users {
    ~Users() { nobody.set_value(); }
    std::promise<void> nobody;
    const std::shared_future<void> is_free = nobody.get_future().share();
  };
  struct Known {
    ColumnFamily family;
    std::shared_ptr<Users> users;
  };

  mutable SharedMutex mutex_;
  std::unordered_map<std::uint32_t, Known> families_ GUARDED_BY(mutex_);
  Segments<std::atomic<const rocksdb::Comparator*>> comparators_;
};

}  // namespace spillway::spill
