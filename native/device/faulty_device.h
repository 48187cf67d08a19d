// A device that fails or delays chosen ios of another one, for tests of whoever stands above.
//
// Fault envelope: an io is refused at submit, or reaches the drive below and then fails, or is handed out late. Data is
// never changed, order within a queue never broken, and no completion lost.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <thread>
#include <unordered_map>
#include <utility>

#include "device/device.h"

namespace spillway::device {

struct Misfortune {
  Fault fault = Fault::none;                     // what the io completes with
  ssd::Outcome outcome = ssd::Outcome::success;  // what the drive says instead of its own
  bool at_submit = false;                        // the whole submission is refused instead
  std::chrono::nanoseconds delay{0};             // the reap that hands it out sleeps this long first
};

// Chooses for every io; called by the thread that submits it, so it must be thread-safe where the device is shared.
using Fate = std::function<Misfortune(const Io&)>;

class FaultyDevice final : public Device {
 public:
  // REQUIRES: `below` outlives this.
  FaultyDevice(Device& below, Fate fate) : below_(below), fate_(std::move(fate)) {}
  const DeviceInfo& info() const override { return below_.info(); }
  std::unique_ptr<Queue> open_queue() override { return std::make_unique<FaultyQueue>(below_.open_queue(), fate_); }
  Nanos now() override { return below_.now(); }
  Nanos issue_ns(const Io& io) const override { return below_.issue_ns(io); }
  void spend(Nanos for_ns) override { below_.spend(for_ns); }
  ssd::Counters counters() override { return below_.counters(); }
  ssd::KvCounters kv_counters() override { return below_.kv_counters(); }
  PacingReport pacing() override { return below_.pacing(); }
  Wear wear() override { return below_.wear(); }

 private:
  class FaultyQueue final : public Queue {
   public:
    FaultyQueue(std::unique_ptr<Queue> below, const Fate& fate) : below_(std::move(below)), fate_(fate) {}

    Status submit(std::span<const Io> ios) override {
      std::vector<std::pair<std::uint64_t, Misfortune>> struck;
      for (const Io& io : ios) {
        const Misfortune misfortune = fate_(io);
        if (misfortune.at_submit) return Status::error(misfortune.fault, "the drive refused the io (injected)");
        if (misfortune.fault != Fault::none || misfortune.outcome != ssd::Outcome::success ||
            misfortune.delay.count() > 0)
          struck.emplace_back(io.tag, misfortune);
      }
      if (Status status = below_->submit(ios); !status) return status;
      for (const auto& one : struck) struck_.insert(one);
      return {};
    }

    std::size_t reap(std::span<Done> done, std::size_t at_least) override {
      const std::size_t count = below_->reap(done, at_least);
      for (Done& one : done.first(count)) {
        const auto found = struck_.find(one.tag);
        if (found == struck_.end()) continue;
        std::this_thread::sleep_for(found->second.delay);
        if (found->second.fault != Fault::none) one.fault = found->second.fault;
        if (found->second.outcome != ssd::Outcome::success) one.outcome = found->second.outcome;
        struck_.erase(found);
      }
      return count;
    }

    std::size_t pending() const override { return below_->pending(); }

   private:
    std::unique_ptr<Queue> below_;
    const Fate& fate_;
    std::unordered_multimap<std::uint64_t, Misfortune> struck_;  // by tag
  };

  Device& below_;
  const Fate fate_;
};

}  // namespace spillway::device
