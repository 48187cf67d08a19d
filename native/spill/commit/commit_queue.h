// Writers to the spill store, one after the other and in groups: the first that waits leads, takes the others along,
// and wakes them. Whatever else must not happen during a commit runs in the same queue, alone.
#pragma once

#include <rocksdb/status.h>
#include <rocksdb/write_batch.h>

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <span>
#include <vector>

#include "base/mutex.h"
#include "spill/live/commit_role.h"

namespace spillway::spill {

// A batch on its way into the spill store.
struct Commit {
  rocksdb::WriteBatch* batch = nullptr;
  bool sync = false;
  // Its keys are in a live generation, or it must go to the spill store for another reason: it may use the reserve.
  bool must_divert = false;
  bool is_for_main = false;  // after it was led: a key of it can only go to RocksDB
  rocksdb::Status status;    // after it was led; Busy: the store or the index is full, and nothing was taken
  // How long it was held up by a call that held the queue, and by backpressure. What the store itself waits for inside
  // of Store::append, as for a drive that is behind, is not in it.
  std::chrono::nanoseconds waited{0};
};

class CommitQueue {
 public:
  // Writes the commits of a group, in order, and sets their statuses. Called by one thread at a time.
  using Lead = std::function<void(std::span<Commit*> group)>;

  explicit CommitQueue(Lead lead) : lead_(std::move(lead)) {}

  // Returns when the commit was led, by this thread or by another.
  void run(Commit& commit);
  // Runs `alone` while no commit does.
  void run_alone(const std::function<void()>& alone);
  // The same for what may wait for a flush of RocksDB's, while flushes have to come to the queue as well: those that
  // come by run_alone_unless_held() are turned away from when `held` begins until it ends. `prepare` is run before
  // that, while no commit does; it must not wait for a flush.
  void run_held(const std::function<void()>& prepare, const std::function<void()>& held);
  // False: the queue is held, and `alone` was not run.
  bool run_alone_unless_held(const std::function<void()>& alone);

 private:
  using Clock = std::chrono::steady_clock;
  struct Waiter {
    Commit* commit = nullptr;  // null: runs alone
    bool done = false;
    bool gives_way = false;                                // is turned away while the queue is held
    Clock::time_point arrived = Clock::time_point::min();  // of one that came while the queue was held
    CondVar turn;
  };
  // Bytes after which a group takes no further commit: what a drive's write buffer holds, so that the first does not
  // wait for long. Source: RocksDB's own groups end at 1 MiB (max_write_batch_group_size_bytes).
  static constexpr std::uint64_t kGroupBytes = std::uint64_t{1} << 20;

  void wait_for_turn(Waiter& waiter) REQUIRES(mutex_);
  std::size_t group_size() const REQUIRES(mutex_);
  void run_in_turn(Waiter& waiter, const std::function<void()>& alone) EXCLUDES(mutex_);
  void hold() REQUIRES(mutex_);
  void release() REQUIRES(mutex_);

  const Lead lead_;
  Mutex mutex_;
  std::deque<Waiter*> waiters_ GUARDED_BY(mutex_);  // the front one leads
  bool is_held_ GUARDED_BY(mutex_) = false;
  Clock::time_point held_since_ GUARDED_BY(mutex_){};
};

}  // namespace spillway::spill
