#include "spill/live/sorted_cursor.h"

#include <algorithm>
#include <set>
#include <utility>

namespace spillway::spill {

using rocksdb::Comparator;
using rocksdb::Slice;

// --- RangeCover

namespace {

// Where a tombstone begins or ends.
struct Edge {
  Slice key;
  Sequence sequence = 0;
  bool begins = false;
};

std::vector<RangeTombstone> tombstones_of(const View& view, std::uint32_t column_family, const Comparator* comparator) {
  std::vector<RangeTombstone> found;
  if (!view.generations) return found;
  for (const auto& generation : *view.generations) {
    if (!generation->has_range_tombstones()) continue;
    for (RangeTombstone& tombstone : generation->range_tombstones()) {
      if (tombstone.column_family != column_family || tombstone.sequence > view.up_to) continue;
      if (comparator->Compare(tombstone.begin, tombstone.end) >= 0) continue;
      found.push_back(std::move(tombstone));
    }
  }
  return found;
}

}  // namespace

RangeCover::RangeCover(const View& view, std::uint32_t column_family, const Comparator* comparator)
    : comparator_(comparator), tombstones_(tombstones_of(view, column_family, comparator)) {
  std::vector<Edge> edges;
  edges.reserve(tombstones_.size() * 2);
  for (const RangeTombstone& tombstone : tombstones_) {
    edges.push_back({tombstone.begin, tombstone.sequence, true});
    edges.push_back({tombstone.end, tombstone.sequence, false});
  }
  std::sort(edges.begin(), edges.end(),
            [this](const Edge& a, const Edge& b) { return comparator_->Compare(a.key, b.key) < 0; });
  std::multiset<Sequence> open;
  Slice since;
  for (const Edge& edge : edges) {
    if (!open.empty() && since != edge.key) parts_.push_back({{since, edge.key}, *open.rbegin()});
    if (edge.begins) {
      open.insert(edge.sequence);
    } else {
      open.erase(open.find(edge.sequence));
    }
    since = edge.key;
  }
}

RangeCover::Parts::const_iterator RangeCover::part_over(const Slice& key) const {
  const auto behind = std::partition_point(
      parts_.begin(), parts_.end(), [&](const Part& part) { return comparator_->Compare(part.span.end, key) <= 0; });
  const bool covers = behind != parts_.end() && comparator_->Compare(behind->span.begin, key) <= 0;
  return covers ? behind : parts_.end();
}

Sequence RangeCover::newest_over(const Slice& key) const {
  const auto part = part_over(key);
  return part == parts_.end() ? 0 : part->newest;
}

bool RangeCover::touches_next(Parts::const_iterator part) const {
  return part + 1 != parts_.end() && part->span.end == (part + 1)->span.begin;
}

RangeCover::Span RangeCover::span_around(const Slice& key) const {
  auto first = part_over(key);
  auto last = first;
  while (first != parts_.begin() && touches_next(first - 1)) --first;
  while (touches_next(last)) ++last;
  return {first->span.begin, last->span.end};
}

// --- SortedCursor

namespace {

// So many neighbours are looked at one by one before the rest is searched: most keys have a version or two, a few have
// very many.
constexpr int kOneByOne = 8;

}  // namespace

SortedCursor::SortedCursor(const View& view, std::uint32_t column_family, const Comparator* comparator)
    : comparator_(comparator), up_to_(view.up_to) {
  if (!view.generations) return;
  for (const auto& generation : *view.generations) {
    for (auto& entries : generation->sorted_runs(view.up_to)) {
      const Place begin = entries->data();
      const Place end = begin + entries->size();
      const Place first =
          std::partition_point(begin, end, [&](const Entry* e) { return e->column_family < column_family; });
      const Place last =
          std::partition_point(first, end, [&](const Entry* e) { return e->column_family == column_family; });
      if (first != last) runs_.push_back({std::move(entries), first, last, first});
    }
  }
  heap_.reserve(runs_.size());
}

void SortedCursor::seek(const Slice& target, Direction direction, bool or_equal) {
  const bool target_is_behind = or_equal == (direction == Direction::forward);  // behind the place, not before it
  for (Run& run : runs_) {
    run.at = std::partition_point(run.begin, run.end, [&](const Entry* entry) {
      const int order = compare(entry, target);
      return target_is_behind ? order < 0 : order <= 0;
    });
  }
  make_heap(direction);
}

void SortedCursor::seek_to_end(Direction direction) {
  for (Run& run : runs_) run.at = direction == Direction::forward ? run.begin : run.end;
  make_heap(direction);
}

const Entry* SortedCursor::newest_visible(Place first, Place last) const {
  if ((*first)->sequence <= up_to_) return *first;
  const Place place = std::partition_point(first, last, [this](const Entry* e) { return e->sequence > up_to_; });
  return place == last ? nullptr : *place;
}

const Entry* SortedCursor::next_forward() {
  while (!heap_.empty()) {
    const std::string_view key = top()->key();
    const Entry* newest = nullptr;
    while (!heap_.empty() && top()->key() == key) {
      Run& run = *heap_.front();
      const Place first = run.at++;
      for (int i = 0; i < kOneByOne && run.at != run.end && (*run.at)->key() == key; ++i) ++run.at;
      if (run.at != run.end && (*run.at)->key() == key) {
        run.at = std::partition_point(run.at, run.end, [&](const Entry* entry) { return entry->key() == key; });
      }
      const Entry* candidate = newest_visible(first, run.at);
      if (candidate && (!newest || candidate->sequence > newest->sequence)) newest = candidate;
      settle_top();
    }
    if (newest) return newest;
  }
  return nullptr;
}

const Entry* SortedCursor::next_backward() {
  while (!heap_.empty()) {
    const std::string_view key = top()->key();
    const Entry* newest = nullptr;
    while (!heap_.empty() && top()->key() == key) {
      Run& run = *heap_.front();
      const Place last = run.at--;
      for (int i = 0; i < kOneByOne && run.at != run.begin && run.at[-1]->key() == key; ++i) --run.at;
      if (run.at != run.begin && run.at[-1]->key() == key) {
        run.at = std::partition_point(run.begin, run.at, [&](const Entry* entry) { return entry->key() != key; });
      }
      const Entry* candidate = newest_visible(run.at, last);
      if (candidate && (!newest || candidate->sequence > newest->sequence)) newest = candidate;
      settle_top();
    }
    if (newest) return newest;
  }
  return nullptr;
}

void SortedCursor::make_heap(Direction direction) {
  direction_ = direction;
  heap_.clear();
  for (Run& run : runs_) {
    if (run.next(direction)) heap_.push_back(&run);
  }
  for (std::size_t i = heap_.size() / 2; i-- > 0;) sift_down(i);
}

// After the run at the top went on.
void SortedCursor::settle_top() {
  if (!heap_.front()->next(direction_)) {
    heap_.front() = heap_.back();
    heap_.pop_back();
  }
  if (heap_.size() > 1) sift_down(0);
}

void SortedCursor::sift_down(std::size_t at) {
  for (;;) {
    std::size_t child = 2 * at + 1;
    if (child >= heap_.size()) return;
    if (child + 1 < heap_.size() && comes_before(heap_[child + 1], heap_[child])) ++child;
    if (!comes_before(heap_[child], heap_[at])) return;
    std::swap(heap_[child], heap_[at]);
    at = child;
  }
}

bool SortedCursor::comes_before(const Run* a, const Run* b) const {
  const int order = compare(a->next(direction_), slice_of(b->next(direction_)->key()));
  return direction_ == Direction::forward ? order < 0 : order > 0;
}

}  // namespace spillway::spill
