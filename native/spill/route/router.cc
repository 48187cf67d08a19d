#include "spill/route/router.h"

#include <rocksdb/write_buffer_manager.h>

#include "base/steps.h"
#include "spill/commit/batch_copy.h"

namespace spillway::spill {
namespace {

using rocksdb::Status;
using rocksdb::WriteBatch;
using rocksdb::WriteOptions;

// A write that waits for a rollback returns the error of a failed rollback after this time. A first failure may be
// followed by a success, for example if the store's free space is fragmented. Source: guess.
constexpr std::chrono::seconds kHopeless{3};
// Writes that RocksDB refuses without reading the batch. REQUIRES: Router::is_special.
bool is_refused(const WriteOptions& options, bool manual_wal_flush) {
  const bool is_limited = options.rate_limiter_priority != rocksdb::Env::IO_TOTAL;
  return (options.sync && options.disableWAL) ||
         (is_limited &&
          (options.rate_limiter_priority != rocksdb::Env::IO_USER || options.disableWAL || manual_wal_flush)) ||
         (options.protection_bytes_per_key != 0 && options.protection_bytes_per_key != 8);
}

}  // namespace

bool Router::may_divert() const {
  return !parts_.main.is_handed_out() && !parts_.commits.writer.has_failed() &&
         (diversion_.load(std::memory_order_relaxed) != Diversion::never || parts_.commits.pipeline.gate().is_closed());
}

void Router::set_diversion(Diversion diversion) {
  diversion_.store(diversion, std::memory_order_relaxed);
  parts_.room.notify();
}

void Router::count_diversions(const Signals& signals, Route before, Route now) {
  if (before == now || now == Route::main) causes_.poll(signals);
  if (before == now || now == Route::main) return;
  const auto& memory = parts_.main.user_options().database().write_buffer_manager;
  increment(parts_.telemetry.counts.stalls_diverted);
  causes_.begin(signals, memory != nullptr && memory->ShouldStall());
}

Status Router::write_if_unchanged(const WriteOptions& options, WriteBatch* batch,
                                  const std::vector<KeyVersions::Seen>& seen) {
  return versions_->write(*batch, seen, [&](KeyVersions::Holding& held) { return write(options, batch, &held); });
}

Status Router::write(const WriteOptions& options, WriteBatch* batch, KeyVersions::Holding* held, PendingWrite* whole) {
  MainDb& main = parts_.main;
  // RocksDB refuses these with its own messages, whichever store would take them.
  if (is_special(options) && is_refused(options, main.user_options().database().manual_wal_flush)) {
    return main.write(options, batch);
  }
  if (batch->Count() == 0) return main_writer_.write_nothing(options, batch);
  // A row that is found in the cache counts for RocksDB as newer than every range tombstone.
  if (main.user_options().database().row_cache != nullptr && batch->HasDeleteRange()) {
    return Status::NotSupported(
        "DeleteRange in a database with row_cache: RocksDB would read keys that it has removed");
  }
  if (batch->HasSingleDelete()) return write_without_single_removes(options, batch, held);
  const std::chrono::nanoseconds for_keys = held == nullptr ? std::chrono::nanoseconds{0} : held->waited();
  const bool has_waited = for_keys > kLongCommit;
  if (is_idle() && !has_waited) {
    Status status;
    if (main_writer_.try_write(options, batch, &status) == Attempt::finished) return status;
  }
  return write_either_way(options, batch, held, whole, has_waited ? for_keys : std::chrono::nanoseconds{0});
}

Status Router::write_either_way(const WriteOptions& options, WriteBatch* batch, KeyVersions::Holding* held,
                                PendingWrite* whole, std::chrono::nanoseconds for_keys) {
  PendingWrite pending(parts_.telemetry.counts);
  pending.options = options;
  pending.batch = batch;
  pending.held = held;
  pending.is_low_priority = options.low_pri;
  if (whole != nullptr) pending.waits.begin_part_of(whole->waits);
  pending.waits.add(WaitCause::commits, for_keys);
  write_either_way(pending);
  pending.waits.end();
  if (whole != nullptr) {
    whole->waits.take_part(pending.waits);
  } else {
    pending.waits.report();
  }
  return pending.status;
}

Status Router::write_without_single_removes(const WriteOptions& options, WriteBatch* batch,
                                            KeyVersions::Holding* held) {
  const bool is_handed_out = parts_.main.is_handed_out();
  const bool skips_missing = options.ignore_missing_column_families && !is_handed_out;
  WriteBatch plain;
  bool is_whole = true;
  const Status status = copy_batch(*batch, parts_.live.families(), skips_missing, &plain, &is_whole);
  // The column family was created past this library after RocksDB itself was handed out, so only RocksDB knows it.
  if (status.IsInvalidArgument() && parts_.main.is_handed_out()) return parts_.main.write(options, batch);
  return status.ok() ? write(options, &plain, held) : status;
}

void Router::write_either_way(PendingWrite& write) {
  for (Next next = Next::again; next != Next::ended;) {
    next = try_either_way(write);
    if (next != Next::waits) continue;
    if (!may_wait(write)) return;
    if (write.status = wait(write, [&] { parts_.room.wait(); }); !write.status.ok()) return;
  }
}

bool Router::may_wait(PendingWrite& write) {
  Status& status = write.status;
  if (is_stopped_by_error(status)) return false;
  if (write.options.no_slowdown) {
    status = Status::Incomplete("Write stall");
    return false;
  }
  if (parts_.main.is_stopping()) {
    status = Status::ShutdownInProgress();
    return false;
  }
  if (write.waits.since() && status.IsIncomplete()) {
    const Status error = parts_.main.error_that_keeps_the_stop(write.errors_before);
    if (!error.ok()) {
      status = error;
      return false;
    }
  }
  if (!write.waits.since()) write.errors_before = parts_.main.ingested_files().error_count();
  write.waits.wait_for(write.waits_for);
  return true;
}

// The write is stored nowhere, unless it is in doubt: writes of the same keys may go first.
Status Router::wait(PendingWrite& write, const std::function<void()>& wait) {
  const bool releases_locks = write.held != nullptr && !write.is_in_doubt;
  if (releases_locks) write.held->release();
  wait();
  return releases_locks ? write.held->take() : Status();
}

// Where a write goes, at each try:
//   - to the spill store, if a key of it lies there, or if RocksDB is near a write stall (or diversion is on for
//   another
//     reason, is_diverting) and the spill store can take all of the batch; a low-priority write only for the first
//     cause;
//   - to both in turn, if one key lies in the spill store and another can only go to RocksDB (try_with_main_only);
//   - nowhere yet, if it waits for a rollback: its key lies in a spill store that is full or has failed, or a rollback
//     is making room;
//   - to RocksDB otherwise. If RocksDB refuses it in a stall that was not noticed before, it is tried again.
Router::Next Router::try_either_way(PendingWrite& write) {
  // A low-priority write waits for RocksDB, as it would without a spill store, unless it must be diverted.
  const bool wants = is_diverting() && !write.is_low_priority;
  BatchTraits traits;
  if (wants || write.has_diverted_key) traits = classify(*write.batch, parts_.live);
  const bool diverts = traits.must_divert || (wants && !traits.has_merge && traits.unsupported.ok());
  const bool is_making_room = parts_.rollback.is_making_room();  // read before the rollback can end
  // The doubt ends when a rollback has emptied the failed store.
  write.is_in_doubt = write.is_in_doubt && parts_.commits.writer.has_failed();
  if (diverts && !write.is_in_doubt) {
    write.status = traits.unsupported;
    if (!write.status.ok() || divert(write, traits.must_divert)) return Next::ended;
    write.is_in_doubt = write.status.IsTryAgain();
  }
  if (traits.must_divert && write.is_for_main && !write.options.no_slowdown) return try_with_main_only(write);
  const bool has_failed = parts_.commits.writer.has_failed();
  write.is_in_doubt = write.is_in_doubt && has_failed;
  write.has_doubtful_key = write.has_doubtful_key && has_failed;
  // A sync write makes earlier diverted writes durable. A failed store cannot do that.
  const bool needs_rollback = traits.must_divert || write.is_in_doubt || write.has_doubtful_key ||
                              (has_failed && write.options.sync && parts_.commits.writer.is_unsynced());
  if (needs_rollback) {
    write.status = wait_for_rollback(write);
    return write.status.ok() ? Next::waits : Next::ended;
  }
  // The store is full and RocksDB is near a write stall. Waiting for the generation that is coming back is better than
  // writing to RocksDB: RocksDB would flush many small L0 files, while the generation comes back as one large one.
  if (diverts && is_making_room && !write.options.no_slowdown) {
    write.waits_for = WaitCause::rollback;
    return Next::waits;
  }
  const Next next = try_main(write);
  // RocksDB refused the write because of a stall, but the stall may be over. There is no reason to wait.
  if (next == Next::waits && !diverts && !write.is_low_priority && may_divert()) {
    if (!wants) traits = classify(*write.batch, parts_.live);
    if (!traits.has_merge && traits.unsupported.ok()) return Next::again;
  }
  return next;
}

// Applies to a batch that is about to be diverted what RocksDB does for its own log.
bool Router::divert(PendingWrite& write, bool must_divert) {
  const WriteOptions& options = write.options;
  write.status = write.batch->VerifyChecksum();
  if (!write.status.ok()) return true;
  Commit commit;
  commit.batch = write.batch;
  commit.sync = options.sync;
  commit.must_divert = must_divert;
  steps::reached("spill.write.before_divert");
  parts_.commits.pipeline.commit(commit);
  write.waits.add(WaitCause::pacing, commit.paced);
  write.waits.add(WaitCause::commits, commit.waited);
  const rocksdb::DBOptions& database = parts_.main.user_options().database();
  if (commit.status.ok()) charge(database, options.rate_limiter_priority, write.batch->GetDataSize());
  write.is_for_main = commit.is_for_main;
  write.status = commit.status;
  if (!write.status.IsInvalidArgument() || !options.ignore_missing_column_families) {
    return !write.status.IsBusy() && !write.status.IsTryAgain();
  }
  WriteBatch rest;
  bool is_whole = true;
  const Status copied = copy_batch(*write.batch, parts_.live.families(), /*skip_missing=*/true, &rest, &is_whole);
  if (!copied.ok()) write.status = copied;
  // Whatever this returns is the write's result: the rest was tried in both ways.
  if (copied.ok() && !is_whole) write.status = this->write(options, &rest, write.held, &write);
  return true;
}

// Only a rollback can end this wait. If the rollback fails, its error becomes the write's, so the wait cannot last for
// ever.
Status Router::wait_for_rollback(PendingWrite& write) {
  write.waits_for = WaitCause::rollback;
  const auto [failed, why] = parts_.rollback.failures();
  if (!write.rollbacks_failed) {
    write.rollbacks_failed = failed;
    parts_.rollback.wake(
        /*insists=*/!write.options.no_slowdown);  // a no_slowdown write does not wait, and may be retried often
    return {};
  }
  const bool is_hopeless = failed > *write.rollbacks_failed && Clock::now() - *write.waits.since() > kHopeless;
  return is_hopeless ? why : Status();
}

Router::Next Router::try_main(PendingWrite& write) {
  return after(main_writer_.try_write(write.options, write.batch, &write.status), write);
}

Router::Next Router::after(Attempt attempt, PendingWrite& write) {
  write.has_diverted_key = attempt == Attempt::covered;
  switch (attempt) {
    case Attempt::finished:
      return Next::ended;
    case Attempt::refused:
      write.waits_for = WaitCause::rocksdb;
      return Next::waits;
    case Attempt::covered:
      return Next::again;
    case Attempt::announced_elsewhere:
      // Then its key is in the index, or its commit failed.
      write.waits.add(WaitCause::commits, parts_.commits.pipeline.queue().run_alone([] {}));
      return Next::again;
    case Attempt::doubtful:
      write.has_doubtful_key = true;
      return Next::again;
    case Attempt::throttled:
      break;
  }
  if (write.options.no_slowdown) return Next::ended;
  const auto began = Clock::now();
  write.status = wait(write, [&] { low_priority_.wait(write.batch->GetDataSize()); });
  write.waits.add(WaitCause::low_priority, Clock::now() - began);
  write.options.low_pri = false;  // its low-priority wait is over
  return write.status.ok() ? Next::again : Next::ended;
}

// Waiting for a rollback is not enough: other writers may divert the key again before the batch reaches RocksDB.
// Therefore the rest that a rollback leaves is brought back while the commit queue is held, and the batch is written
// there. The locks of its keys may be held during that, so it must not wait for anything that may wait for them:
// neither for a rollback nor for RocksDB to accept writes.
Router::Next Router::try_with_main_only(PendingWrite& write) {
  std::optional<Attempt> attempt;
  const bool was_asked = write.rollbacks_failed.has_value();
  const bool fails = was_asked && parts_.rollback.failures().first > *write.rollbacks_failed;
  if (was_asked && !fails && write.may_empty_store_in_queue && !parts_.detector->signals().is_stalled) {
    attempt = try_with_rest_brought_back(write);
  }
  if (attempt) return after(*attempt, write);
  write.status = wait_for_rollback(write);
  return write.status.ok() ? Next::waits : Next::ended;
}

// Returns nothing if it was not tried.
std::optional<Attempt> Router::try_with_rest_brought_back(PendingWrite& write) {
  std::optional<Attempt> attempt;
  const MainOnly::Rest rest = parts_.main_only.try_run(
      write.max_bytes_in_queue, [&] { attempt = main_writer_.try_write(write.options, write.batch, &write.status); });
  if (rest == MainOnly::Rest::too_large) {
    write.max_bytes_in_queue *= 2;  // if diversion outpaces rollback, a longer wait is accepted
    write.rollbacks_failed.reset();
  }
  // Otherwise a rollback brings the rest back later, or reports why it cannot.
  if (rest == MainOnly::Rest::failed) write.may_empty_store_in_queue = false;
  return attempt;
}

}  // namespace spillway::spill
