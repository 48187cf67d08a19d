// Writers one after the other and in groups: the first that waits leads, takes the others along and wakes them.
// Whatever else must not happen during a write runs in the same queue, alone.
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

// Writes on their way into the log and the tree.
struct Commit {
  std::span<const Write> writes;
  // Of the garbage collector: each is a put by itself, and is left out when its key was written since it was watched.
  bool moves = false;
  std::uint64_t bytes = 0;  // about what it takes in the log
  Status status{};          // after it was led
};

class WriteQueue {
 public:
  // Writes the commits of a group, in order, and sets their statuses. Called by one thread at a time.
  using CommitGroup = std::function<void(std::span<Commit*> group)>;

  explicit WriteQueue(CommitGroup commit_group) : commit_group_(std::move(commit_group)) {}

  // Returns when the commit was led, by this thread or by another.
  void run(Commit& commit);
  // Runs `alone` while no commit does.
  void run_alone(const std::function<void()>& alone);

 private:
  struct Waiter {
    Commit* commit = nullptr;  // null: runs alone
    bool done = false;
    std::condition_variable turn;
  };
  // Bytes after which a group takes no further commit. Source: as LevelDB's own groups (db/db_impl.cc,
  // BuildBatchGroup).
  static constexpr std::uint64_t kGroupBytes = 1 << 20;

  std::size_t group_size() const;

  const CommitGroup commit_group_;
  std::mutex mutex_;
  std::deque<Waiter*> waiters_;  // the front one leads; guarded by mutex_
};

}  // namespace spillway::engine::vlog
