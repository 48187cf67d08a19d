// Injects faults into the ios of another device, for tests.
//
// Fault envelope: an io is refused at submit; or is executed by the drive below and then reported as failed; or is
// reaped late. Data does not change, the order within a queue is kept, and no completion is lost.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <thread>
#include <unordered_map>
#include <utility>

#include "device/device.h"

namespace spillway::device {

struct IoFault {
  Fault fault = Fault::none;                     // the fault with which the io completes
  ssd::Outcome outcome = ssd::Outcome::success;  // replaces the drive's outcome
  bool at_submit = false;                        // refuses the whole submission instead
  std::chrono::nanoseconds delay{0};             // the reap that returns it first sleeps this long
};

// The fault for each io; none by default. Called by the thread that submits it: thread-safe if threads share the
// device.
using IoFaultRule = std::function<IoFault(const Io&)>;

class FaultyDevice final : public Device {
 public:
  // REQUIRES: `below` outlives this.
  FaultyDevice(Device& below, IoFaultRule rule) : below_(below), rule_(std::move(rule)) {}
  const DeviceInfo& info() const override { return below_.info(); }
  std::unique_ptr<Queue> open_queue() override { return std::make_unique<FaultyQueue>(below_.open_queue(), rule_); }
  Nanos now() override { return below_.now(); }
  Nanos issue_ns(const Io& io) const override { return below_.issue_ns(io); }
  void spend(Nanos for_ns) override { below_.spend(for_ns); }
  ssd::Counters counters() override { return below_.counters(); }
  PacingReport pacing() override { return below_.pacing(); }
  Wear wear() override { return below_.wear(); }

 private:
  class FaultyQueue final : public Queue {
   public:
    FaultyQueue(std::unique_ptr<Queue> below, const IoFaultRule& rule) : below_(std::move(below)), rule_(rule) {}

    Status submit(std::span<const Io> ios) override {
      std::vector<std::pair<std::uint64_t, IoFault>> affected;
      for (const Io& io : ios) {
        const IoFault injected = rule_(io);
        if (injected.at_submit) return Status::error(injected.fault, "the drive refused the io (injected)");
        if (injected.fault != Fault::none || injected.outcome != ssd::Outcome::success || injected.delay.count() > 0)
          affected.emplace_back(io.tag, injected);
      }
      if (Status status = below_->submit(ios); !status) return status;
      for (const auto& one : affected) affected_.insert(one);
      return {};
    }

    std::size_t reap(std::span<Done> done, std::size_t at_least) override {
      const std::size_t count = below_->reap(done, at_least);
      for (Done& one : done.first(count)) {
        const auto found = affected_.find(one.tag);
        if (found == affected_.end()) continue;
        std::this_thread::sleep_for(found->second.delay);
        if (found->second.fault != Fault::none) one.fault = found->second.fault;
        if (found->second.outcome != ssd::Outcome::success) one.outcome = found->second.outcome;
        affected_.erase(found);
      }
      return count;
    }

    std::size_t pending() const override { return below_->pending(); }

   private:
    std::unique_ptr<Queue> below_;
    const IoFaultRule& rule_;
    std::unordered_multimap<std::uint64_t, IoFault> affected_;  // by tag
  };

  Device& below_;
  const IoFaultRule rule_;
};

}  // namespace spillway::device
