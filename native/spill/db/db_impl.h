// spillway::DB from its parts: RocksDB, the spill store, the detector, the index. README.md here says how they fit.
#pragma once

#include <rocksdb/db.h>
#include <rocksdb/write_batch.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "spill/main_db/binding.h"
#include "spill/live/column_families.h"
#include "spill/commit/commit_queue.h"
#include "spill/db/copying_threads.h"
#include "spill/stall/detector.h"
#include "spill/commit/doubts.h"
#include "spill/commit/gate.h"
#include "spill/live/generation.h"
#include "spill/main_db/handle_watcher.h"
#include "spill/live/held_generations.h"
#include "spill/main_db/ingested_files.h"
#include "spill/read/iterator.h"
#include "spill/commit/key_fence.h"
#include "spill/live/key_index.h"
#include "spill/route/key_versions.h"
#include "spill/main_db/low_priority.h"
#include "spill/main_db/main_logs.h"
#include "spill/main_db/main_order.h"
#include "spill/rollback/rollback_pause.h"
#include "spill/read/snapshot.h"
#include "spill/rollback/sorted_files.h"
#include "spill/store/store.h"
#include "spill/main_db/user_options.h"
#include "spill/live/value_reader.h"
#include "spillway/db.h"

namespace spillway::spill {

// Counts of SpillStatistics that grow, from many threads.
struct Counts {
  std::atomic<std::uint64_t> diverted_writes{0};
  std::atomic<std::uint64_t> diverted_bytes{0};
  std::atomic<std::uint64_t> main_calls{0};  // refused ones too
  std::atomic<std::uint64_t> main_writes{0};
  std::atomic<std::uint64_t> waits{0};
  std::atomic<std::uint64_t> wait_us{0};
  std::atomic<std::uint64_t> stalls_diverted{0};
  std::atomic<std::uint64_t> last_resort{0};
  std::atomic<std::uint64_t> ordering_syncs{0};
  std::atomic<std::uint64_t> ordering_marks{0};
  std::atomic<std::uint64_t> rolled_back_entries{0};
  std::atomic<std::uint64_t> rolled_back_bytes{0};
  std::atomic<std::uint64_t> rollbacks_by_ingest{0};
  std::atomic<std::uint64_t> rollbacks_by_put{0};
  std::atomic<std::uint64_t> rollback_us{0};
  std::atomic<std::uint64_t> rollback_failures{0};
  std::atomic<std::uint64_t> reads_with_live{0};  // reads while something lies in the spill store
};

// Adds the operations of a batch to a generation (and to the index, newest last), the first with sequence `first`;
// `offset` is its record's. Returns the next sequence. REQUIRES: a batch of what can be diverted, without merges.
Sequence add_entries_of(const rocksdb::WriteBatch& batch, std::uint64_t offset, Sequence first, Generation& generation,
                        KeyIndex* index);

// What the store holds, read before RocksDB opens.
struct Remains {
  std::vector<GenerationId> generations;  // those with records, oldest first
  Survivors survivors;
  bool has_writes = false;  // some record is more than a note
};
rocksdb::Status read_remains(Store& store, Remains* remains);

// Where sorted files wait for being ingested.
inline std::string sorted_directory_of(const std::string& database) { return database + "/spill"; }

// NotSupported, by name, of options that a column family may not have.
rocksdb::Status check_supported(const rocksdb::ColumnFamilyDescriptor& family);

class DbImpl final : public spillway::DB {
 public:
  DbImpl(const std::shared_ptr<rocksdb::DB>& base, SpillOptions options, std::shared_ptr<Store> store,
         std::shared_ptr<Binding> binding, std::shared_ptr<Detector> detector, std::shared_ptr<MainLogs> main_logs,
         std::shared_ptr<MainOrder> main_order, std::shared_ptr<IngestedFiles> ingested_files,
         std::shared_ptr<UserOptions> user_options, std::shared_ptr<HandleWatcher> handle_watcher);
  ~DbImpl() override;

  // Reads what the spill store holds, and starts the threads. `handles` of column families other than the default
  // belong to the database, if start succeeds.
  rocksdb::Status start(const std::vector<rocksdb::ColumnFamilyHandle*>& handles, const Remains& remains);

  // --- spillway::DB
  rocksdb::Status Rollback() override;
  rocksdb::Status CreateCheckpoint(const std::string& name) override;
  SpillStatistics GetSpillStatistics() const override;
  void SetDiversion(Diversion diversion) override;

