// Serializes writers to the spill store and groups them. The first waiter becomes the commit leader, processes its
// followers with it, and wakes them. Work that must exclude commits runs in the same queue, alone.
#pragma once

#include <rocksdb/status.h>
#include <rocksdb/write_batch.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <span>
#include <vector>

#include "base/mutex.h"
#include "spill/live/commit_role.h"

namespace spillway::spill {

// A batch to be committed to the spill store.
struct Commit {
  rocksdb::WriteBatch* batch = nullptr;
  bool sync = false;
  // Its keys are in a live generation, or it must be diverted for another reason. It may use the reserved space.
  bool must_divert = false;
  bool is_for_main = false;  // after it was led: a key of it can only go to RocksDB
  rocksdb::Status status;    // after it was led; Busy: the store or the index is full, and nothing was taken
  // How long it was held up: by the drive, by what ran in the queue, or by writers to RocksDB. Also while it was queued
  // behind a commit that was held up.
  std::chrono::nanoseconds waited{0};
  std::chrono::nanoseconds paced{0};  // how long it, or what it was queued behind, was slowed to what leaves the store
};

// What has held commits up, until now.
struct HoldUp {
  std::chrono::nanoseconds time{0};
  std::chrono::nanoseconds of_syncs{0};  // of `time`: a sync write would have waited for a sync of its own
  bool is_pacing = false;                // to what leaves the store
};

// What takes longer has waited for another thread or for the drive, and counts as a wait. Source: guess, half of what a
// write may wait, and more than a busy machine keeps a thread from its processor
constexpr std::chrono::milliseconds kLongCommit{10};

class CommitQueue {
 public:
  // Writes the commits of a group in order and sets their statuses. One thread calls it at a time.
  using CommitGroup = std::function<void(std::span<Commit*> group)>;

  explicit CommitQueue(CommitGroup commit_group) : commit_group_(std::move(commit_group)) {}

  // Returns when this thread or another leader has processed the commit.
  void run(Commit& commit);
  // Runs `alone` while no commit is processed.
  // Returns how long it was held up, whatever the cause.
  std::chrono::nanoseconds run_alone(const std::function<void()>& alone);
  // Like run_alone(), for work that may wait for a flush of RocksDB although flushes use the queue as well. While
  // `held` runs, run_alone_unless_held() returns false at once, also to callers that already wait. `prepare` runs
  // before that, while no commit is processed; it must not wait for a flush.
  void run_held(const std::function<void()>& prepare, const std::function<void()>& held);
  // Runs `alone` while no commit is processed. False: the queue is held, and `alone` was not run.
  bool run_alone_unless_held(const std::function<void()>& alone);
  // For the commit leader, when this has just ended: adds it to what waits in the queue, from the arrival of each on,
  // except for the commits that have counted it themselves.
  void add_wait(const HoldUp& holdup, std::span<Commit* const> except);
  // For the commit leader: no group has more, but for its first commit. At most kGroupBytes.
  void limit_groups(std::uint64_t bytes) { most_bytes_.store(bytes, std::memory_order_relaxed); }

  // A group that has reached this size takes no further commit, so that the first one does not wait long. It is what a
  // drive's write buffer holds. Source: RocksDB's own groups end at 1 MiB (max_write_batch_group_size_bytes).
  static constexpr std::uint64_t kGroupBytes = std::uint64_t{1} << 20;

 private:
  using Clock = std::chrono::steady_clock;
  struct Waiter {
    Commit* commit = nullptr;  // null: this waiter runs alone
    bool done = false;
    bool gives_way = false;                                // returns without running while the queue is held
    std::chrono::nanoseconds waited{0};                    // as Commit::waited
    std::chrono::nanoseconds paced{0};                     // as Commit::paced
    Clock::time_point arrived = Clock::time_point::min();  // set if the queue was not empty just before
    CondVar turn;
  };
  void note_arrival(Waiter& waiter) const;
  void wait_for_turn(Waiter& waiter) REQUIRES(mutex_);
  void wake_next() REQUIRES(mutex_);
  std::size_t group_size() const REQUIRES(mutex_);
  void run_in_turn(Waiter& waiter, const std::function<void()>& alone) EXCLUDES(mutex_);
  void add_to_waiters(const HoldUp& holdup, std::span<Commit* const> except) REQUIRES(mutex_);
  void hold(Clock::time_point since) REQUIRES(mutex_);
  void release() REQUIRES(mutex_);

  const CommitGroup commit_group_;
  Mutex mutex_;
  std::deque<Waiter*> waiters_ GUARDED_BY(mutex_);  // the front one leads
  std::atomic<bool> has_waiters_{false};            // written under mutex_; read to spare a clock
  std::atomic<std::uint64_t> most_bytes_{kGroupBytes};
  bool is_held_ GUARDED_BY(mutex_) = false;
  Clock::time_point held_since_ GUARDED_BY(mutex_){};
};

}  // namespace spillway::spill
