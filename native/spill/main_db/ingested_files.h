// The levels at which RocksDB has placed the files that it ingested.
//
// IngestExternalFiles chooses a file's level from the family's SuperVersion. A flush or a compaction of the family
// whose MANIFEST record another thread wrote is part of the current Version before it is part of the SuperVersion
// (RocksDB 7.8.3, db/external_sst_file_ingestion_job.cc). An ingestion in between does not see it, and may put the file
// below older versions of its keys, which readers then find. Therefore a file's level is checked after its ingestion. A
// file that lies too deep is ingested once more, above the misplaced one, because that has the same keys
// (docs/decisions/0016).
#pragma once

#include <rocksdb/comparator.h>
#include <rocksdb/db.h>
#include <rocksdb/listener.h>
#include <rocksdb/metadata.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "base/mutex.h"
#include "spill/compat/file_ingestion.h"
#include "spill/store/store.h"

namespace spillway::spill {

using FileNumbers = std::unordered_set<std::uint64_t>;

// Whether each of those files of the family lies above every older file whose range of keys overlaps its own. May be
// false where the ranges overlap but no key does. `before`: the latest sequence number when the files were ingested.
bool lie_above_older(const rocksdb::ColumnFamilyMetaData& family, const rocksdb::Comparator& order,
                     const FileNumbers& ingested, std::uint64_t before);

// One of RocksDB's listeners. Knows the numbers that RocksDB gives to files, and RocksDB's errors.
class IngestedFiles final : public rocksdb::EventListener {
 public:
  // Announces that the file at that path is about to be ingested.
  void expect(const std::string& path);
  // The number of that file; nothing if it was not ingested. The file is no longer expected.
  std::optional<std::uint64_t> take(const std::string& path);

  // False after an error that stopped RocksDB, until the database is reopened. When RocksDB 7.8.3 has recovered from
  // such an error, it still counts as stopped (db/error_handler.cc, ClearBGError). It then gives an ingested file the
  // number 0 (db/db_impl/db_impl.cc, ReserveFileNumbersBeforeIngestion), or aborts the process if it is built with
  // assertions.
  bool may_ingest() const { return !has_failed_.load(std::memory_order_acquire); }
  // Whether RocksDB may move files in: see may_be_reopened() in temporary_tables.h. Set once, when the database starts.
  bool may_move() const { return may_move_.load(std::memory_order_relaxed); }
  void set_may_move(bool may_move) { may_move_.store(may_move, std::memory_order_relaxed); }
  // RocksDB certainly counts as stopped. (After an error that it takes for transient it may recover in another way.)
  bool is_stuck() const { return is_stuck_.load(std::memory_order_acquire); }
  // The last error was a full drive.
  bool is_drive_full() const { return is_drive_full_.load(std::memory_order_acquire); }
  // Also an error that did not stop RocksDB, or is over.
  bool has_any_error() const { return has_any_error_.load(std::memory_order_acquire); }
  // How many errors RocksDB has reported that stop its background work until it has recovered, and the last of them.
  std::uint64_t error_count() const { return error_count_.load(std::memory_order_acquire); }
  rocksdb::Status last_error() const;
  // RocksDB has announced that it recovers from the last error by itself, and was not kept from it.
  bool recovers_by_itself() const { return recovers_by_itself_.load(std::memory_order_acquire); }
  // While one exists, RocksDB begins no recovery by itself from a full drive. Needed around DB::Resume(): it declares
  // such a recovery ended that is still running, and a Close then frees what that one uses (RocksDB 7.8.3 and 11.8.1,
  // db/error_handler.cc, RecoverFromBGError).
  class ByHandOnly {
   public:
    explicit ByHandOnly(IngestedFiles& files) : files_(files) { ++files_.by_hand_; }
    ~ByHandOnly() { --files_.by_hand_; }
    ByHandOnly(const ByHandOnly&) = delete;
    ByHandOnly& operator=(const ByHandOnly&) = delete;

   private:
    IngestedFiles& files_;
  };
  // RocksDB's thread goes on for a moment after it has recovered by itself. It takes an error of that moment for its
  // own to recover from, also beside DB::Resume().
  bool is_just_recovered() const;
  static rocksdb::Status refusal();

  void OnExternalFileIngested(rocksdb::DB* db, const rocksdb::ExternalFileIngestionInfo& info) override;
  void OnBackgroundError(rocksdb::BackgroundErrorReason reason, rocksdb::Status* error) override;
  void OnErrorRecoveryBegin(rocksdb::BackgroundErrorReason reason, rocksdb::Status error, bool* auto_recovery) override;
  void OnErrorRecoveryCompleted(rocksdb::Status old_error) override;

 private:
  std::atomic<bool> has_any_error_{false};
  std::atomic<bool> is_drive_full_{false};
  std::atomic<bool> has_failed_{false};
  std::atomic<bool> is_stuck_{false};
  std::atomic<bool> may_move_{true};
  std::atomic<std::uint64_t> error_count_{0};
  std::atomic<bool> recovers_by_itself_{false};
  std::atomic<int> by_hand_{0};                                     // how many ByHandOnly there are
  std::atomic<std::chrono::steady_clock::time_point> recovered_{};  // by itself
  mutable Mutex mutex_;
  rocksdb::Status last_error_ GUARDED_BY(mutex_);
  // By path. Does not contain the user's files.
  std::unordered_map<std::string, std::optional<std::uint64_t>> numbers_ GUARDED_BY(mutex_);
};

// Of a user's call that asks for a move where may_move() is false.
rocksdb::Status cannot_move();

// Most ingestions of the same files. RocksDB refuses or misplaces them if a flush or a compaction is just ending. Each
// time, misplaced files get a higher level. Source: guess, more than twice the levels of a default RocksDB.
inline constexpr int kMostIngestions = 16;

// Commits the ingestion and checks the levels. `lies_above_older` is also true if nothing was ingested.
// `ingested_files` is one of the database's listeners. REQUIRES: the ingestion is prepared; meanwhile nothing is
// written to the database, no compaction begins, and the handles stay valid.
rocksdb::Status ingest_and_check_levels(FileIngestion& ingestion, IngestedFiles& ingested_files,
                                        bool* lies_above_older);

}  // namespace spillway::spill
