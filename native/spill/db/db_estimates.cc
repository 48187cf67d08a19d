// Statistics, properties, and RocksDB's estimates with the contents of the spill store added.
#include <string_view>

#include "spill/db/db_impl.h"
#include "spill/live/estimates.h"

namespace spillway::spill {
namespace {

using rocksdb::ColumnFamilyHandle;
using rocksdb::Slice;
using rocksdb::Status;

constexpr std::string_view kPrefix = "spillway.";

std::string_view view(const Slice& slice) { return {slice.data(), slice.size()}; }

// By property name, without the prefix.
std::map<std::string, std::uint64_t> numbers_of(const SpillStatistics& statistics) {
  std::map<std::string, std::uint64_t> numbers;
  for_each_statistic(statistics, [&](std::string_view name, std::uint64_t value) {
    numbers.emplace(property_of_statistic(name), value);
  });
  return numbers;
}

}  // namespace

SpillStatistics DbImpl::GetSpillStatistics() const {
  SpillStatistics s;
  telemetry_.counts.read_into(&s);
  const auto generations = live_.generations();
  s.live_generations = generations->size();
  for (const auto& one : *generations) {
    s.live_entries += one->entries();
    s.live_bytes += one->user_bytes();
  }
  s.index_bytes = live_.all_memory_bytes();
  s.store_used_bytes = live_.store().used_bytes();
  s.held_bytes = live_.store().held_bytes();
  s.store_capacity_bytes = live_.store().capacity_bytes();
  s.diverting = router_.is_diverting();
  s.root_handed_out = main_.is_handed_out();
  return s;
}

bool DbImpl::GetIntProperty(ColumnFamilyHandle* family, const Slice& property, std::uint64_t* value) {
  const std::string_view name(property.data(), property.size());
  if (!name.starts_with(kPrefix)) {
    if (!base().GetIntProperty(family, property, value)) return false;
    add_spilled(family->GetID(), property, value);
    return true;
  }
  const auto numbers = numbers_of(GetSpillStatistics());
  const auto found = numbers.find(std::string(name.substr(kPrefix.size())));
  if (found == numbers.end()) return false;
  *value = found->second;
  return true;
}

bool DbImpl::GetMapProperty(ColumnFamilyHandle* family, const Slice& property,
                            std::map<std::string, std::string>* value) {
  if (property != Slice("spillway.stats")) return base().GetMapProperty(family, property, value);
  value->clear();
  for (const auto& [name, number] : numbers_of(GetSpillStatistics())) (*value)[name] = std::to_string(number);
  return true;
}

bool DbImpl::GetProperty(ColumnFamilyHandle* family, const Slice& property, std::string* value) {
  const std::string_view name(property.data(), property.size());
  if (!name.starts_with(kPrefix) && !includes_spilled(property)) return base().GetProperty(family, property, value);
  if (name == "spillway.stats") {
    value->clear();
    for (const auto& [key, number] : numbers_of(GetSpillStatistics())) {
      *value += key + ": " + std::to_string(number) + "\n";
    }
    return true;
  }
  if (name == "spillway.prometheus") {
    *value = metrics();
    return true;
  }
  std::uint64_t number = 0;
  if (!GetIntProperty(family, property, &number)) return false;
  *value = std::to_string(number);
  return true;
}

// Counts as RocksDB counts its memtables: a put adds one key, a deletion subtracts one.
void DbImpl::add_spilled(std::optional<std::uint32_t> family, const Slice& property, std::uint64_t* value) const {
  if (!live_.has_any() || !includes_spilled(property)) return;
  const Tally tally = live_.tally(family);
  if (property == Slice(rocksdb::DB::Properties::kEstimateNumKeys)) {
    const std::uint64_t most = *value + tally.puts;
    *value = most > tally.removes ? most - tally.removes : 0;
  } else {
    *value += tally.put_bytes;
  }
}

// As RocksDB does, but without the guard. The guard has no block cache, and RocksDB answers that a property is unknown
// if one family does not know it.
bool DbImpl::sum_over_families(const Slice& property, std::uint64_t* value) {
  std::vector<std::uint32_t> ids;
  bool have_handles = true;
  live_.families().for_each([&](const ColumnFamily& family) {
    if (family.is_dropped) return;
    ids.push_back(family.id);
    have_handles = have_handles && family.handle != nullptr;
  });
  if (!have_handles) return base().GetAggregatedIntProperty(property, value);
  std::uint64_t sum = 0;
  for (const std::uint32_t id : ids) {
    const UsedColumnFamily family = live_.families().use(id);
    std::uint64_t one = 0;
    if (family.handle == nullptr) continue;  // it was dropped meanwhile
    if (!base().GetIntProperty(family.handle, property, &one)) return false;
    sum += one;
  }
  *value = sum;
  return true;
}

bool DbImpl::GetAggregatedIntProperty(const Slice& property, std::uint64_t* value) {
  if (view(property).starts_with(kPrefix)) return GetIntProperty(DefaultColumnFamily(), property, value);
  if (!sum_over_families(property, value)) return false;
  add_spilled(std::nullopt, property, value);
  return true;
}

Status DbImpl::GetApproximateSizes(const rocksdb::SizeApproximationOptions& options, ColumnFamilyHandle* family,
                                   const rocksdb::Range* ranges, int count, std::uint64_t* sizes) {
  const Status status = base().GetApproximateSizes(options, family, ranges, count, sizes);
  if (!status.ok() || !live_.has_any()) return status;
  const View now = live_.view();
  for (int i = 0; i < count; ++i) {
    sizes[i] += estimate_range(*now.generations, live_.families(), family->GetID(), view(ranges[i].start),
                               view(ranges[i].limit))
                    .bytes;
  }
  return status;
}

void DbImpl::GetApproximateMemTableStats(ColumnFamilyHandle* family, const rocksdb::Range& range, std::uint64_t* count,
                                         std::uint64_t* size) {
  base().GetApproximateMemTableStats(family, range, count, size);
  if (!live_.has_any()) return;
  const View now = live_.view();
  const RangeEstimate spilled =
      estimate_range(*now.generations, live_.families(), family->GetID(), view(range.start), view(range.limit));
  *count += spilled.entries;
  *size += spilled.bytes;
}

// Grows with every write of this opening, to whichever store it goes. The count of diverted writes is read first, so
// that no later call returns less.
rocksdb::SequenceNumber DbImpl::GetLatestSequenceNumber() const {
  const Sequence diverted = live_.visible() - live_.recovered();
  return db_->GetLatestSequenceNumber() + diverted;
}

}  // namespace spillway::spill
