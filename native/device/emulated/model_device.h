// The common part of simulated and paced devices: one drive model behind the queues of several threads, and its lock.
#pragma once

#include <cassert>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "device/device.h"
#include "device/emulated/emulated.h"
#include "device/emulated/model_frontend.h"
#include "device/emulated/queue_registry.h"

namespace spillway::device {

// The ios of one queue that are in the drive. Within the model a slot number replaces the caller's tag.
class TagTable {
 public:
  std::uint32_t put(std::uint64_t tag) {
    if (free_.empty()) {
      free_.push_back(static_cast<std::uint32_t>(tags_.size()));
      tags_.push_back(0);
    }
    const std::uint32_t slot = free_.back();
    free_.pop_back();
    tags_[slot] = tag;
    return slot;
  }

  std::uint64_t take(std::uint32_t slot) {
    free_.push_back(slot);
    return tags_[slot];
  }

 private:
  std::vector<std::uint64_t> tags_;
  std::vector<std::uint32_t> free_;
};

// One thread's queue of a model device.
class ModelQueue : public Queue {
 public:
  std::size_t pending() const final { return pending_; }

 protected:
  explicit ModelQueue(std::uint32_t index) : index_(index) {}

  const std::uint32_t index_;  // in the device's registry
  std::size_t pending_ = 0;    // used by the owner only
  TagTable tags_;              // guarded by the device's lock

 private:
  template <class OneDevice, class OneQueue>
  friend class ModelDevice;
};

// REQUIRES: OneDevice is the class that derives from this one; OneQueue is a ModelQueue that OneQueue(OneDevice&,
// number) creates, and meets the requirements of QueueRegistry.
template <class OneDevice, class OneQueue>
class ModelDevice : public EmulatedDevice {
 public:
  std::unique_ptr<Queue> open_queue() final {
    const std::lock_guard lock(mutex_);
    return queues_.open(static_cast<OneDevice&>(*this));
  }

  const DeviceInfo& info() const final { return info_; }
  Nanos issue_ns(const Io& io) const final { return frontend_.model().issue_ns(io.op, io.length_bytes); }

  ssd::KvCounters kv_counters() final {
    const std::lock_guard lock(mutex_);
    return frontend_.model().kv_counters();
  }

  Wear wear() final {
    const std::lock_guard lock(mutex_);
    return frontend_.wear();
  }

  void record_trace(std::vector<Arrival>* arrivals, std::vector<ssd::Completion>* completions) final {
    const std::lock_guard lock(mutex_);
    frontend_.record_trace(arrivals, completions);
  }

 protected:
  ModelDevice(DriveModel drive, double time_scale) : frontend_(std::move(drive)), info_(frontend_.info(time_scale)) {}

  // The following methods REQUIRE that the lock is held.

  // REQUIRES: frontend_.check(ios) passed
  void submit(OneQueue& queue, Nanos now, std::span<const Io> ios) {
    for (const Io& io : ios) frontend_.submit(now, io, queue.index_, queue.tags_.put(io.tag));
    queue.pending_ += ios.size();
  }

  // Calls deliver(queue, done) for each completion.
  template <class Deliver>
  void deliver_completions(Deliver deliver) {
    for (const ssd::Completion& completion : frontend_.done()) {
      OneQueue& queue = queues_[ModelFrontend::queue_of(completion)];
      deliver(queue, ModelFrontend::done_of(completion, queue.tags_.take(ModelFrontend::slot_of(completion))));
    }
    frontend_.done().clear();
  }

  std::mutex mutex_;
  ModelFrontend frontend_;
  const DeviceInfo info_;
  QueueRegistry<OneQueue> queues_;
};

}  // namespace spillway::device
