#include "spill/live/newest_ranges.h"

#include <iterator>
#include <utility>

namespace spillway::spill {

// Splits ranges so that none extends over `at`.
void NewestRanges::split(std::string_view at) {
  const auto after = ranges_.lower_bound(at);
  if (after == ranges_.begin()) return;
  Range& over = std::prev(after)->second;
  if (!before(at, over.end)) return;
  Range rest = over;
  over.end = at;
  ranges_.emplace_hint(after, at, std::move(rest));
}

void NewestRanges::add(std::string_view begin, std::string_view end, Sequence sequence) {
  if (!before(begin, end)) return;
  split(begin);
  split(end);
  const auto rest = ranges_.erase(ranges_.lower_bound(begin), ranges_.lower_bound(end));
  ranges_.emplace_hint(rest, begin, Range{std::string(end), sequence});
}

Sequence NewestRanges::newest(std::string_view key) const {
  const auto after = ranges_.upper_bound(key);
  if (after == ranges_.begin()) return 0;
  const Range& range = std::prev(after)->second;
  return before(key, range.end) ? range.sequence : 0;
}

}  // namespace spillway::spill