  // RocksDB itself: what is written there past us is lost or hidden while something lies in the spill store.
  rocksdb::DB& base() { return *db_; }

  // --- For transactions (transactions/)
  // From now on every write is noted down. REQUIRES: nobody uses this yet.
  void note_versions() { versions_ = std::make_unique<KeyVersions>(); }
  KeyVersions* versions() const { return versions_.get(); }
  // Busy if a key in `seen` was written since it was seen, and then nothing is written. REQUIRES: versions are noted.
  rocksdb::Status write_if_unchanged(const rocksdb::WriteOptions& options, rocksdb::WriteBatch* batch,
                                     const std::vector<KeyVersions::Seen>& seen);
  UsedColumnFamily family_of(std::uint32_t id) const { return families_.use(id); }

  // --- Writes (db_write.cc)
  using rocksdb::StackableDB::Delete;
  using rocksdb::StackableDB::DeleteRange;
  using rocksdb::StackableDB::Merge;
  using rocksdb::StackableDB::Put;
  using rocksdb::StackableDB::PutEntity;
  using rocksdb::StackableDB::SingleDelete;
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

  // --- What is refused by name (db_refused.cc)
  rocksdb::Status DeleteRange(const rocksdb::WriteOptions& options, rocksdb::ColumnFamilyHandle* family,
                              const rocksdb::Slice& begin, const rocksdb::Slice& end,
                              const rocksdb::Slice& ts) override;
  rocksdb::Status Merge(const rocksdb::WriteOptions& options, rocksdb::ColumnFamilyHandle* family,
                        const rocksdb::Slice& key, const rocksdb::Slice& ts, const rocksdb::Slice& operand) override;
  rocksdb::Status Get(const rocksdb::ReadOptions& options, rocksdb::ColumnFamilyHandle* family,
                      const rocksdb::Slice& key, rocksdb::PinnableSlice* value, std::string* timestamp) override;
  std::vector<rocksdb::Status> MultiGet(const rocksdb::ReadOptions& options,
                                        const std::vector<rocksdb::ColumnFamilyHandle*>& families,
                                        const std::vector<rocksdb::Slice>& keys, std::vector<std::string>* values,
                                        std::vector<std::string>* timestamps) override;
  void MultiGet(const rocksdb::ReadOptions& options, rocksdb::ColumnFamilyHandle* family, std::size_t count,
                const rocksdb::Slice* keys, rocksdb::PinnableSlice* values, std::string* timestamps,
                rocksdb::Status* statuses, bool sorted_input = false) override;
  void MultiGet(const rocksdb::ReadOptions& options, std::size_t count, rocksdb::ColumnFamilyHandle** families,
                const rocksdb::Slice* keys, rocksdb::PinnableSlice* values, std::string* timestamps,
                rocksdb::Status* statuses, bool sorted_input = false) override;
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
  rocksdb::Status DeleteFile(std::string name) override;
  rocksdb::Status TryCatchUpWithPrimary() override;

  // --- Reads (db_read.cc)
  using rocksdb::StackableDB::Get;
  using rocksdb::StackableDB::GetEntity;
  using rocksdb::StackableDB::GetMergeOperands;
  using rocksdb::StackableDB::KeyMayExist;
  using rocksdb::StackableDB::MultiGet;
  using rocksdb::StackableDB::NewIterator;
  rocksdb::Status Get(const rocksdb::ReadOptions& options, rocksdb::ColumnFamilyHandle* family,
                      const rocksdb::Slice& key, rocksdb::PinnableSlice* value) override;
  rocksdb::Status GetEntity(const rocksdb::ReadOptions& options, rocksdb::ColumnFamilyHandle* family,
                            const rocksdb::Slice& key, rocksdb::PinnableWideColumns* columns) override;
  rocksdb::Status GetMergeOperands(const rocksdb::ReadOptions& options, rocksdb::ColumnFamilyHandle* family,
                                   const rocksdb::Slice& key, rocksdb::PinnableSlice* operands,
                                   rocksdb::GetMergeOperandsOptions* operands_options, int* count) override;
  std::vector<rocksdb::Status> MultiGet(const rocksdb::ReadOptions& options,
                                        const std::vector<rocksdb::ColumnFamilyHandle*>& families,
                                        const std::vector<rocksdb::Slice>& keys,
                                        std::vector<std::string>* values) override;
  void MultiGet(const rocksdb::ReadOptions& options, rocksdb::ColumnFamilyHandle* family, std::size_t count,
                const rocksdb::Slice* keys, rocksdb::PinnableSlice* values, rocksdb::Status* statuses,
                bool sorted_input = false) override;
  void MultiGet(const rocksdb::ReadOptions& options, std::size_t count, rocksdb::ColumnFamilyHandle** families,
                const rocksdb::Slice* keys, rocksdb::PinnableSlice* values, rocksdb::Status* statuses,
                bool sorted_input = false) override;
  // Of what is in the spill store, too: every record of every live generation.
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

