// The library's view of RocksDB: writes that do not block in it, how far its log is durable, and its state after an
// error.
#pragma once

#include <rocksdb/db.h>
#include <rocksdb/write_batch.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/raise.h"
#include "spill/live/column_families.h"
#include "spill/live/live_set.h"
#include "spill/main_db/binding.h"
#include "spill/main_db/ingested_files.h"
#include "spill/main_db/main_logs.h"
#include "spill/main_db/main_order.h"
#include "spill/main_db/user_options.h"
#include "spill/report/telemetry.h"
#include "spill/store/record.h"

namespace spillway::spill {

// The objects that RocksDB got when it was opened, and that observe it.
struct MainParts {
  std::shared_ptr<Binding> binding;
  std::shared_ptr<MainLogs> logs;
  std::shared_ptr<MainOrder> order;
  std::shared_ptr<IngestedFiles> ingested_files;
  std::shared_ptr<UserOptions> user_options;
};

// Whether RocksDB returned this because writes are stopped and an error, which may pass, blocks the compactions that
// would end the stop. Writers do not wait in RocksDB in that case (RocksDB 7.8.3, DBImpl::DelayWrite).
bool is_stopped_by_error(const rocksdb::Status& status);

// Thread-safe.
class MainDb {
 public:
  // `families`: the database's, for flushes.
  MainDb(rocksdb::DB& db, MainParts parts, const ColumnFamilies& families, Telemetry& telemetry);

  rocksdb::DB& db() const { return *db_; }
  Binding& binding() const { return *parts_.binding; }
  MainLogs& logs() const { return *parts_.logs; }
  MainOrder& order() const { return *parts_.order; }
  IngestedFiles& ingested_files() const { return *parts_.ingested_files; }
  UserOptions& user_options() const { return *parts_.user_options; }
  Telemetry& telemetry() const { return telemetry_; }
  std::uint64_t latest_sequence() const { return db_->GetLatestSequenceNumber(); }

  // --- Writes (main_writes.cc)
  // Incomplete with no_slowdown during a write stall. A frame of its own in every build, as is enter(), which it calls:
  // RocksDB's group leader reads its followers' batches under atomics that the thread sanitizer cannot see, and
  // scripts/tsan.suppressions names this.
  [[gnu::noinline]] rocksdb::Status write(const rocksdb::WriteOptions& options, rocksdb::WriteBatch* batch);
  // The same, with a mark in RocksDB's log of the newest diverted write, unless the log has one of it or of a later.
  // MemoryLimit: the batch has no room for it, and nothing was written.
  rocksdb::Status write_marked(const rocksdb::WriteOptions& options, rocksdb::WriteBatch* batch, const LiveSet& live);
  // Whether RocksDB's log can have a mark for the batch: log data behind the point where the batch ends for the log
  // would not be in it.
  static bool can_mark(const rocksdb::WriteBatch& batch);
  // Whether RocksDB has, or may have, writes that are not in its log.
  bool has_unlogged() const { return has_unlogged_.load(std::memory_order_acquire); }

  // RocksDB itself was given to the user (GetRootDB): nothing is diverted any more. Set in the commit queue.
  bool is_handed_out() const { return is_handed_out_.load(std::memory_order_acquire); }
  bool hand_out();  // true: for the first time

  // Whether the database is closing. Calls that wait for RocksDB return ShutdownInProgress.
  bool is_stopping() const { return is_stopping_.load(std::memory_order_acquire); }
  const std::atomic<bool>& stopping() const { return is_stopping_; }
  void stop() { is_stopping_.store(true, std::memory_order_release); }

  // --- Durability (main_writes.cc)
  // The sequence up to which RocksDB is known to be durable.
  std::uint64_t durable_up_to() const { return durable_up_to_.load(std::memory_order_acquire); }
  void raise_durable(std::uint64_t sequence) { raise_to(durable_up_to_, sequence); }
  // Makes RocksDB's log durable up to now.
  rocksdb::Status make_durable();
  // Syncs RocksDB's log. All syncs go through here: a failed log is not touched (MainLogs::have_failed).
  rocksdb::Status sync_log();
  // Syncs RocksDB's log by RocksDB's own call, which updates its statistics, listeners and MANIFEST.
  rocksdb::Status sync_log_for_user();

  // --- Errors (main_errors.cc)
  // The error of a failed log of RocksDB, with which writes to it are refused.
  rocksdb::Status log_failure() const;
  // RocksDB's background error: the status that a write would return now.
  rocksdb::Status error();
  // OK: no error after the first `errors_before` keeps RocksDB's writes stopped.
  rocksdb::Status error_that_keeps_the_stop(std::uint64_t errors_before);
  // Whether RocksDB has recovered from an error that had stopped it. Waits some seconds for the recovery.
  bool has_recovered(const rocksdb::Status& from);
  // Makes RocksDB begin a new log after one has failed. Not OK: the reason why it did not.
  rocksdb::Status renew_log();
  // But for the guard's. Then RocksDB's log has nothing that is not durable without it, unless more is written
  // meanwhile, which a log that has failed does not take.
  bool are_memtables_empty();

  // --- Flushes (main_flushes.cc)
  // Flushes memtables that would keep the gate closed for long during an ingestion.
  rocksdb::Status flush_large_memtables();
  // With atomic_flush in one call, for all of them have to be of one moment.
  rocksdb::Status flush_all_families();

 private:
  [[gnu::noinline]] rocksdb::Status enter(const rocksdb::WriteOptions& options, rocksdb::WriteBatch* batch);
  rocksdb::Status write_into_guard();
  rocksdb::Status wait_for_flushes(const std::vector<std::uint32_t>& families);

  rocksdb::DB* const db_;
  const MainParts parts_;
  const ColumnFamilies& families_;
  Telemetry& telemetry_;
  std::atomic<std::uint64_t> durable_up_to_{0};
  std::atomic<Sequence> marked_up_to_{0};  // RocksDB's log has a mark of this write or of a later one
  std::atomic<bool> has_unlogged_{false};
  std::atomic<bool> is_handed_out_{false};
  std::atomic<bool> is_stopping_{false};
};

}  // namespace spillway::spill
