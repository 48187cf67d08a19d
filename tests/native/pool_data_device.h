// A drive that holds data, answers at once, and records its requests, batch by batch.
//
// Fault envelope: chosen ios complete with a fault and have no effect; none is lost.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <memory>
#include <vector>

#include "device/device.h"

namespace spillway::pool {

class DataDevice final : public device::Device {
 public:
  explicit DataDevice(std::uint64_t capacity_bytes) : media(capacity_bytes) {
    info_.name = "data";
    info_.capacity_bytes = capacity_bytes;
    info_.carries_data = true;
  }

  const device::DeviceInfo& info() const override { return info_; }
  std::unique_ptr<device::Queue> open_queue() override { return std::make_unique<DataQueue>(*this); }
  // Each batch takes one unit of time.
  device::Nanos now() override { return static_cast<device::Nanos>(batches.size()); }
  ssd::Counters counters() override { return {}; }

  std::vector<std::byte> media;
  std::vector<std::vector<device::Io>> batches;
  std::function<Fault(const device::Io&)> fate = [](const device::Io&) { return Fault::none; };

 private:
  class DataQueue final : public device::Queue {
   public:
    explicit DataQueue(DataDevice& device) : device_(device) {}
    ~DataQueue() override { EXPECT_TRUE(done_.empty()); }

    Status submit(std::span<const device::Io> ios) override {
      device_.batches.emplace_back(ios.begin(), ios.end());
      for (const device::Io& io : ios) done_.push_back({.tag = io.tag, .fault = device_.serve(io)});
      return {};
    }

    // In reverse order, because no caller may rely on an order.
    std::size_t reap(std::span<device::Done> done, std::size_t at_least) override {
      EXPECT_LE(at_least, done_.size());
      const std::size_t count = std::min(done.size(), done_.size());
      for (std::size_t i = 0; i < count; ++i) {
        done[i] = done_.back();
        done_.pop_back();
      }
      return count;
    }

    std::size_t pending() const override { return done_.size(); }

   private:
    DataDevice& device_;
    std::vector<device::Done> done_;
  };

  Fault serve(const device::Io& io) {
    const Fault fault = fate(io);
    if (fault != Fault::none) return fault;
    std::byte* const place = media.data() + io.offset_bytes;
    if (io.op == device::Opcode::read) std::memcpy(io.data, place, io.length_bytes);
    if (io.op == device::Opcode::write) std::memcpy(place, io.data, io.length_bytes);
    return Fault::none;
  }

  device::DeviceInfo info_;
};

}  // namespace spillway::pool
