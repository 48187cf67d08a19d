#include "spill/read/read_ahead.h"

#include <algorithm>
#include <span>
#include <utility>

namespace spillway::spill {

using rocksdb::Slice;
using rocksdb::Status;

namespace {

// Most values that are prefetched; values of a scan's first batch; and the part of the most values that is requested
// together in the background. The drive then always has requests, and no other request waits behind many of them.
// Source: bench/spill_scan.
constexpr std::size_t kMostValuesAhead = 64;
constexpr std::size_t kFirstValuesAhead = 16;
constexpr std::size_t kBatchesAhead = 8;
// Most bytes that are prefetched, or one value if that is larger. Source: as far as RocksDB reads ahead by itself
// (BlockBasedTableOptions::max_auto_readahead_size).
constexpr std::uint64_t kMostBytesAhead = 256 << 10;
// Limits how many deletions are skipped in search of the next values.
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

ReadAhead::ReadAhead(const View& view, std::uint32_t column_family, const Limits& limits, ValueReader values,
                     bool ignores_range_deletions)
    : limits_(&limits),
      cover_(ignores_range_deletions ? View{} : view, column_family, limits.comparator),
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
  while (!batches_.empty()) retire_first();
  items_.clear();
  asked_ = 0;
  values_ahead_ = 0;
  bytes_ahead_ = 0;
  at_end_ = false;
  scans_ = false;
  window_ = 1;
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
  if (const Item& passed = items_.front(); passed.batch != nullptr) {
    --values_ahead_;
    bytes_ahead_ -= passed.entry->value.length;
  }
  items_.pop_front();
  if (asked_ > 0) --asked_;
  if (items_.empty()) pull();
}

void ReadAhead::begin_scan() {
  if (std::exchange(scans_, true)) return;
  if (in_background_) window_ = kFirstValuesAhead / 2;
  read_next_batch();
}

const Status& ReadAhead::load() {
  if (!loaded()) begin_batch();
  const Item& item = items_.front();
  while (batches_.front().get() != item.batch) retire_first();
  read_next_batch();
  if (auto flight = std::exchange(item.batch->in_flight, nullptr)) flight->wait();
  return request_of(item).status;
}

// Prefetch: requests the next values in the background as soon as they fill a batch.
void ReadAhead::read_next_batch() {
  if (!scans_ || !in_background_ || !valid()) return;
  if (values_ahead_ + std::max<std::size_t>(1, window_ / kBatchesAhead) <= window_) begin_batch();
}

void ReadAhead::begin_batch() {
  if (scans_) window_ = std::min(window_ * 2, kMostValuesAhead);
  if (spare_.empty()) spare_.push_back(std::make_unique<Batch>());
  Batch& batch = *spare_.back();
  request_values(batch);
  if (batch.count == 0) return;
  batch.in_flight = values_.begin_reads(std::span(batch.requests).first(batch.count));
  in_background_ = batch.in_flight != nullptr;
  batches_.push_back(std::move(spare_.back()));
  spare_.pop_back();
}

// Requests the next values: as many as may be prefetched, and at least one.
void ReadAhead::request_values(Batch& batch) {
  batch.count = 0;
  const std::size_t last = asked_ + kMostKeysAhead;
  for (; values_ahead_ < window_ && asked_ < last; ++asked_) {
    if (asked_ == items_.size() && !pull()) break;
    Item& item = items_[asked_];
    if (item.deleted) continue;
    const std::uint32_t length = item.entry->value.length;
    if (values_ahead_ > 0 && bytes_ahead_ + length > kMostBytesAhead) break;
    if (batch.count == batch.requests.size()) batch.requests.emplace_back();
    ReadRequest& request = batch.requests[batch.count];  // its buffer is reused
    ValueReader::ask(*item.entry, &request);
    item.batch = &batch;
    item.slot = batch.count++;
    ++values_ahead_;
    bytes_ahead_ += length;
  }
}

// Drops the batch's values that are still in flight, which are not needed any more.
void ReadAhead::retire_first() {
  batches_.front()->in_flight.reset();
  spare_.push_back(std::move(batches_.front()));
  batches_.pop_front();
}

}  // namespace spillway::spill
