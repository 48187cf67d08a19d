#include "spill/live/sorted_entries.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace spillway::spill {

SortedEntries::SortedEntries(const ColumnFamilies& families, MemoryCount::Sum sum)
    : order_(families), arrivals_(sum), run_memory_(std::move(sum)), runs_(std::make_shared<const Runs>()) {}

std::shared_ptr<const SortedEntries::Runs> SortedEntries::now() const {
  const MutexLock lock(runs_mutex_);
  return runs_;
}

std::shared_ptr<const SortedRun> SortedEntries::sort_arrivals(EntryList::Place* from, std::uint64_t count) const {
  auto run = std::make_shared<SortedRun>();
  run->reserve(count);
  for (std::uint64_t i = 0; i < count; ++i) run->push_back(&arrivals_.next(from));
  std::sort(run->begin(), run->end(), order_);
  return run;
}

std::shared_ptr<const SortedEntries::Runs> SortedEntries::runs_with(Sequence up_to) const {
  // A view of entries up to `up_to` keeps them from being replaced: where the next one is newer, it was added after the
  // view was made, as all behind it were.
  const auto has_all = [&](const Runs& runs) {
    EntryList::Place behind = runs.behind;
    return runs.entries == size() || arrivals_.next(&behind).sequence > up_to;
  };
  std::shared_ptr<const Runs> current = now();
  if (has_all(*current)) return current;

  const MutexLock sorting(sorting_mutex_);
  current = now();
  if (has_all(*current)) return current;
  auto next = std::make_shared<Runs>(*current);
  next->entries = size();
  std::shared_ptr<const SortedRun> run = sort_arrivals(&next->behind, next->entries - current->entries);
  // An entry that is merged comes into a run half as large again at least, so it is not merged often; and runs that
  // at least halve in size are few.
  while (!next->sorted.empty() && next->sorted.back()->size() < 2 * run->size()) {
    const SortedRun& older = *next->sorted.back();
    auto merged = std::make_shared<SortedRun>();
    merged->reserve(older.size() + run->size());
    std::merge(older.begin(), older.end(), run->begin(), run->end(), std::back_inserter(*merged), order_);
    next->sorted.pop_back();
    run = std::move(merged);
  }
  next->sorted.push_back(std::move(run));
  run_memory_.add((next->entries - current->entries) * sizeof(void*));
  const MutexLock lock(runs_mutex_);
  runs_ = std::move(next);
  return runs_;
}

const Entry* SortedEntries::find(std::uint32_t column_family, std::string_view key, Sequence up_to) const {
  const std::shared_ptr<const Runs> runs = runs_with(up_to);
  // Sequences grow, so what a younger run has is newer.
  for (std::size_t i = runs->sorted.size(); i-- > 0;) {
    const SortedRun& run = *runs->sorted[i];
    const auto found = std::partition_point(
        run.begin(), run.end(), [&](const Entry* entry) { return order_.before(*entry, column_family, key, up_to); });
    if (found == run.end()) continue;
    if ((*found)->column_family == column_family && (*found)->key() == key) return *found;
  }
  return nullptr;
}

void SortedEntries::for_each(const std::function<void(const Entry&)>& each) const {
  const std::uint64_t count = size();
  EntryList::Place place;
  for (std::uint64_t i = 0; i < count; ++i) each(arrivals_.next(&place));
}

}  // namespace spillway::spill
