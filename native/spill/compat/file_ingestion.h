// An ingestion of external files in two phases, so that writers are kept out for the second one only.
#pragma once

#include <rocksdb/db.h>

#include <memory>
#include <utility>
#include <vector>

#include "spill/compat/rocksdb_version.h"

namespace spillway::spill {

// Before RocksDB 7.10 the order in L0 is that of sequence numbers. Between a memtable and an ingested file above it,
// which a compaction may join with a file below the memtable, it is then lost: the flush of the memtable fails as
// Corruption, and RocksDB takes no more writes. Source: RocksDB's HISTORY.md, 7.10.0, epoch_number
constexpr bool kIngestsOverMemtables = SPILLWAY_ROCKSDB_AT_LEAST(7, 10);

// Of files for one or more column families, all of them or none. If it is not committed, RocksDB is unchanged.
class FileIngestion {
 public:
  using Arguments = std::vector<rocksdb::IngestExternalFileArg>;

  // `db` outlives it.
  FileIngestion(rocksdb::DB& db, Arguments arguments) : db_(db), arguments_(std::move(arguments)) {}

  // From RocksDB 11.5 on: reads the files, links or copies them into the database and syncs them, while writes go on.
  // Earlier versions do all of that in commit().
  rocksdb::Status prepare() {
#if SPILLWAY_ROCKSDB_AT_LEAST(11, 5)
    return db_.PrepareFileIngestion(arguments_, &handle_);
#else
    return {};
#endif
  }
  // Once. REQUIRES: prepare() has not failed. Without it, all is done here.
  rocksdb::Status commit() {
#if SPILLWAY_ROCKSDB_AT_LEAST(11, 5)
    if (handle_) return db_.CommitFileIngestionHandle(std::move(handle_));
#endif
    return db_.IngestExternalFiles(arguments_);
  }

  rocksdb::DB& db() const { return db_; }
  const Arguments& arguments() const { return arguments_; }

 private:
  rocksdb::DB& db_;
  const Arguments arguments_;
#if SPILLWAY_ROCKSDB_AT_LEAST(11, 5)
  std::unique_ptr<rocksdb::FileIngestionHandle> handle_;
#endif
};

}  // namespace spillway::spill
