#include "spill/commit/commit_pipeline.h"

#include <algorithm>
#include <string_view>
#include <thread>

#include "base/steps.h"
#include "spill/store/batch_visitor.h"

namespace spillway::spill {
namespace {

using rocksdb::Status;

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
  const std::chrono::microseconds held_back(pause_us_.load(std::memory_order_relaxed));
  const std::chrono::nanoseconds paced = env_.pace(group);
  const auto pause = held_back + paced;
  if (pause.count() == 0) return;
  std::this_thread::sleep_for(pause);
  for (Commit* one : group) {
    one->waited += held_back;
    one->paced += paced;
  }
  queue_.add_wait(pause, group);
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
  // While nothing is live, a write to RocksDB announces its keys only if it saw this group. All others have to leave
  // first.
  if (closes || !env_.has_live()) {
    gate_.close();
    if (!closes) gate_.open();
  }
  keys.wait_for_main();
  steps::reached("spill.commit.announced");
  commit_announced(group);
  if (closes) gate_.open();
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

void CommitPipeline::commit_announced(std::span<Commit*> group) {
  std::vector<PreparedCommit> prepared = prepare(group);
  if (prepared.empty()) return;
  const bool sync = std::ranges::any_of(prepared, [](const PreparedCommit& one) { return one.commit->sync; });
  const auto before = prepared.front().commit->waited;
  const Status status = env_.append(prepared, sync);
  if (const auto waited = prepared.front().commit->waited - before; waited.count() > 0) {
    // Commits that were refused, and those behind the group, have waited with it.
    std::vector<Commit*> counted;
    counted.reserve(prepared.size());
    for (const PreparedCommit& one : prepared) counted.push_back(one.commit);
    queue_.add_wait(waited, counted);
  }
  if (status.ok()) return env_.apply(prepared);
  for (const PreparedCommit& one : prepared) one.commit->status = status;
}

}  // namespace spillway::spill
