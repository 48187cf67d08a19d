// One set of virtual functions for every version of RocksDB. Between spillway::DB and DbImpl: overrides what the
// version at hand has, and passes it on to the functions that every version has, or to one of the functions below that
// DbImpl supplies, or refuses it by name.
#pragma once

#include <rocksdb/db.h>
#include <rocksdb/options.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "spill/compat/rocksdb_calls.h"
#include "spill/compat/rocksdb_version.h"
#include "spillway/db.h"

namespace spillway::spill {

class UniformDb : public spillway::DB {
 public:
  explicit UniformDb(const std::shared_ptr<rocksdb::DB>& base) : spillway::DB(base) {}

  // --- Reads. From 9.0 on only the functions with timestamps are virtual, and the others call them with nullptr. Here
  // it is so with every version.
  using rocksdb::StackableDB::Get;
  using rocksdb::StackableDB::GetEntity;
  using rocksdb::StackableDB::MultiGet;
  using rocksdb::StackableDB::PutEntity;
  rocksdb::Status Get(const rocksdb::ReadOptions& options, rocksdb::ColumnFamilyHandle* family,
                      const rocksdb::Slice& key, rocksdb::PinnableSlice* value, std::string* timestamp) override = 0;
  void MultiGet(const rocksdb::ReadOptions& options, std::size_t count, rocksdb::ColumnFamilyHandle** families,
                const rocksdb::Slice* keys, rocksdb::PinnableSlice* values, std::string* timestamps,
                rocksdb::Status* statuses, bool sorted_input = false) override = 0;
#if !SPILLWAY_ROCKSDB_AT_LEAST(9, 0)
  rocksdb::Status Get(const rocksdb::ReadOptions& options, rocksdb::ColumnFamilyHandle* family,
                      const rocksdb::Slice& key, rocksdb::PinnableSlice* value) final;
  std::vector<rocksdb::Status> MultiGet(const rocksdb::ReadOptions& options,
                                        const std::vector<rocksdb::ColumnFamilyHandle*>& families,
                                        const std::vector<rocksdb::Slice>& keys,
                                        std::vector<std::string>* values) final;
  std::vector<rocksdb::Status> MultiGet(const rocksdb::ReadOptions& options,
                                        const std::vector<rocksdb::ColumnFamilyHandle*>& families,
                                        const std::vector<rocksdb::Slice>& keys, std::vector<std::string>* values,
                                        std::vector<std::string>* timestamps) final;
  void MultiGet(const rocksdb::ReadOptions& options, rocksdb::ColumnFamilyHandle* family, std::size_t count,
                const rocksdb::Slice* keys, rocksdb::PinnableSlice* values, rocksdb::Status* statuses,
                bool sorted_input = false) final;
  void MultiGet(const rocksdb::ReadOptions& options, rocksdb::ColumnFamilyHandle* family, std::size_t count,
                const rocksdb::Slice* keys, rocksdb::PinnableSlice* values, std::string* timestamps,
                rocksdb::Status* statuses, bool sorted_input = false) final;
  void MultiGet(const rocksdb::ReadOptions& options, std::size_t count, rocksdb::ColumnFamilyHandle** families,
                const rocksdb::Slice* keys, rocksdb::PinnableSlice* values, rocksdb::Status* statuses,
                bool sorted_input = false) final;
#endif
  // GetAsync and MultiGetAsync (11.8) are rocksdb::DB's own: they call Get and MultiGet, and then the callback.

