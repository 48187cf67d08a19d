#include "spill/commit/spill_writer.h"

#include <utility>

#include "base/steps.h"

namespace spillway::spill {

using rocksdb::Slice;
using rocksdb::Status;

// The event is raised once until a rollback has made room.
Status SpillWriter::report_full() {
  if (!is_full_.exchange(true, std::memory_order_acq_rel)) {
    SpillEvent event;
    event.kind = SpillEvent::Kind::spill_full;
    event.bytes = context_.store.used_bytes();
    context_.telemetry.report(event);
    context_.wake_rollback_thread();
  }
  return Status::Busy("the spill store is full");
}

Status SpillWriter::open_active() {
  if (active_) return {};
  if (Status status = context_.main.binding().ensure_guard(); !status.ok()) return status;
  const GenerationId id = next_generation_++;  // never reused: a failed begin() may have left files of that name
  if (Status status = context_.store.begin(id); !status.ok()) return status;
  active_ = context_.live.make_generation(id);
  context_.live.add(active_);
  steps::reached("spill.commit.generation_begun");
  return {};
}

Status SpillWriter::append(std::span<const Slice> records, std::span<std::uint64_t> offsets) {
  Status status = open_active();
  // Nothing in the store can be in doubt: the write goes to RocksDB, and the next write retries.
  if (!status.ok() && !status.IsNoSpace() && context_.live.generations()->empty()) return report_not_begun(status);
  has_told_not_begun_ = has_told_not_begun_ && !status.ok();
  if (status.ok()) {
    steps::reached("spill.commit.before_append");
    status = context_.store.append(records, offsets);
  }
  if (status.IsNoSpace()) return report_full();
  if (status.ok()) progress_.append();
  steps::reached("spill.commit.appended");
  if (!status.ok()) {
    report_failure(status);
    return failure_;
  }
  return {};
}

Status SpillWriter::sync() {
  if (has_failed()) return failure_;
  if (!is_unsynced()) return {};
  const std::uint64_t appended = progress_.appended();
  if (const Status status = context_.store.sync(); !status.ok()) {
    report_failure(status);
    return failure_;
  }
  progress_.sync_up_to(appended);
  steps::reached("spill.commit.synced");
  return {};
}

Status SpillWriter::sync_concurrently(bool in_flush) {
  const std::uint64_t appended = progress_.appended();
  if (appended <= progress_.synced()) return {};
  Status status;
  if (!has_failed()) {
    status = context_.store.sync();
    if (status.ok()) {
      steps::reached("spill.commit.synced");
      progress_.sync_up_to(appended);
      return status;
    }
  }
  const auto settle = [&]() REQUIRES(in_commit_queue) {
    if (appended <= progress_.synced()) {
      status = {};  // brought back in the meantime, which also cleared the failure
    } else if (status.ok()) {
      status = sync();
    } else {
      if (!has_failed()) report_failure(status);
      status = failure_;
    }
  };
  if (!in_flush) {
    queue_.run_alone(settle);
  } else if (!queue_.run_alone_unless_held(settle)) {
    return {};  // the holder of the queue brings back what the store has
  }
  return status;
}

Status SpillWriter::make_durable() {
  if (!is_unsynced()) return {};
  if (!has_failed()) return sync();
  // A failed store makes the failed generation durable when the next one begins.
  if (Status status = context_.store.begin(next_generation_); !status.ok()) return status;
  ++next_generation_;
  if (Status status = context_.store.sync(); !status.ok()) return status;
  progress_.sync_up_to(progress_.appended());
  return {};
}

Status SpillWriter::make_durable_concurrently() {
  if (!has_failed()) return sync_concurrently();
  Status status;
  queue_.run_alone([&]() REQUIRES(in_commit_queue) { status = make_durable(); });
  return status;
}

void SpillWriter::seal() {
  if (!active_) return;
  SpillEvent event;
  event.kind = SpillEvent::Kind::generation_sealed;
  event.generation = active_->id();
  event.entries = active_->entries();
  event.bytes = active_->user_bytes();
  active_.reset();
  context_.store.end();
  context_.telemetry.report(event);
}

void SpillWriter::on_all_brought_back() {
  doubts_.clear();
  has_failed_.store(false, std::memory_order_release);
  progress_.sync_up_to(progress_.appended());
}

// The event is raised once until a generation has begun.
Status SpillWriter::report_not_begun(const Status& status) {
  if (!std::exchange(has_told_not_begun_, true)) {
    SpillEvent event;
    event.kind = SpillEvent::Kind::store_failed;
    event.message = status.ToString();
    context_.telemetry.report(event);
  }
  return Status::Busy("the spill store could not begin a generation", status.ToString());
}

void SpillWriter::report_failure(const Status& status) {
  failure_ =
      Status::IOError("the spill store failed; bring back what it holds with Rollback(), or reopen", status.ToString());
  has_failed_.store(true, std::memory_order_release);
  active_.reset();
  SpillEvent event;
  event.kind = SpillEvent::Kind::store_failed;
  event.message = status.ToString();
  context_.telemetry.report(event);
  context_.wake_rollback_thread();
}

}  // namespace spillway::spill
