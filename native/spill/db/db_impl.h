// spillway::DB from its parts, each of which owns one lifetime of state. README.md in native/spill says how they fit.
#pragma once

#include <rocksdb/db.h>
#include <rocksdb/write_batch.h>

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "spill/commit/commits.h"
#include "spill/compat/uniform_db.h"
#include "spill/db/closing.h"
#include "spill/db/families.h"
#include "spill/db/file_lists.h"
#include "spill/db/recovery.h"
#include "spill/live/live_set.h"
#include "spill/main_db/main_db.h"
#include "spill/read/reader.h"
#include "spill/report/telemetry.h"
#include "spill/rollback/rollbacks.h"
#include "spill/route/router.h"
#include "spill/stall/divert_cause.h"
#include "spillway/db.h"

namespace spillway::spill {

// The directory in which sorted files wait for ingestion.
inline std::string sorted_directory_of(const std::string& database) { return database + "/spill"; }

// The parts of a database at the time RocksDB is open.
struct OpenedParts {
  std::shared_ptr<Store> store;
  MainParts main;
  std::shared_ptr<Detector> detector;
  std::shared_ptr<HandleWatcher> handle_watcher;
};

class DbImpl final : public UniformDb {
 public:
  DbImpl(const std::shared_ptr<rocksdb::DB>& base, const SpillOptions& options, const OpenedParts& parts);
  ~DbImpl() override;

  // Makes the contents of the spill store live, and starts the threads. If it succeeds, the database owns `handles` of
  // column families other than the default. `users`: the user's handles.
  rocksdb::Status start(const std::vector<rocksdb::ColumnFamilyHandle*>& handles,
                        const std::vector<rocksdb::ColumnFamilyHandle*>& users, const StoreContents& contents);

  // --- spillway::DB
  rocksdb::Status Rollback() override;
  rocksdb::Status CreateCheckpoint(const std::string& directory) override;
  SpillStatistics GetSpillStatistics() const override;
  void SetDiversion(Diversion diversion) override;

  // RocksDB itself. A write that goes there directly is lost or hidden while the spill store has anything.
  rocksdb::DB& base() { return *db_; }

  // --- For transactions (transactions/)
  Router& router() { return router_; }
  UsedColumnFamily family_of(std::uint32_t id) const { return live_.families().use(id); }

  // --- Writes (db_write.cc)
  using rocksdb::StackableDB::Delete;
  using rocksdb::StackableDB::DeleteRange;
  using rocksdb::StackableDB::Merge;
  using rocksdb::StackableDB::Put;
  using rocksdb::StackableDB::SingleDelete;
  using UniformDb::PutEntity;
  rocksdb::Status Put(const rocksdb::WriteOptions& options, rocksdb::ColumnFamilyHandle* family,
                      const rocksdb::Slice& key, const rocksdb::Slice& value) override;
  rocksdb::Status Put(const rocksdb::WriteOptions& options, rocksdb::ColumnFamilyHandle* family,
                      const rocksdb::Slice& key, const rocksdb::Slice& ts, const rocksdb::Slice& value) override;
  rocksdb::Status PutEntity(const rocksdb::WriteOptions& options, rocksdb::ColumnFamilyHandle* family,
                            const rocksdb::Slice& key, const rocksdb::WideColumns& columns) override;
  rocksdb::Status Delete(const rocksdb::WriteOptions& options, rocksdb::ColumnFamilyHandle* family,
                         const rocksdb::Slice& key) override;
  rocksdb::Status Delete(const rocksdb::WriteOptions& options, rocksdb::ColumnFamilyHandle* family,
                         const rocksdb::Slice& key, const rocksdb::Slice& ts) override;
  rocksdb::Status SingleDelete(const rocksdb::WriteOptions& options, rocksdb::ColumnFamilyHandle* family,
                               const rocksdb::Slice& key) override;
  rocksdb::Status SingleDelete(const rocksdb::WriteOptions& options, rocksdb::ColumnFamilyHandle* family,
                               const rocksdb::Slice& key, const rocksdb::Slice& ts) override;
  rocksdb::Status DeleteRange(const rocksdb::WriteOptions& options, rocksdb::ColumnFamilyHandle* family,
                              const rocksdb::Slice& begin, const rocksdb::Slice& end) override;
  rocksdb::Status Merge(const rocksdb::WriteOptions& options, rocksdb::ColumnFamilyHandle* family,
                        const rocksdb::Slice& key, const rocksdb::Slice& operand) override;
  rocksdb::Status Write(const rocksdb::WriteOptions& options, rocksdb::WriteBatch* batch) override;

