#include "spill/commit/commit_queue.h"

#include <algorithm>
#include <cassert>

namespace spillway::spill {

// Before mutex_ is taken: the commit leader does not wait for a clock.
void CommitQueue::note_arrival(Waiter& waiter) const {
  if (has_waiters_.load(std::memory_order_relaxed)) waiter.arrived = Clock::now();
}

void CommitQueue::wait_for_turn(Waiter& waiter) {
  waiters_.push_back(&waiter);
  has_waiters_.store(true, std::memory_order_relaxed);
  while (!waiter.done && waiters_.front() != &waiter) waiter.turn.wait(mutex_);
}

void CommitQueue::wake_next() {
  has_waiters_.store(!waiters_.empty(), std::memory_order_relaxed);
  if (!waiters_.empty()) waiters_.front()->turn.notify_one();
}

std::size_t CommitQueue::group_size() const {
  std::uint64_t bytes = 0;
  std::size_t count = 0;
  for (const Waiter* one : waiters_) {
    if (one->commit == nullptr) break;
    bytes += one->commit->batch->GetDataSize();
    if (count > 0 && bytes > most_bytes_.load(std::memory_order_relaxed)) break;
    ++count;
  }
  return count;
}

void CommitQueue::run(Commit& commit) {
  Waiter waiter;
  waiter.commit = &commit;
  note_arrival(waiter);
  MutexLock lock(mutex_);
  wait_for_turn(waiter);
  if (waiter.done) {
    commit.waited += waiter.waited;
    commit.paced += waiter.paced;
    return;
  }
  std::vector<Commit*> group;
  const std::size_t count = group_size();
  for (std::size_t i = 0; i < count; ++i) group.push_back(waiters_[i]->commit);
  lock.unlock();
  commit_group_(group);
  lock.lock();
  commit.waited += waiter.waited;
  commit.paced += waiter.paced;
  for (std::size_t i = 0; i < count; ++i) {
    Waiter* const one = waiters_.front();
    waiters_.pop_front();
    one->done = true;
    if (one != &waiter) one->turn.notify_one();
  }
  wake_next();
}

// REQUIRES: the waiter is at the front of the queue.
void CommitQueue::run_in_turn(Waiter& waiter, const std::function<void()>& alone) {
  const auto began = Clock::now();
  alone();
  const auto took = Clock::now() - began;
  const MutexLock lock(mutex_);
  assert(waiters_.front() == &waiter);
  (void)waiter;
  waiters_.pop_front();
  if (is_held_) {
    release();
  } else if (took > kLongCommit) {
    add_to_waiters({.time = took}, {});
  }
  wake_next();
}

std::chrono::nanoseconds CommitQueue::run_alone(const std::function<void()>& alone) {
  Waiter waiter;
  note_arrival(waiter);
  {
    MutexLock lock(mutex_);
    wait_for_turn(waiter);
  }
  run_in_turn(waiter, alone);
  return waiter.waited + waiter.paced;
}

void CommitQueue::run_held(const std::function<void()>& prepare, const std::function<void()>& held) {
  Waiter waiter;
  note_arrival(waiter);
  {
    MutexLock lock(mutex_);
    wait_for_turn(waiter);
  }
  const auto since = Clock::now();
  prepare();
  {
    const MutexLock lock(mutex_);
    hold(since);
  }
  run_in_turn(waiter, held);
}

bool CommitQueue::run_alone_unless_held(const std::function<void()>& alone) {
  Waiter waiter;
  waiter.gives_way = true;
  note_arrival(waiter);
  {
    MutexLock lock(mutex_);
    if (is_held_) return false;
    wait_for_turn(waiter);
    if (waiter.done) return false;
  }
  run_in_turn(waiter, alone);
  return true;
}

// Sends away waiters that return while the queue is held.
void CommitQueue::hold(Clock::time_point since) {
  is_held_ = true;
  held_since_ = since;
  for (Waiter* one : waiters_) {
    if (!one->gives_way) continue;
    one->done = true;
    one->turn.notify_one();
  }
  std::erase_if(waiters_, [](const Waiter* one) { return one->gives_way; });
}

void CommitQueue::add_wait(const HoldUp& holdup, std::span<Commit* const> except) {
  const MutexLock lock(mutex_);
  add_to_waiters(holdup, except);
}

void CommitQueue::add_to_waiters(const HoldUp& holdup, std::span<Commit* const> except) {
  const auto now = Clock::now();
  for (Waiter* one : waiters_) {
    if (one->commit != nullptr && std::ranges::find(except, one->commit) != except.end()) continue;
    const bool syncs = one->commit != nullptr && one->commit->sync;
    const Clock::duration time = syncs ? holdup.time - holdup.of_syncs : holdup.time;
    // Without a time of arrival it was first, and was there all the time.
    const bool came_later = one->arrived > now - time;
    auto& total = holdup.is_pacing ? one->paced : one->waited;
    total += came_later ? std::max(now - one->arrived, Clock::duration{0}) : time;
  }
}

// Adds the time that the queue was held to the waiting commits.
void CommitQueue::release() {
  is_held_ = false;
  const auto now = Clock::now();
  for (Waiter* one : waiters_) one->waited += now - std::max(held_since_, one->arrived);
}

}  // namespace spillway::spill
