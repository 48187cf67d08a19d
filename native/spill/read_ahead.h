// The spill store's side of an iterator: its keys in order, and their values, read before they are asked for.
//
// Which values a scan will need is known exactly, for the runs are in memory. So they are read together, which a drive
// serves side by side, where a scan of RocksDB's tables reads ahead in one file.
#pragma once

#include <rocksdb/slice_transform.h>

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "spill/generation.h"
#include "spill/sorted_cursor.h"
#include "spill/value_reader.h"

namespace spillway::spill {

// Where an iteration ends. The bounds are the caller's, who may change what they point to between seeks.
struct Limits {
  const rocksdb::Comparator* comparator = nullptr;
  const rocksdb::Slice* lower = nullptr;
  const rocksdb::Slice* upper = nullptr;
  std::shared_ptr<const rocksdb::SliceTransform> prefix_extractor;  // of prefix_same_as_start
  std::optional<std::string> prefix;                                // that of the seek, once it is known

  void take_prefix(const rocksdb::Slice& key);
  bool outside(const rocksdb::Slice& key, Direction direction) const;
};

class ReadAhead {
 public:
  // REQUIRES: view and limits outlive it
  ReadAhead(const View& view, std::uint32_t column_family, const Limits& limits, ValueReader values);

  void seek(const rocksdb::Slice& target, Direction direction, bool or_equal);
  void seek_to_end(Direction direction);
  bool valid() const { return head_ < items_.size(); }

  // The next key in the direction of the seek. REQUIRES: valid()
  rocksdb::Slice key() const { return slice_of(items_[head_].entry->key()); }
  bool deleted() const { return items_[head_].deleted; }  // by itself or by a range
  void pop();

  // Makes the value of this key be there, and reads with it those of as many of the keys that follow as make `window`.
  // REQUIRES: valid(), !deleted()
  const rocksdb::Status& load(std::size_t window);
  bool loaded() const { return items_[head_].slot != kNowhere; }
  // REQUIRES: load() was OK. Valid until the next load() of a value that was not there.
  rocksdb::Slice value() const { return batch_[items_[head_].slot].bytes; }

  const RangeCover& cover() const { return cover_; }

 private:
  static constexpr std::size_t kNowhere = static_cast<std::size_t>(-1);

  struct Item {
    const Entry* entry = nullptr;
    bool deleted = false;
    std::size_t slot = kNowhere;  // in batch_
  };

  void restart(Direction direction);
  bool pull();
  std::size_t collect(std::size_t window);

  const Limits* limits_;
  RangeCover cover_;
  SortedCursor cursor_;
  ValueReader values_;
  Direction direction_ = Direction::forward;
  std::vector<Item> items_;  // [head_, end) are ahead
  std::size_t head_ = 0;
  bool at_end_ = true;
  std::vector<ReadRequest> batch_;  // the last read, kept for its buffers
};

}  // namespace spillway::spill
