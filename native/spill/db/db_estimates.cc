// RocksDB's estimates, with what is spilled.
#include "spill/db/db_impl.h"
#include "spill/live/estimates.h"

namespace spillway::spill {
namespace {

using rocksdb::ColumnFamilyHandle;
using rocksdb::Slice;
using rocksdb::Status;

constexpr std::string_view kPrefix = "spillway.";

std::string_view view(const Slice& slice) { return {slice.data(), slice.size()}; }

}  // namespace

Tally DbImpl::spilled(std::optional<std::uint32_t> family) const {
  const auto generations = live();
  Tally sum;
  for (const auto& generation : *generations) {
    sum += generation->tally(family);
  }
  return sum;
}

// As RocksDB counts its memtables: a put is a key more, a deletion one less.
void DbImpl::add_spilled(std::optional<std::uint32_t> family, const Slice& property, std::uint64_t* value) const {
  if (!has_live_.load(std::memory_order_acquire) || !includes_spilled(property)) return;
  const Tally tally = spilled(family);
  if (property == Slice(rocksdb::DB::Properties::kEstimateNumKeys)) {
    const std::uint64_t most = *value + tally.puts;
    *value = most > tally.removes ? most - tally.removes : 0;
  } else {
    *value += tally.put_bytes;
  }
}

// As RocksDB does, but without our guard: it has no block cache, and one family that does not know a property is enough
// for RocksDB to say that nobody does.
bool DbImpl::sum_over_families(const Slice& property, std::uint64_t* value) {
  std::vector<std::uint32_t> ids;
  bool have_handles = true;
  families_.for_each([&](const ColumnFamily& family) {
    if (family.is_dropped) return;
    ids.push_back(family.id);
    have_handles = have_handles && family.handle != nullptr;
  });
  if (!have_handles) return base().GetAggregatedIntProperty(property, value);
  std::uint64_t sum = 0;
  for (const std::uint32_t id : ids) {
    const UsedColumnFamily family = families_.use(id);
    std::uint64_t one = 0;
    if (family.handle == nullptr) continue;  // since then
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
  if (!status.ok() || !has_live_.load(std::memory_order_acquire)) return status;
  const auto generations = live();
  for (int i = 0; i < count; ++i) {
    sizes[i] +=
        estimate_range(*generations, families_, family->GetID(), view(ranges[i].start), view(ranges[i].limit)).bytes;
  }
  return status;
}

void DbImpl::GetApproximateMemTableStats(ColumnFamilyHandle* family, const rocksdb::Range& range, std::uint64_t* count,
                                         std::uint64_t* size) {
  base().GetApproximateMemTableStats(family, range, count, size);
  if (!has_live_.load(std::memory_order_acquire)) return;
  const auto generations = live();
  const RangeEstimate spilled =
      estimate_range(*generations, families_, family->GetID(), view(range.start), view(range.limit));
  *count += spilled.entries;
  *size += spilled.bytes;
}

// Grows with every write of this opening, wherever it goes: what was diverted is read first, so that no later call
// finds less.
rocksdb::SequenceNumber DbImpl::GetLatestSequenceNumber() const {
  const Sequence diverted = visible_.load(std::memory_order_acquire) - recovered_;
  return db_->GetLatestSequenceNumber() + diverted;
}

}  // namespace spillway::spill
