// RocksDB without write stalls: writes that would wait for a flush or a compaction are diverted to a spill store on the
// same drive. Reads find them there, and a rollback brings them back into RocksDB after the stall.
//
//   spillway::DB* db = nullptr;
//   rocksdb::Status status = spillway::DB::Open(rocksdb_options, spillway::SpillOptions(), "/path/to/db", &db);
//
// In all else it is a rocksdb::DB. In addition: no write is slowed down or stopped while the spill store
// has room; a sync write is durable when it is acknowledged, in either store; after a crash a prefix of the
// acknowledged writes survives; an operation that is not supported returns NotSupported with its name. Sources:
// KVAccel, K3-K10; the holes of T26 are closed as native/spill/README.md says.
#pragma once

#include <rocksdb/db.h>
#include <rocksdb/utilities/stackable_db.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#if __has_include("spillway/rocksdb_version.h")  // an installed library's: refuses headers of another RocksDB
#include "spillway/rocksdb_version.h"
#endif
#include "spillway/options.h"
#include "spillway/statistics.h"

namespace spillway {

// Overrides the decision where writes go.
enum class Diversion {
  automatic,  // by DivertPolicy
  always,     // as in a write stall: everything that can be diverted is
  never,      // as without one; writes of keys whose newest version is in the spill store still go there
};

class DB : public rocksdb::StackableDB {
 public:
  // As rocksdb::DB::Open. RocksDB's slowdown is switched off: its slowdown triggers become its stop triggers.
  // NotSupported, by name: comparators under which different bytes can be equal, user-defined timestamps,
  // inplace_update_support, unordered_write, two_write_queues, wal_filter, allow_ingest_behind, allow_mmap_writes, and
  // a file system whose files cannot be synced while they are written to. avoid_flush_during_recovery is switched off.
  static rocksdb::Status Open(const rocksdb::Options& options, const SpillOptions& spill, const std::string& name,
                              DB** db);
  static rocksdb::Status Open(const rocksdb::DBOptions& options, const SpillOptions& spill, const std::string& name,
                              const std::vector<rocksdb::ColumnFamilyDescriptor>& column_families,
                              std::vector<rocksdb::ColumnFamilyHandle*>* handles, DB** db);

  // NOLINTBEGIN(readability-identifier-naming): named as the rest of a rocksdb::DB is

  // RocksDB's other ways to open a database. They do not read the spill store: NotSupported while writes may lie in it,
  // because they would miss them, or trimming would not reach them. Otherwise as rocksdb::DB's.
  static rocksdb::Status OpenForReadOnly(const rocksdb::Options& options, const std::string& name, rocksdb::DB** db,
                                         bool error_if_wal_file_exists = false);
  static rocksdb::Status OpenForReadOnly(const rocksdb::DBOptions& options, const std::string& name,
                                         const std::vector<rocksdb::ColumnFamilyDescriptor>& column_families,
                                         std::vector<rocksdb::ColumnFamilyHandle*>* handles, rocksdb::DB** db,
                                         bool error_if_wal_file_exists = false);
  static rocksdb::Status OpenAsSecondary(const rocksdb::Options& options, const std::string& name,
                                         const std::string& secondary_path, rocksdb::DB** db);
  static rocksdb::Status OpenAsSecondary(const rocksdb::DBOptions& options, const std::string& name,
                                         const std::string& secondary_path,
                                         const std::vector<rocksdb::ColumnFamilyDescriptor>& column_families,
                                         std::vector<rocksdb::ColumnFamilyHandle*>* handles, rocksdb::DB** db);
  static rocksdb::Status OpenAndTrimHistory(const rocksdb::DBOptions& options, const std::string& name,
                                            const std::vector<rocksdb::ColumnFamilyDescriptor>& column_families,
                                            std::vector<rocksdb::ColumnFamilyHandle*>* handles, rocksdb::DB** db,
                                            std::string trim_ts);
  // NotSupported: a follower reads what the database writes from then on, which may be diverted at any time.
  template <typename... Arguments>
  static rocksdb::Status OpenAsFollower(const Arguments&...) {
    return rocksdb::Status::NotSupported(
        "spillway::DB does not support OpenAsFollower: it would not see diverted writes");
  }
  // Leaves out Spillway's guards.
  static rocksdb::Status ListColumnFamilies(const rocksdb::DBOptions& options, const std::string& name,
                                            std::vector<std::string>* column_families);

  // Abandons the writes in a spill store that is lost or does not belong to the database, as `spillway spill drain
  // --abandon` does for programs without comparators of their own. It removes the guard; the database then is
  // RocksDB's, without the newest writes. `column_families`: all but the guard. An existing spill store is not changed
  // and has to be moved away. InvalidArgument: the database has no guard, so there is nothing to abandon.
  static rocksdb::Status AbandonSpilled(const rocksdb::DBOptions& options, const std::string& name,
                                        const std::vector<rocksdb::ColumnFamilyDescriptor>& column_families);

  // Brings back every live generation, whatever the policy, and waits until its writes are durable in RocksDB. Writes
  // go on meanwhile; it does not wait for those that begin after it. Returns the error of a rollback that failed.
  virtual rocksdb::Status Rollback() = 0;
  // Creates in `directory`, which must not exist, a copy of the database as of now. The copy is a plain RocksDB
  // database and needs no spill store.
  virtual rocksdb::Status CreateCheckpoint(const std::string& directory) = 0;
  virtual SpillStatistics GetSpillStatistics() const = 0;
  // Takes effect with the next write.
  virtual void SetDiversion(Diversion diversion) = 0;
  // NOLINTEND(readability-identifier-naming)

 protected:
  using rocksdb::StackableDB::StackableDB;
};

}  // namespace spillway
