#include "spill/read/merged_iterator.h"

#include <cassert>
#include <string>
#include <utility>

#include "spill/read/read_ahead.h"

namespace spillway::spill {

using rocksdb::ReadOptions;
using rocksdb::Slice;
using rocksdb::Status;

namespace {

// From this many steps in one direction on, it is a scan. A look-up of the first keys of a range takes one step more
// than its seek.
constexpr int kStepsOfAScan = 2;

// Each side is at its next key in `direction_`, and the iterator is at the nearer key. If both sides have a key, the
// spill store's version is the newer one (I1). So whenever the iterator is `At::spill`, RocksDB's side is already past
// the key.
//
// The sides move independently: RocksDB's iterator is moved, and its key read, only after the iterator has passed its
// key.
class MergedIterator final : public rocksdb::Iterator {
 public:
  MergedIterator(IteratorSource base, const IteratedFamily& family, const ReadOptions& options, ValueReader values)
      : options_(options),
        comparator_(family.comparator),
        limits_(limits_of(family, base.prefix_extractor, options)),
        view_(std::move(base.view)),
        holds_(std::move(base.holds)),
        main_(std::move(base.main)),
        values_(values),
        spill_(view_, family.id, limits_, values_, options.ignore_range_deletions),
        status_(main_->status()) {}

  bool Valid() const override { return at_ != At::nowhere; }
  Status status() const override { return status_; }
  Slice key() const override {
    assert(Valid());
    return at_ == At::main ? main_key_ : spill_.key();
  }
  Slice value() const override {
    assert(Valid());
    return at_ == At::main ? main_->value() : spill_.value();
  }
  const rocksdb::WideColumns& columns() const override {
    assert(Valid());
    return at_ == At::main ? main_->columns() : columns_;
  }

  // As in RocksDB, the prefix of a bound ends the iteration if the iteration began at that bound.
  void SeekToFirst() override {
    if (limits_.lower) return Seek(*limits_.lower);
    begin(Direction::forward);
    main_->SeekToFirst();
    spill_.seek_to_end(direction_);
    find_current_and_prefix();
  }

  void SeekToLast() override {
    if (limits_.upper) return SeekForPrev(*limits_.upper);
    begin(Direction::backward);
    main_->SeekToLast();
    spill_.seek_to_end(direction_);
    find_current_and_prefix();
  }

  void Seek(const Slice& target) override {
    begin(Direction::forward);
    limits_.take_prefix(target);
    main_->Seek(target);
    const bool below = limits_.lower && compare(target, *limits_.lower) < 0;
    spill_.seek(below ? *limits_.lower : target, direction_, /*or_equal=*/true);
    main_moved();
    find_current();
  }

  void SeekForPrev(const Slice& target) override {
    begin(Direction::backward);
    limits_.take_prefix(target);
    main_->SeekForPrev(target);
    const bool above = limits_.upper && compare(target, *limits_.upper) >= 0;
    spill_.seek(above ? *limits_.upper : target, direction_, /*or_equal=*/!above);
    main_moved();
    find_current();
  }

  void Next() override { move(Direction::forward); }
  void Prev() override { move(Direction::backward); }

  Status GetProperty(std::string name, std::string* value) override {
    if (at_ == At::spill && name == "rocksdb.iterator.is-key-pinned") {
      value->assign(1, '1');  // it is in its generation, which the view keeps
      return Status::OK();
    }
    if (at_ == At::spill && name == "rocksdb.iterator.internal-key") {
      *value = key().ToString();
      return Status::OK();
    }
    return main_->GetProperty(std::move(name), value);
  }

 private:
  enum class At : std::uint8_t { nowhere, main, spill };

  static Limits limits_of(const IteratedFamily& family,
                          const std::shared_ptr<const rocksdb::SliceTransform>& prefix_extractor,
                          const ReadOptions& options) {
    Limits limits;
    limits.comparator = family.comparator;
    limits.lower = options.iterate_lower_bound;
    limits.upper = options.iterate_upper_bound;
    limits.prefix_extractor = prefix_extractor;
    return limits;
  }

  int compare(const Slice& a, const Slice& b) const { return comparator_->Compare(a, b); }

  void begin(Direction direction) {
    status_ = Status::OK();
    limits_.prefix.reset();
    start_in(direction);
  }

  void start_in(Direction direction) {
    direction_ = direction;
    steps_ = 0;
  }