  // --- Wide columns: refused, as PutEntity and GetEntity of one column family are
#if SPILLWAY_ROCKSDB_AT_LEAST(8, 0)
  void MultiGetEntity(const rocksdb::ReadOptions& options, rocksdb::ColumnFamilyHandle* family, std::size_t count,
                      const rocksdb::Slice* keys, rocksdb::PinnableWideColumns* results, rocksdb::Status* statuses,
                      bool sorted_input) final;
  void MultiGetEntity(const rocksdb::ReadOptions& options, std::size_t count, rocksdb::ColumnFamilyHandle** families,
                      const rocksdb::Slice* keys, rocksdb::PinnableWideColumns* results, rocksdb::Status* statuses,
                      bool sorted_input) final;
#endif
#if SPILLWAY_ROCKSDB_AT_LEAST(8, 8)
  void MultiGetEntity(const rocksdb::ReadOptions& options, std::size_t count, const rocksdb::Slice* keys,
                      rocksdb::PinnableAttributeGroups* results) final;
#endif
#if SPILLWAY_ROCKSDB_AT_LEAST(8, 9)
  rocksdb::Status PutEntity(const rocksdb::WriteOptions& options, const rocksdb::Slice& key,
                            const rocksdb::AttributeGroups& groups) final;
  rocksdb::Status GetEntity(const rocksdb::ReadOptions& options, const rocksdb::Slice& key,
                            rocksdb::PinnableAttributeGroups* result) final;
#endif
#if SPILLWAY_ROCKSDB_AT_LEAST(9, 2)
  std::unique_ptr<rocksdb::Iterator> NewCoalescingIterator(
      const rocksdb::ReadOptions& options, const std::vector<rocksdb::ColumnFamilyHandle*>& families) final;
  std::unique_ptr<rocksdb::AttributeGroupIterator> NewAttributeGroupIterator(
      const rocksdb::ReadOptions& options, const std::vector<rocksdb::ColumnFamilyHandle*>& families) final;
#elif SPILLWAY_ROCKSDB_AT_LEAST(9, 1)
  std::unique_ptr<rocksdb::Iterator> NewMultiCfIterator(
      const rocksdb::ReadOptions& options, const std::vector<rocksdb::ColumnFamilyHandle*>& families) final;
#endif

  // --- A scan of several ranges: over NewIterator, which sees both stores
#if SPILLWAY_ROCKSDB_AT_LEAST(10, 6)
  std::unique_ptr<rocksdb::MultiScan> NewMultiScan(const rocksdb::ReadOptions& options,
                                                   rocksdb::ColumnFamilyHandle* family,
                                                   const rocksdb::MultiScanArgs& ranges) final;
#elif SPILLWAY_ROCKSDB_AT_LEAST(10, 1)
  std::unique_ptr<rocksdb::MultiScan> NewMultiScan(const rocksdb::ReadOptions& options,
                                                   rocksdb::ColumnFamilyHandle* family,
                                                   const std::vector<rocksdb::ScanOptions>& ranges) final;
#endif

  // --- Writes
#if SPILLWAY_ROCKSDB_AT_LEAST(9, 4)
  rocksdb::Status WriteWithCallback(const rocksdb::WriteOptions& options, rocksdb::WriteBatch* batch,
                                    rocksdb::UserWriteCallback* callback) final;
#endif
#if SPILLWAY_ROCKSDB_AT_LEAST(10, 2)
  // An ordinary write of its batch, which has the same result: a diverted write does not go through memtables either.
  rocksdb::Status IngestWriteBatchWithIndex(const rocksdb::WriteOptions& options,
                                            std::shared_ptr<rocksdb::WriteBatchWithIndex> batch) final;
#endif

  // --- Files
#if SPILLWAY_ROCKSDB_AT_LEAST(9, 0)
  rocksdb::Status EnableFileDeletions() final { return enable_file_deletions(/*force=*/false); }
#else
  rocksdb::Status EnableFileDeletions(bool force) final { return enable_file_deletions(force); }
#endif
#if SPILLWAY_ROCKSDB_AT_LEAST(10, 0)
#elif SPILLWAY_ROCKSDB_AT_LEAST(9, 11)
  rocksdb::Status DEPRECATED_DeleteFile(std::string name) final;
#else
  rocksdb::Status DeleteFile(std::string name) final;
#endif
  using rocksdb::StackableDB::GetColumnFamilyMetaData;
#if SPILLWAY_ROCKSDB_AT_LEAST(10, 8)
  void GetColumnFamilyMetaData(rocksdb::ColumnFamilyHandle* family,
                               const rocksdb::GetColumnFamilyMetaDataOptions& options,
                               rocksdb::ColumnFamilyMetaData* metadata) final;
#endif
#if SPILLWAY_ROCKSDB_AT_LEAST(11, 5)
  using rocksdb::StackableDB::CommitFileIngestionHandle;
  using rocksdb::StackableDB::PrepareFileIngestion;
  rocksdb::Status PrepareFileIngestion(const std::vector<rocksdb::IngestExternalFileArg>& arguments,
                                       std::unique_ptr<rocksdb::FileIngestionHandle>* handle) final;
  rocksdb::Status CommitFileIngestionHandles(std::vector<std::unique_ptr<rocksdb::FileIngestionHandle>> handles) final;
#endif