  // --- RocksDB's files, for those who copy them (db_files.cc)
  rocksdb::Status DisableFileDeletions() override;
  rocksdb::Status EnableFileDeletions(bool force) override;
  rocksdb::Status GetLiveFiles(std::vector<std::string>& files, std::uint64_t* manifest_bytes,
                               bool flush_memtable = true) override;
  rocksdb::Status GetLiveFilesStorageInfo(const rocksdb::LiveFilesStorageInfoOptions& options,
                                          std::vector<rocksdb::LiveFileStorageInfo>* files) override;
  rocksdb::Status GetLiveFilesChecksumInfo(rocksdb::FileChecksumList* files) override;
  void GetLiveFilesMetaData(std::vector<rocksdb::LiveFileMetaData>* files) override;
  using rocksdb::StackableDB::GetColumnFamilyMetaData;
  void GetColumnFamilyMetaData(rocksdb::ColumnFamilyHandle* family, rocksdb::ColumnFamilyMetaData* metadata) override;
  void GetAllColumnFamilyMetaData(std::vector<rocksdb::ColumnFamilyMetaData>* metadata) override;
  rocksdb::Status GetSortedWalFiles(rocksdb::VectorLogPtr& files) override;
  rocksdb::Status GetCurrentWalFile(std::unique_ptr<rocksdb::LogFile>* file) override;

  // --- RocksDB itself, for those who ask for it (db_root.cc)
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

  // --- Everything else (db_other.cc, db_families.cc)
  using rocksdb::StackableDB::CompactFiles;
  using rocksdb::StackableDB::CompactRange;
  using rocksdb::StackableDB::CreateColumnFamilyWithImport;
  using rocksdb::StackableDB::Flush;
  using rocksdb::StackableDB::GetIntProperty;
  using rocksdb::StackableDB::GetMapProperty;
  using rocksdb::StackableDB::GetOptions;
  using rocksdb::StackableDB::GetProperty;
  using rocksdb::StackableDB::IngestExternalFile;
  using rocksdb::StackableDB::IngestExternalFiles;
  using rocksdb::StackableDB::SetOptions;
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
  rocksdb::Status CreateColumnFamilyWithImport(const rocksdb::ColumnFamilyOptions& options, const std::string& name,
                                               const rocksdb::ImportColumnFamilyOptions& import_options,
                                               const rocksdb::ExportImportFilesMetaData& metadata,
                                               rocksdb::ColumnFamilyHandle** handle) override;
  rocksdb::Status DropColumnFamily(rocksdb::ColumnFamilyHandle* family) override;
  rocksdb::Status DropColumnFamilies(const std::vector<rocksdb::ColumnFamilyHandle*>& families) override;
  rocksdb::Status DestroyColumnFamilyHandle(rocksdb::ColumnFamilyHandle* family) override;
  rocksdb::Status SetOptions(rocksdb::ColumnFamilyHandle* family,
                             const std::unordered_map<std::string, std::string>& options) override;
  rocksdb::Status SetDBOptions(const std::unordered_map<std::string, std::string>& options) override;
  rocksdb::Status EnableAutoCompaction(const std::vector<rocksdb::ColumnFamilyHandle*>& families) override;
  rocksdb::Options GetOptions(rocksdb::ColumnFamilyHandle* family) const override;
  rocksdb::DBOptions GetDBOptions() const override;
  rocksdb::Env* GetEnv() const override { return user_options_->env(); }
  rocksdb::FileSystem* GetFileSystem() const override { return user_options_->env()->GetFileSystem().get(); }
  rocksdb::Status Flush(const rocksdb::FlushOptions& options, rocksdb::ColumnFamilyHandle* family) override;
  rocksdb::Status Flush(const rocksdb::FlushOptions& options,
                        const std::vector<rocksdb::ColumnFamilyHandle*>& families) override;
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
  // What a batch asks of the spill store.
  struct Look {
    bool must_divert = false;  // a key of it lies in a live generation, or is covered by a range tombstone of one
    bool has_merge = false;
    rocksdb::Status unsupported;  // of an operation that cannot be diverted
  };
  // A batch ready to be appended: merges worked out, framed as a record.
  struct Prepared {
    Commit* commit = nullptr;
    rocksdb::WriteBatch resolved;  // in the place of the commit's own, if it has merges
    const rocksdb::WriteBatch* batch = nullptr;
    std::string record;
    Sequence first_sequence = 0;
    std::uint64_t offset = 0;
    std::uint64_t main_sequence = 0;
  };

