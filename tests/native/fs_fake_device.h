// A drive that records every io, and completes it when the test decides.
//
// Fault envelope: chosen ios complete with a fault; none is lost or reordered within a queue.
#pragma once

#include <gtest/gtest.h>

#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "device/device.h"

namespace spillway::fs {

class FakeDevice final : public device::Device {
 public:
  explicit FakeDevice(std::uint64_t capacity_bytes, bool virtual_time = false) {
    info_.name = "fake";
    info_.time_scale = virtual_time ? 0 : 1;
    info_.capacity_bytes = capacity_bytes;
  }

  const device::DeviceInfo& info() const override { return info_; }
  std::unique_ptr<device::Queue> open_queue() override {
    ++queues_opened;
    return std::make_unique<FakeQueue>(*this);
  }
  device::Nanos now() override { return 0; }
  ssd::Counters counters() override { return {}; }

  std::vector<device::Io> of(device::Opcode op) const {
    const std::lock_guard lock(mutex_);
    std::vector<device::Io> found;
    for (const device::Io& io : ios_) {
      if (io.op == op) found.push_back(io);
    }
    return found;
  }

  std::uint64_t bytes(device::Opcode op) const {
    std::uint64_t sum = 0;
    for (const device::Io& io : of(op)) sum += io.length_bytes;
    return sum;
  }

  void forget() {
    const std::lock_guard lock(mutex_);
    ios_.clear();
    most_in_flight_bytes_ = in_flight_bytes_;
  }

  std::size_t most_in_flight() const { return most_in_flight_bytes_; }
  std::size_t in_flight() const { return in_flight_bytes_; }

  // While this is set, a reap with at_least = 0 finds nothing complete. One that waits still does.
  bool slow = false;
  std::function<Fault(const device::Io&)> fate = [](const device::Io&) { return Fault::none; };
  int queues_opened = 0;

 private:
  class FakeQueue final : public device::Queue {
   public:
    explicit FakeQueue(FakeDevice& device) : device_(device) {}
    ~FakeQueue() override { EXPECT_EQ(pending(), 0U); }

    Status submit(std::span<const device::Io> ios) override {
      const std::lock_guard lock(device_.mutex_);
      for (const device::Io& io : ios) {
        device_.ios_.push_back(io);
        device_.in_flight_bytes_ += io.length_bytes;
        device_.most_in_flight_bytes_ = std::max(device_.most_in_flight_bytes_, device_.in_flight_bytes_);
        pending_.push_back(io);
      }
      return {};
    }

    std::size_t reap(std::span<device::Done> done, std::size_t at_least) override {
      EXPECT_LE(at_least, pending_.size());
      const std::lock_guard lock(device_.mutex_);
      std::size_t count = device_.slow ? at_least : std::min(done.size(), pending_.size());
      for (std::size_t i = 0; i < count; ++i) {
        const device::Io io = pending_.front();
        pending_.pop_front();
        device_.in_flight_bytes_ -= io.length_bytes;
        done[i] = {.tag = io.tag, .fault = device_.fate(io)};
      }
      return count;
    }

    std::size_t pending() const override { return pending_.size(); }

   private:
    FakeDevice& device_;
    std::deque<device::Io> pending_;
  };

  device::DeviceInfo info_;
  mutable std::mutex mutex_;
  std::vector<device::Io> ios_;
  std::size_t in_flight_bytes_ = 0;
  std::size_t most_in_flight_bytes_ = 0;
};

}  // namespace spillway::fs
