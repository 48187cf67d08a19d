// RocksDB's other ways to open a database, which ignore the spill store. Refused while writes may be in it.
#include <algorithm>
#include <memory>
#include <utility>

#include "spill/compat/db_out.h"
#include "spill/main_db/binding.h"
#include "spillway/db.h"

namespace spillway {

using rocksdb::ColumnFamilyDescriptor;
using rocksdb::ColumnFamilyHandle;
using rocksdb::DBOptions;
using rocksdb::Options;
using rocksdb::Status;
using Families = std::vector<ColumnFamilyDescriptor>;
using Handles = std::vector<ColumnFamilyHandle*>;

namespace {

Status refuse_guarded(const DBOptions& options, const std::string& name, const std::string& way) {
  std::vector<std::string> families;
  if (Status status = spill::list_families(options, name, &families); !status.ok()) return status;
  if (std::none_of(families.begin(), families.end(), spill::is_guard)) return {};
  return Status::NotSupported("spillway::DB does not support " + way + ": writes of " + name +
                              " may lie in its spill store; open it with spillway::DB::Open, or bring them back with "
                              "'spillway spill drain " +
                              name + "'");
}

}  // namespace

Status DB::OpenForReadOnly(const Options& options, const std::string& name, rocksdb::DB** db,
                           bool error_if_wal_file_exists) {
  const Status status = refuse_guarded(options, name, "OpenForReadOnly");
  return status.ok() ? rocksdb::DB::OpenForReadOnly(options, name, spill::DbOut(db), error_if_wal_file_exists) : status;
}

Status DB::OpenForReadOnly(const DBOptions& options, const std::string& name, const Families& column_families,
                           Handles* handles, rocksdb::DB** db, bool error_if_wal_file_exists) {
  const Status status = refuse_guarded(options, name, "OpenForReadOnly");
  return status.ok() ? rocksdb::DB::OpenForReadOnly(options, name, column_families, handles, spill::DbOut(db),
                                                    error_if_wal_file_exists)
                     : status;
}

Status DB::OpenAsSecondary(const Options& options, const std::string& name, const std::string& secondary_path,
                           rocksdb::DB** db) {
  const Status status = refuse_guarded(options, name, "OpenAsSecondary");
  return status.ok() ? rocksdb::DB::OpenAsSecondary(options, name, secondary_path, spill::DbOut(db)) : status;
}

Status DB::OpenAsSecondary(const DBOptions& options, const std::string& name, const std::string& secondary_path,
                           const Families& column_families, Handles* handles, rocksdb::DB** db) {
  const Status status = refuse_guarded(options, name, "OpenAsSecondary");
  return status.ok()
             ? rocksdb::DB::OpenAsSecondary(options, name, secondary_path, column_families, handles, spill::DbOut(db))
             : status;
}

Status DB::OpenAndTrimHistory(const DBOptions& options, const std::string& name, const Families& column_families,
                              Handles* handles, rocksdb::DB** db, std::string trim_ts) {
  const Status status = refuse_guarded(options, name, "OpenAndTrimHistory");
  return status.ok() ? rocksdb::DB::OpenAndTrimHistory(options, name, column_families, handles, spill::DbOut(db),
                                                       std::move(trim_ts))
                     : status;
}

Status DB::ListColumnFamilies(const DBOptions& options, const std::string& name,
                              std::vector<std::string>* column_families) {
  const Status status = rocksdb::DB::ListColumnFamilies(options, name, column_families);
  std::erase_if(*column_families, spill::is_guard);
  return status;
}

Status DB::AbandonSpilled(const DBOptions& options, const std::string& name, const Families& column_families) {
  std::vector<std::string> known;
  if (Status status = spill::list_families(options, name, &known); !status.ok()) return status;
  if (std::none_of(known.begin(), known.end(), spill::is_guard)) {
    return Status::InvalidArgument(name + " has nothing in a spill store that could be given up; open it as it is");
  }
  Families families = column_families;
  const std::size_t wanted = families.size();
  for (const std::string& one : known) {
    if (spill::is_guard(one)) families.emplace_back(one, spill::guard_options());
  }
  std::unique_ptr<rocksdb::DB> db;
  Handles handles;
  Status status = rocksdb::DB::Open(options, name, families, &handles, spill::DbOut(&db));
  if (!status.ok()) return status;
  for (std::size_t i = wanted; i < handles.size() && status.ok(); ++i) status = db->DropColumnFamily(handles[i]);
  for (ColumnFamilyHandle* handle : handles) (void)db->DestroyColumnFamilyHandle(handle);
  const Status closed = db->Close();
  return status.ok() ? closed : status;
}

}  // namespace spillway
