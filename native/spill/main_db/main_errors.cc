// The state in which an error has left RocksDB.
#include <chrono>
#include <string_view>
#include <thread>

#include "spill/main_db/low_priority.h"
#include "spill/main_db/main_db.h"

namespace spillway::spill {
namespace {

using Clock = std::chrono::steady_clock;
using rocksdb::ColumnFamilyHandle;
using rocksdb::Status;
using rocksdb::WriteBatch;
using rocksdb::WriteOptions;

constexpr std::chrono::milliseconds kAskErrorAgain{20};
// Longest wait of has_recovered(). RocksDB checks every five seconds whether a full drive has free space again
// (SstFileManagerImpl::ClearError). Source: twice that; a guess.
constexpr std::chrono::seconds kLongestRecovery{10};
constexpr std::chrono::seconds kAskAgain{1};

}  // namespace

bool is_stopped_by_error(const Status& status) {
  return status.IsIncomplete() && !LowPriority::is_throttled(status) && status.getState() != nullptr &&
         std::string_view(status.getState()) != "Write stall";
}

Status MainDb::log_failure() const {
  constexpr const char* kWhat = "a write to RocksDB's log has failed; reopen the database";
  const rocksdb::IOStatus why = logs().failure();
  return why.IsNoSpace() ? Status::NoSpace(kWhat, why.ToString())
                         : Status::IOError(kWhat, why.ok() ? "" : why.ToString());
}

bool MainDb::are_memtables_empty() {
  std::uint64_t all = 0;
  std::uint64_t of_guard = 0;
  for (const auto& property :
       {rocksdb::DB::Properties::kNumEntriesActiveMemTable, rocksdb::DB::Properties::kNumEntriesImmMemTables}) {
    std::uint64_t entries = 0;
    if (!db_->GetAggregatedIntProperty(property, &entries)) return false;
    all += entries;
    binding()
        .use_guard([&](ColumnFamilyHandle* guard) {
          if (db_->GetIntProperty(guard, property, &entries)) of_guard += entries;
          return Status();
        })
        .PermitUncheckedError();
  }
  return all == of_guard;
}

// An empty write, which leaves nothing in RocksDB's log.
Status MainDb::error() {
  if (!ingested_files().has_any_error()) return {};
  WriteOptions nothing;
  nothing.disableWAL = true;
  nothing.no_slowdown = true;
  WriteBatch empty;
  Status status = enter(nothing, &empty);
  if (is_stopped_by_error(status)) {
    constexpr const char* kWhat = "RocksDB takes no writes after an error";
    return ingested_files().is_drive_full() ? Status::NoSpace(kWhat, status.getState())
                                            : Status::IOError(kWhat, status.getState());
  }
  return status.IsIncomplete() ? Status() : status;
}

// RocksDB ends the wait of its own writers when a compaction that would free space fails. It recovers from such an
// error within milliseconds and fails again a second later. A check of the current error would miss it, so errors are
// counted.
Status MainDb::error_that_keeps_the_stop(std::uint64_t errors_before) {
  std::uint64_t is_stopped = 0;
  if (ingested_files().error_count() == errors_before ||
      !db_->GetIntProperty(rocksdb::DB::Properties::kIsWriteStopped, &is_stopped) || is_stopped == 0) {
    return {};
  }
  return Status::Incomplete(ingested_files().last_error().ToString());
}

Status MainDb::resume() {
  while (ingested_files().is_just_recovered()) {
    if (is_stopping()) return Status::ShutdownInProgress();
    std::this_thread::sleep_for(kAskErrorAgain);
  }
  const IngestedFiles::ByHandOnly by_hand(ingested_files());
  return db_->Resume();
}

// RocksDB recovers by itself from an error that it takes for transient, unless its user wants to call Resume(). After a
// full drive it recovers some seconds after space is free again, if it can find out (Env::GetFreeSpace); if it cannot,
// it is asked to try.
bool MainDb::has_recovered(const Status& from) {
  const auto began = Clock::now();
  Status now = error();
  if (now.ok()) return from.IsIOError() && !ingested_files().may_ingest();  // it has recovered, or may have
  if (now.severity() >= Status::kFatalError) return false;
  const bool is_full = now.IsNoSpace();
  const bool recovers = is_full || user_options().database().max_bgerror_resume_count > 0;
  auto asked = began - kAskAgain;
  while (recovers && !now.ok() && Clock::now() - began < kLongestRecovery) {
    if (is_stopping()) return false;
    if (is_full && !ingested_files().recovers_by_itself() && Clock::now() - asked >= kAskAgain) {
      asked = Clock::now();
      resume().PermitUncheckedError();
    }
    std::this_thread::sleep_for(kAskErrorAgain);
    now = error();
  }
  return now.ok();
}

Status MainDb::write_into_guard() {
  return binding().use_guard([&](ColumnFamilyHandle* guard) {
    WriteBatch batch;
    WriteOptions options;
    options.disableWAL = true;
    options.no_slowdown = true;
    const Status made = batch.Delete(guard, "");
    return made.ok() ? enter(options, &batch) : made;
  });
}

// RocksDB begins a new log when it recovers and has something to flush. If its memtables are empty it continues with
// the failed log. RocksDB 7.8.3 can be made to recover once more, see IngestedFiles::may_ingest. For that, something is
// written to the guard, which holds no data of the user.
Status MainDb::renew_log() {
  Status status = error();
  // The drive may have been full still at the last call, which has kept RocksDB from trying again by itself.
  const bool is_kept_full = status.IsNoSpace() && !ingested_files().recovers_by_itself();
  if (!status.ok() && !is_kept_full) return status;
  if (!ingested_files().is_stuck()) return log_failure();
  // A recovery enables file deletions again, even if the user has disabled them.
  std::uint64_t are_deletions_on = 1;
  (void)db_->GetIntProperty(rocksdb::DB::Properties::kIsFileDeletionsEnabled, &are_deletions_on);
  if (are_deletions_on == 0) return Status::Aborted("RocksDB's log has failed, and file deletions are off");
  if (is_kept_full) return resume();
  if (are_memtables_empty()) status = write_into_guard();
  return status.ok() ? resume() : status;
}

}  // namespace spillway::spill
