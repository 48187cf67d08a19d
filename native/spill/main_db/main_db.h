// RocksDB as the rest of the library sees it: writes that do not block in it, how far its log is durable, and its state
// after an error.
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
#include "spill/main_db/low_priority.h"
#include "spill/main_db/main_logs.h"
#include "spill/main_db/main_order.h"
#include "spill/main_db/user_options.h"
#include "spill/report/telemetry.h"
#include "spill/store/record.h"

// With the thread sanitizer a function has its own stack frame. Otherwise it has none: after write(2) the processor
// mispredicts the return from each frame above it, where the kernel's mitigations empty the return stack buffer.
#ifdef __SANITIZE_THREAD__
#define SPILLWAY_FRAME_FOR_TSAN [[gnu::noinline]]
#else
#define SPILLWAY_FRAME_FOR_TSAN [[gnu::always_inline]]
#endif

namespace spillway::spill {

// Objects that RocksDB was given when it was opened, and that observe it.
struct MainParts {
  std::shared_ptr<Binding> binding;
  std::shared_ptr<MainLogs> logs;
  std::shared_ptr<MainOrder> order;
  std::shared_ptr<IngestedFiles> ingested_files;
  std::shared_ptr<UserOptions> user_options;
};

// Whether RocksDB returned this because writes are stopped and an error, which may pass, blocks the compactions that
// would end the stop. RocksDB 7.8.3 lets no writer wait in that case (DBImpl::DelayWrite).
bool is_stopped_by_error(const rocksdb::Status& status);

// Thread-safe.
class MainDb {
 public:
  // `families`: those of the database, for flushes.
  MainDb(rocksdb::DB& db, MainParts parts, const ColumnFamilies& families, Telemetry& telemetry);

  rocksdb::DB& db() const { return *db_; }
  Binding& binding() const { return *parts_.binding; }
  MainLogs& logs() const { return *parts_.logs; }
  MainOrder& order() const { return *parts_.order; }
  IngestedFiles& ingested_files() const { return *parts_.ingested_files; }
  UserOptions& user_options() const { return *parts_.user_options; }
  Telemetry& telemetry() const { return telemetry_; }
  std::uint64_t latest_sequence() const { return db_->GetLatestSequenceNumber(); }

  // --- Writes (here and in main_writes.cc)
  // Incomplete with no_slowdown during a write stall. With the thread sanitizer it has a stack frame, and so has
  // enter(), which it calls: RocksDB's group leader reads its followers' batches under atomics that the thread
  // sanitizer cannot see, and scripts/tsan.suppressions names this function.
  SPILLWAY_FRAME_FOR_TSAN rocksdb::Status write(const rocksdb::WriteOptions& options, rocksdb::WriteBatch* batch) {
    rocksdb::Status status = enter(options, batch);
    if (!status.IsIncomplete()) [[likely]] {
      increment(telemetry_.counts.main_writes);
    } else if (!LowPriority::is_throttled(status)) {
      increment(telemetry_.counts.last_resort);
    }
    return status;
  }
  // As write(), with a mark in RocksDB's log that names the newest diverted write, unless the log has a mark of that
  // write or of a later one. MemoryLimit: the batch has no room for a mark, and nothing was written.
  rocksdb::Status write_marked(const rocksdb::WriteOptions& options, rocksdb::WriteBatch* batch, const LiveSet& live);
  // Whether RocksDB's log can have a mark for the batch. Log data after the batch's WAL termination point is not
  // written to the log.
  static bool can_mark(const rocksdb::WriteBatch& batch);
  // Whether RocksDB has, or may have, writes that are not in its log.
  bool has_unlogged() const { return has_unlogged_.load(std::memory_order_acquire); }

  // RocksDB itself was given to the user (GetRootDB). Nothing is diverted any more. Set in the commit queue.
  bool is_handed_out() const { return is_handed_out_.load(std::memory_order_acquire); }
  bool hand_out();  // true: the first call

