#include "engine/rocksdb/token_bucket.h"

#include <algorithm>

namespace spillway::engine {

void TokenBucket::set_rate(double bytes_s, std::int64_t now_ns) {
  if (bytes_s == kUnlimited) {
    tokens_ = 0;
  } else if (bytes_s_ == kUnlimited) {
    refilled_ns_ = now_ns;
  } else {
    refill(now_ns);
  }
  bytes_s_ = bytes_s;
}

bool TokenBucket::try_take(std::uint64_t bytes, std::int64_t now_ns) {
  if (bytes_s_ == kUnlimited) return true;
  refill(now_ns);
  if (tokens_ <= 0) return false;
  tokens_ -= static_cast<double>(bytes);
  return true;
}

void TokenBucket::refill(std::int64_t now_ns) {
  const std::int64_t refills = (now_ns - refilled_ns_) / kRefillNs;
  if (refills <= 0) return;
  const double each = bytes_s_ * 1e-9 * static_cast<double>(kRefillNs);
  tokens_ = std::min(tokens_ + static_cast<double>(refills) * each, static_cast<double>(kHeldRefills) * each);
  refilled_ns_ += refills * kRefillNs;
}

}  // namespace spillway::engine