  // --- Not supported: refused with the name of the call (db_refused.cc)
  rocksdb::Status DeleteRange(const rocksdb::WriteOptions& options, rocksdb::ColumnFamilyHandle* family,
                              const rocksdb::Slice& begin, const rocksdb::Slice& end,
                              const rocksdb::Slice& ts) override;
  rocksdb::Status Merge(const rocksdb::WriteOptions& options, rocksdb::ColumnFamilyHandle* family,
                        const rocksdb::Slice& key, const rocksdb::Slice& ts, const rocksdb::Slice& operand) override;
  rocksdb::Status IncreaseFullHistoryTsLow(rocksdb::ColumnFamilyHandle* family, std::string timestamp) override;
  rocksdb::Status GetFullHistoryTsLow(rocksdb::ColumnFamilyHandle* family, std::string* timestamp) override;
  rocksdb::Status GetUpdatesSince(rocksdb::SequenceNumber sequence,
                                  std::unique_ptr<rocksdb::TransactionLogIterator>* iterator,
                                  const rocksdb::TransactionLogIterator::ReadOptions& options) override;
  rocksdb::Status LockWAL() override;
  rocksdb::Status UnlockWAL() override;
  using rocksdb::StackableDB::StartTrace;
  rocksdb::Status StartTrace(const rocksdb::TraceOptions& options,
                             std::unique_ptr<rocksdb::TraceWriter>&& writer) override;
  rocksdb::Status EndTrace() override;
  rocksdb::Status NewDefaultReplayer(const std::vector<rocksdb::ColumnFamilyHandle*>& families,
                                     std::unique_ptr<rocksdb::TraceReader>&& reader,
                                     std::unique_ptr<rocksdb::Replayer>* replayer) override;
  rocksdb::Status TryCatchUpWithPrimary() override;

  // --- Reads (db_read.cc); those of a timestamp are refused
  using rocksdb::StackableDB::GetMergeOperands;
  using rocksdb::StackableDB::KeyMayExist;
  using rocksdb::StackableDB::NewIterator;
  using UniformDb::Get;
  using UniformDb::GetEntity;
  using UniformDb::MultiGet;
  rocksdb::Status Get(const rocksdb::ReadOptions& options, rocksdb::ColumnFamilyHandle* family,
                      const rocksdb::Slice& key, rocksdb::PinnableSlice* value, std::string* timestamp) override;
  rocksdb::Status GetEntity(const rocksdb::ReadOptions& options, rocksdb::ColumnFamilyHandle* family,
                            const rocksdb::Slice& key, rocksdb::PinnableWideColumns* columns) override;
  rocksdb::Status GetMergeOperands(const rocksdb::ReadOptions& options, rocksdb::ColumnFamilyHandle* family,
                                   const rocksdb::Slice& key, rocksdb::PinnableSlice* operands,
                                   rocksdb::GetMergeOperandsOptions* operands_options, int* count) override;
  void MultiGet(const rocksdb::ReadOptions& options, std::size_t count, rocksdb::ColumnFamilyHandle** families,
                const rocksdb::Slice* keys, rocksdb::PinnableSlice* values, std::string* timestamps,
                rocksdb::Status* statuses, bool sorted_input = false) override;
  // Also verifies the spill store: every record of every live generation.
  rocksdb::Status VerifyChecksum() override { return VerifyChecksum(rocksdb::ReadOptions()); }
  rocksdb::Status VerifyChecksum(const rocksdb::ReadOptions& options) override;
  rocksdb::Status VerifyFileChecksums(const rocksdb::ReadOptions& options) override;
  bool KeyMayExist(const rocksdb::ReadOptions& options, rocksdb::ColumnFamilyHandle* family, const rocksdb::Slice& key,
                   std::string* value, bool* value_found = nullptr) override;
  rocksdb::Iterator* NewIterator(const rocksdb::ReadOptions& options, rocksdb::ColumnFamilyHandle* family) override;
  rocksdb::Status NewIterators(const rocksdb::ReadOptions& options,
                               const std::vector<rocksdb::ColumnFamilyHandle*>& families,
                               std::vector<rocksdb::Iterator*>* iterators) override;
  const rocksdb::Snapshot* GetSnapshot() override;
  void ReleaseSnapshot(const rocksdb::Snapshot* snapshot) override;