  // --- Which way (db_write.cc)
  bool is_free() const;      // nothing lies in the spill store and nothing is to be diverted
  bool may_spill() const;    // should the controller say so
  bool wants_spill() const;  // what can be diverted goes to the spill store
  Look look_at(const rocksdb::WriteBatch& batch) const;
  bool is_covered(std::uint32_t family, std::string_view key) const;  // by the index or a live range tombstone
  // What became of a try to write to RocksDB.
  enum class Attempt : std::uint8_t {
    taken,                // its status says how
    refused,              // RocksDB cannot take it now
    covered,              // a key of it lies in the spill store
    announced_elsewhere,  // a key of it may be on its way there
    doubtful,             // a key of it may lie there since a write of it failed
    throttled,            // it is of low priority, and compactions are behind
  };
  Attempt try_main(const rocksdb::WriteOptions& options, rocksdb::WriteBatch* batch, rocksdb::Status* status);
  Attempt try_main(const rocksdb::WriteOptions& options, rocksdb::WriteBatch* batch, bool marks,
                   rocksdb::Status* status);
  Attempt announce(const rocksdb::WriteBatch& batch, KeyFence::MainKeys& keys) const;
  rocksdb::Status write_nothing(const rocksdb::WriteOptions& options, rocksdb::WriteBatch* batch);
  // The one way into RocksDB's write path. A frame of its own in every build: RocksDB's group leader reads its
  // followers' batches under atomics that the thread sanitizer cannot see, and scripts/tsan.suppressions names this.
  [[gnu::noinline]] rocksdb::Status enter(const rocksdb::WriteOptions& options, rocksdb::WriteBatch* batch);
  [[gnu::noinline]] rocksdb::Status write_to_rocksdb(const rocksdb::WriteOptions& options, rocksdb::WriteBatch* batch);
  bool are_memtables_empty();  // but for the guard's
  rocksdb::Status wait_for_flushes(const std::vector<std::uint32_t>& ids);
  rocksdb::Status with_flushing(bool may_flush, const std::function<rocksdb::Status(bool flushes)>& call);
  bool knows_every_family() const;
  rocksdb::Status list_without_logs(rocksdb::LiveFilesStorageInfoOptions options,
                                    std::vector<rocksdb::LiveFileStorageInfo>* files);
  rocksdb::Status have_logs_grown_to(std::uint64_t bytes, bool* result);
  // REQUIRES: bringing_back_ is held; a rollback is counted at its end
  bool has_put_back() const { return counts_.rollbacks_by_put.load(std::memory_order_relaxed) > 0; }
  rocksdb::Status error_of_rocksdb();
  rocksdb::Status error_that_keeps_the_stop(std::uint64_t errors_before);
  // Whoever wants RocksDB's log durable asks here: one that has failed is not touched (MainLogs::have_failed).
  rocksdb::Status sync_main_log();
  // And in RocksDB's own way: its statistics, listeners and MANIFEST know of it.
  rocksdb::Status sync_main_log_for_user();
  rocksdb::Status log_failure() const;
  // `held`: in a database with transactions, the locks of its keys, which it lets go of while it waits.
  rocksdb::Status write(const rocksdb::WriteOptions& options, rocksdb::WriteBatch* batch,
                        KeyVersions::Holding* held = nullptr);
  // A write that is tried until it has gone one way or the other.
  struct Trying {
    using Clock = std::chrono::steady_clock;
    rocksdb::WriteOptions options;  // the user's; `low_pri` until it has waited for that
    KeyVersions::Holding* held = nullptr;
    bool is_low_priority = false;                            // as the user gave it
    bool is_covered = false;                                 // the last try found a key of it in the spill store
    bool is_in_doubt = false;                                // the spill store failed with it: it may be there
    bool is_doubtful = false;                                // the store failed with another that has a key of it
    bool is_for_main = false;                                // a key of it can only go to RocksDB
    bool brings_rest_back = true;                            // for that, see try_with_main_only
    std::uint64_t most_rest_bytes = std::uint64_t{4} << 20;  // brought back while others wait. Source: as kSmallRest
    std::optional<Clock::time_point> waits_since;
    std::uint64_t errors_before = 0;                // that RocksDB had told of when the wait began
    std::optional<std::uint64_t> rollbacks_failed;  // when it began to wait for one
  };
  enum class Next : std::uint8_t { ended, again, waits };
  rocksdb::Status wait_for_rollback(Trying& trying);
  // `status` is the write's where it has ended.
  // False: it was not diverted, and the status says why.
  bool divert(Trying& trying, rocksdb::WriteBatch* batch, bool must_divert, rocksdb::Status* status);
  Next try_main_once(Trying& trying, rocksdb::WriteBatch* batch, rocksdb::Status* status);
  Next try_with_main_only(Trying& trying, rocksdb::WriteBatch* batch, rocksdb::Status* status);
  // None: nothing was tried.
  std::optional<Attempt> try_with_rest_brought_back(Trying& trying, rocksdb::WriteBatch* batch,
                                                    rocksdb::Status* status);
  Next next_after(Attempt attempt, Trying& trying, rocksdb::WriteBatch* batch, rocksdb::Status* status);
  Next try_either_way(Trying& trying, rocksdb::WriteBatch* batch, rocksdb::Status* status);
  rocksdb::Status wait(Trying& trying, const std::function<void()>& wait);
  rocksdb::Status write_either_way(const rocksdb::WriteOptions& options, rocksdb::WriteBatch* batch,
                                   KeyVersions::Holding* held);
  void wait_for_room();
  void tell_of_room();
  // Whether a mark in RocksDB's log is enough for a write to come after what was diverted before it.
  bool can_mark(const rocksdb::WriteBatch& batch) const;
  Mark newest_diverted() const;
  rocksdb::Status write_marked(const rocksdb::WriteOptions& options, rocksdb::WriteBatch* batch);
  rocksdb::Status make_diverted_durable();  // what was diverted until now