  // --- Column families and options
  using rocksdb::StackableDB::CreateColumnFamilyWithImport;
  using rocksdb::StackableDB::SetOptions;
  rocksdb::Status CreateColumnFamilyWithImport(const rocksdb::ColumnFamilyOptions& options, const std::string& name,
                                               const rocksdb::ImportColumnFamilyOptions& import_options,
                                               const rocksdb::ExportImportFilesMetaData& metadata,
                                               rocksdb::ColumnFamilyHandle** handle) final;
#if SPILLWAY_ROCKSDB_AT_LEAST(8, 4)
  rocksdb::Status CreateColumnFamilyWithImport(const rocksdb::ColumnFamilyOptions& options, const std::string& name,
                                               const rocksdb::ImportColumnFamilyOptions& import_options,
                                               const std::vector<const rocksdb::ExportImportFilesMetaData*>& metadata,
                                               rocksdb::ColumnFamilyHandle** handle) final;
#endif
  using OptionsByName = std::unordered_map<std::string, std::string>;
  rocksdb::Status SetOptions(rocksdb::ColumnFamilyHandle* family, const OptionsByName& options) override = 0;
#if SPILLWAY_ROCKSDB_AT_LEAST(10, 11)
  // One family after the other. RocksDB sets all or none; here a refused family leaves those before it changed.
  rocksdb::Status SetOptions(const std::unordered_map<rocksdb::ColumnFamilyHandle*, OptionsByName>& options) final;
#endif
#if SPILLWAY_ROCKSDB_AT_LEAST(8, 3)
  rocksdb::Status ClipColumnFamily(rocksdb::ColumnFamilyHandle* family, const rocksdb::Slice& begin,
                                   const rocksdb::Slice& end) final;
#endif
#if SPILLWAY_ROCKSDB_AT_LEAST(10, 2)
  rocksdb::Status GetNewestUserDefinedTimestamp(rocksdb::ColumnFamilyHandle* family, std::string* timestamp) final;
#endif

  // --- The log, and waiting
  using rocksdb::StackableDB::FlushWAL;
  rocksdb::Status FlushWAL(bool sync) override = 0;
#if SPILLWAY_ROCKSDB_AT_LEAST(10, 8)
  // Without the priority at the rate limiter, which RocksDB gives to the log's buffer alone.
  rocksdb::Status FlushWAL(const rocksdb::FlushWALOptions& options) final { return FlushWAL(options.sync); }
#endif
#if SPILLWAY_ROCKSDB_AT_LEAST(8, 4)
  // Brings back first: a diverted write is a flush and a compaction that are still to come. The timeout bounds
  // RocksDB's part of the wait.
  rocksdb::Status WaitForCompact(const rocksdb::WaitForCompactOptions& options) final;
#endif

 protected:
  // --- What DbImpl supplies for them
  virtual rocksdb::Status enable_file_deletions(bool force) = 0;
  virtual rocksdb::Status create_column_family_with_import(const rocksdb::ColumnFamilyDescriptor& family,
                                                           const rocksdb::ImportColumnFamilyOptions& options,
                                                           const ImportedFiles& files,
                                                           rocksdb::ColumnFamilyHandle** handle) = 0;
  // RocksDB's older MultiGet, whose size limit counts over all column families. Not called from 9.0 on.
  virtual std::vector<rocksdb::Status> multi_get_in_order(const rocksdb::ReadOptions& options,
                                                          const std::vector<rocksdb::ColumnFamilyHandle*>& families,
                                                          const std::vector<rocksdb::Slice>& keys,
                                                          std::vector<std::string>* values) = 0;
  // Runs `list`, a list of RocksDB's files. If this thread copies files, everything is in them by then.
  virtual void list_files(const std::function<void()>& list) = 0;
  // Brings back everything. Aborted: background work is paused, and `abort_on_pause`.
  virtual rocksdb::Status settle(bool abort_on_pause) = 0;
};

}  // namespace spillway::spill
