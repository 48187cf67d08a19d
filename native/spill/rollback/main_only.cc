#include "spill/rollback/main_only.h"

namespace spillway::spill {
namespace {

using rocksdb::Status;

// After this many rounds that did not catch up with diverted writes, a longer wait is accepted. Source: guess.
constexpr int kMostRounds = 10;

}  // namespace

Status MainOnly::run(const Action& action, KeyVersions* written) {
  CommitPipeline::Backpressure backpressure(context_.commits.pipeline);  // so that the rollback catches up
  for (int round = 1;; ++round) {
    if (round > 1) backpressure.increase();
    if (!bring_back_.pause().is_paused()) {  // then nothing is flushed, and no rollback begins
      if (Status status = rollback_.bring_back_all(); !status.ok()) return status;
      if (Status status = context_.main.flush_large_memtables(); !status.ok()) return status;
    }
    if (auto status = try_round(round, action, written)) return *status;
  }
}

std::optional<Status> MainOnly::try_round(int round, const Action& action, KeyVersions* written) {
  const bool is_last = round >= kMostRounds;
  const BringBack::Wait wait(bring_back_);
  // Locked first: a write that holds keys may be in doubt, and wait for a rollback.
  std::optional<KeyVersions::AnyKey> any_key;
  if (written != nullptr) any_key.emplace(*written);
  if (!any_key || is_last) {
    bring_back_.mutex().lock();
  } else if (!bring_back_.mutex().try_lock()) {  // does not wait for it while all keys are locked
    any_key.reset();
    const MutexLock other_ended(bring_back_.mutex());
    return std::nullopt;
  }
  const MutexLock no_other(bring_back_.mutex(), std::adopt_lock);
  if (context_.live.user_bytes() > kSmallRest && !is_last && !bring_back_.pause().is_paused()) return std::nullopt;
  Status status;
  bool has_no_room = false;
  {
    const RollbackPause::Pass pass(bring_back_.pause());  // an ingestion may wait for a flush
    context_.commits.notes.hold_commits([&]() REQUIRES(bring_back_.mutex(), in_commit_queue) {
      status = bring_back_.bring_back_in_commit_queue(pass ? Way::ingest : Way::put_back);
      has_no_room = status.IsTryAgain();
      if (status.ok()) status = action(static_cast<bool>(pass));
    });
  }
  if (has_no_room && !is_last) return std::nullopt;  // RocksDB stalls and ingests nothing
  if (any_key) any_key->is_written();
  context_.room.notify();
  return status;
}

MainOnly::Rest MainOnly::try_run(std::uint64_t most_bytes, const std::function<void()>& action) {
  const BringBack::Wait wait(bring_back_);
  if (!bring_back_.mutex().try_lock()) return Rest::not_now;
  const MutexLock no_other(bring_back_.mutex(), std::adopt_lock);
  if (bring_back_.pause().is_paused()) return Rest::not_now;
  if (context_.live.user_bytes() > most_bytes) return Rest::too_large;
  const RollbackPause::Pass pass(bring_back_.pause());
  if (!pass) return Rest::not_now;
  Status brought_back;
  context_.commits.notes.hold_commits([&]() REQUIRES(bring_back_.mutex(), in_commit_queue) {
    brought_back = bring_back_.bring_back_in_commit_queue(Way::ingest);
    // Otherwise the action might need the commit queue.
    if (brought_back.ok()) brought_back = context_.commits.writer.sync();
    if (brought_back.ok()) action();
  });
  context_.room.notify();
  return brought_back.ok() ? Rest::brought_back : Rest::failed;
}

Status MainOnly::run_raising_sequence(const std::function<Status()>& action) {
  Status status;
  context_.commits.notes.hold_commits([&] {
    status = action();
    // After a failure too: it may have raised the sequence.
    const Status durable = context_.main.make_durable();
    if (status.ok()) status = durable;
  });
  return status;
}

Status MainOnly::ingest(bool may_flush, const std::function<Status()>& ingest, KeyVersions* versions) {
  MainDb& main = context_.main;
  if (!main.ingested_files().may_ingest()) return IngestedFiles::refusal();
  const auto alone = [&](bool may_wait_for_flush) REQUIRES(bring_back_.mutex()) {
    if (!main.ingested_files().may_ingest()) return IngestedFiles::refusal();  // since everything was brought back
    Status status = main.sync_log();  // what is ingested is newer than everything in RocksDB's log
    // What was put back is in memtables that RocksDB would not have, and so not refuse to ingest over.
    if (status.ok() && !may_flush && bring_back_.has_put_back() && may_wait_for_flush) {
      status = main.flush_all_families();
    }
    if (status.ok()) status = ingest();
    const Status durable = main.make_durable();  // it has a number, and is not in the log
    return status.ok() ? durable : status;
  };
  return run(alone, versions);
}

}  // namespace spillway::spill
