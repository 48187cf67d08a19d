#include "engine/vlog/write_queue.h"

#include <vector>

namespace spillway::engine::vlog {

std::size_t WriteQueue::group_size() const {
  std::uint64_t bytes = 0;
  std::size_t count = 0;
  for (const Waiter* one : waiters_) {
    if (one->commit == nullptr) break;
    bytes += one->commit->bytes;
    if (count > 0 && bytes > kGroupBytes) break;
    ++count;
  }
  return count;
}

void WriteQueue::run(Commit& commit) {
  Waiter waiter;
  waiter.commit = &commit;
  std::unique_lock lock(mutex_);
  waiters_.push_back(&waiter);
  waiter.turn.wait(lock, [&] { return waiter.done || waiters_.front() == &waiter; });
  if (waiter.done) return;
  const std::size_t count = group_size();
  thread_local std::vector<Commit*> group;  // static, to reuse its memory
  group.clear();
  for (std::size_t i = 0; i < count; ++i) group.push_back(waiters_[i]->commit);
  lock.unlock();
  commit_group_(group);
  lock.lock();
  for (std::size_t i = 0; i < count; ++i) {
    Waiter* const one = waiters_.front();
    waiters_.pop_front();
    one->done = true;
    if (one != &waiter) one->turn.notify_one();
  }
  if (!waiters_.empty()) waiters_.front()->turn.notify_one();
}

void WriteQueue::run_alone(const std::function<void()>& alone) {
  Waiter waiter;
  {
    std::unique_lock lock(mutex_);
    waiters_.push_back(&waiter);
    waiter.turn.wait(lock, [&] { return waiters_.front() == &waiter; });
  }
  alone();
  const std::lock_guard lock(mutex_);
  waiters_.pop_front();
  if (!waiters_.empty()) waiters_.front()->turn.notify_one();
}

}  // namespace spillway::engine::vlog
