// Writers commit one after another, in groups. The first writer of the queue is the leader: it commits the group and
// wakes its other writers. Other actions that must not overlap a write run alone in the same queue.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <span>

#include "base/result.h"
#include "engine/engine.h"

namespace spillway::engine::vlog {

// Writes for the log and the tree.
struct Commit {
  std::span<const Write> writes;
  // From the garbage collector: each write is a put by itself, and is omitted if its key was written since watch().
  bool moves = false;
  std::uint64_t bytes = 0;  // approximate bytes in the log
  Status status{};          // set by the leader
};

class WriteQueue {
 public:
  // Writes the commits of a group in order, and sets their statuses. Called by one thread at a time.
  using CommitGroupFunction = std::function<void(std::span<Commit*> group)>;

  explicit WriteQueue(CommitGroupFunction commit_group) : commit_group_(std::move(commit_group)) {}

  // Returns when this thread or another has committed it.
  void run(Commit& commit);
  // Runs `alone` while no commit is running.
  void run_alone(const std::function<void()>& alone);

 private:
  struct Waiter {
    Commit* commit = nullptr;  // null: runs alone
    bool done = false;
    std::condition_variable turn;
  };
  // A group takes no further commit after this many bytes. Source: as LevelDB's own groups (db/db_impl.cc,
  // BuildBatchGroup).
  static constexpr std::uint64_t kGroupBytes = 1 << 20;

  std::size_t group_size() const;

  const CommitGroupFunction commit_group_;
  std::mutex mutex_;
  std::deque<Waiter*> waiters_;  // the first one leads; guarded by mutex_
};

}  // namespace spillway::engine::vlog