  // --- The spill store's writer (db_commit.cc); in the commit queue
  void lead(std::span<Commit*> group);
  void lead_together(std::span<Commit*> group);
  void lead_announced(std::span<Commit*> group);
  rocksdb::Status prepare(Commit& commit, Prepared& prepared);
  rocksdb::Status resolve_merges(const rocksdb::WriteBatch& batch, rocksdb::WriteBatch* resolved);
  rocksdb::Status newest_value(std::uint32_t family, const rocksdb::Slice& key, std::optional<std::string>* value);
  rocksdb::Status append(std::vector<Prepared>& prepared, bool sync);
  rocksdb::Status open_active();
  rocksdb::Status full();
  rocksdb::Status not_begun(const rocksdb::Status& status);
  bool has_room(std::uint64_t bytes, bool may_use_reserve) const;
  // What the next rollback writes beside the spill store's logs: for the largest generation, should the newest have so
  // many more bytes. Writers leave it free.
  std::uint64_t sorted_room(std::uint64_t more_bytes) const;
  // Of the store or of the index, whichever is fuller.
  double fill(std::uint64_t more_bytes, std::uint64_t more_memory) const;
  void add_entries(const Prepared& one);
  bool is_unsynced() const;  // a diverted write is not durable yet
  rocksdb::Status sync_store();
  // The same by any thread, not in the commit queue: commits go on meanwhile. `in_flush`: by a flush of RocksDB's,
  // which whoever holds the queue may wait for.
  rocksdb::Status sync_beside(bool in_flush = false);
  void seal();
  void fail(const rocksdb::Status& status);
  rocksdb::Status make_main_durable();  // RocksDB's log as it is now
  void raise_main_durable(std::uint64_t sequence) { raise(main_durable_, sequence); }
  static void raise(std::atomic<std::uint64_t>& to, std::uint64_t value);
  // What lies in the spill store is kept by the next recovery, whatever RocksDB's log then tells, once it is synced.
  // Where it cannot be written, compactions are held and everything is brought back.
  rocksdb::Status add_note();
  rocksdb::Status try_note();
  void owe_note();
  void end_owing_note();
  rocksdb::Status append_note();  // and is
  // The same, not in the commit queue. In a flush it does not wait for whoever holds that.
  rocksdb::Status note_beside(bool in_flush);
  void before_flush();
  // Runs `held` in the commit queue. It may wait for flushes of RocksDB's.
  void hold_commits(const std::function<void()>& held);

