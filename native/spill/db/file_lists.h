// Lists of RocksDB's files. For a thread that copies files, the list includes every write acknowledged before the call.
#pragma once

#include <rocksdb/db.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "spill/db/copying_threads.h"
#include "spill/live/live_set.h"
#include "spill/main_db/main_db.h"
#include "spill/rollback/rollbacks.h"

namespace spillway::spill {

// Thread-safe. The methods are those of rocksdb::DB, with its contracts.
class FileLists {
 public:
  FileLists(MainDb& main, const LiveSet& live, Rollbacks& rollbacks)
      : main_(main), live_(live), rollbacks_(rollbacks) {}

  rocksdb::Status disable_file_deletions();
  rocksdb::Status enable_file_deletions(bool force);
  rocksdb::Status get_live_files(std::vector<std::string>& files, std::uint64_t* manifest_bytes, bool flush_memtable);
  rocksdb::Status get_live_files_storage_info(const rocksdb::LiveFilesStorageInfoOptions& options,
                                              std::vector<rocksdb::LiveFileStorageInfo>* files);
  rocksdb::Status get_live_files_checksum_info(rocksdb::FileChecksumList* files);
  void get_live_files_meta_data(std::vector<rocksdb::LiveFileMetaData>* files);
  void get_column_family_meta_data(rocksdb::ColumnFamilyHandle* family, rocksdb::ColumnFamilyMetaData* metadata);
  void get_all_column_family_meta_data(std::vector<rocksdb::ColumnFamilyMetaData>* metadata);
  rocksdb::Status get_sorted_wal_files(rocksdb::VectorLogPtr& files);
  rocksdb::Status get_current_wal_file(std::unique_ptr<rocksdb::LogFile>* file);

  // Any other list of RocksDB's files, with the contract of those above.
  void list_files(const std::function<void()>& list);

  // --- Called in the commit queue
  // Runs `call` when everything is in tables. `flushes`: RocksDB must flush by itself, because it has families that
  // this library does not know.
  rocksdb::Status with_flushing(bool may_flush, const std::function<rocksdb::Status(bool flushes)>& call);
  // Lists files without the logs whose contents are in tables, as RocksDB does after its own flush.
  rocksdb::Status list_without_logs(rocksdb::LiveFilesStorageInfoOptions options,
                                    std::vector<rocksdb::LiveFileStorageInfo>* files);

 private:
  // Runs `list`. If this thread copies files, first brings back every acknowledged write.
  rocksdb::Status list_whole(const std::function<rocksdb::Status()>& list);
  bool knows_every_family() const;
  rocksdb::Status have_logs_grown_to(std::uint64_t bytes, bool* result);

  MainDb& main_;
  const LiveSet& live_;
  Rollbacks& rollbacks_;
  CopyingThreads copying_;
};

}  // namespace spillway::spill
