#include "spill/column_families.h"

#include <mutex>
#include <utility>

namespace spillway::spill {
namespace {

Signals limits_of(const rocksdb::ColumnFamilyOptions& options) {
  Signals limits;
  limits.l0_compaction_trigger = options.level0_file_num_compaction_trigger;
  limits.max_write_buffer_number = options.max_write_buffer_number;
  // Without compactions RocksDB stops for nothing that only they could cure.
  limits.l0_stop_trigger = options.disable_auto_compactions ? 0 : options.level0_stop_writes_trigger;
  limits.hard_pending_compaction_bytes =
      options.disable_auto_compactions ? 0 : options.hard_pending_compaction_bytes_limit;
  return limits;
}

}  // namespace

rocksdb::Status ColumnFamilies::add(rocksdb::ColumnFamilyHandle* handle) {
  rocksdb::ColumnFamilyDescriptor descriptor;
  const rocksdb::Status status = handle->GetDescriptor(&descriptor);
  if (!status.ok()) return status;
  add({.id = handle->GetID(),
       .handle = handle,
       .comparator = handle->GetComparator(),
       .merge_operator = descriptor.options.merge_operator,
       .limits = limits_of(descriptor.options)});
  return status;
}

void ColumnFamilies::add(ColumnFamily family) {
  const std::unique_lock lock(mutex_);
  comparators_.grow(family.id);
  comparators_[family.id].store(family.comparator, std::memory_order_release);
  families_[family.id] = std::move(family);
}

void ColumnFamilies::forget_handle(std::uint32_t id) {
  const std::unique_lock lock(mutex_);
  const auto found = families_.find(id);
  if (found != families_.end()) found->second.handle = nullptr;
}

ColumnFamily ColumnFamilies::of(std::uint32_t id) const {
  const std::shared_lock lock(mutex_);
  const auto found = families_.find(id);
  if (found != families_.end()) return found->second;
  return {.id = id,
          .handle = nullptr,
          .comparator = rocksdb::BytewiseComparator(),
          .merge_operator = nullptr,
          .limits = {}};
}

const rocksdb::Comparator* ColumnFamilies::comparator(std::uint32_t id) const {
  const std::atomic<const rocksdb::Comparator*>* const place = comparators_.find(id);
  const rocksdb::Comparator* const known = place == nullptr ? nullptr : place->load(std::memory_order_acquire);
  return known == nullptr ? rocksdb::BytewiseComparator() : known;
}

void ColumnFamilies::for_each(const std::function<void(const ColumnFamily&)>& each) const {
  const std::shared_lock lock(mutex_);
  for (const auto& [id, family] : families_) each(family);
}

}  // namespace spillway::spill
