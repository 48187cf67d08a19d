#include "spill/live/generation.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <new>
#include <utility>

namespace spillway::spill {
namespace {

// Small, for many generations are; each block after it is twice as large, up to the last. Source: guess
constexpr std::size_t kFirstBlockBytes = std::size_t{4} << 10;
constexpr std::size_t kLastBlockBytes = std::size_t{2} << 20;

bool covers(const RangeTombstone& tombstone, const rocksdb::Comparator& order, const rocksdb::Slice& key) {
  return order.Compare(tombstone.begin, key) <= 0 && order.Compare(key, tombstone.end) < 0;
}

}  // namespace

bool EntryOrder::before(const Entry& entry, std::uint32_t column_family, std::string_view key,
                        Sequence sequence) const {
  if (entry.column_family != column_family) return entry.column_family < column_family;
  static const rocksdb::Comparator* const bytewise = rocksdb::BytewiseComparator();
  const rocksdb::Comparator* const comparator = families_->comparator(column_family);
  const int order = comparator == bytewise ? entry.key().compare(key) : comparator->Compare(entry.key(), key);
  return order != 0 ? order < 0 : entry.sequence > sequence;
}

Generation::Generation(GenerationId id, const ColumnFamilies& families, std::function<void(GenerationId)> on_last_use)
    : id_(id),
      order_(families),
      families_(families),
      on_last_use_(std::move(on_last_use)),
      runs_(std::make_shared<const Runs>()) {}

Generation::~Generation() {
  if (on_last_use_ && is_dropped_.load(std::memory_order_acquire)) on_last_use_(id_);
}

std::byte* Generation::allocate(std::size_t bytes) {
  bytes = (bytes + alignof(Entry) - 1) / alignof(Entry) * alignof(Entry);
  if (bytes > free_bytes_) {
    const std::size_t usual = std::min(kFirstBlockBytes << std::min<std::size_t>(blocks_.size(), 9), kLastBlockBytes);
    free_bytes_ = std::max(bytes, usual);
    free_ = blocks_.emplace_back(free_bytes_).memory;
    memory_bytes_.fetch_add(free_bytes_, std::memory_order_relaxed);
  }
  free_bytes_ -= bytes;
  return std::exchange(free_, free_ + bytes);
}

void Generation::has_some_of(std::uint32_t column_family) {
  column_families_.insert(column_family);
  family_count_.store(column_families_.size(), std::memory_order_relaxed);
}

const Entry* Generation::add(std::uint32_t column_family, std::string_view key, Sequence sequence, Kind kind,
                             const Location& value, std::uint32_t value_checksum) {
  std::byte* const place = allocate(sizeof(Entry) + key.size());
  const Entry* const entry = new (place) Entry{.generation = this,
                                               .sequence = sequence,
                                               .value = value,
                                               .column_family = column_family,
                                               .key_bytes = static_cast<std::uint32_t>(key.size()),
                                               .value_checksum = value_checksum,
                                               .kind = kind};
  if (!key.empty()) std::memcpy(place + sizeof(Entry), key.data(), key.size());
  const std::uint64_t index = entry_count_.load(std::memory_order_relaxed);
  if (index == 0 || arrivals_[index - 1]->column_family != column_family) has_some_of(column_family);
  if (const std::size_t grown = arrivals_.grow(index); grown > 0) {
    memory_bytes_.fetch_add(grown, std::memory_order_relaxed);
  }
  arrivals_[index] = entry;
  key_bytes_.fetch_add(key.size(), std::memory_order_relaxed);
  user_bytes_.fetch_add(key.size() + (kind == Kind::put ? value.length : 0), std::memory_order_relaxed);
  last_sequence_.store(sequence, std::memory_order_release);
  entry_count_.store(index + 1, std::memory_order_release);
  return entry;
}

void Generation::add(RangeTombstone tombstone) {
  const std::size_t bytes = tombstone.begin.size() + tombstone.end.size();
  user_bytes_.fetch_add(bytes, std::memory_order_relaxed);
  // It is kept itself, and in the newest ranges it makes at most two more.
  memory_bytes_.fetch_add(3 * (sizeof(RangeTombstone) + bytes), std::memory_order_relaxed);
  const Sequence sequence = tombstone.sequence;
  const rocksdb::Comparator* const order = families_.comparator(tombstone.column_family);
  has_some_of(tombstone.column_family);
  {
    const ExclusiveLock lock(tombstones_mutex_);
    newest_ranges_.try_emplace(tombstone.column_family, order)
        .first->second.add(tombstone.begin, tombstone.end, tombstone.sequence);
    tombstones_.push_back(std::move(tombstone));
  }
  last_sequence_.store(sequence, std::memory_order_release);
  tombstone_count_.fetch_add(1, std::memory_order_release);
}

void Generation::count(std::uint32_t column_family, const Tally& added) {
  const MutexLock lock(tallies_mutex_);
  tallies_[column_family] += added;
}

Tally Generation::tally(std::optional<std::uint32_t> column_family) const {
  const MutexLock lock(tallies_mutex_);
  Tally sum;
  for (const auto& [id, tally] : tallies_) {
    if (!column_family || *column_family == id) sum += tally;
  }
  return sum;
}

std::shared_ptr<const Generation::Runs> Generation::runs() const {
  const MutexLock lock(runs_mutex_);
  return runs_;
}

std::shared_ptr<const SortedRun> Generation::sort_arrivals(std::uint64_t from, std::uint64_t to) const {
  auto run = std::make_shared<SortedRun>();
  run->reserve(to - from);
  for (std::uint64_t i = from; i < to; ++i) run->push_back(arrivals_[i]);
  std::sort(run->begin(), run->end(), order_);
  return run;
}

std::shared_ptr<const Generation::Runs> Generation::runs_with(Sequence up_to) const {
  const auto has_all = [&](const Runs& runs) {
    return runs.entries == entries() || arrivals_[runs.entries]->sequence > up_to;
  };
  std::shared_ptr<const Runs> now = runs();
  if (has_all(*now)) return now;

  const MutexLock sorting(sorting_mutex_);
  now = runs();
  if (has_all(*now)) return now;
  auto next = std::make_shared<Runs>(*now);
  next->entries = entries();
  std::shared_ptr<const SortedRun> run = sort_arrivals(now->entries, next->entries);
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
  memory_bytes_.fetch_add((next->entries - now->entries) * sizeof(void*), std::memory_order_relaxed);
  const MutexLock lock(runs_mutex_);
  runs_ = std::move(next);
  return runs_;
}

std::vector<std::shared_ptr<const SortedRun>> Generation::sorted_runs(Sequence up_to) const {
  return runs_with(up_to)->sorted;
}

const Entry* Generation::find(std::uint32_t column_family, std::string_view key, Sequence up_to) const {
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

std::vector<RangeTombstone> Generation::range_tombstones() const {
  const SharedLock lock(tombstones_mutex_);
  return tombstones_;
}

Sequence Generation::covering_tombstone(std::uint32_t column_family, std::string_view key, Sequence up_to) const {
  if (!has_range_tombstones()) return 0;
  const SharedLock lock(tombstones_mutex_);
  const auto ranges = newest_ranges_.find(column_family);
  if (ranges == newest_ranges_.end()) return 0;
  const Sequence newest = ranges->second.newest(key);
  if (newest <= up_to) return newest;
  // What covers it came after this view: of those before that, one after the other.
  const rocksdb::Comparator& order = *families_.comparator(column_family);
  for (std::size_t i = tombstones_.size(); i-- > 0;) {
    const RangeTombstone& one = tombstones_[i];
    if (one.sequence <= up_to && one.column_family == column_family && covers(one, order, key)) return one.sequence;
  }
  return 0;
}

void Generation::for_each(const std::function<void(const Entry&)>& each) const {
  const std::uint64_t count = entries();
  for (std::uint64_t i = 0; i < count; ++i) each(*arrivals_[i]);
}

const Entry* View::find(std::uint32_t column_family, std::string_view key) const {
  if (!generations) return nullptr;
  for (std::size_t i = generations->size(); i-- > 0;) {
    if (const Entry* found = (*generations)[i]->find(column_family, key, up_to)) return found;
  }
  return nullptr;
}

Sequence View::covering_tombstone(std::uint32_t column_family, std::string_view key,
                                  const ColumnFamilies& /*families*/) const {
  if (!generations) return 0;
  for (std::size_t i = generations->size(); i-- > 0;) {
    if (const Sequence found = (*generations)[i]->covering_tombstone(column_family, key, up_to)) return found;
  }
  return 0;
}

}  // namespace spillway::spill
