// The spill store's keys of one column family in order, as a view has them: of each key the newest version.
#pragma once

#include <rocksdb/comparator.h>
#include <rocksdb/slice.h>

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "spill/live/generation.h"

namespace spillway::spill {

enum class Direction : std::uint8_t { forward, backward };

inline rocksdb::Slice slice_of(std::string_view text) { return {text.data(), text.size()}; }

// The range tombstones of one family in a view, cut where they begin and end, so that none overlap.
class RangeCover {
 public:
  RangeCover(const View& view, std::uint32_t column_family, const rocksdb::Comparator* comparator);
  RangeCover(const RangeCover&) = delete;  // its parts point into its tombstones
  RangeCover& operator=(const RangeCover&) = delete;

  bool empty() const { return parts_.empty(); }
  // The sequence of the newest tombstone over the key; 0 where there is none.
  Sequence newest_over(const rocksdb::Slice& key) const;

  struct Span {  // [begin, end)
    rocksdb::Slice begin;
    rocksdb::Slice end;
  };
  // All that is covered around the key without a gap. REQUIRES: newest_over(key) > 0
  Span span_around(const rocksdb::Slice& key) const;

 private:
  struct Part {
    Span span;
    Sequence newest = 0;
  };
  using Parts = std::vector<Part>;

  Parts::const_iterator part_over(const rocksdb::Slice& key) const;
  bool touches_next(Parts::const_iterator part) const;

  const rocksdb::Comparator* comparator_;
  std::vector<RangeTombstone> tombstones_;
  Parts parts_;
};

// Merges the sorted runs of the view's generations. Goes one way after each seek. Nothing of the view is copied: the
// view is to outlive it, and so are the entries that it returns.
class SortedCursor {
 public:
  SortedCursor(const View& view, std::uint32_t column_family, const rocksdb::Comparator* comparator);
  SortedCursor(const SortedCursor&) = delete;  // its heap points into its runs
  SortedCursor& operator=(const SortedCursor&) = delete;

  // Before the first key at or behind the target, seen in that direction; `or_equal` says whether the target itself
  // counts.
  void seek(const rocksdb::Slice& target, Direction direction, bool or_equal);
  void seek_to_end(Direction direction);  // forward: before the first key; backward: behind the last

  // The newest version of the next key, a deletion included; null behind the last.
  const Entry* next() { return direction_ == Direction::forward ? next_forward() : next_backward(); }

 private:
  using Place = const Entry* const*;

  // What a run has of the family. Forward, `at` is the next entry; backward, the one behind it is.
  struct Run {
    std::shared_ptr<const SortedRun> entries;
    Place begin = nullptr;
    Place end = nullptr;
    Place at = nullptr;

    const Entry* next(Direction direction) const {
      if (direction == Direction::forward) return at == end ? nullptr : *at;
      return at == begin ? nullptr : at[-1];
    }
  };

  const Entry* next_forward();
  const Entry* next_backward();
  const Entry* newest_visible(Place first, Place last) const;  // of one key's versions in one run
  int compare(const Entry* a, const rocksdb::Slice& key) const { return comparator_->Compare(slice_of(a->key()), key); }

  // A binary heap of the runs that are not at their end; its top has the next key.
  void make_heap(Direction direction);
  void settle_top();
  void sift_down(std::size_t at);
  bool comes_before(const Run* a, const Run* b) const;
  const Entry* top() const { return heap_.front()->next(direction_); }

  const rocksdb::Comparator* comparator_;
  Sequence up_to_;
  std::vector<Run> runs_;
  std::vector<Run*> heap_;
  Direction direction_ = Direction::forward;
};

}  // namespace spillway::spill