  // Whether the database is closing. Calls that wait for RocksDB return ShutdownInProgress.
  bool is_stopping() const { return is_stopping_.load(std::memory_order_acquire); }
  const std::atomic<bool>& stopping() const { return is_stopping_; }
  void stop() { is_stopping_.store(true, std::memory_order_release); }

  // --- Durability (main_writes.cc)
  // The sequence up to which RocksDB is known to be durable.
  std::uint64_t durable_up_to() const { return durable_up_to_.load(std::memory_order_acquire); }
  void raise_durable(std::uint64_t sequence) { raise_to(durable_up_to_, sequence); }
  // Makes RocksDB's log durable up to the time of the call.
  rocksdb::Status make_durable();
  // Syncs RocksDB's log. All syncs go through here. A failed log is not synced (MainLogs::have_failed).
  rocksdb::Status sync_log();
  // Syncs RocksDB's log by RocksDB's own function, which updates its statistics, listeners and MANIFEST.
  rocksdb::Status sync_log_for_user();

  // --- Errors (main_errors.cc)
  // The error of a failed log of RocksDB. RocksDB refuses writes with it.
  rocksdb::Status log_failure() const;
  // RocksDB's background error: the status that a write would return now.
  rocksdb::Status error();
  // OK: RocksDB's writes are not kept stopped by an error after the first `errors_before`.
  rocksdb::Status error_that_keeps_the_stop(std::uint64_t errors_before);
  // Whether RocksDB has recovered from an error that had stopped it. Waits some seconds for the recovery.
  bool has_recovered(const rocksdb::Status& from);
  // Makes RocksDB begin a new log after one has failed. Otherwise returns the reason why it did not.
  rocksdb::Status renew_log();
  // Except for the guard's. If so, everything in RocksDB's log is durable without the log. That stays so unless more is
  // written, which a failed log does not accept.
  bool are_memtables_empty();

  // --- Flushes (main_flushes.cc)
  // Flushes memtables whose flush would keep the gate closed for long during an ingestion.
  rocksdb::Status flush_large_memtables();
  // Of this family: whether it has nothing in memtables, and a flush of what it has. REQUIRES: it has a handle.
  bool are_memtables_empty(const ColumnFamily& family) const;
  rocksdb::Status flush_memtables_of(const ColumnFamily& family);
  // With atomic_flush in one call, because all families must be flushed as of the same moment.
  rocksdb::Status flush_all_families();
  // Flushes what an ingestion into these families must not find in memtables. Meanwhile nothing is written to them.
  rocksdb::Status flush_before_ingestion(const std::vector<rocksdb::ColumnFamilyHandle*>& families);
  // Holds compactions (MainOrder). Flushes keep a thread that no held compaction occupies.
  void hold_compactions(MainOrder::Until until);

 private:
  // The thread sanitizer names a frame by its calls to instrumented code: write() has one, through this function.
  SPILLWAY_FRAME_FOR_TSAN rocksdb::Status enter(const rocksdb::WriteOptions& options, rocksdb::WriteBatch* batch) {
    if (logs().have_failed() && !options.disableWAL) return log_failure();
    const bool is_in_log = !options.disableWAL && batch->GetWalTerminationPoint().is_cleared();  // the whole batch
    // Set before RocksDB gives the write its sequence numbers.
    if (!is_in_log && batch->Count() > 0) has_unlogged_.store(true, std::memory_order_release);
    return db_->Write(options, batch);
  }
  rocksdb::Status write_into_guard();
  rocksdb::Status resume();
  rocksdb::Status wait_for_flushes(const std::vector<std::uint32_t>& families);

  rocksdb::DB* const db_;
  const MainParts parts_;
  const ColumnFamilies& families_;
  Telemetry& telemetry_;
  std::atomic<std::uint64_t> durable_up_to_{0};
  std::atomic<Sequence> marked_up_to_{0};  // RocksDB's log has a mark that names this write or a later one
  std::atomic<bool> has_unlogged_{false};
  std::atomic<bool> is_handed_out_{false};
  std::atomic<bool> is_stopping_{false};
};

}  // namespace spillway::spill