  // --- What is live
  std::shared_ptr<const Generations> live() const;
  void publish(std::shared_ptr<const Generations> generations);
  // Takes RocksDB's side of a view with these generations.
  using TakeMain = std::function<void(const std::shared_ptr<const Generations>& generations)>;
  View take_view(const TakeMain& take_main);
  std::optional<View> try_view(const TakeMain& take_main);
  Moment take_moment();
  Moment moment_of(const rocksdb::ReadOptions& options);
  rocksdb::Status get_at(const Moment& moment, const rocksdb::ReadOptions& options, rocksdb::ColumnFamilyHandle* family,
                         const rocksdb::Slice& key, rocksdb::PinnableSlice* value);
  void read_in_order(const Moment& moment, const rocksdb::ReadOptions& options, std::span<const std::size_t> order,
                     bool limit_is_of_family, rocksdb::ColumnFamilyHandle** families, const rocksdb::Slice* keys,
                     rocksdb::PinnableSlice* values, rocksdb::Status* statuses);
  rocksdb::Status get_covered(const rocksdb::ReadOptions& options, rocksdb::ColumnFamilyHandle* family,
                              const rocksdb::Slice& key, rocksdb::PinnableSlice* value);
  rocksdb::Status verify_spilled() const;
  rocksdb::Status value_of(const Entry& entry, const rocksdb::ReadOptions& options, rocksdb::PinnableSlice* value);
  IteratorBase base_of_now(const rocksdb::ReadOptions& options, rocksdb::ColumnFamilyHandle* family);
  IteratorBase base_of_now(const rocksdb::ReadOptions& options, std::uint32_t id);
  rocksdb::Iterator* iterator_on(IteratorBase on, const rocksdb::ReadOptions& options,
                                 rocksdb::ColumnFamilyHandle* family);
  rocksdb::Iterator* iterator_at(const Moment& moment, const rocksdb::ReadOptions& options,
                                 rocksdb::ColumnFamilyHandle* family);

  // --- Recovery (db_recovery.cc)
  rocksdb::Status recover(const Remains& remains);
  rocksdb::Status check_ways_back() const;
  std::shared_ptr<Generation> make_generation(GenerationId id);

  // --- Rollback (db_rollback.cc)
  void rollback_thread();
  void wake_rollback(bool insists = false);
  std::pair<std::uint64_t, rocksdb::Status> failed_rollbacks();  // how many, and why the last one
  RollbackState rollback_state();
  rocksdb::Status bring_back(std::uint64_t most);  // of the oldest generations
  std::shared_ptr<const Generations> reserve_sorted_room(const std::shared_ptr<const Generations>& wanted);
  rocksdb::Status put_back(const Generations& targets);
  enum class Way : std::uint8_t { put_back, ingest };
  bool is_small(const Generations& targets) const;  // so that it is put back, where RocksDB takes it
  rocksdb::Status renew_main_log();
  bool has_rocksdb_recovered(const rocksdb::Status& from);
  rocksdb::Status bring_back_held(Way largest);  // of all, in the commit queue; Aborted where that way is too small
  struct Return {                                // of generations into RocksDB
    std::chrono::steady_clock::time_point at = std::chrono::steady_clock::now();
    SpillEvent event;
  };
  Return begin_return(const Generations& targets) const;
  void end_return(const Generations& targets, const Return& began, Way way);
  enum class Where : std::uint8_t { beside_commits, in_commit_queue };
  // `durable`: of the spill store, the sequence up to which it is.
  rocksdb::Status ingest(const Generations& targets, Sequence durable, Where where);
  bool is_superseded(const Entry& entry, Sequence durable) const;
  rocksdb::Status ingest_files(const std::vector<SortedFile>& files);
  rocksdb::Status make_spill_durable();
  rocksdb::Status make_spill_durable_beside();  // not in the commit queue
  rocksdb::Status flush_large_memtables();
  rocksdb::Status forget(const Generations& targets);  // drops, publishes without them
  void ask_for_rollback();
  rocksdb::Status bring_back_until(GenerationId last);
  // Runs `action` in the commit queue while nothing lies in the spill store. Writes are diverted until all but a small
  // rest is back; those that come later wait for the rest and for `action`, which therefore has to be short.
  // (db_main_only.cc)
  // `written`: `action` may write any key.
  rocksdb::Status with_main_only(const std::function<rocksdb::Status()>& action, KeyVersions* written = nullptr);
  rocksdb::Status ingest_for_user(bool may_flush, const std::function<rocksdb::Status()>& ingest);
  // Runs `action`, which gives RocksDB a later sequence number without its log, in the commit queue. No diverted write
  // may know that number before it counts as durable: recovery would take the write for one after a loss.
  rocksdb::Status with_sequence_raised(const std::function<rocksdb::Status()>& action);
  // `list` itself; or, for a thread that copies files, with everything in them that was acknowledged.
  rocksdb::Status list_files(const std::function<rocksdb::Status()>& list);
  rocksdb::Status flush_all_families();
  rocksdb::DB* hand_out_root();
  // What lies in the spill store of that column family; without one, of all.
  Tally spilled(std::optional<std::uint32_t> family) const;
  bool sum_over_families(const rocksdb::Slice& property, std::uint64_t* value);
  void add_spilled(std::optional<std::uint32_t> family, const rocksdb::Slice& property, std::uint64_t* value) const;

