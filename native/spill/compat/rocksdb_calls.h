// Calls to RocksDB, and fields of its options, that differ between its versions.
#pragma once

#include <rocksdb/db.h>
#include <rocksdb/options.h>
#include <rocksdb/utilities/transaction_db.h>

#include <string>
#include <vector>

#include "spill/compat/rocksdb_version.h"

namespace spillway::spill {

// From 9.0 on RocksDB has no `force`, which ends all calls of DisableFileDeletions at once.
inline rocksdb::Status enable_file_deletions(rocksdb::DB& db, [[maybe_unused]] bool force) {
#if SPILLWAY_ROCKSDB_AT_LEAST(9, 0)
  return db.EnableFileDeletions();
#else
  return db.EnableFileDeletions(force);
#endif
}

using ImportedFiles = std::vector<const rocksdb::ExportImportFilesMetaData*>;

// REQUIRES: before RocksDB 8.4 one element in `files`.
inline rocksdb::Status create_column_family_with_import(rocksdb::DB& db, const rocksdb::ColumnFamilyDescriptor& family,
                                                        const rocksdb::ImportColumnFamilyOptions& options,
                                                        const ImportedFiles& files,
                                                        rocksdb::ColumnFamilyHandle** handle) {
#if SPILLWAY_ROCKSDB_AT_LEAST(8, 4)
  return db.CreateColumnFamilyWithImport(family.options, family.name, options, files, handle);
#else
  return db.CreateColumnFamilyWithImport(family.options, family.name, options, *files.front(), handle);
#endif
}

// RocksDB is to take copies of an argument's files instead of the files themselves, which it would copy while writers
// wait.
inline void ingest_copies(const std::vector<std::string>& copies, rocksdb::IngestExternalFileArg* argument) {
  argument->external_files = copies;
  argument->options.move_files = true;
  argument->options.failed_move_fall_back_to_copy = true;
#if SPILLWAY_ROCKSDB_AT_LEAST(11, 5)
  argument->file_infos.clear();  // they have the paths of the user's files; RocksDB reads the same from the copies
#endif
}

// Whether RocksDB takes the files by a rename or a link, so that nobody waits for a copy.
inline bool moves_or_links(const rocksdb::IngestExternalFileOptions& options) {
#if SPILLWAY_ROCKSDB_AT_LEAST(9, 7)
  return options.move_files || options.link_files;
#else
  return options.move_files;
#endif
}

// From RocksDB 9.8 on an iterator may leave reading a value to PrepareValue(). The merged iterator has no such call,
// and its own values are there at once.
inline void prepare_values([[maybe_unused]] rocksdb::ReadOptions& options) {
#if SPILLWAY_ROCKSDB_AT_LEAST(9, 8)
  options.allow_unprepared_value = false;
#endif
}

// Options of later versions that do not go with a spill store: the name of the first that is set and why not, or empty.
std::string refused_option(const rocksdb::DBOptions& options);
std::string refused_option(const rocksdb::ColumnFamilyOptions& options);
std::string refused_option(const rocksdb::TransactionDBOptions& options);

}  // namespace spillway::spill
