// Queues of one device, lent to whoever has something in flight.
//
// A device::Queue belongs to one thread at a time. Threads come and go, files too; what is bounded is how many are at
// work at once, so that is how many queues there are.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <memory>
#include <mutex>
#include <vector>

#include "device/device.h"

namespace spillway::fs {

class QueuePool {
 public:
  explicit QueuePool(device::Device& device) : device_(device) {}

  // A queue with nothing pending; null once the pool is shut.
  std::unique_ptr<device::Queue> borrow() {
    std::unique_lock lock(mutex_);
    if (shut_) return nullptr;
    ++lent_;
    if (!idle_.empty()) {
      auto queue = std::move(idle_.back());
      idle_.pop_back();
      return queue;
    }
    if (left_.size() < kMostLeft) return device_.open_queue();
    auto queue = std::move(left_.front());
    left_.pop_front();
    lock.unlock();
    drain(*queue);
    return queue;
  }

  // REQUIRES: the queue was borrowed here and has nothing pending.
  void give_back(std::unique_ptr<device::Queue> queue) {
    const std::lock_guard lock(mutex_);
    idle_.push_back(std::move(queue));
    if (--lent_ == 0) all_back_.notify_all();
  }

  // The same of one whose ios nobody waits for any more.
  // REQUIRES: the queue was borrowed here.
  void leave(std::unique_ptr<device::Queue> queue) {
    const std::lock_guard lock(mutex_);
    left_.push_back(std::move(queue));
    if (--lent_ == 0) all_back_.notify_all();
  }

  // Lends no more.
  void shut() {
    const std::lock_guard lock(mutex_);
    shut_ = true;
  }

  // Waits until every queue is back and has nothing pending.
  void wait_all_back() {
    std::unique_lock lock(mutex_);
    all_back_.wait(lock, [this] { return lent_ == 0; });
    for (const auto& queue : left_) drain(*queue);
  }

 private:
  // The oldest of more that were left with something pending is used again: what it had is done by then, or soon.
  // Source: guess, a scan's read-ahead.
  static constexpr std::size_t kMostLeft = 64;

  static void drain(device::Queue& queue) {
    std::vector<device::Done> done(queue.pending());
    queue.reap(done, done.size());
  }

  device::Device& device_;
  std::mutex mutex_;
  std::condition_variable all_back_;
  std::vector<std::unique_ptr<device::Queue>> idle_;
  std::deque<std::unique_ptr<device::Queue>> left_;
  std::size_t lent_ = 0;
  bool shut_ = false;
};

}  // namespace spillway::fs
