// Which way a write goes: round RocksDB, or into it without ever sleeping there.
#include <chrono>

#include "base/steps.h"
#include "spill/commit/batch_copy.h"
#include "spill/db/db_impl.h"

namespace spillway::spill {
namespace {

using rocksdb::ColumnFamilyHandle;
using rocksdb::Slice;
using rocksdb::WriteBatch;
using rocksdb::WriteOptions;

// Between two tries of a write that can neither be diverted nor taken by RocksDB. What ends the wait is told of; this
// bounds what an untold change costs.
constexpr std::chrono::milliseconds kRetry{2};
// After so long a write that waits for a rollback gets the error of one that failed meanwhile. A first failure may be
// followed by a success, as where a store is full of holes. Source: guess.
constexpr std::chrono::seconds kHopeless{3};

// RocksDB's answer while writes are stopped and an error, which may pass, is in the way of the compactions that would
// end that. It keeps nobody waiting then (RocksDB 7.8.3, DBImpl::DelayWrite).
bool is_stopped_by_error(const rocksdb::Status& status) {
  return status.IsIncomplete() && !LowPriority::is_throttled(status) && status.getState() != nullptr &&
         std::string_view(status.getState()) != "Write stall";
}

std::string_view view(const Slice& slice) { return {slice.data(), slice.size()}; }

rocksdb::Status no_timestamps() {
  return rocksdb::Status::NotSupported("spillway::DB does not support user-defined timestamps");
}

// What RocksDB refuses before it looks at the batch.
bool is_refused(const WriteOptions& options, bool manual_wal_flush) {
  const bool is_limited = options.rate_limiter_priority != rocksdb::Env::IO_TOTAL;
  return (options.sync && options.disableWAL) ||
         (is_limited &&
          (options.rate_limiter_priority != rocksdb::Env::IO_USER || options.disableWAL || manual_wal_flush)) ||
         (options.protection_bytes_per_key != 0 && options.protection_bytes_per_key != 8);
}

}  // namespace

bool DbImpl::is_free() const { return !has_live_.load(std::memory_order_acquire) && !wants_spill(); }

bool DbImpl::may_spill() const {
  return !root_handed_out_.load(std::memory_order_acquire) && !has_failed_.load(std::memory_order_acquire) &&
         (diversion_.load(std::memory_order_relaxed) != Diversion::never || gate_.is_closed());
}

bool DbImpl::wants_spill() const {
  if (root_handed_out_.load(std::memory_order_acquire)) return false;
  if (has_failed_.load(std::memory_order_acquire)) return false;  // until a rollback has mended the store
  switch (diversion_.load(std::memory_order_relaxed)) {
    case Diversion::always:
      return true;
    case Diversion::never:
      return gate_.is_closed();
    case Diversion::automatic:
      break;
  }
  return detector_->route() == Route::spill || gate_.is_closed();
}

// The keys of a write that is about to enter RocksDB. None may lie in the spill store, or be on its way there.
DbImpl::Attempt DbImpl::announce(const WriteBatch& batch, KeyFence::MainKeys& keys) const {
  class Announcer final : public WriteBatch::Handler {
   public:
    Announcer(const DbImpl& db, KeyFence::MainKeys& keys) : db_(db), keys_(keys) {}
    rocksdb::Status PutCF(std::uint32_t family, const Slice& key, const Slice&) override { return saw(family, key); }
    rocksdb::Status PutEntityCF(std::uint32_t family, const Slice& key, const Slice&) override {
      return saw(family, key);
    }
    rocksdb::Status PutBlobIndexCF(std::uint32_t family, const Slice& key, const Slice&) override {
      return saw(family, key);
    }
    rocksdb::Status DeleteCF(std::uint32_t family, const Slice& key) override { return saw(family, key); }
    rocksdb::Status SingleDeleteCF(std::uint32_t family, const Slice& key) override { return saw(family, key); }
    rocksdb::Status MergeCF(std::uint32_t family, const Slice& key, const Slice&) override { return saw(family, key); }
    rocksdb::Status DeleteRangeCF(std::uint32_t, const Slice&, const Slice&) override {
      result_ = db_.has_live_.load(std::memory_order_seq_cst) ? Attempt::covered : Attempt::announced_elsewhere;
      return {};
    }
    void LogData(const Slice&) override {}
    rocksdb::Status MarkBeginPrepare(bool) override { return {}; }
    rocksdb::Status MarkEndPrepare(const Slice&) override { return {}; }
    rocksdb::Status MarkNoop(bool) override { return {}; }
    rocksdb::Status MarkRollback(const Slice&) override { return {}; }
    rocksdb::Status MarkCommit(const Slice&) override { return {}; }
    rocksdb::Status MarkCommitWithTimestamp(const Slice&, const Slice&) override { return {}; }
    bool Continue() override { return result_ == Attempt::taken; }

    Attempt result() const { return result_; }

   private:
    rocksdb::Status saw(std::uint32_t family, const Slice& key) {
      const bool is_free = keys_.announce(KeyFence::stripe_of(family, view(key)));
      // Only now: the first group of a burst, which was seen before, may have withdrawn the key when it was announced
      // here, and the spill store has it since.
      if (db_.has_live_.load(std::memory_order_seq_cst) && db_.is_covered(family, view(key))) {
        result_ = Attempt::covered;
      } else if (db_.doubts_.has_any() && db_.doubts_.has(family, view(key), db_.families_)) {
        result_ = Attempt::doubtful;
      } else if (!is_free) {
        result_ = Attempt::announced_elsewhere;
      }
      return {};
    }

    const DbImpl& db_;
    KeyFence::MainKeys& keys_;
    Attempt result_ = Attempt::taken;
  };
  Announcer announcer(*this, keys);
  steps::reached("spill.write.announces");
  (void)batch.Iterate(&announcer);  // what is malformed RocksDB says itself
  return announcer.result();
}

bool DbImpl::is_covered(std::uint32_t family, std::string_view key) const {
  if (index_.contains(family, key)) return true;
  const auto generations = live();
  for (const auto& generation : *generations) {
    if (generation->has_range_tombstones()) {
      return View{generations, ~Sequence{0}}.covering_tombstone(family, key, families_) != 0;
    }
  }
  return false;
}

DbImpl::Look DbImpl::look_at(const WriteBatch& batch) const {
  class Looker final : public WriteBatch::Handler {
   public:
    Looker(const DbImpl& db, Look& look) : db_(db), look_(look), has_live_(db.has_live_) {}
    rocksdb::Status PutCF(std::uint32_t family, const Slice& key, const Slice&) override { return saw(family, key); }
    rocksdb::Status DeleteCF(std::uint32_t family, const Slice& key) override { return saw(family, key); }
    rocksdb::Status SingleDeleteCF(std::uint32_t family, const Slice& key) override { return saw(family, key); }
    rocksdb::Status MergeCF(std::uint32_t family, const Slice& key, const Slice&) override {
      look_.has_merge = true;
      return saw(family, key);
    }
    rocksdb::Status DeleteRangeCF(std::uint32_t, const Slice&, const Slice&) override {
      look_.must_divert = look_.must_divert || has_live_;  // it may cover what lies there
      return {};
    }
    rocksdb::Status PutEntityCF(std::uint32_t family, const Slice& key, const Slice&) override {
      return cannot(family, key, "PutEntity");
    }
    rocksdb::Status PutBlobIndexCF(std::uint32_t family, const Slice& key, const Slice&) override {
      return cannot(family, key, "a blob index");
    }
    void LogData(const Slice&) override {}
    rocksdb::Status MarkBeginPrepare(bool) override { return cannot("a prepared transaction"); }
    rocksdb::Status MarkEndPrepare(const Slice&) override { return cannot("a prepared transaction"); }
    rocksdb::Status MarkNoop(bool) override { return {}; }
    rocksdb::Status MarkRollback(const Slice&) override { return cannot("a prepared transaction"); }
    rocksdb::Status MarkCommit(const Slice&) override { return cannot("a prepared transaction"); }
    rocksdb::Status MarkCommitWithTimestamp(const Slice&, const Slice&) override { return no_timestamps(); }

   private:
    rocksdb::Status saw(std::uint32_t family, const Slice& key) {
      if (has_live_ && !look_.must_divert) look_.must_divert = db_.is_covered(family, view(key));
      return {};
    }
    rocksdb::Status cannot(const char* what) {
      look_.unsupported = rocksdb::Status::NotSupported(std::string(what) + " cannot be diverted to the spill store");
      return {};
    }
    rocksdb::Status cannot(std::uint32_t family, const Slice& key, const char* what) {
      (void)cannot(what);
      return saw(family, key);
    }

    const DbImpl& db_;
    Look& look_;
    const bool has_live_;
  };
  Look look;
  Looker looker(*this, look);
  const rocksdb::Status status = batch.Iterate(&looker);
  if (!status.ok()) look.unsupported = status;
  return look;
}

rocksdb::Status DbImpl::make_diverted_durable() {
  if (!is_unsynced()) return {};
  counts_.ordering_syncs.fetch_add(1, std::memory_order_relaxed);
  return sync_beside();
}

bool DbImpl::can_mark(const WriteBatch& batch) const {
  // Log data behind the point where a batch ends for the log would not be in it.
  return batch.GetWalTerminationPoint().is_cleared();
}

Mark DbImpl::newest_diverted() const {
  const std::lock_guard lock(newest_mutex_);
  return newest_;
}

rocksdb::Status DbImpl::write_marked(const WriteOptions& options, WriteBatch* batch) {
  // A write without RocksDB's log survives by a flush alone.
  if (options.disableWAL || marked_.load(std::memory_order_acquire) >= visible_.load(std::memory_order_acquire)) {
    return write_to_rocksdb(options, batch);
  }
  const Mark mark = newest_diverted();
  batch->SetSavePoint();
  rocksdb::Status status = batch->PutLogData(encode(mark));
  if (status.ok()) status = write_to_rocksdb(options, batch);
  (void)batch->RollbackToSavePoint();  // it is the user's
  if (!status.ok()) return status;
  counts_.ordering_marks.fetch_add(1, std::memory_order_relaxed);
  Sequence before = marked_.load(std::memory_order_relaxed);
  while (before < mark.sequence && !marked_.compare_exchange_weak(before, mark.sequence, std::memory_order_release)) {
  }
  steps::reached("spill.write.marked");
  return status;
}

rocksdb::Status DbImpl::enter(const WriteOptions& options, WriteBatch* batch) {
  if (main_logs_->have_failed() && !options.disableWAL) return log_failure();
  const bool is_in_log = !options.disableWAL && batch->GetWalTerminationPoint().is_cleared();  // all of it
  // Before it has sequence numbers.
  if (!is_in_log && batch->Count() > 0) has_unlogged_.store(true, std::memory_order_release);
  counts_.main_calls.fetch_add(1, std::memory_order_relaxed);
  return base().Write(options, batch);
}

// The thread sanitizer names a frame by the calls that leave it for instrumented code: this one, through `enter`.
rocksdb::Status DbImpl::write_to_rocksdb(const WriteOptions& options, WriteBatch* batch) {
  const rocksdb::Status status = enter(options, batch);
  if (LowPriority::is_throttled(status)) return status;
  (status.IsIncomplete() ? counts_.last_resort : counts_.main_writes).fetch_add(1, std::memory_order_relaxed);
  return status;
}

rocksdb::Status DbImpl::log_failure() const {
  constexpr const char* kWhat = "a write to RocksDB's log has failed; reopen the database";
  const rocksdb::IOStatus why = main_logs_->failure();
  return why.IsNoSpace() ? rocksdb::Status::NoSpace(kWhat, why.ToString())
                         : rocksdb::Status::IOError(kWhat, why.ok() ? "" : why.ToString());
}

// Then RocksDB's log has nothing that is not durable without it. (Of a log that has failed; to another, more is written
// meanwhile.) What the guard has is in no log.
bool DbImpl::are_memtables_empty() {
  std::uint64_t all = 0;
  std::uint64_t of_guard = 0;
  for (const auto& property :
       {rocksdb::DB::Properties::kNumEntriesActiveMemTable, rocksdb::DB::Properties::kNumEntriesImmMemTables}) {
    std::uint64_t entries = 0;
    if (!base().GetAggregatedIntProperty(property, &entries)) return false;
    all += entries;
    binding_
        ->use_guard([&](ColumnFamilyHandle* guard) {
          if (base().GetIntProperty(guard, property, &entries)) of_guard += entries;
          return rocksdb::Status();
        })
        .PermitUncheckedError();
  }
  return all == of_guard;
}

// Of RocksDB's state after an error in the background: what it would say to a write now. A write of nothing, which
// leaves nothing in its log.
rocksdb::Status DbImpl::error_of_rocksdb() {
  if (!ingested_files_->has_any_error()) return {};
  WriteOptions nothing;
  nothing.disableWAL = true;
  nothing.no_slowdown = true;
  WriteBatch empty;
  rocksdb::Status status = enter(nothing, &empty);
  if (is_stopped_by_error(status)) {
    constexpr const char* kWhat = "RocksDB takes no writes after an error";
    return ingested_files_->is_drive_full() ? rocksdb::Status::NoSpace(kWhat, status.getState())
                                            : rocksdb::Status::IOError(kWhat, status.getState());
  }
  return status.IsIncomplete() ? rocksdb::Status() : status;
}

rocksdb::Status DbImpl::sync_main_log() {
  if (main_logs_->have_failed()) return are_memtables_empty() ? rocksdb::Status() : log_failure();
  // It may have a buffer of its own.
  if (user_options_->database().manual_wal_flush || !main_logs_->has_any()) return base().FlushWAL(true);
  return main_logs_->sync();
}

rocksdb::Status DbImpl::sync_main_log_for_user() {
  if (main_logs_->have_failed()) return log_failure();
  const rocksdb::Status status = base().FlushWAL(true);
  return status.ok() ? sync_main_log() : status;
}

DbImpl::Attempt DbImpl::try_main(const WriteOptions& options, WriteBatch* batch, rocksdb::Status* status) {
  const bool marks = is_unsynced() && can_mark(*batch);
  const Attempt attempt = try_main(options, batch, marks, status);
  // A batch that is as large as its maker allows has no room for a mark. Nothing was written.
  return marks && status->IsMemoryLimit() ? try_main(options, batch, /*marks=*/false, status) : attempt;
}

DbImpl::Attempt DbImpl::try_main(const WriteOptions& options, WriteBatch* batch, bool marks, rocksdb::Status* status) {
  if (!marks) {
    if (*status = make_diverted_durable(); !status->ok()) return Attempt::taken;
  }
  steps::reached("spill.write.before_main");
  {
    const Gate::Pass pass(gate_);
    if (!pass) return Attempt::refused;
    KeyFence::MainKeys keys(fence_);
    // In this order: a group that is over by the first look has something live by the second, if not brought back.
    const bool any_group = fence_.has_groups();
    steps::reached("spill.write.looked_for_groups");
    if (any_group || has_live_.load(std::memory_order_seq_cst)) {
      if (const Attempt free = announce(*batch, keys); free != Attempt::taken) return free;
    }
    steps::reached("spill.write.announced");
    WriteOptions at_once = options;
    at_once.no_slowdown = true;
    *status = marks ? write_marked(at_once, batch) : write_to_rocksdb(at_once, batch);
  }
  if (LowPriority::is_throttled(*status)) return Attempt::throttled;
  if (status->IsIncomplete()) {
    detector_->refused();
    return Attempt::refused;
  }
  // RocksDB's log is durable up to this write, and with it all that its marks name has to be.
  if (status->ok() && options.sync) *status = make_diverted_durable();
  return Attempt::taken;
}

void DbImpl::wait_for_room() {
  std::unique_lock lock(room_mutex_);
  room_.wait_for(lock, kRetry);
}

void DbImpl::tell_of_room() { room_.notify_all(); }

// RocksDB ends the wait of its own writers when a compaction that would make room fails. It recovers from such an error
// within milliseconds and fails again a second later, so asking for the error now and then misses it: errors are
// counted.
rocksdb::Status DbImpl::error_that_keeps_the_stop(std::uint64_t errors_before) {
  std::uint64_t is_stopped = 0;
  if (ingested_files_->error_count() == errors_before ||
      !base().GetIntProperty(rocksdb::DB::Properties::kIsWriteStopped, &is_stopped) || is_stopped == 0) {
    return {};
  }
  return rocksdb::Status::Incomplete(ingested_files_->last_error().ToString());
}

// Of a batch that is to be diverted, what RocksDB does with its own log.
bool DbImpl::divert(Trying& trying, WriteBatch* batch, bool must_divert, rocksdb::Status* status) {
  const WriteOptions& options = trying.options;
  *status = batch->VerifyChecksum();
  if (!status->ok()) return true;
  Commit commit;
  commit.batch = batch;
  commit.sync = options.sync;
  commit.must_divert = must_divert;
  steps::reached("spill.write.before_divert");
  commits_.run(commit);
  if (commit.status.ok()) charge(user_options_->database(), options.rate_limiter_priority, batch->GetDataSize());
  trying.is_for_main = commit.is_for_main;
  *status = commit.status;
  if (!status->IsInvalidArgument() || !options.ignore_missing_column_families) {
    return !status->IsBusy() && !status->IsTryAgain();
  }
  WriteBatch rest;
  bool is_whole = true;
  const rocksdb::Status copied = copy_batch(*batch, families_, /*skip_missing=*/true, &rest, &is_whole);
  if (!copied.ok()) *status = copied;
  if (copied.ok() && !is_whole)
    *status = write(options, &rest, trying.held);  // whatever it says: it was tried either way
  return true;
}

// A rollback alone can end this wait. One that fails would have it wait for ever: then its error is the write's.
rocksdb::Status DbImpl::wait_for_rollback(Trying& trying) {
  const auto [failed, why] = failed_rollbacks();
  if (!trying.rollbacks_failed) {
    trying.rollbacks_failed = failed;
    wake_rollback(/*insists=*/!trying.options.no_slowdown);  // who does not wait may come again and again
    return {};
  }
  const bool is_hopeless = failed > *trying.rollbacks_failed && Trying::Clock::now() - *trying.waits_since > kHopeless;
  return is_hopeless ? why : rocksdb::Status();
}

DbImpl::Next DbImpl::try_main_once(Trying& trying, WriteBatch* batch, rocksdb::Status* status) {
  return next_after(try_main(trying.options, batch, status), trying, batch, status);
}

// Of a batch with a key that lies in the spill store and one that it cannot take. To wait for a rollback is not enough,
// for that key may be diverted again by others before the batch comes to RocksDB: what is left after a rollback is
// brought back while the commit queue is held, and the batch is written there. Its keys may be held meanwhile, so it
// waits for nobody who may wait for them: neither for a rollback, nor for RocksDB to take writes.
DbImpl::Next DbImpl::try_with_main_only(Trying& trying, WriteBatch* batch, rocksdb::Status* status) {
  std::optional<Attempt> attempt;
  const bool was_asked = trying.rollbacks_failed.has_value();
  const bool fails = was_asked && failed_rollbacks().first > *trying.rollbacks_failed;
  if (was_asked && !fails && trying.brings_rest_back && !detector_->signals().stopped) {
    attempt = try_with_rest_brought_back(trying, batch, status);
  }
  if (attempt) return next_after(*attempt, trying, batch, status);
  *status = wait_for_rollback(trying);
  return status->ok() ? Next::waits : Next::ended;
}

std::optional<DbImpl::Attempt> DbImpl::try_with_rest_brought_back(Trying& trying, WriteBatch* batch,
                                                                  rocksdb::Status* status) {
  std::optional<Attempt> attempt;
  const std::unique_lock no_other(bringing_back_, std::try_to_lock);
  if (!no_other.owns_lock() || rollback_pause_.is_paused()) return attempt;
  std::uint64_t rest = 0;
  for (const auto& generation : *live()) rest += generation->user_bytes();
  if (rest > trying.most_rest_bytes) {
    trying.most_rest_bytes *= 2;  // who diverts faster than is brought back waits the longer for it
    trying.rollbacks_failed.reset();
    return attempt;
  }
  const RollbackPause::Pass pass(rollback_pause_);
  if (!pass) return attempt;
  rocksdb::Status brought_back;
  hold_commits([&] {
    brought_back = bring_back_held(Way::ingest);
    if (brought_back.ok()) brought_back = sync_store();  // else the attempt might come to the queue for it
    if (brought_back.ok()) attempt = try_main(trying.options, batch, status);
  });
  tell_of_room();
  trying.brings_rest_back = brought_back.ok();  // else a rollback does, in its own time, or tells why not
  return attempt;
}

DbImpl::Next DbImpl::next_after(Attempt attempt, Trying& trying, WriteBatch* batch, rocksdb::Status* status) {
  trying.is_covered = attempt == Attempt::covered;
  switch (attempt) {
    case Attempt::taken:
      return Next::ended;
    case Attempt::refused:
      return Next::waits;
    case Attempt::covered:
      return Next::again;
    case Attempt::announced_elsewhere:
      commits_.run_alone([] {});  // then its key is in the index, or its commit has failed
      return Next::again;
    case Attempt::doubtful:
      trying.is_doubtful = true;
      return Next::again;
    case Attempt::throttled:
      break;
  }
  if (trying.options.no_slowdown) return Next::ended;
  *status = wait(trying, [&] { low_priority_.wait(batch->GetDataSize()); });
  trying.options.low_pri = false;  // it has waited
  return status->ok() ? Next::again : Next::ended;
}

DbImpl::Next DbImpl::try_either_way(Trying& trying, WriteBatch* batch, rocksdb::Status* status) {
  // Low priority waits for RocksDB, as it would without a spill store, unless it has to go there.
  const bool wants = wants_spill() && !trying.is_low_priority;
  Look look;
  if (wants || trying.is_covered) look = look_at(*batch);
  const bool diverts = look.must_divert || (wants && !look.has_merge && look.unsupported.ok());
  const bool one_comes_back = one_comes_back_.load(std::memory_order_acquire);  // before it can have ended
  // Until a rollback has mended the store.
  trying.is_in_doubt = trying.is_in_doubt && has_failed_.load(std::memory_order_acquire);
  if (diverts && !trying.is_in_doubt) {
    *status = look.unsupported;
    if (!status->ok() || divert(trying, batch, look.must_divert, status)) return Next::ended;
    trying.is_in_doubt = status->IsTryAgain();
  }
  if (look.must_divert && trying.is_for_main && !trying.options.no_slowdown) {
    return try_with_main_only(trying, batch, status);
  }
  // Full. RocksDB is about to stall: better a moment until there is room again than to drive it into that, for what
  // it takes are small L0 files, and what comes back is one large one.
  const bool is_patient = diverts && one_comes_back && !trying.options.no_slowdown;
  const bool has_failed = has_failed_.load(std::memory_order_acquire);
  trying.is_in_doubt = trying.is_in_doubt && has_failed;
  trying.is_doubtful = trying.is_doubtful && has_failed;
  // A sync write makes what was diverted before it durable, which a store that failed cannot.
  const bool waits_for_rollback = look.must_divert || trying.is_in_doubt || trying.is_doubtful ||
                                  (has_failed && trying.options.sync && is_unsynced());
  if (waits_for_rollback) {
    *status = wait_for_rollback(trying);
    return status->ok() ? Next::waits : Next::ended;
  }
  if (is_patient) return Next::waits;
  const Next next = try_main_once(trying, batch, status);
  // RocksDB has just said that it is stalled. That may be over by now, too: no reason to wait.
  if (next == Next::waits && !diverts && !trying.is_low_priority && may_spill()) {
    if (!wants) look = look_at(*batch);
    if (!look.has_merge && look.unsupported.ok()) return Next::again;
  }
  return next;
}

// Nothing of the write is anywhere, unless it is in doubt: others that have keys of it may go first.
rocksdb::Status DbImpl::wait(Trying& trying, const std::function<void()>& wait) {
  const bool lets_go = trying.held != nullptr && !trying.is_in_doubt;
  if (lets_go) trying.held->let_go();
  wait();
  return lets_go ? trying.held->take() : rocksdb::Status();
}

rocksdb::Status DbImpl::write_either_way(const WriteOptions& options, WriteBatch* batch, KeyVersions::Holding* held) {
  Trying trying;
  trying.held = held;
  trying.options = options;
  trying.is_low_priority = options.low_pri;
  rocksdb::Status status;
  for (Next next = Next::again; next != Next::ended;) {
    next = try_either_way(trying, batch, &status);
    if (next != Next::waits) continue;
    if (is_stopped_by_error(status)) break;
    if (options.no_slowdown) {
      status = rocksdb::Status::Incomplete("Write stall");
      break;
    }
    if (stopping_.load(std::memory_order_acquire)) {
      status = rocksdb::Status::ShutdownInProgress();
      break;
    }
    if (trying.waits_since && status.IsIncomplete()) {
      if (const rocksdb::Status error = error_that_keeps_the_stop(trying.errors_before); !error.ok()) {
        status = error;
        break;
      }
    }
    if (!trying.waits_since) {
      trying.waits_since = Trying::Clock::now();
      trying.errors_before = ingested_files_->error_count();
      counts_.waits.fetch_add(1, std::memory_order_relaxed);
    }
    if (status = wait(trying, [&] { wait_for_room(); }); !status.ok()) break;
  }
  if (trying.waits_since) {
    const auto waited = Trying::Clock::now() - *trying.waits_since;
    const auto us = std::chrono::duration_cast<std::chrono::microseconds>(waited).count();
    counts_.wait_us.fetch_add(static_cast<std::uint64_t>(us), std::memory_order_relaxed);
  }
  return status;
}

// A batch without operations: RocksDB's log takes what it says to the log, if anything. With `sync` it is a barrier,
// for both stores: everything that was acknowledged before is durable when it returns.
rocksdb::Status DbImpl::write_nothing(const WriteOptions& options, WriteBatch* batch) {
  WriteOptions at_once = options;
  at_once.no_slowdown = true;
  rocksdb::Status status = write_to_rocksdb(at_once, batch);
  if (status.IsIncomplete() && !options.no_slowdown) {
    const bool says_something = batch->GetDataSize() > WriteBatch().GetDataSize();
    if (says_something) {
      status = write_to_rocksdb(options, batch);
    } else {
      status = options.sync ? sync_main_log() : rocksdb::Status();
    }
  }
  if (status.ok() && options.sync) status = make_diverted_durable();
  return status;
}

rocksdb::Status DbImpl::Write(const WriteOptions& options, WriteBatch* batch) {
  if (batch == nullptr) return rocksdb::Status::InvalidArgument("Batch is nullptr!");
  if (is_closed_.load(std::memory_order_relaxed)) return rocksdb::Status::ShutdownInProgress();
  return versions_ == nullptr ? write(options, batch) : write_if_unchanged(options, batch, {});
}

rocksdb::Status DbImpl::write_if_unchanged(const WriteOptions& options, WriteBatch* batch,
                                           const std::vector<KeyVersions::Seen>& seen) {
  return versions_->write(*batch, seen, [&](KeyVersions::Holding& held) { return write(options, batch, &held); });
}

rocksdb::Status DbImpl::write(const WriteOptions& options, WriteBatch* batch, KeyVersions::Holding* held) {
  // What RocksDB refuses wherever it goes, in its words.
  if (is_refused(options, user_options_->database().manual_wal_flush)) return write_to_rocksdb(options, batch);
  if (batch->Count() == 0) return write_nothing(options, batch);
  if (batch->HasSingleDelete()) {
    WriteBatch plain;
    bool is_whole = true;
    const bool skips_missing =
        options.ignore_missing_column_families && !root_handed_out_.load(std::memory_order_acquire);
    const rocksdb::Status status = copy_batch(*batch, families_, skips_missing, &plain, &is_whole);
    // A family that was made past us, which RocksDB knows.
    if (status.IsInvalidArgument() && root_handed_out_.load(std::memory_order_acquire)) {
      return write_to_rocksdb(options, batch);
    }
    return status.ok() ? write(options, &plain, held) : status;
  }
  if (is_free()) {
    rocksdb::Status status;
    if (try_main(options, batch, &status) == Attempt::taken) return status;
  }
  return write_either_way(options, batch, held);
}

rocksdb::Status DbImpl::Put(const WriteOptions& options, ColumnFamilyHandle* family, const Slice& key,
                            const Slice& value) {
  WriteBatch batch(key.size() + value.size() + 24);  // RocksDB's own head room
  const rocksdb::Status status = batch.Put(family, key, value);
  return status.ok() ? Write(options, &batch) : status;
}

rocksdb::Status DbImpl::Delete(const WriteOptions& options, ColumnFamilyHandle* family, const Slice& key) {
  WriteBatch batch;
  const rocksdb::Status status = batch.Delete(family, key);
  return status.ok() ? Write(options, &batch) : status;
}

rocksdb::Status DbImpl::SingleDelete(const WriteOptions& options, ColumnFamilyHandle* family, const Slice& key) {
  return Delete(options, family, key);  // see copy_batch
}

rocksdb::Status DbImpl::DeleteRange(const WriteOptions& options, ColumnFamilyHandle* family, const Slice& begin,
                                    const Slice& end) {
  WriteBatch batch;
  const rocksdb::Status status = batch.DeleteRange(family, begin, end);
  return status.ok() ? Write(options, &batch) : status;
}

rocksdb::Status DbImpl::Merge(const WriteOptions& options, ColumnFamilyHandle* family, const Slice& key,
                              const Slice& operand) {
  const bool is_ours = !root_handed_out_.load(std::memory_order_acquire);  // else RocksDB knows
  if (is_ours && families_.of(family->GetID()).merge_operator == nullptr) {
    return rocksdb::Status::NotSupported("Provide a merge_operator when opening DB");
  }
  WriteBatch batch;
  const rocksdb::Status status = batch.Merge(family, key, operand);
  return status.ok() ? Write(options, &batch) : status;
}

}  // namespace spillway::spill
