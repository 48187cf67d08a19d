#include "spill/live/generation.h"

#include <utility>

namespace spillway::spill {

Generation::Generation(GenerationId id, const ColumnFamilies& families, std::function<void(GenerationId)> on_last_use,
                       MemoryCount::Sum memory)
    : id_(id),
      on_last_use_(std::move(on_last_use)),
      entries_(families, memory),
      tombstones_(families, std::move(memory)) {}

Generation::~Generation() {
  if (on_last_use_ && is_dropped_.load(std::memory_order_acquire)) on_last_use_(id_);
}

void Generation::has_some_of(std::uint32_t column_family) {
  column_families_.insert(column_family);
  family_count_.store(column_families_.size(), std::memory_order_relaxed);
}

void Generation::count_operation(std::size_t key_bytes, std::size_t value_bytes, Sequence sequence) {
  operations_.fetch_add(1, std::memory_order_relaxed);
  key_bytes_.fetch_add(key_bytes, std::memory_order_relaxed);
  user_bytes_.fetch_add(key_bytes + value_bytes, std::memory_order_relaxed);
  last_sequence_.store(sequence, std::memory_order_release);
}

void Generation::replace(const Entry& older, Sequence sequence, Kind kind, const Location& value,
                         std::uint32_t value_checksum) {
  count_operation(older.key_bytes, kind == Kind::put ? value.length : 0, sequence);
  entries_.replace(older, {.sequence = sequence, .value = value, .value_checksum = value_checksum, .kind = kind});
}

const Entry* Generation::add(std::uint32_t column_family, std::string_view key, Sequence sequence, Kind kind,
                             const Location& value, std::uint32_t value_checksum) {
  const Entry* const before = entries_.newest();
  if (before == nullptr || before->column_family != column_family) has_some_of(column_family);
  count_operation(key.size(), kind == Kind::put ? value.length : 0, sequence);
  return entries_.append({.generation = this,
                          .sequence = sequence,
                          .value = value,
                          .column_family = column_family,
                          .key_bytes = static_cast<std::uint32_t>(key.size()),
                          .value_checksum = value_checksum,
                          .kind = kind},
                         key);
}

void Generation::add(RangeTombstone tombstone) {
  user_bytes_.fetch_add(tombstone.begin.size() + tombstone.end.size(), std::memory_order_relaxed);
  has_some_of(tombstone.column_family);
  const Sequence sequence = tombstone.sequence;
  tombstones_.add(std::move(tombstone));
  last_sequence_.store(sequence, std::memory_order_release);
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
