#include "spill/live/column_families.h"

#include <rocksdb/table.h>

#include <string>
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

rocksdb::Status check_handle(const ColumnFamily& family) {
  if (family.handle != nullptr || family.is_dropped) return {};
  return rocksdb::Status::Aborted("the handle of column family " + std::to_string(family.id) +
                                  " was deleted before its diverted writes were brought back; reopen the database");
}

rocksdb::Status ColumnFamilies::add(rocksdb::ColumnFamilyHandle* handle) {
  rocksdb::ColumnFamilyDescriptor descriptor;
  const rocksdb::Status status = handle->GetDescriptor(&descriptor);
  if (!status.ok()) return status;
  add({.id = handle->GetID(),
       .handle = handle,
       .comparator = handle->GetComparator(),
       .merge_operator = descriptor.options.merge_operator,
       .deletes_ranges = descriptor.options.table_factory->IsDeleteRangeSupported(),
       .can_be_diverted = descriptor.options.compaction_style != rocksdb::kCompactionStyleFIFO &&
                          descriptor.options.table_factory->IsInstanceOf(rocksdb::TableFactory::kBlockBasedTableName()),
       .limits = limits_of(descriptor.options)});
  return status;
}

void ColumnFamilies::add(ColumnFamily family) {
  const ExclusiveLock lock(mutex_);
  comparators_.grow(family.id);
  comparators_[family.id].store(family.comparator, std::memory_order_release);
  Known& known = families_[family.id];
  known.family = std::move(family);
  known.users = std::make_shared<Users>();
}

void ColumnFamilies::refresh(std::uint32_t id) {
  const UsedColumnFamily family = use(id);
  rocksdb::ColumnFamilyDescriptor descriptor;
  if (family.handle == nullptr || !family.handle->GetDescriptor(&descriptor).ok()) return;
  const ExclusiveLock lock(mutex_);
  families_[id].family.limits = limits_of(descriptor.options);
}

std::shared_future<void> ColumnFamilies::take_handle(std::uint32_t id) {
  std::shared_ptr<Users> users;  // released after the lock
  const ExclusiveLock lock(mutex_);
  const auto found = families_.find(id);
  if (found == families_.end() || !found->second.users) return Users().is_free;
  found->second.family.handle = nullptr;
  users = std::move(found->second.users);
  return users->is_free;
}

void ColumnFamilies::keep_options(std::uint32_t id, rocksdb::ColumnFamilyDescriptor options) {
  auto kept = std::make_shared<const rocksdb::ColumnFamilyDescriptor>(std::move(options));
  const ExclusiveLock lock(mutex_);
  if (const auto found = families_.find(id); found != families_.end()) {
    found->second.family.options_without_handle = std::move(kept);
  }
}

void ColumnFamilies::drop(std::uint32_t id) {
  const ExclusiveLock lock(mutex_);
  if (const auto found = families_.find(id); found != families_.end()) found->second.family.is_dropped = true;
}

UsedColumnFamily ColumnFamilies::use(std::uint32_t id) const {
  const SharedLock lock(mutex_);
  const auto found = families_.find(id);
  if (found != families_.end()) return {found->second.family, found->second.users};
  return {{.id = id,
           .handle = nullptr,
           .options_without_handle = nullptr,
           .is_dropped = true,
           .comparator = rocksdb::BytewiseComparator(),
           .merge_operator = nullptr,
           .deletes_ranges = true,
           .limits = {}},
          nullptr};
}

ColumnFamily ColumnFamilies::of(std::uint32_t id) const { return use(id); }

const rocksdb::Comparator* ColumnFamilies::comparator(std::uint32_t id) const {
  const std::atomic<const rocksdb::Comparator*>* const place = comparators_.find(id);
  const rocksdb::Comparator* const known = place == nullptr ? nullptr : place->load(std::memory_order_acquire);
  return known == nullptr ? rocksdb::BytewiseComparator() : known;
}

void ColumnFamilies::for_each(const std::function<void(const ColumnFamily&)>& each) const {
  const SharedLock lock(mutex_);
  for (const auto& [id, known] : families_) each(known.family);
}

}  // namespace spillway::spill
