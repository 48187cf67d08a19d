// Column families while the database is open, and options: what the user set is what the user reads.
#include <string>
#include <utility>
#include <vector>

#include "spill/db_impl.h"

namespace spillway::spill {

using rocksdb::ColumnFamilyHandle;
using rocksdb::Status;

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
  return {};
}

Status DbImpl::create_family(const rocksdb::ColumnFamilyDescriptor& family, ColumnFamilyHandle** handle,
                             const std::function<Status(const rocksdb::ColumnFamilyOptions&)>& create) {
  if (Status status = check_supported(family); !status.ok()) return status;
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
    return base().CreateColumnFamilyWithImport(raised, name, import_options, metadata, handle);
  });
}

// What the spill store still holds of a dropped family is left out of the next rollback.
Status DbImpl::DropColumnFamily(ColumnFamilyHandle* family) {
  const std::lock_guard no_rollback(families_in_use_);
  const std::lock_guard no_change(user_options_->one_at_a_time());
  Status status = base().DropColumnFamily(family);
  if (status.ok()) {
    families_.forget_handle(family->GetID());
    detector_->look_soon();  // its stalls are over
  }
  return status;
}

Status DbImpl::DropColumnFamilies(const std::vector<ColumnFamilyHandle*>& families) {
  for (ColumnFamilyHandle* family : families) {
    if (Status status = DropColumnFamily(family); !status.ok()) return status;
  }
  return {};
}

// A rollback may need it still: it goes when the database is closed.
Status DbImpl::DestroyColumnFamilyHandle(ColumnFamilyHandle* family) {
  const std::lock_guard lock(handles_mutex_);
  if (is_closed_ || families_.of(family->GetID()).handle != family) return base().DestroyColumnFamilyHandle(family);
  kept_handles_.push_back(family);
  return {};
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
  ColumnFamilyHandle* const known = families_.of(family->GetID()).handle;
  if (known != nullptr) (void)families_.add(known);  // only a dropped one has no descriptor
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
