#include "spill/route/router.h"

#include <utility>

#include "base/steps.h"
#include "spill/commit/batch_copy.h"

namespace spillway::spill {
namespace {

using rocksdb::Status;
using rocksdb::WriteBatch;
using rocksdb::WriteOptions;

// After so long a write that waits for a rollback gets the error of one that failed meanwhile. A first failure may be
// followed by a success, as where a store is full of holes. Source: guess.
constexpr std::chrono::seconds kHopeless{3};
// What RocksDB refuses before it looks at the batch.
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

bool Router::is_diverting() const {
  if (parts_.main.is_handed_out()) return false;
  if (parts_.commits.writer.has_failed()) return false;  // until a rollback has mended the store
  switch (diversion_.load(std::memory_order_relaxed)) {
    case Diversion::always:
      return true;
    case Diversion::never:
      return parts_.commits.pipeline.gate().is_closed();
    case Diversion::automatic:
      break;
  }
  return parts_.detector->route() == Route::spill || parts_.commits.pipeline.gate().is_closed();
}

void Router::set_diversion(Diversion diversion) {
  diversion_.store(diversion, std::memory_order_relaxed);
  parts_.room.notify();
}

Status Router::write(const WriteOptions& options, WriteBatch* batch) {
  return versions_ == nullptr ? write(options, batch, nullptr) : write_if_unchanged(options, batch, {});
}

Status Router::write_if_unchanged(const WriteOptions& options, WriteBatch* batch,
                                  const std::vector<KeyVersions::Seen>& seen) {
  return versions_->write(*batch, seen, [&](KeyVersions::Holding& held) { return write(options, batch, &held); });
}

Status Router::write(const WriteOptions& options, WriteBatch* batch, KeyVersions::Holding* held) {
  MainDb& main = parts_.main;
  // What RocksDB refuses wherever it goes, in its words.
  if (is_refused(options, main.user_options().database().manual_wal_flush)) return main.write(options, batch);
  if (batch->Count() == 0) return main_writer_.write_nothing(options, batch);
  if (batch->HasSingleDelete()) return write_without_single_removes(options, batch, held);
  if (is_idle()) {
    Status status;
    if (main_writer_.try_write(options, batch, &status) == Attempt::taken) return status;
  }
  PendingWrite pending;
  pending.options = options;
  pending.batch = batch;
  pending.held = held;
  pending.is_low_priority = options.low_pri;
  write_either_way(pending);
  if (pending.waits_since) pending.waited += Clock::now() - *pending.waits_since;
  if (pending.has_waited) {
    const auto us = std::chrono::duration_cast<std::chrono::microseconds>(pending.waited).count();
    increment(parts_.telemetry.counts.wait_us, static_cast<std::uint64_t>(us));
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
  // A family that was made past us, which RocksDB knows.
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
  if (write.waits_since && status.IsIncomplete()) {
    const Status error = parts_.main.error_that_keeps_the_stop(write.errors_before);
    if (!error.ok()) {
      status = error;
      return false;
    }
  }
  if (!write.waits_since) {
    count_wait(write);
    write.waits_since = Clock::now();
    write.errors_before = parts_.main.ingested_files().error_count();
  }
  return true;
}

void Router::count_wait(PendingWrite& write) {
  if (!std::exchange(write.has_waited, true)) increment(parts_.telemetry.counts.waits);
}

// Nothing of the write is anywhere, unless it is in doubt: others that have keys of it may go first.
Status Router::wait(PendingWrite& write, const std::function<void()>& wait) {
  const bool lets_go = write.held != nullptr && !write.is_in_doubt;
  if (lets_go) write.held->let_go();
  wait();
  return lets_go ? write.held->take() : Status();
}

Router::Next Router::try_either_way(PendingWrite& write) {
  // Low priority waits for RocksDB, as it would without a spill store, unless it has to go there.
  const bool wants = is_diverting() && !write.is_low_priority;
  BatchTraits traits;
  if (wants || write.is_covered) traits = classify(*write.batch, parts_.live);
  const bool diverts = traits.must_divert || (wants && !traits.has_merge && traits.unsupported.ok());
  const bool is_returning_one = parts_.rollback.is_returning_one();  // before it can have ended
  // Until a rollback has mended the store.
  write.is_in_doubt = write.is_in_doubt && parts_.commits.writer.has_failed();
  if (diverts && !write.is_in_doubt) {
    write.status = traits.unsupported;
    if (!write.status.ok() || divert(write, traits.must_divert)) return Next::ended;
    write.is_in_doubt = write.status.IsTryAgain();
  }
  if (traits.must_divert && write.is_for_main && !write.options.no_slowdown) return try_with_main_only(write);
  const bool has_failed = parts_.commits.writer.has_failed();
  write.is_in_doubt = write.is_in_doubt && has_failed;
  write.is_doubtful = write.is_doubtful && has_failed;
  // A sync write makes what was diverted before it durable, which a store that failed cannot.
  const bool needs_rollback = traits.must_divert || write.is_in_doubt || write.is_doubtful ||
                              (has_failed && write.options.sync && parts_.commits.writer.is_unsynced());
  if (needs_rollback) {
    write.status = wait_for_rollback(write);
    return write.status.ok() ? Next::waits : Next::ended;
  }
  // The store is full, and RocksDB is about to stall: better to wait for the room of the generation that is coming back
  // than to drive RocksDB into that, for what it takes are small L0 files, and what comes back is one large one.
  if (diverts && is_returning_one && !write.options.no_slowdown) return Next::waits;
  const Next next = try_main(write);
  // RocksDB has just said that it is stalled. That may be over by now, too: no reason to wait.
  if (next == Next::waits && !diverts && !write.is_low_priority && may_divert()) {
    if (!wants) traits = classify(*write.batch, parts_.live);
    if (!traits.has_merge && traits.unsupported.ok()) return Next::again;
  }
  return next;
}

// Of a batch that is to be diverted, what RocksDB does with its own log.
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
  if (commit.waited.count() > 0) count_wait(write);
  if (!write.waits_since) write.waited += commit.waited;
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
  // Whatever it says: it was tried either way.
  if (copied.ok() && !is_whole) write.status = this->write(options, &rest, write.held);
  return true;
}

// A rollback alone can end this wait. One that fails would have it wait for ever: then its error is the write's.
Status Router::wait_for_rollback(PendingWrite& write) {
  const auto [failed, why] = parts_.rollback.failures();
  if (!write.rollbacks_failed) {
    write.rollbacks_failed = failed;
    parts_.rollback.wake(/*insists=*/!write.options.no_slowdown);  // who does not wait may come again and again
    return {};
  }
  const bool is_hopeless = failed > *write.rollbacks_failed && Clock::now() - *write.waits_since > kHopeless;
  return is_hopeless ? why : Status();
}

Router::Next Router::try_main(PendingWrite& write) {
  return after(main_writer_.try_write(write.options, write.batch, &write.status), write);
}

Router::Next Router::after(Attempt attempt, PendingWrite& write) {
  write.is_covered = attempt == Attempt::covered;
  switch (attempt) {
    case Attempt::taken:
      return Next::ended;
    case Attempt::refused:
      return Next::waits;
    case Attempt::covered:
      return Next::again;
    case Attempt::announced_elsewhere:
      parts_.commits.pipeline.queue().run_alone([] {});  // then its key is in the index, or its commit has failed
      return Next::again;
    case Attempt::doubtful:
      write.is_doubtful = true;
      return Next::again;
    case Attempt::throttled:
      break;
  }
  if (write.options.no_slowdown) return Next::ended;
  count_wait(write);
  const auto began = Clock::now();
  write.status = wait(write, [&] { low_priority_.wait(write.batch->GetDataSize()); });
  if (!write.waits_since) write.waited += Clock::now() - began;
  write.options.low_pri = false;  // it has waited
  return write.status.ok() ? Next::again : Next::ended;
}

// To wait for a rollback is not enough, for the key that lies in the spill store may be diverted again by others before
// the batch comes to RocksDB: what is left after a rollback is brought back while the commit queue is held, and the
// batch is written there. Its keys may be held meanwhile, so it waits for nobody who may wait for them: neither for a
// rollback, nor for RocksDB to take writes.
Router::Next Router::try_with_main_only(PendingWrite& write) {
  std::optional<Attempt> attempt;
  const bool was_asked = write.rollbacks_failed.has_value();
  const bool fails = was_asked && parts_.rollback.failures().first > *write.rollbacks_failed;
  if (was_asked && !fails && write.brings_rest_back && !parts_.detector->signals().stopped) {
    attempt = try_with_rest_brought_back(write);
  }
  if (attempt) return after(*attempt, write);
  write.status = wait_for_rollback(write);
  return write.status.ok() ? Next::waits : Next::ended;
}

// Nothing: it was not tried.
std::optional<Attempt> Router::try_with_rest_brought_back(PendingWrite& write) {
  std::optional<Attempt> attempt;
  const MainOnly::Rest rest = parts_.main_only.try_run(
      write.most_rest_bytes, [&] { attempt = main_writer_.try_write(write.options, write.batch, &write.status); });
  if (rest == MainOnly::Rest::too_large) {
    write.most_rest_bytes *= 2;  // who diverts faster than is brought back waits the longer for it
    write.rollbacks_failed.reset();
  }
  // Else a rollback brings the rest back in its own time, or says why not.
  if (rest == MainOnly::Rest::failed) write.brings_rest_back = false;
  return attempt;
}

}  // namespace spillway::spill