  // --- RocksDB's files, for callers that copy them (db_files.cc)
  rocksdb::Status DisableFileDeletions() override;
  rocksdb::Status GetLiveFiles(std::vector<std::string>& files, std::uint64_t* manifest_bytes,
                               bool flush_memtable = true) override;
  rocksdb::Status GetLiveFilesStorageInfo(const rocksdb::LiveFilesStorageInfoOptions& options,
                                          std::vector<rocksdb::LiveFileStorageInfo>* files) override;
  rocksdb::Status GetLiveFilesChecksumInfo(rocksdb::FileChecksumList* files) override;
  void GetLiveFilesMetaData(std::vector<rocksdb::LiveFileMetaData>* files) override;
  using UniformDb::GetColumnFamilyMetaData;
  void GetColumnFamilyMetaData(rocksdb::ColumnFamilyHandle* family, rocksdb::ColumnFamilyMetaData* metadata) override;
  void GetAllColumnFamilyMetaData(std::vector<rocksdb::ColumnFamilyMetaData>* metadata) override;
  rocksdb::Status GetSortedWalFiles(rocksdb::VectorLogPtr& files) override;
  rocksdb::Status GetCurrentWalFile(std::unique_ptr<rocksdb::LogFile>* file) override;

  // --- RocksDB itself, handed out (db_root.cc)
  rocksdb::DB* GetRootDB() override { return hand_out_root(); }
  rocksdb::DB* GetBaseDB() override { return hand_out_root(); }

  // --- Estimates and numbers (db_estimates.cc)
  using rocksdb::StackableDB::GetAggregatedIntProperty;
  using rocksdb::StackableDB::GetApproximateMemTableStats;
  using rocksdb::StackableDB::GetApproximateSizes;
  bool GetAggregatedIntProperty(const rocksdb::Slice& property, std::uint64_t* value) override;
  rocksdb::Status GetApproximateSizes(const rocksdb::SizeApproximationOptions& options,
                                      rocksdb::ColumnFamilyHandle* family, const rocksdb::Range* ranges, int count,
                                      std::uint64_t* sizes) override;
  void GetApproximateMemTableStats(rocksdb::ColumnFamilyHandle* family, const rocksdb::Range& range,
                                   std::uint64_t* count, std::uint64_t* size) override;
  rocksdb::SequenceNumber GetLatestSequenceNumber() const override;

