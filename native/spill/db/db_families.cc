// Column families while the database is open, and options: what the user set is what the user reads.
#include <algorithm>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "spill/db/db_impl.h"

namespace spillway::spill {

using rocksdb::ColumnFamilyHandle;
using rocksdb::Status;

namespace {

// Before a family is dropped that others go on writing to. Source: guess.
constexpr int kMostRollbacks = 10;

}  // namespace

Status check_supported(const rocksdb::ColumnFamilyDescriptor& family) {
  const rocksdb::Comparator* const order = family.options.comparator;
  const auto no = [&](const char* what) {
    return Status::NotSupported("spillway::DB does not support " + std::string(what) + " (column family " +
                                family.name + ")");
  };
  if (order->timestamp_size() > 0) return no("user-defined timestamps");
  if (order->CanKeysWithDifferentByteContentsBeEqual()) {
    return no("a comparator under which different bytes can be equal");
  }
  // A put may be a change to be applied then, and there are no snapshots.
  if (family.options.inplace_update_support) return no("inplace_update_support");
  return {};
}

Status DbImpl::create_family(const rocksdb::ColumnFamilyDescriptor& family, ColumnFamilyHandle** handle,
                             const std::function<Status(const rocksdb::ColumnFamilyOptions&)>& create) {
  if (Status status = check_supported(family); !status.ok()) return status;
  if (is_guard(family.name)) {
    return Status::InvalidArgument("column families whose names begin as \"" + family.name +
                                   "\" are Spillway's own; give it another name");
  }
  UserOptions::Change change(*user_options_, family.name);
  change.set(slowdown_of(family.options));
  Status status = create(without_slowdown(family.options));
  if (!status.ok()) return status;
  change.keep();
  return families_.add(*handle);
}

Status DbImpl::CreateColumnFamily(const rocksdb::ColumnFamilyOptions& options, const std::string& name,
                                  ColumnFamilyHandle** handle) {
  return create_family({name, options}, handle, [&](const rocksdb::ColumnFamilyOptions& raised) {
    return base().CreateColumnFamily(raised, name, handle);
  });
}

Status DbImpl::CreateColumnFamilies(const rocksdb::ColumnFamilyOptions& options, const std::vector<std::string>& names,
                                    std::vector<ColumnFamilyHandle*>* handles) {
  std::vector<rocksdb::ColumnFamilyDescriptor> families;
  families.reserve(names.size());
  for (const std::string& name : names) families.emplace_back(name, options);
  return CreateColumnFamilies(families, handles);
}

Status DbImpl::CreateColumnFamilies(const std::vector<rocksdb::ColumnFamilyDescriptor>& families,
                                    std::vector<ColumnFamilyHandle*>* handles) {
  handles->clear();
  for (const auto& family : families) {
    ColumnFamilyHandle* handle = nullptr;
    if (Status status = CreateColumnFamily(family.options, family.name, &handle); !status.ok()) return status;
    handles->push_back(handle);
  }
  return {};
}

Status DbImpl::CreateColumnFamilyWithImport(const rocksdb::ColumnFamilyOptions& options, const std::string& name,
                                            const rocksdb::ImportColumnFamilyOptions& import_options,
                                            const rocksdb::ExportImportFilesMetaData& metadata,
                                            ColumnFamilyHandle** handle) {
  return create_family({name, options}, handle, [&](const rocksdb::ColumnFamilyOptions& raised) {
    return import_column_family(raised, name, import_options, metadata, handle);
  });
}

Status DbImpl::with_nothing_of(std::uint32_t family, const std::function<Status()>& action) {
  Status status;
  bool is_done = false;
  const auto try_action = [&] {
    const std::lock_guard no_change(user_options_->one_at_a_time());  // RocksDB may write the OPTIONS file
    // A rollback's ingestion may hold off what changes families until RocksDB has flushed, which comes to the queue.
    hold_commits([&] {
      const auto generations = live();
      is_done = std::none_of(generations->begin(), generations->end(),
                             [&](const auto& generation) { return generation->has_any_of(family); });
      if (is_done) status = action();
    });
  };
  for (int round = 0; round < kMostRollbacks; ++round) {  // without the lock, which others wait for
    try_action();
    if (is_done) return status;
    if (rollback_pause_.is_paused()) break;  // nothing comes back
    if (Status brought_back = Rollback(); !brought_back.ok()) return brought_back;
  }
  const std::lock_guard no_change(user_options_->one_at_a_time());
  return with_main_only(action);
}

// RocksDB goes on reading through the handle of a dropped family: so what the spill store has of it comes back first.
Status DbImpl::DropColumnFamily(ColumnFamilyHandle* family) {
  const std::uint32_t id = family->GetID();
  if (id == base().DefaultColumnFamily()->GetID() || families_.of(id).is_dropped) {
    return base().DropColumnFamily(family);  // says why not
  }
  std::shared_future<void> is_free;
  const Status status = with_nothing_of(id, [&] {
    const Status dropped = base().DropColumnFamily(family);
    if (!dropped.ok()) return dropped;
    is_free = families_.take_handle(id);
    families_.drop(id);
    return dropped;
  });
  if (!status.ok()) return status;
  is_free.wait();
  detector_->look_soon();  // its stalls are over
  const std::lock_guard lock(handles_mutex_);
  const auto is_of_it = [&](ColumnFamilyHandle* kept) { return kept->GetID() == id; };
  const auto rest = std::stable_partition(kept_handles_.begin(), kept_handles_.end(), std::not_fn(is_of_it));
  std::for_each(rest, kept_handles_.end(),
                [&](ColumnFamilyHandle* kept) { (void)base().DestroyColumnFamilyHandle(kept); });
  kept_handles_.erase(rest, kept_handles_.end());
  return status;
}

Status DbImpl::DropColumnFamilies(const std::vector<ColumnFamilyHandle*>& families) {
  for (ColumnFamilyHandle* family : families) {
    if (Status status = DropColumnFamily(family); !status.ok()) return status;
  }
  return {};
}

// Of a family that was made at run time there is no other handle, and rollbacks go on needing one.
Status DbImpl::DestroyColumnFamilyHandle(ColumnFamilyHandle* family) {
  const std::lock_guard lock(handles_mutex_);
  const bool is_ours = family != nullptr && family != base().DefaultColumnFamily() && !is_closed_ &&
                       families_.of(family->GetID()).handle == family;
  if (!is_ours) return base().DestroyColumnFamilyHandle(family);
  kept_handles_.push_back(family);
  return {};
}

// Where what the spill store has of the family cannot be brought back now, it stays there until the database is opened
// again.
void DbImpl::on_handle_deletion(ColumnFamilyHandle* handle) {
  const std::uint32_t id = handle->GetID();
  if (families_.of(id).handle != handle) return;
  const rocksdb::ColumnFamilyOptions options = GetOptions(handle);
  std::shared_future<void> is_free;
  const auto take = [&] {
    families_.keep_options(id, {handle->GetName(), options});
    is_free = families_.take_handle(id);
    return Status();
  };
  if (!with_nothing_of(id, take).ok()) (void)take();
  is_free.wait();
}

// --- Options

Status DbImpl::SetOptions(ColumnFamilyHandle* family, const std::unordered_map<std::string, std::string>& options) {
  UserOptions::Change change(*user_options_, family->GetName());
  const Status status = base().SetOptions(family, change.set(GetOptions(family), options));
  // Where only the OPTIONS file could not be written, RocksDB runs with them.
  if (status.ok() || status.IsIOError()) {
    change.keep();
    refresh_limits(family);
  }
  return status;
}

Status DbImpl::EnableAutoCompaction(const std::vector<ColumnFamilyHandle*>& families) {
  const std::lock_guard no_change(user_options_->one_at_a_time());
  const Status status = base().EnableAutoCompaction(families);
  for (ColumnFamilyHandle* family : families) refresh_limits(family);
  return status;
}

void DbImpl::refresh_limits(ColumnFamilyHandle* family) {
  families_.refresh(family->GetID());
  detector_->look_soon();
}

Status DbImpl::SetDBOptions(const std::unordered_map<std::string, std::string>& options) {
  const std::lock_guard no_change(user_options_->one_at_a_time());
  return base().SetDBOptions(options);
}

rocksdb::Options DbImpl::GetOptions(ColumnFamilyHandle* family) const {
  rocksdb::Options options = db_->GetOptions(family);
  user_options_->restore(&options);
  user_options_->restore(family->GetName(), &options);
  return options;
}

rocksdb::DBOptions DbImpl::GetDBOptions() const {
  rocksdb::DBOptions options = db_->GetDBOptions();
  user_options_->restore(&options);
  return options;
}

}  // namespace spillway::spill
