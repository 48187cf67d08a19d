#include "fs/extents.h"

#include <algorithm>
#include <cassert>
#include <iterator>

namespace spillway::fs {

void ExtentList::append(const Extent& extent) {
  if (extent.pages == 0) return;
  if (!extents_.empty() && extents_.back().first_page + extents_.back().pages == extent.first_page) {
    extents_.back().pages += extent.pages;
  } else {
    starts_.push_back(pages_);
    extents_.push_back(extent);
  }
  pages_ += extent.pages;
}

std::vector<Extent> ExtentList::cut(std::uint64_t pages) {
  std::vector<Extent> behind;
  while (pages_ > pages) {
    Extent& last = extents_.back();
    const std::uint64_t drop = std::min(last.pages, pages_ - pages);
    last.pages -= drop;
    pages_ -= drop;
    behind.push_back({last.first_page + last.pages, drop});
    if (last.pages == 0) {
      extents_.pop_back();
      starts_.pop_back();
    }
  }
  std::reverse(behind.begin(), behind.end());
  return behind;
}

std::vector<Extent> ExtentList::slice(std::uint64_t first, std::uint64_t count) const {
  assert(first + count <= pages_);
  std::vector<Extent> parts;
  if (count == 0) return parts;
  auto at = static_cast<std::size_t>(std::upper_bound(starts_.begin(), starts_.end(), first) - starts_.begin()) - 1;
  while (count > 0) {
    const std::uint64_t skip = first - starts_[at];
    const std::uint64_t here = std::min(extents_[at].pages - skip, count);
    parts.push_back({extents_[at].first_page + skip, here});
    first += here;
    count -= here;
    ++at;
  }
  return parts;
}

FreeExtents::FreeExtents(std::uint64_t pages) : free_pages_(pages) {
  if (pages > 0) runs_.emplace(0, pages);
}

std::optional<Extent> FreeExtents::take(std::uint64_t pages, std::uint64_t from) {
  assert(pages > 0);
  if (runs_.empty()) return std::nullopt;
  const auto start = runs_.upper_bound(from);
  // The run that contains `from` counts from `from` on.
  if (start != runs_.begin()) {
    const auto around = std::prev(start);
    const std::uint64_t end = around->first + around->second;
    if (end >= from + pages) return carve(around, std::max(from, around->first), pages);
  }
  auto longest = runs_.begin();
  const auto search = [&](Runs::iterator run, Runs::iterator stop) {
    for (; run != stop && run->second < pages; ++run) {
      if (run->second > longest->second) longest = run;
    }
    return run;
  };
  if (const auto run = search(start, runs_.end()); run != runs_.end()) return carve(run, run->first, pages);
  if (const auto run = search(runs_.begin(), start); run != start) return carve(run, run->first, pages);
  return carve(longest, longest->first, longest->second);
}

bool FreeExtents::take_exactly(const Extent& extent) {
  auto run = runs_.upper_bound(extent.first_page);
  if (run == runs_.begin()) return false;
  --run;
  const std::uint64_t end = run->first + run->second;
  if (end < extent.first_page || end - extent.first_page < extent.pages) return false;
  carve(run, extent.first_page, extent.pages);
  return true;
}

Extent FreeExtents::carve(Runs::iterator run, std::uint64_t first, std::uint64_t pages) {
  const auto [run_first, run_pages] = *run;
  const std::uint64_t run_end = run_first + run_pages;
  assert(first >= run_first && first + pages <= run_end);
  if (first == run_first) {
    runs_.erase(run);
  } else {
    run->second = first - run_first;
  }
  if (first + pages < run_end) runs_.emplace(first + pages, run_end - first - pages);
  free_pages_ -= pages;
  return {first, pages};
}

void FreeExtents::give_back(const Extent& extent) {
  if (extent.pages == 0) return;
  free_pages_ += extent.pages;
  std::uint64_t first = extent.first_page;
  std::uint64_t pages = extent.pages;
  auto next = runs_.lower_bound(first);
  assert(next == runs_.end() || next->first >= first + pages);
  if (next != runs_.begin()) {
    const auto before = std::prev(next);
    assert(before->first + before->second <= first);
    if (before->first + before->second == first) {
      first = before->first;
      pages += before->second;
      runs_.erase(before);
    }
  }
  if (next != runs_.end() && next->first == first + pages) {
    pages += next->second;
    runs_.erase(next);
  }
  runs_.emplace(first, pages);
}

}  // namespace spillway::fs
