// A token bucket: how many bytes may be written at a rate, in virtual time.
//
// Tokens are bytes. The bucket is refilled each millisecond and holds those of ten. A write is let through while there
// are tokens, however large it is; what it takes beyond them is a debt, which later refills pay. So the rate holds on
// average for writes of any size.
#pragma once

#include <cstdint>
#include <limits>

namespace spillway::engine {

class TokenBucket {
 public:
  static constexpr double kUnlimited = std::numeric_limits<double>::infinity();
  static constexpr std::int64_t kRefillNs = 1'000'000;  // Source: tikv/tikv, singleton_flow_controller.rs
  // A thread that sleeps wakes up late; it must find what was refilled meanwhile. Source: guess, twice a scheduler's
  // slice.
  static constexpr std::int64_t kHeldRefills = 10;

  // Takes effect from `now_ns` on; the debt stays. REQUIRES: bytes_s > 0; times never decrease
  void set_rate(double bytes_s, std::int64_t now_ns);
  double rate_bytes_s() const { return bytes_s_; }

  // Takes the tokens of a write. False: there are none, and nothing is taken.
  bool try_take(std::uint64_t bytes, std::int64_t now_ns);

 private:
  void refill(std::int64_t now_ns);

  double bytes_s_ = kUnlimited;
  double tokens_ = 0;  // below 0: a debt
  std::int64_t refilled_ns_ = 0;
};

}  // namespace spillway::engine
