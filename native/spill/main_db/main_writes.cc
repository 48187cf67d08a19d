// Writes to RocksDB, and how far its log is durable.
#include <utility>

#include "base/steps.h"
#include "spill/main_db/main_db.h"

namespace spillway::spill {

using rocksdb::Status;
using rocksdb::WriteBatch;
using rocksdb::WriteOptions;

MainDb::MainDb(rocksdb::DB& db, MainParts parts, const ColumnFamilies& families, Telemetry& telemetry)
    : db_(&db), parts_(std::move(parts)), families_(families), telemetry_(telemetry) {}

bool MainDb::can_mark(const WriteBatch& batch) { return batch.GetWalTerminationPoint().is_cleared(); }

Status MainDb::write_marked(const WriteOptions& options, WriteBatch* batch, const LiveSet& live) {
  // A write without RocksDB's log survives a crash only through a flush, so it needs no mark.
  if (options.disableWAL || marked_up_to_.load(std::memory_order_acquire) >= live.visible()) {
    return write(options, batch);
  }
  const Mark newest = live.newest();
  batch->SetSavePoint();
  Status status = batch->PutLogData(encode(newest));
  if (status.ok()) status = write(options, batch);
  (void)batch->RollbackToSavePoint();  // the batch is the user's
  if (!status.ok()) return status;
  increment(telemetry_.counts.ordering_marks);
  raise_to(marked_up_to_, newest.sequence);
  steps::reached("spill.write.marked");
  return status;
}

bool MainDb::hand_out() {
  const bool is_first = !is_handed_out_.exchange(true, std::memory_order_acq_rel);
  has_unlogged_.store(true, std::memory_order_release);  // the user's own writes to RocksDB may be without its log
  return is_first;
}

Status MainDb::make_durable() {
  const std::uint64_t latest = latest_sequence();
  if (latest <= durable_up_to()) return {};
  increment(telemetry_.counts.ordering_syncs);
  if (Status status = sync_log(); !status.ok()) return status;
  steps::reached("spill.commit.main_synced");
  raise_durable(latest);
  return {};
}

Status MainDb::sync_log() {
  if (logs().have_failed()) return are_memtables_empty() ? Status() : log_failure();
  // RocksDB may buffer its log.
  if (user_options().database().manual_wal_flush || !logs().has_any()) return db_->FlushWAL(true);
  return logs().sync();
}

Status MainDb::sync_log_for_user() {
  if (logs().have_failed()) return log_failure();
  const Status status = db_->FlushWAL(true);
  return status.ok() ? sync_log() : status;
}

}  // namespace spillway::spill
