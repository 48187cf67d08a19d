#include "spill/rollback/rollback_thread.h"

#include <algorithm>
#include <chrono>
#include <limits>

namespace spillway::spill {
namespace {

using Clock = std::chrono::steady_clock;
using rocksdb::Status;

constexpr int kNoLimit = std::numeric_limits<int>::max();
constexpr GenerationId kNone = std::numeric_limits<GenerationId>::max();
// Time between two checks of a waiting call: an upper bound on the delay after a missed wake-up.
constexpr std::chrono::milliseconds kLookAgain{20};
// Of L0's files at which RocksDB begins to compact them. Source: guess, it compacts some while others come
constexpr int kCrowded = 3;
// Recoveries of RocksDB, each followed by another error, before a waiting call returns the error. Source: guess.
constexpr int kMostRecoveries = 2;

}  // namespace

void RollbackThread::start() {
  context_.live.defer_releases(true);
  thread_ = std::thread([this] { run(); });
}

void RollbackThread::stop() {
  {
    const MutexLock lock(mutex_);  // who looked at MainDb::is_stopping() before waits by now
  }
  wake_.notify_all();
  if (thread_.joinable()) thread_.join();
  context_.live.defer_releases(false);
  context_.live.release_deferred();
  ended_.notify_all();
}

void RollbackThread::wake(bool insists) {
  const MutexLock lock(mutex_);
  scheduler_.wake(insists);
  if (scheduler_.is_due()) wake_.notify_one();
}

void RollbackThread::ask_for(GenerationId last) {
  const MutexLock lock(mutex_);
  scheduler_.ask_for(last);
  bring_back_.hurry();  // after it: bring_back_next
}

std::pair<std::uint64_t, Status> RollbackThread::failures() {
  const MutexLock lock(mutex_);
  return {scheduler_.failures(), scheduler_.last_failure()};
}

RollbackState RollbackThread::observe() {
  const auto generations = context_.live.generations();
  const Signals signals = context_.detector.signals();
  const Thresholds thresholds = thresholds_of(signals, context_.options.divert);
  RollbackState state;
  state.route = context_.detector.route();
  state.burst_is_over = context_.detector.is_burst_over();
  // A failed store is repaired by bringing back its contents.
  state.spill_full = context_.commits.writer.is_full() || context_.commits.writer.has_failed();
  // The last write may have been paced long ago.
  const WritePacer& pacer = context_.commits.pacer;
  const StoreRoom room = context_.commits.usage.room_now();
  state.is_pacing = pacer.is_pacing() && (!pacer.is_plenty(room) || pacer.was_pacing(Clock::now()));
  state.paced_group = pacer.next_group(room);
  for (const auto& one : *generations) {
    state.live_bytes += one->user_bytes();
    state.live_entries += one->entries() + 1;  // one may hold only tombstones
  }
  state.sealed = generations->empty() ? 0 : generations->size() - 1;
  state.owes_note = context_.commits.notes.is_owed();
  state.is_stalled = signals.is_stalled;
  state.share_used = context_.commits.usage.share_used();  // no rollback frees the memory of what is only read any more
  state.debt = thresholds.divert_pending > 0 && signals.pending_compaction_bytes >= thresholds.divert_pending;
  // Without automatic compactions RocksDB counts no L0 files, and so has room for any number.
  state.l0_room =
      thresholds.divert_l0_files == 0 ? kNoLimit : std::max(0, thresholds.divert_l0_files - signals.l0_files);
  state.l0_is_busy = signals.l0_compaction_trigger > 0 && thresholds.divert_l0_files > 0 &&
                     signals.l0_files >= signals.l0_compaction_trigger;
  state.l0_is_crowded = signals.l0_compaction_trigger > 0 && thresholds.divert_l0_files > 0 &&
                        signals.l0_files >= kCrowded * signals.l0_compaction_trigger;

  const Counts& counts = context_.telemetry.counts;
  RollbackScheduler::Activity activity;
  activity.reads = counts.reads_with_live.load(std::memory_order_relaxed);
  activity.diverted = counts.diverted_writes.load(std::memory_order_relaxed);
  activity.writes = activity.diverted + counts.main_writes.load(std::memory_order_relaxed);
  const MutexLock lock(mutex_);
  scheduler_.observe(activity, generations->empty() ? kNone : generations->front()->id(), Clock::now(), &state);
  const double bytes_per_write = static_cast<double>(state.live_bytes) / static_cast<double>(state.live_entries + 1);
  state.free_lasts_s = std::max(room.free, 0.0) * static_cast<double>(context_.store.capacity_bytes()) /
                       std::max(state.writes_per_s * bytes_per_write, 1.0);
  return state;
}

RollbackScheduler::Outcome RollbackThread::bring_back_next() {
  RollbackScheduler::Outcome outcome;
  context_.live.release_deferred();
  const RollbackPause::Pass pass(bring_back_.pause());
  outcome.is_paused = !pass;
  if (!pass) {  // no write that RocksDB can take waits for the rest of a run
    is_making_room_.store(false, std::memory_order_release);
    context_.room.notify();
  }
  if (!pass || !context_.live.has_any()) return outcome;
  bring_back_.take_time();  // before observe(), which sees every call that hurried before this
  const RollbackState state = observe();
  if (!takes_its_time(state)) bring_back_.hurry();
  outcome.generations = next_rollback(state, context_.options.rollback);
  const bool makes_room = outcome.generations > 0 && (state.spill_full || state.is_pacing);
  is_making_room_.store(makes_room, std::memory_order_release);
  if (outcome.generations > 0) {
    outcome.began = Clock::now();
    const bool writer_waits = state.rollback_requested && !state.call_waits;
    outcome.status = bring_back_.bring_back(outcome.generations, writer_waits);
    outcome.has_more = outcome.status.ok() && bring_back_.is_under_way();
    context_.live.release_deferred();
    is_making_room_.store(makes_room && outcome.has_more, std::memory_order_release);
  }
  // A call that waits for room while RocksDB is stopped by an error returns that error.
  const bool is_in_vain = state.is_stalled && (outcome.generations == 0 || outcome.status.IsTryAgain());
  if (is_in_vain && (state.rollback_requested || state.spill_full)) {
    if (const Status error = context_.main.error(); !error.ok()) outcome.status = error;
  }
  context_.room.notify();
  return outcome;
}

void RollbackThread::run() {
  MutexLock lock(mutex_);
  while (!context_.main.is_stopping()) {
    const auto next = Clock::now() + scheduler_.pause();
    while (!scheduler_.is_due() && !context_.main.is_stopping() && Clock::now() < next) {
      wake_.wait_for(mutex_, next - Clock::now());
    }
    scheduler_.begin();
    if (context_.main.is_stopping()) break;
    lock.unlock();
    const RollbackScheduler::Outcome outcome = bring_back_next();
    lock.lock();
    if (scheduler_.end(outcome, Clock::now(), context_.main.is_stopping())) {
      lock.unlock();
      increment(context_.telemetry.counts.rollback_failures);
      SpillEvent event;
      event.kind = SpillEvent::Kind::rollback_failed;
      event.message = outcome.status.ToString();
      context_.telemetry.report(event);
      context_.room.notify();
      lock.lock();
    }
    ended_.notify_all();
  }
  lock.unlock();
  bring_back_.finish();
}

Status RollbackThread::bring_back_until(GenerationId last) {
  const BringBack::Wait wait(bring_back_);
  MutexLock lock(mutex_);
  scheduler_.await(last);
  std::uint64_t failed_before = scheduler_.failures();
  int recoveries = kMostRecoveries;
  const auto is_gone = [&] {
    const auto generations = context_.live.generations();
    return generations->empty() || generations->front()->id() > last;
  };
  while (!is_gone()) {
    if (context_.main.is_stopping()) return Status::ShutdownInProgress();
    if (scheduler_.failures() != failed_before) {
      const Status why = scheduler_.last_failure();
      lock.unlock();
      const bool may_retry = recoveries-- > 0 && context_.main.has_recovered(why);
      lock.lock();
      if (!may_retry) return why;
      failed_before = scheduler_.failures();
    }
    if (!scheduler_.retries_by_itself()) {
      scheduler_.wake(/*insists=*/true);
      wake_.notify_one();
    }
    ended_.wait_for(mutex_, kLookAgain);
  }
  lock.unlock();
  const MutexLock ended(bring_back_.mutex());  // so that its statistics and its event are complete
  return {};
}

Status RollbackThread::bring_back_all() {
  GenerationId last = 0;
  context_.commits.pipeline.queue().run_alone([&]() REQUIRES(in_commit_queue) {
    context_.commits.writer.seal();
    if (const auto generations = context_.live.generations(); !generations->empty()) last = generations->back()->id();
  });
  return last == 0 ? Status() : bring_back_until(last);
}

}  // namespace spillway::spill
