// Copies of the database, and lists of RocksDB's files for callers that copy them: see checkpoint.h and file_lists.h.
#include "spill/db/checkpoint.h"
#include "spill/db/db_impl.h"

namespace spillway::spill {

using rocksdb::ColumnFamilyHandle;
using rocksdb::Status;

Status DbImpl::CreateCheckpoint(const std::string& directory) {
  if (closing_.is_closed()) return Status::ShutdownInProgress();
  const ValueReader values(live_.store(), *base().GetEnv()->GetSystemClock());
  return CheckpointMaker(values, main_, live_, commits_, rollbacks_, file_lists_, families_).make(directory);
}

Status DbImpl::DisableFileDeletions() { return file_lists_.disable_file_deletions(); }
Status DbImpl::enable_file_deletions(bool force) { return file_lists_.enable_file_deletions(force); }

Status DbImpl::GetLiveFiles(std::vector<std::string>& files, std::uint64_t* manifest_bytes, bool flush_memtable) {
  return file_lists_.get_live_files(files, manifest_bytes, flush_memtable);
}

Status DbImpl::GetLiveFilesStorageInfo(const rocksdb::LiveFilesStorageInfoOptions& options,
                                       std::vector<rocksdb::LiveFileStorageInfo>* files) {
  return file_lists_.get_live_files_storage_info(options, files);
}

Status DbImpl::GetLiveFilesChecksumInfo(rocksdb::FileChecksumList* files) {
  return file_lists_.get_live_files_checksum_info(files);
}

void DbImpl::list_files(const std::function<void()>& list) { file_lists_.list_files(list); }

void DbImpl::GetLiveFilesMetaData(std::vector<rocksdb::LiveFileMetaData>* files) {
  file_lists_.get_live_files_meta_data(files);
}

void DbImpl::GetColumnFamilyMetaData(ColumnFamilyHandle* family, rocksdb::ColumnFamilyMetaData* metadata) {
  file_lists_.get_column_family_meta_data(family, metadata);
}

void DbImpl::GetAllColumnFamilyMetaData(std::vector<rocksdb::ColumnFamilyMetaData>* metadata) {
  file_lists_.get_all_column_family_meta_data(metadata);
}

Status DbImpl::GetSortedWalFiles(rocksdb::VectorLogPtr& files) { return file_lists_.get_sorted_wal_files(files); }
Status DbImpl::GetCurrentWalFile(std::unique_ptr<rocksdb::LogFile>* file) {
  return file_lists_.get_current_wal_file(file);
}

}  // namespace spillway::spill
