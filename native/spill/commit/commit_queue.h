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
  // How long it was held up: by a call that held the queue, by backpressure, or by the drive (Store::append_wait). Also
  // while it was queued behind a commit that was held up.
  std::chrono::nanoseconds waited{0};
  std::chrono::nanoseconds paced{0};  // how long its group was slowed to what leaves the store
};

class CommitQueue {
 public:
  // Writes the commits of a group in order and sets their statuses. One thread calls it at a time.
  using CommitGroup = std::function<void(std::span<Commit*> group)>;

  explicit CommitQueue(CommitGroup commit_group) : commit_group_(std::move(commit_group)) {}

  // Returns when this thread or another leader has processed the commit.
  void run(Commit& commit);
  // Runs `alone` while no commit is processed.
  // Returns how long it was held up, as Commit::waited.
  std::chrono::nanoseconds run_alone(const std::function<void()>& alone);
  // Like run_alone(), for work that may wait for a flush of RocksDB although flushes use the queue as well. While
  // `held` runs, run_alone_unless_held() returns false at once, also to callers that already wait. `prepare` runs
  // before that, while no commit is processed; it must not wait for a flush.
  void run_held(const std::function<void()>& prepare, const std::function<void()>& held);
  // Runs `alone` while no commit is processed. False: the queue is held, and `alone` was not run.
  bool run_alone_unless_held(const std::function<void()>& alone);
  // For the commit leader, when `waited` has just ended: adds it to what waits in the queue, from the arrival of each
  // on, except for the commits that have counted it themselves.
  void add_wait(std::chrono::nanoseconds waited, std::span<Commit* const> except);

 private:
  using Clock = std::chrono::steady_clock;
  struct Waiter {
    Commit* commit = nullptr;  // null: this waiter runs alone
    bool done = false;
    bool gives_way = false;                                // returns without running while the queue is held
    std::chrono::nanoseconds waited{0};                    // as Commit::waited
    Clock::time_point arrived = Clock::time_point::min();  // set if the queue was not empty just before
    CondVar turn;
  };
  // A group that has reached this size takes no further commit, so that the first one does not wait long. It is what a
  // drive's write buffer holds. Source: RocksDB's own groups end at 1 MiB (max_write_batch_group_size_bytes).
  static constexpr std::uint64_t kGroupBytes = std::uint64_t{1} << 20;

  void note_arrival(Waiter& waiter) const;
  void wait_for_turn(Waiter& waiter) REQUIRES(mutex_);
  void wake_next() REQUIRES(mutex_);
  std::size_t group_size() const REQUIRES(mutex_);
  void run_in_turn(Waiter& waiter, const std::function<void()>& alone) EXCLUDES(mutex_);
  void hold() REQUIRES(mutex_);
  void release() REQUIRES(mutex_);

  const CommitGroup commit_group_;
  Mutex mutex_;
  std::deque<Waiter*> waiters_ GUARDED_BY(mutex_);  // the front one leads
  std::atomic<bool> has_waiters_{false};            // written under mutex_; read to spare a clock
  bool is_held_ GUARDED_BY(mutex_) = false;
  Clock::time_point held_since_ GUARDED_BY(mutex_){};
};

}  // namespace spillway::spill
