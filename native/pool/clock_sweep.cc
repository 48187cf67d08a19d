#include <algorithm>
#include <cassert>
#include <vector>

#include "pool/policy.h"

namespace spillway::pool {
namespace {

class ClockSweep final : public Policy {
 public:
  ClockSweep(Frame frames, std::uint8_t most_uses) : uses_(frames, kAbsent), most_uses_(most_uses) {}

  void loaded(Frame frame, Arrival arrival) override {
    assert(uses_[frame] == kAbsent);
    uses_[frame] = arrival == Arrival::demanded ? 1 : 0;
  }

  void used(Frame frame) override {
    assert(uses_[frame] != kAbsent);
    uses_[frame] = std::min<std::int16_t>(most_uses_, static_cast<std::int16_t>(uses_[frame] + 1));
  }

  // A frame with use count c is evicted when the hand reaches it for the (c + 1)-th time.
  void visit_in_order(const Visit& visit) const override {
    for (std::int16_t round = 0; round <= most_uses_; ++round) {
      for (Frame step = 0; step < size(); ++step) {
        const Frame frame = (hand_ + step) % size();
        if (uses_[frame] == round && !visit(frame)) return;
      }
    }
  }

  std::optional<Frame> evict(const IsEvictable& is_evictable) override {
    // After this many rounds the count of every evictable frame is 0.
    const std::uint64_t steps = std::uint64_t{size()} * (std::uint64_t{most_uses_} + 1);
    for (std::uint64_t step = 0; step < steps; ++step) {
      const Frame frame = hand_;
      hand_ = hand_ + 1 == size() ? 0 : hand_ + 1;
      if (uses_[frame] == kAbsent || !is_evictable(frame)) continue;
      if (uses_[frame] == 0) {
        uses_[frame] = kAbsent;
        return frame;
      }
      --uses_[frame];
    }
    return std::nullopt;
  }

 private:
  static constexpr std::int16_t kAbsent = -1;

  Frame size() const { return static_cast<Frame>(uses_.size()); }

  std::vector<std::int16_t> uses_;
  std::uint8_t most_uses_;
  Frame hand_ = 0;
};

}  // namespace

std::unique_ptr<Policy> make_clock_sweep(Frame frames, std::uint8_t most_uses) {
  return std::make_unique<ClockSweep>(frames, most_uses);
}

}  // namespace spillway::pool