  void find_current_and_prefix() {
    main_moved();
    find_current();
    if (limits_.prefix_extractor && Valid()) limits_.take_prefix(key());
  }

  void move(Direction direction) {
    assert(Valid());
    if (direction != direction_) {
      reverse(direction);
    } else if (at_ == At::main) {
      step_main();
    } else {
      spill_.pop();
    }
    if (++steps_ == kStepsOfAScan && values_.may_read(options_).ok()) spill_.begin_scan();
    find_current();
  }

  // Moves both sides past the current key in the other direction.
  void reverse(Direction direction) {
    const Slice from = key();  // if of RocksDB's side, valid until that is moved
    start_in(direction);
    const bool on_spill = at_ == At::spill;
    spill_.seek(from, direction, /*or_equal=*/false);
    if (!on_spill || main_valid_) {
      step_main();
    } else {
      if (direction == Direction::forward) {
        main_->Seek(from);
      } else {
        main_->SeekForPrev(from);
      }
      main_moved();
    }
    if (on_spill && main_valid_ && main_key_ == from) step_main();  // an older version of the key
  }

  // Moves to the nearest key of both sides that is not deleted.
  void find_current() {
    at_ = At::nowhere;
    for (std::uint64_t skipped = 0;; ++skipped) {
      skip_covered();
      if (!main_valid_) status_ = main_->status();
      if (!status_.ok() || (!main_valid_ && !spill_.valid())) return;
      const int order = order_of_sides();
      if (limits_.prefix && limits_.outside(order < 0 ? main_key_ : spill_.key(), direction_)) return;
      if (order < 0) {
        at_ = At::main;
        return;
      }
      if (options_.max_skippable_internal_keys > 0 && skipped > options_.max_skippable_internal_keys) {
        status_ = Status::Incomplete("more deletions in the spill store than max_skippable_internal_keys");
        return;
      }
      if (order == 0) step_main();
      if (!spill_.deleted()) return load();
      spill_.pop();
    }
  }

  // Negative: RocksDB's side is nearer.
  int order_of_sides() const {
    if (!main_valid_) return 1;
    if (!spill_.valid()) return -1;
    const int order = compare(main_key_, spill_.key());
    return direction_ == Direction::forward ? order : -order;
  }

  void load() {
    if (!spill_.loaded()) status_ = values_.may_read(options_);
    if (status_.ok()) status_ = spill_.load();
    if (!status_.ok()) return;
    at_ = At::spill;
    columns_.front().value() = spill_.value();
  }

  // Skips RocksDB's keys that a range tombstone in the spill store covers. Such a tombstone is newer than every version
  // of its keys in RocksDB (I1).
  void skip_covered() {
    const RangeCover& cover = spill_.cover();
    if (cover.empty()) return;
    while (main_valid_ && cover.newest_over(main_key_) > 0) {
      const RangeCover::Span span = cover.span_around(main_key_);
      if (direction_ == Direction::forward) {
        main_->Seek(span.end);
      } else {
        main_->SeekForPrev(span.begin);
      }
      main_moved();
      if (direction_ == Direction::backward && main_valid_ && main_key_ == span.begin) step_main();
    }
  }

  void step_main() {
    if (direction_ == Direction::forward) {
      main_->Next();
    } else {
      main_->Prev();
    }
    main_moved();
  }

  void main_moved() {
    main_valid_ = main_->Valid();
    if (main_valid_) main_key_ = main_->key();
  }

  const ReadOptions options_;
  const rocksdb::Comparator* const comparator_;
  Limits limits_;

  const View view_;
  const std::shared_ptr<void> holds_;
  const std::unique_ptr<rocksdb::Iterator> main_;
  const ValueReader values_;
  ReadAhead spill_;  // refers to the view

  At at_ = At::nowhere;
  Direction direction_ = Direction::forward;
  Status status_;
  bool main_valid_ = false;
  Slice main_key_;
  int steps_ = 0;  // since the seek, or the last change of direction
  rocksdb::WideColumns columns_{{rocksdb::kDefaultWideColumnName, Slice()}};  // of the spill store's value
};

}  // namespace

std::unique_ptr<rocksdb::Iterator> make_merged_iterator(IteratorSource base, const IteratedFamily& family,
                                                        const ReadOptions& options, ValueReader values) {
  return std::make_unique<MergedIterator>(std::move(base), family, options, values);
}

}  // namespace spillway::spill
