// Column families and options: see families.h.
#include "spill/db/db_impl.h"

namespace spillway::spill {

using rocksdb::ColumnFamilyHandle;
using rocksdb::Status;

Status DbImpl::CreateColumnFamily(const rocksdb::ColumnFamilyOptions& options, const std::string& name,
                                  ColumnFamilyHandle** handle) {
  return families_.create({name, options}, handle);
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

Status DbImpl::create_column_family_with_import(const rocksdb::ColumnFamilyDescriptor& family,
                                                const rocksdb::ImportColumnFamilyOptions& options,
                                                const ImportedFiles& files, ColumnFamilyHandle** handle) {
  return families_.create_with_import(family, options, files, handle);
}

Status DbImpl::DropColumnFamily(ColumnFamilyHandle* family) { return families_.drop(family); }

Status DbImpl::DropColumnFamilies(const std::vector<ColumnFamilyHandle*>& families) {
  for (ColumnFamilyHandle* family : families) {
    if (Status status = DropColumnFamily(family); !status.ok()) return status;
  }
  return {};
}

Status DbImpl::DestroyColumnFamilyHandle(ColumnFamilyHandle* family) { return families_.destroy_handle(family); }

Status DbImpl::SetOptions(ColumnFamilyHandle* family, const std::unordered_map<std::string, std::string>& options) {
  return families_.set_options(family, options);
}

Status DbImpl::EnableAutoCompaction(const std::vector<ColumnFamilyHandle*>& families) {
  const MutexLock no_change(main_.user_options().one_at_a_time());
  const Status status = base().EnableAutoCompaction(families);
  for (ColumnFamilyHandle* family : families) families_.refresh_limits(family);
  return status;
}

Status DbImpl::SetDBOptions(const std::unordered_map<std::string, std::string>& options) {
  const MutexLock no_change(main_.user_options().one_at_a_time());
  return base().SetDBOptions(options);
}

rocksdb::Options DbImpl::GetOptions(ColumnFamilyHandle* family) const { return families_.options_of(family); }
rocksdb::DBOptions DbImpl::GetDBOptions() const { return families_.database_options(); }
rocksdb::Env* DbImpl::GetEnv() const { return main_.user_options().env(); }
rocksdb::FileSystem* DbImpl::GetFileSystem() const { return GetEnv()->GetFileSystem().get(); }

}  // namespace spillway::spill
