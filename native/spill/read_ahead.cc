#include "spill/read_ahead.h"

#include <span>

namespace spillway::spill {

using rocksdb::Slice;
using rocksdb::Status;

namespace {

// One read is of so many bytes at most, or of one value. Source: as far as RocksDB reads ahead by itself
// (BlockBasedTableOptions::max_auto_readahead_size).
constexpr std::size_t kMostBytesAhead = 256 << 10;
// Where deletions lie between the values, they are passed over to find values, but not without end.
constexpr std::size_t kMostKeysAhead = 256;

}  // namespace

void Limits::take_prefix(const Slice& key) {
  prefix.reset();
  if (prefix_extractor && prefix_extractor->InDomain(key)) prefix = prefix_extractor->Transform(key).ToString();
}

bool Limits::outside(const Slice& key, Direction direction) const {
  if (direction == Direction::forward) {
    if (upper && comparator->Compare(key, *upper) >= 0) return true;
  } else if (lower && comparator->Compare(key, *lower) < 0) {
    return true;
  }
  return prefix && !(prefix_extractor->InDomain(key) && prefix_extractor->Transform(key) == *prefix);
}

ReadAhead::ReadAhead(const View& view, std::uint32_t column_family, const Limits& limits, ValueReader values)
    : limits_(&limits),
      cover_(view, column_family, limits.comparator),
      cursor_(view, column_family, limits.comparator),
      values_(values) {}

void ReadAhead::seek(const Slice& target, Direction direction, bool or_equal) {
  cursor_.seek(target, direction, or_equal);
  restart(direction);
}

void ReadAhead::seek_to_end(Direction direction) {
  cursor_.seek_to_end(direction);
  restart(direction);
}

void ReadAhead::restart(Direction direction) {
  direction_ = direction;
  items_.clear();
  head_ = 0;
  at_end_ = false;
  pull();
}

bool ReadAhead::pull() {
  const Entry* entry = at_end_ ? nullptr : cursor_.next();
  if (!entry || limits_->outside(slice_of(entry->key()), direction_)) {
    at_end_ = true;
    return false;
  }
  const bool covered = !cover_.empty() && cover_.newest_over(slice_of(entry->key())) > entry->sequence;
  items_.push_back({entry, covered || entry->kind == Kind::remove});
  return true;
}

void ReadAhead::pop() {
  if (++head_ < items_.size()) return;
  items_.clear();
  head_ = 0;
  pull();
}

const Status& ReadAhead::load(std::size_t window) {
  if (!loaded()) {
    const std::size_t count = collect(window);
    values_.read_many(std::span(batch_).first(count));
  }
  return batch_[items_[head_].slot].status;
}

// Gives the next `window` values a request each and says how many they are. What is asked for now replaces what was
// read before, and nothing of that is still ahead: values are read in the order in which they are passed.
std::size_t ReadAhead::collect(std::size_t window) {
  std::size_t count = 0;
  std::size_t bytes = 0;
  for (std::size_t i = head_; count < window && i - head_ < kMostKeysAhead; ++i) {
    if (i == items_.size() && !pull()) break;
    Item& item = items_[i];
    if (item.deleted) continue;
    const Location& place = item.entry->value;
    bytes += place.length;
    if (count > 0 && bytes > kMostBytesAhead) break;
    if (count == batch_.size()) batch_.emplace_back();
    ReadRequest& request = batch_[count];  // its buffer is used again
    request.generation = item.entry->generation->id();
    request.offset = place.offset;
    request.from = place.from;
    request.length = place.length;
    request.status = Status::OK();
    item.slot = count++;
  }
  return count;
}

}  // namespace spillway::spill
