#include "spill/commit/commit_pipeline.h"

#include <algorithm>
#include <string_view>
#include <thread>

#include "base/steps.h"
#include "spill/store/batch_visitor.h"

namespace spillway::spill {
namespace {

using rocksdb::Status;
using Clock = std::chrono::steady_clock;

// Announces the keys of a batch. Returns whether the batch deletes ranges; their keys are not known.
bool announce(const rocksdb::WriteBatch& batch, KeyFence::DivertedKeys& keys) {
  bool removes_ranges = false;
  (void)visit_batch(batch, [&](const BatchOperation& operation) {
    removes_ranges = removes_ranges || operation.kind == BatchOperation::Kind::remove_range;
    if (operation.has_key()) {
      keys.announce(KeyFence::stripe_of(operation.family, {operation.key.data(), operation.key.size()}));
    }
    return Status();
  });
  return removes_ranges;
}

}  // namespace

void CommitPipeline::Backpressure::increase() {
  constexpr std::chrono::microseconds kFirst{50};
  const std::int64_t more = added_us_ == 0 ? kFirst.count() : added_us_;
  pause_us_.fetch_add(more, std::memory_order_relaxed);
  added_us_ += more;
}

void CommitPipeline::pause(std::span<Commit*> group) {
  const std::chrono::microseconds asked_for(pause_us_.load(std::memory_order_relaxed));
  const auto held_back = std::min<std::chrono::nanoseconds>(asked_for, WritePacer::kLongest);
  const std::chrono::nanoseconds slowed = env_.pace(group);
  queue_.limit_groups(env_.most_group_bytes());
  const auto pause = std::max(held_back, slowed);  // one pause serves both
  if (pause.count() == 0) return;
  const auto began = Clock::now();
  std::this_thread::sleep_for(pause);
  const bool is_paced = slowed >= held_back;
  const auto took = Clock::now() - began;
  for (Commit* one : group) (is_paced ? one->paced : one->waited) += took;
  queue_.add_wait({.time = took, .is_pacing = is_paced}, group);
}

void CommitPipeline::lead(std::span<Commit*> group) {
  pause(group);
  const bool any_merge = std::ranges::any_of(group, [](const Commit* one) { return one->batch->HasMerge(); });
  if (!any_merge) return commit_group(group);
  // A merge's base may be in the preceding commit of the group.
  for (Commit*& one : group) commit_group({&one, 1});
}

// From here until the group's entries are visible, no key of the group is written to RocksDB.
void CommitPipeline::commit_group(std::span<Commit*> group) {
  KeyFence::DivertedKeys keys(fence_);
  bool closes = false;
  for (const Commit* one : group) closes = announce(*one->batch, keys) || closes;
  const auto began = Clock::now();
  // While nothing is live, a write to RocksDB announces its keys only if it saw this group. All others have to leave
  // first.
  if (closes || !env_.has_live()) {
    gate_.close();
    if (!closes) gate_.open();
  }
  keys.wait_for_main();
  std::chrono::nanoseconds waited = Clock::now() - began;
  if (waited < kLongCommit) waited = {};
  for (Commit* one : group) one->waited += waited;
  steps::reached("spill.commit.announced");
  waited += commit_announced(group);
  if (closes) gate_.open();
  const std::chrono::nanoseconds took = Clock::now() - began;
  const bool syncs = std::ranges::any_of(group, [](const Commit* one) { return one->sync; });
  if (took > waited + kLongCommit) {
    queue_.add_wait({.time = took, .of_syncs = syncs ? took - waited : std::chrono::nanoseconds{0}}, group);
  } else if (waited.count() > 0) {
    queue_.add_wait({.time = waited}, group);
  }
}

std::vector<PreparedCommit> CommitPipeline::prepare(std::span<Commit*> group) {
  std::vector<PreparedCommit> prepared;
  prepared.reserve(group.size());
  std::uint64_t bytes = 0;
  for (Commit* one : group) {
    const std::uint64_t size = one->batch->GetDataSize() + kRecordHeaderBytes;
    one->status = env_.admit(*one, bytes + size);
    if (!one->status.ok()) continue;
    one->status = env_.prepare(*one, &prepared.emplace_back());
    const std::uint64_t framed = prepared.back().record.size();  // a resolved merge may be longer than its operand
    if (one->status.ok() && framed > size) one->status = env_.admit(*one, bytes + framed);
    if (!one->status.ok()) {
      prepared.pop_back();
      continue;
    }
    bytes += framed;
  }
  return prepared;
}

std::chrono::nanoseconds CommitPipeline::commit_announced(std::span<Commit*> group) {
  std::vector<PreparedCommit> prepared = prepare(group);
  if (prepared.empty()) return {};
  const bool sync = std::ranges::any_of(prepared, [](const PreparedCommit& one) { return one.commit->sync; });
  const auto before = prepared.front().commit->waited;
  const auto began = Clock::now();
  const Status status = env_.append(prepared, sync);
  const std::chrono::nanoseconds took = Clock::now() - began;
  const auto by_drive = prepared.front().commit->waited - before;
  const bool is_long = took > by_drive + kLongCommit;
  if (by_drive.count() > 0 || is_long) {
    for (Commit* one : group) {
      // append() has counted it for those that were not refused.
      const bool is_refused = std::ranges::none_of(prepared, [&](const auto& taken) { return taken.commit == one; });
      if (is_refused) one->waited += by_drive;
      if (is_long && !one->sync) one->waited += took - by_drive;
    }
  }
  if (status.ok()) {
    env_.apply(prepared);
  } else {
    for (const PreparedCommit& one : prepared) one.commit->status = status;
  }
  return is_long && !sync ? took : by_drive;
}

}  // namespace spillway::spill
