#include "spill/commit_queue.h"

namespace spillway::spill {

void CommitQueue::wait_for_turn(Waiter& waiter, std::unique_lock<std::mutex>& lock) {
  waiters_.push_back(&waiter);
  waiter.turn.wait(lock, [&] { return waiter.done || waiters_.front() == &waiter; });
}

std::size_t CommitQueue::group_size() const {
  std::uint64_t bytes = 0;
  std::size_t count = 0;
  for (const Waiter* one : waiters_) {
    if (one->commit == nullptr) break;
    bytes += one->commit->batch->GetDataSize();
    if (count > 0 && bytes > kGroupBytes) break;
    ++count;
  }
  return count;
}

void CommitQueue::run(Commit& commit) {
  Waiter waiter;
  waiter.commit = &commit;
  std::unique_lock lock(mutex_);
  wait_for_turn(waiter, lock);
  if (waiter.done) return;
  std::vector<Commit*> group;
  const std::size_t count = group_size();
  for (std::size_t i = 0; i < count; ++i) group.push_back(waiters_[i]->commit);
  lock.unlock();
  lead_(group);
  lock.lock();
  for (std::size_t i = 0; i < count; ++i) {
    Waiter* const one = waiters_.front();
    waiters_.pop_front();
    one->done = true;
    if (one != &waiter) one->turn.notify_one();
  }
  if (!waiters_.empty()) waiters_.front()->turn.notify_one();
}

void CommitQueue::run_alone(const std::function<void()>& alone) {
  Waiter waiter;
  std::unique_lock lock(mutex_);
  wait_for_turn(waiter, lock);
  lock.unlock();
  alone();
  lock.lock();
  waiters_.pop_front();
  if (!waiters_.empty()) waiters_.front()->turn.notify_one();
}

}  // namespace spillway::spill
