// The spill store's side of an iterator: its keys in order, and the prefetch of their values.
//
// The keys are in memory, so the values that a scan will need are known exactly. They are read in batches, which a
// drive serves in parallel; a scan of RocksDB's tables reads ahead in one file. If the store can read in the
// background, the next batch is in flight while RocksDB's side reads and the caller uses the current values.
#pragma once

#include <rocksdb/slice_transform.h>

#include <cstddef>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "spill/live/generation.h"
#include "spill/live/sorted_cursor.h"
#include "spill/live/value_reader.h"

namespace spillway::spill {

// Where an iteration ends. The bounds are the caller's, whose slices may be changed between seeks.
struct Limits {
  const rocksdb::Comparator* comparator = nullptr;
  const rocksdb::Slice* lower = nullptr;
  const rocksdb::Slice* upper = nullptr;
  std::shared_ptr<const rocksdb::SliceTransform> prefix_extractor;  // for prefix_same_as_start
  std::optional<std::string> prefix;                                // the prefix of the seek, once it is known

  void take_prefix(const rocksdb::Slice& key);
  bool outside(const rocksdb::Slice& key, Direction direction) const;
};

class ReadAhead {
 public:
  // REQUIRES: view and limits outlive it
  ReadAhead(const View& view, std::uint32_t column_family, const Limits& limits, ValueReader values,
            bool ignores_range_deletions);

  void seek(const rocksdb::Slice& target, Direction direction, bool or_equal);
  void seek_to_end(Direction direction);
  bool valid() const { return !items_.empty(); }

  // The next key in the direction of the seek. REQUIRES: valid()
  rocksdb::Slice key() const { return slice_of(items_.front().entry->key()); }
  bool deleted() const { return items_.front().deleted; }  // by a tombstone of its own or of a range
  void pop();

  // The seek belongs to a scan. From now on values are prefetched, and each batch is twice as large as the one before.
  void begin_scan();

  // Loads the value of the current key. REQUIRES: valid(), !deleted()
  const rocksdb::Status& load();
  bool loaded() const { return items_.front().batch != nullptr; }  // loaded or in flight
  // REQUIRES: load() was OK. Valid until the next load(), pop() or seek.
  rocksdb::Slice value() const { return request_of(items_.front()).bytes; }

  const RangeCover& cover() const { return cover_; }

 private:
  // Values that are read together.
  struct Batch {
    std::vector<ReadRequest> requests;  // the first `count` are in use; the others keep their buffers for reuse
    std::size_t count = 0;
    std::unique_ptr<ReadsInFlight> in_flight;
  };
  struct Item {
    const Entry* entry = nullptr;
    bool deleted = false;
    Batch* batch = nullptr;  // the batch with its value, once that is requested
    std::size_t slot = 0;    // in the batch
  };

  static const ReadRequest& request_of(const Item& item) { return item.batch->requests[item.slot]; }

  void restart(Direction direction);
  bool pull();
  void begin_batch();
  void request_values(Batch& batch);
  void read_next_batch();
  void retire_first();

  const Limits* limits_;
  RangeCover cover_;
  SortedCursor cursor_;
  ValueReader values_;
  Direction direction_ = Direction::forward;
  std::deque<Item> items_;  // from the current key on
  std::size_t asked_ = 0;   // the number of items for which values were requested, where needed
  bool at_end_ = true;

  bool scans_ = false;
  bool in_background_ = false;     // the store reads in the background, by its last answer
  std::size_t window_ = 1;         // most values that are requested and not yet passed
  std::size_t values_ahead_ = 0;   // the current number of such values
  std::uint64_t bytes_ahead_ = 0;  // their bytes

  std::deque<std::unique_ptr<Batch>> batches_;  // in the order of their values
  std::vector<std::unique_ptr<Batch>> spare_;
};

}  // namespace spillway::spill
