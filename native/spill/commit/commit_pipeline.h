// Diverted writes on their way into the spill store: in groups, ordered, and kept apart from writes to RocksDB that
// have a key in common. What a group goes through is behind a small environment, so that this can be tested alone.
//
//   commit()  → queue: the first of those that wait is the group's leader
//             → their keys are announced; writes to RocksDB with one of them have left or look again (key_fence.h)
//             → admit, prepare each; append all in one go (and sync); apply
//             → keys are withdrawn, the others of the group wake up
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

namespace spillway::spill {

// A commit that is ready to be appended: merges resolved, framed as a record.
struct PreparedCommit {
  Commit* commit = nullptr;
  rocksdb::WriteBatch resolved;  // in the place of the commit's own, if it has merges
  const rocksdb::WriteBatch* batch = nullptr;
  std::string record;
  Sequence first_sequence = 0;
  std::uint64_t offset = 0;  // of the record in the store, once it is appended
  std::uint64_t main_sequence = 0;
};

// Each is called in the commit queue.
class CommitEnv {
 public:
  virtual ~CommitEnv() = default;
  // Whether something can be read from the spill store: then writes to RocksDB announce their keys.
  virtual bool has_live() const = 0;
  // Busy: the store does not take the commit, when its group has so many bytes with it.
  virtual rocksdb::Status admit(const Commit& commit, std::uint64_t group_bytes) REQUIRES(in_commit_queue) = 0;
  // Not OK: the commit is refused, and takes no place in the order. Busy: only RocksDB can take it.
  virtual rocksdb::Status prepare(Commit& commit, PreparedCommit* prepared) REQUIRES(in_commit_queue) = 0;
  // All of them or none, in this order; with `sync` durable. Busy: nothing was taken. TryAgain: in doubt.
  virtual rocksdb::Status append(std::span<PreparedCommit> group, bool sync) REQUIRES(in_commit_queue) = 0;
  // They can be read from now on.
  virtual void apply(std::span<const PreparedCommit> group) REQUIRES(in_commit_queue) = 0;
};

class CommitPipeline {
 public:
  // `env` is used from the first commit on.
  explicit CommitPipeline(CommitEnv& env)
      : env_(env), queue_([this](std::span<Commit*> group) REQUIRES(in_commit_queue) { lead(group); }) {}

  // Returns when the commit was led, by this thread or by another; its status says how that ended.
  void commit(Commit& commit) { queue_.run(commit); }

  CommitQueue& queue() { return queue_; }
  // Where writes to RocksDB pass, and announce their keys.
  Gate& gate() { return gate_; }
  const Gate& gate() const { return gate_; }
  KeyFence& fence() { return fence_; }

  // Backpressure: while it lives, each group of commits pauses before it is led.
  class Backpressure {
   public:
    explicit Backpressure(CommitPipeline& pipeline) : pause_us_(pipeline.pause_us_) {}
    ~Backpressure() { pause_us_.fetch_sub(added_us_, std::memory_order_relaxed); }
    Backpressure(const Backpressure&) = delete;
    Backpressure& operator=(const Backpressure&) = delete;
    // 50 us at first, twice as long with each call. Source: guess, a fifth of a millisecond in the third.
    void increase();

   private:
    std::atomic<std::int64_t>& pause_us_;
    std::int64_t added_us_ = 0;
  };

 private:
  void lead(std::span<Commit*> group) REQUIRES(in_commit_queue);
  void commit_group(std::span<Commit*> group) REQUIRES(in_commit_queue);
  void commit_announced(std::span<Commit*> group) REQUIRES(in_commit_queue);
  std::vector<PreparedCommit> prepare(std::span<Commit*> group) REQUIRES(in_commit_queue);

  CommitEnv& env_;
  Gate gate_;
  KeyFence fence_;
  std::atomic<std::int64_t> pause_us_{0};  // of all who ask for backpressure
  CommitQueue queue_;
};

}  // namespace spillway::spill