  // --- Everything else (db_maintenance.cc, db_families.cc)
  using rocksdb::StackableDB::CompactFiles;
  using rocksdb::StackableDB::CompactRange;
  using rocksdb::StackableDB::Flush;
  using rocksdb::StackableDB::GetIntProperty;
  using rocksdb::StackableDB::GetMapProperty;
  using rocksdb::StackableDB::GetOptions;
  using rocksdb::StackableDB::GetProperty;
  using rocksdb::StackableDB::IngestExternalFile;
  using rocksdb::StackableDB::IngestExternalFiles;
  using UniformDb::CreateColumnFamilyWithImport;
  using UniformDb::SetOptions;
  rocksdb::Status Close() override;
  rocksdb::Status PauseBackgroundWork() override;
  rocksdb::Status ContinueBackgroundWork() override;
  rocksdb::Status CreateColumnFamily(const rocksdb::ColumnFamilyOptions& options, const std::string& name,
                                     rocksdb::ColumnFamilyHandle** handle) override;
  rocksdb::Status CreateColumnFamilies(const rocksdb::ColumnFamilyOptions& options,
                                       const std::vector<std::string>& names,
                                       std::vector<rocksdb::ColumnFamilyHandle*>* handles) override;
  rocksdb::Status CreateColumnFamilies(const std::vector<rocksdb::ColumnFamilyDescriptor>& families,
                                       std::vector<rocksdb::ColumnFamilyHandle*>* handles) override;
  rocksdb::Status DropColumnFamily(rocksdb::ColumnFamilyHandle* family) override;
  rocksdb::Status DropColumnFamilies(const std::vector<rocksdb::ColumnFamilyHandle*>& families) override;
  rocksdb::Status DestroyColumnFamilyHandle(rocksdb::ColumnFamilyHandle* family) override;
  rocksdb::Status SetOptions(rocksdb::ColumnFamilyHandle* family,
                             const std::unordered_map<std::string, std::string>& options) override;
  rocksdb::Status SetDBOptions(const std::unordered_map<std::string, std::string>& options) override;
  rocksdb::Status EnableAutoCompaction(const std::vector<rocksdb::ColumnFamilyHandle*>& families) override;
  rocksdb::Options GetOptions(rocksdb::ColumnFamilyHandle* family) const override;
  rocksdb::DBOptions GetDBOptions() const override;
  rocksdb::Env* GetEnv() const override;
  rocksdb::FileSystem* GetFileSystem() const override;
  rocksdb::Status Flush(const rocksdb::FlushOptions& options, rocksdb::ColumnFamilyHandle* family) override;
  rocksdb::Status Flush(const rocksdb::FlushOptions& options,
                        const std::vector<rocksdb::ColumnFamilyHandle*>& families) override;
  using UniformDb::FlushWAL;
  rocksdb::Status SyncWAL() override;
  rocksdb::Status FlushWAL(bool sync) override;
  rocksdb::Status IngestExternalFile(rocksdb::ColumnFamilyHandle* family, const std::vector<std::string>& files,
                                     const rocksdb::IngestExternalFileOptions& options) override;
  rocksdb::Status IngestExternalFiles(const std::vector<rocksdb::IngestExternalFileArg>& arguments) override;
  rocksdb::Status CompactRange(const rocksdb::CompactRangeOptions& options, rocksdb::ColumnFamilyHandle* family,
                               const rocksdb::Slice* begin, const rocksdb::Slice* end) override;
  rocksdb::Status CompactFiles(const rocksdb::CompactionOptions& options, rocksdb::ColumnFamilyHandle* family,
                               const std::vector<std::string>& input, int output_level, int output_path_id = -1,
                               std::vector<std::string>* output = nullptr,
                               rocksdb::CompactionJobInfo* info = nullptr) override;
  rocksdb::Status Resume() override;
  rocksdb::Status GetStatsHistory(std::uint64_t start_s, std::uint64_t end_s,
                                  std::unique_ptr<rocksdb::StatsHistoryIterator>* iterator) override;
  bool GetProperty(rocksdb::ColumnFamilyHandle* family, const rocksdb::Slice& property, std::string* value) override;
  bool GetIntProperty(rocksdb::ColumnFamilyHandle* family, const rocksdb::Slice& property,
                      std::uint64_t* value) override;
  bool GetMapProperty(rocksdb::ColumnFamilyHandle* family, const rocksdb::Slice& property,
                      std::map<std::string, std::string>* value) override;

 private:
  // --- UniformDb
  rocksdb::Status enable_file_deletions(bool force) override;
  rocksdb::Status create_column_family_with_import(const rocksdb::ColumnFamilyDescriptor& family,
                                                   const rocksdb::ImportColumnFamilyOptions& options,
                                                   const ImportedFiles& files,
                                                   rocksdb::ColumnFamilyHandle** handle) override;
  std::vector<rocksdb::Status> multi_get_in_order(const rocksdb::ReadOptions& options,
                                                  const std::vector<rocksdb::ColumnFamilyHandle*>& families,
                                                  const std::vector<rocksdb::Slice>& keys,
                                                  std::vector<std::string>* values) override;
  void list_files(const std::function<void()>& list) override;
  rocksdb::Status settle(bool abort_on_pause) override;

  std::string metrics();  // as Prometheus reads them (db_metrics.cc)
  rocksdb::Status shut_down();
  rocksdb::Status without_rollbacks(const std::function<rocksdb::Status()>& compact);
  rocksdb::DB* hand_out_root();
  // A batch with one operation (Router::write_one).
  rocksdb::Status write_one(const rocksdb::WriteOptions& options, rocksdb::WriteBatch* batch);
  BurstWatch::Activity write_activity() const;
  void on_poll(const Signals& signals, Route before, Route now);
  // Adds to an estimate what the spill store holds of that column family, or of all families if none is given.
  void add_spilled(std::optional<std::uint32_t> family, const rocksdb::Slice& property, std::uint64_t* value) const;
  bool sum_over_families(const rocksdb::Slice& property, std::uint64_t* value);

  Telemetry telemetry_;  // counters and events
  LiveSet live_;         // what is diverted and not yet brought back
  MainDb main_;          // RocksDB: writes, logs, errors
  Commits commits_;      // writes diverted writes to the spill store
  Rollbacks rollbacks_;  // brings them back into RocksDB
  Router router_;        // decides to which store a write goes
  Reader reader_;
  Families families_;
  FileLists file_lists_;
  Closing closing_;
};

}  // namespace spillway::spill