  // --- A checkpoint of one moment (db_checkpoint.cc)
  using Handles = std::vector<rocksdb::ColumnFamilyHandle*>;
  using FamilyOptions = std::map<std::string, rocksdb::ColumnFamilyOptions>;
  FamilyOptions options_of_families() const;
  rocksdb::Status capture(View* view, FamilyOptions* families, std::vector<rocksdb::LiveFileStorageInfo>* files);
  // Opens the database in `directory`, a copy of this one, as plain RocksDB for as long as `use` takes.
  rocksdb::Status open_copy(const std::string& directory, const FamilyOptions& known,
                            const std::function<rocksdb::Status(rocksdb::DB&, IngestedFiles&, const Handles&)>& use);
  // What the view has of the spill store goes into the copy, by way of files in `directory`. TryAgain: RocksDB refused
  // it, or may have put it too deep (ingested_files.h).
  rocksdb::Status ingest_view(const View& view, rocksdb::DB& copy, IngestedFiles& told, const Handles& handles,
                              const std::string& directory);

  rocksdb::Status import_column_family(const rocksdb::ColumnFamilyOptions& options, const std::string& name,
                                       const rocksdb::ImportColumnFamilyOptions& import_options,
                                       const rocksdb::ExportImportFilesMetaData& metadata,
                                       rocksdb::ColumnFamilyHandle** handle);

  // Creates a column family by `create`, which is given its options, with the slowdown switched off.
  rocksdb::Status create_family(const rocksdb::ColumnFamilyDescriptor& family, rocksdb::ColumnFamilyHandle** handle,
                                const std::function<rocksdb::Status(const rocksdb::ColumnFamilyOptions&)>& create);

  // Runs `action` while commits wait, with nothing of the family in the spill store.
  rocksdb::Status with_nothing_of(std::uint32_t family, const std::function<rocksdb::Status()>& action);
  void on_handle_deletion(rocksdb::ColumnFamilyHandle* handle);
  rocksdb::Status shut_down();
  void refresh_limits(rocksdb::ColumnFamilyHandle* family);  // after its options have changed

  void on_look(const Signals& signals, Route before, Route now);
  void tell(const SpillEvent& event) const;
  void remove_leftovers();

  const SpillOptions options_;
  const std::shared_ptr<Store> store_;  // outlives every generation
  const std::shared_ptr<Binding> binding_;
  const std::shared_ptr<Detector> detector_;
  const std::shared_ptr<MainLogs> main_logs_;
  const std::shared_ptr<MainOrder> main_order_;
  const std::shared_ptr<IngestedFiles> ingested_files_;
  const std::shared_ptr<UserOptions> user_options_;
  const std::shared_ptr<HandleWatcher> handle_watcher_;
  ColumnFamilies families_;
  KeyIndex index_;
  Gate gate_;
  KeyFence fence_;
  Doubts doubts_;  // changed in the commit queue
  CommitQueue commits_;
  ValueReader values_;
  const std::shared_ptr<rocksdb::Logger> info_log_;  // RocksDB's
  Counts counts_;

