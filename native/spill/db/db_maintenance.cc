// Calls that apply to both stores, and calls that need everything to be in RocksDB.
#include <algorithm>
#include <utility>

#include "spill/compat/rocksdb_calls.h"
#include "spill/db/db_impl.h"
#include "spill/main_db/external_files.h"

namespace spillway::spill {

using rocksdb::ColumnFamilyHandle;
using rocksdb::Slice;
using rocksdb::Status;

Status DbImpl::Rollback() { return rollbacks_.thread.bring_back_all(); }

Status DbImpl::PauseBackgroundWork() {
  rollbacks_.bring_back.pause().pause();
  const Status status = base().PauseBackgroundWork();
  if (!status.ok()) rollbacks_.bring_back.pause().resume();
  return status;
}

Status DbImpl::ContinueBackgroundWork() {
  const Status status = base().ContinueBackgroundWork();
  if (!status.ok()) return status;  // background work is not paused
  rollbacks_.bring_back.pause().resume();
  rollbacks_.thread.wake();
  return status;
}

// --- Calls that apply to both stores

Status DbImpl::SyncWAL() {
  const Status status = main_.sync_log_for_user();
  return status.ok() ? commits_.writer.sync_concurrently() : status;
}

Status DbImpl::FlushWAL(bool sync) {
  const Status status = sync ? main_.sync_log_for_user() : base().FlushWAL(false);
  return status.ok() && sync ? commits_.writer.sync_concurrently() : status;
}

// RocksDB's flush does not include the spill store. Diverted writes are equally durable there, and become tables when
// they are brought back.
Status DbImpl::Flush(const rocksdb::FlushOptions& options, ColumnFamilyHandle* family) {
  const Status status = commits_.writer.sync_concurrently();
  return status.ok() ? base().Flush(options, family) : status;
}

Status DbImpl::Flush(const rocksdb::FlushOptions& options, const std::vector<ColumnFamilyHandle*>& families) {
  const Status status = commits_.writer.sync_concurrently();
  return status.ok() ? base().Flush(options, families) : status;
}

// --- Calls that need everything to be in RocksDB

Status DbImpl::CompactRange(const rocksdb::CompactRangeOptions& options, ColumnFamilyHandle* family, const Slice* begin,
                            const Slice* end) {
  if (Status status = Rollback(); !status.ok()) return status;
  const auto compact = [&] { return base().CompactRange(options, family, begin, end); };
  // RocksDB 7.8.3 moves files to `target_level` by what it knew before an ingestion that ends meanwhile
  // (db/db_impl/db_impl_compaction_flush.cc, ReFitLevel): what was ingested would lie below older versions.
  return options.change_level ? without_rollbacks(compact) : compact();
}

// Waits for a rollback in progress to end, and while a note is owed, for a rollback of everything. Other compactions
// are held until the effects of an ingestion are recorded in a note (MainOrder::hold_compactions). Those cannot be
// held, because RocksDB calls no listener when they begin.
Status DbImpl::without_rollbacks(const std::function<Status()>& compact) {
  const BringBack::Wait wait(rollbacks_.bring_back);
  MutexLock no_rollback(rollbacks_.bring_back.mutex());
  while (commits_.notes.is_owed()) {
    no_rollback.unlock();
    if (rollbacks_.bring_back.pause().is_paused())
      return Status::Aborted("background work is paused while a note is owed");
    if (Status status = Rollback(); !status.ok()) return status;
    no_rollback.lock();
  }
  return compact();
}

Status DbImpl::CompactFiles(const rocksdb::CompactionOptions& options, ColumnFamilyHandle* family,
                            const std::vector<std::string>& input, int output_level, int output_path_id,
                            std::vector<std::string>* output, rocksdb::CompactionJobInfo* info) {
  return without_rollbacks(
      [&] { return base().CompactFiles(options, family, input, output_level, output_path_id, output, info); });
}

Status DbImpl::settle(bool abort_on_pause) {
  if (abort_on_pause && rollbacks_.bring_back.pause().is_paused()) return Status::Aborted("background work is paused");
  return Rollback();
}

// --- Calls that a StackableDB does not forward

Status DbImpl::Resume() { return base().Resume(); }

Status DbImpl::GetStatsHistory(std::uint64_t start_s, std::uint64_t end_s,
                               std::unique_ptr<rocksdb::StatsHistoryIterator>* iterator) {
  return base().GetStatsHistory(start_s, end_s, iterator);
}

Status DbImpl::IngestExternalFile(ColumnFamilyHandle* family, const std::vector<std::string>& files,
                                  const rocksdb::IngestExternalFileOptions& options) {
  rocksdb::IngestExternalFileArg argument;
  argument.column_family = family;
  argument.external_files = files;
  argument.options = options;
  return IngestExternalFiles({argument});
}

Status DbImpl::IngestExternalFiles(const std::vector<rocksdb::IngestExternalFileArg>& arguments) {
  ExternalFiles files(base().GetEnv()->GetFileSystem(), rollbacks_.bring_back.sorted_directory());
  auto linked = arguments;
  const bool may_move = main_.ingested_files().may_move();
  for (auto& argument : linked) {
    if (!may_move && moves_or_links(argument.options)) return cannot_move();
    if (!may_move || moves_or_links(argument.options)) continue;
    std::vector<std::string> copies;
    if (Status status = files.copy(argument.external_files, &copies); !status.ok()) return status;
    ingest_copies(copies, &argument);
  }
  const bool may_flush =
      std::ranges::all_of(arguments, [](const auto& one) { return one.options.allow_blocking_flush; });
  return rollbacks_.main_only.ingest(
      may_flush, [&] { return base().IngestExternalFiles(linked); }, router_.versions());
}

}  // namespace spillway::spill
