// The commit pipeline of diverted writes: commit groups, their order, and their exclusion of writes to RocksDB that
// share a key with them. The steps of a group are behind a small environment, so that the pipeline can be tested alone.
//
//   commit()  → queue: the first waiter becomes the commit leader of the group
//             → announce the group's keys; writes to RocksDB with one of them leave or check again (key_fence.h)
//             → admit and prepare each commit; append all in one call (and sync); apply
//             → withdraw the keys; the followers wake up
#pragma once

#include <rocksdb/write_batch.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "spill/commit/commit_queue.h"
#include "spill/commit/gate.h"
#include "spill/commit/key_fence.h"
#include "spill/store/record.h"
#include "spill/store/write_pacer.h"

namespace spillway::spill {

// A commit that is ready to be appended: its merges are resolved, and it is framed as a record.
struct PreparedCommit {
  Commit* commit = nullptr;
  rocksdb::WriteBatch resolved;  // replaces the commit's own batch if that has merges
  const rocksdb::WriteBatch* batch = nullptr;
  std::string record;
  Sequence first_sequence = 0;
  std::uint64_t offset = 0;  // of the record in the store, set by append()
  std::uint64_t main_sequence = 0;
};

// The steps of a commit group. The commit leader calls each of them while it holds the commit queue.
class CommitEnv {
 public:
  virtual ~CommitEnv() = default;
  // Whether the spill store has live generations. If so, writes to RocksDB announce their keys.
  virtual bool has_live() const = 0;
  // How long a group is to wait so that the store does not fill.
  virtual std::chrono::nanoseconds pace(std::span<Commit* const> group) REQUIRES(in_commit_queue) = 0;
  // Most bytes of a group: while writers are slowed, what may come in during the longest pause.
  virtual std::uint64_t most_group_bytes() const { return CommitQueue::kGroupBytes; }
  // Busy: the store does not accept the commit when its group has `group_bytes` with it.
  virtual rocksdb::Status admit(const Commit& commit, std::uint64_t group_bytes) REQUIRES(in_commit_queue) = 0;
  // Not OK: the commit is refused and gets no place in the order. Busy: only RocksDB can take it.
  virtual rocksdb::Status prepare(Commit& commit, PreparedCommit* prepared) REQUIRES(in_commit_queue) = 0;
  // Appends all of the group or none, in this order; durable if `sync`. Busy: nothing was appended. TryAgain: in doubt.
  // Adds to each Commit::waited how long the store has waited for the drive, but for the sync.
  virtual rocksdb::Status append(std::span<PreparedCommit> group, bool sync) REQUIRES(in_commit_queue) = 0;
  // Makes the group's entries visible to reads.
  virtual void apply(std::span<const PreparedCommit> group) REQUIRES(in_commit_queue) = 0;
};

class CommitPipeline {
 public:
  // `env` is not used before the first commit.
  explicit CommitPipeline(CommitEnv& env)
      : env_(env), queue_([this](std::span<Commit*> group) REQUIRES(in_commit_queue) { lead(group); }) {}

  // Returns when this thread or another leader has processed the commit. The outcome is in its status.
  void commit(Commit& commit) { queue_.run(commit); }

  CommitQueue& queue() { return queue_; }
  // Writes to RocksDB pass this gate, and announce their keys in the fence below.
  Gate& gate() { return gate_; }
  const Gate& gate() const { return gate_; }
  KeyFence& fence() { return fence_; }

  // Backpressure: while an object exists, the leader pauses before each group, for WritePacer::kLongest at
  // most, however many there are.
  class Backpressure {
   public:
    explicit Backpressure(CommitPipeline& pipeline) : pause_us_(pipeline.pause_us_) {}
    ~Backpressure() { pause_us_.fetch_sub(added_us_, std::memory_order_relaxed); }
    Backpressure(const Backpressure&) = delete;
    Backpressure& operator=(const Backpressure&) = delete;
    // 50 us after the first call, doubled by each further one. Source: guess, a fifth of a millisecond after the third.
    void increase();

   private:
    std::atomic<std::int64_t>& pause_us_;
    std::int64_t added_us_ = 0;
  };

 private:
  void lead(std::span<Commit*> group) REQUIRES(in_commit_queue);
  void pause(std::span<Commit*> group) REQUIRES(in_commit_queue);
  void commit_group(std::span<Commit*> group) REQUIRES(in_commit_queue);
  // Returns how long the group has waited for the drive, but for a sync.
  std::chrono::nanoseconds commit_announced(std::span<Commit*> group) REQUIRES(in_commit_queue);
  std::vector<PreparedCommit> prepare(std::span<Commit*> group) REQUIRES(in_commit_queue);

  Gate gate_;  // first: it is aligned to cache lines
  KeyFence fence_;
  CommitEnv& env_;
  std::atomic<std::int64_t> pause_us_{0};  // the sum over all Backpressure objects
  CommitQueue queue_;
};

}  // namespace spillway::spill