  std::atomic<Diversion> diversion_{Diversion::automatic};
  std::atomic<bool> root_handed_out_{false};  // in the commit queue; nothing is diverted any more
  std::unique_ptr<KeyVersions> versions_;     // null: no transactions
  CopyingThreads copying_;
  std::atomic<bool> has_live_{false};           // set before an entry can be seen
  std::atomic<Sequence> visible_{0};            // every entry up to it is in the index
  Sequence recovered_ = 0;                      // visible_ when the database was opened
  std::atomic<bool> has_unlogged_{false};       // somebody writes to RocksDB without its log
  std::atomic<std::uint64_t> main_durable_{0};  // RocksDB's sequence up to which it is known to be durable
  std::atomic<bool> owes_note_{false};          // the spill store could not take it, and compactions are held for it
  std::atomic<Sequence> marked_{0};             // RocksDB's log has a mark of it, or of a later one
  std::atomic<std::uint64_t> appended_{0};      // groups of diverted writes that the store has taken,
  std::atomic<std::uint64_t> synced_{0};        // and how many of them are durable
  std::atomic<bool> is_full_{false};
  std::atomic<std::int64_t> diverted_pause_us_{0};  // of each group of diverted writes, see with_main_only
  std::atomic<bool> one_comes_back_{false};         // a generation is brought back: there will be room soon
  std::atomic<bool> has_failed_{false};

  mutable std::mutex newest_mutex_;
  Mark newest_;  // of the entries that are visible

  mutable std::mutex live_mutex_;
  std::shared_ptr<const Generations> live_;
  HeldGenerations held_;  // what is dropped and still read

  // In the commit queue only:
  std::shared_ptr<Generation> active_;
  GenerationId next_generation_ = 1;
  Sequence next_sequence_ = 1;
  std::uint64_t unproven_main_ = 0;  // the last write to RocksDB before the records since the last sync one, if any
  rocksdb::Status failure_;          // why the store takes no more
  bool not_begun_ = false;           // no generation could be begun, and it was told

  std::mutex room_mutex_;
  std::condition_variable room_;

  std::mutex rollback_mutex_;
  std::condition_variable rollback_wake_;
  std::condition_variable rolled_back_;
  bool comes_again_ = false;           // the rollback thread, and nobody has to wake it
  GenerationId awaited_until_ = 0;     // Rollback() waits for generations up to it
  GenerationId asked_until_ = 0;       // no lower: a write may have asked, too
  std::uint64_t failed_attempts_ = 0;  // of rollback
  rocksdb::Status rollback_failure_;
  std::chrono::milliseconds rollback_pause_ms_{0};  // after one that failed
  bool rollback_soon_ = false;                      // the last attempt was too early, or brought back a part
  bool rollback_now_ = false;
  std::atomic<bool> stopping_{false};
  std::thread rollback_;
  const std::string sorted_directory_;  // for sorted files on their way into RocksDB
  // What the rollback thread saw last.
  struct Seen {
    std::chrono::steady_clock::time_point at = std::chrono::steady_clock::now();
    std::chrono::steady_clock::time_point last_diverted = at;
    std::uint64_t reads = 0;
    std::uint64_t writes = 0;
    std::uint64_t diverted = 0;
  };
  Seen seen_;
  std::chrono::steady_clock::time_point last_rollback_ended_{};  // the rollback thread's, as what follows
  double last_rollback_took_s_ = 0;
  std::atomic<std::uint64_t> sorted_bytes_{0};  // that the sorted files of a rollback under way may have

  std::mutex bringing_back_;      // held by a rollback, and by CompactFiles; taken before the commit queue
  bool may_flush_alone_ = false;  // in with_main_only, whoever pauses meanwhile; under bringing_back_
  std::mutex handles_mutex_;
  std::vector<rocksdb::ColumnFamilyHandle*> kept_handles_;  // ours, until we close: see keep_handles
  Snapshots snapshots_;
  RollbackPause rollback_pause_;
  LowPriority low_priority_;
  std::mutex closing_mutex_;  // held while closing
  rocksdb::Status closing_status_;
  std::atomic<bool> is_closed_{false};
  bool found_writes_ = false;  // in the spill store, before the start
  bool is_started_ = false;
};

}  // namespace spillway::spill
