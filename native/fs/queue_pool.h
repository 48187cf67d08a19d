// Queues of one device, lent to callers that have something in flight.
//
// A device::Queue belongs to one thread at a time. The number of threads and files is not bounded, but the number of
// them with I/Os in flight is, and so is the number of queues.
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

  // A queue with nothing pending; null after the pool is shut.
  std::unique_ptr<device::Queue> borrow() {
    std::unique_lock lock(mutex_);
    if (shut_) return nullptr;
    ++lent_;
    if (!idle_.empty()) {
      auto queue = std::move(idle_.back());
      idle_.pop_back();
      return queue;
    }
    if (pending_queues_.size() < kMostPending) return device_.open_queue();
    auto queue = std::move(pending_queues_.front());
    pending_queues_.pop_front();
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

  // Returns a queue with pending I/Os that no caller waits for.
  // REQUIRES: the queue was borrowed here.
  void give_back_pending(std::unique_ptr<device::Queue> queue) {
    const std::lock_guard lock(mutex_);
    pending_queues_.push_back(std::move(queue));
    if (--lent_ == 0) all_back_.notify_all();
  }

  // Makes borrow() return null from now on.
  void shut() {
    const std::lock_guard lock(mutex_);
    shut_ = true;
  }

  // Waits until every queue is returned and has nothing pending.
  void wait_all_back() {
    std::unique_lock lock(mutex_);
    all_back_.wait(lock, [this] { return lent_ == 0; });
    for (const auto& queue : pending_queues_) drain(*queue);
  }

 private:
  // If more queues than these were returned with pending I/Os, the oldest is reused. Its I/Os are complete by then, or
  // soon. Source: guess, a scan's read-ahead.
  static constexpr std::size_t kMostPending = 64;

  static void drain(device::Queue& queue) {
    std::vector<device::Done> done(queue.pending());
    queue.reap(done, done.size());
  }

  device::Device& device_;
  std::mutex mutex_;
  std::condition_variable all_back_;
  std::vector<std::unique_ptr<device::Queue>> idle_;
  std::deque<std::unique_ptr<device::Queue>> pending_queues_;
  std::size_t lent_ = 0;
  bool shut_ = false;
};

}  // namespace spillway::fs
