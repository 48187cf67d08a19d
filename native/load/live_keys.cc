#include "load/live_keys.h"

#include <algorithm>
#include <cmath>

namespace spillway::load {

LiveKeys::LiveKeys(std::uint64_t num, std::uint64_t most_bits)
    : num_(num), stride_((num - 1) / most_bits + 1), tracked_((num - 1) / stride_ + 1), bits_((tracked_ + 63) / 64) {}

void LiveKeys::replay(const ThreadSpec& thread_spec, std::uint64_t num, std::uint32_t read_write_percent,
                      std::uint64_t operations) {
  OperationStream stream(thread_spec, num, read_write_percent);
  for (std::uint64_t i = 0; i < operations && set_ < tracked_; ++i) {
    const Operation operation = stream.next();
    if (operation.kind == Operation::Kind::put) put(operation.key);
  }
}

void LiveKeys::put(std::uint64_t key) {
  if (stride_ != 1) {
    if (key % stride_ != 0) return;
    key /= stride_;
  }
  const std::uint64_t bit = std::uint64_t{1} << (key % 64);
  std::uint64_t& word = bits_[key / 64];
  set_ += (word & bit) == 0;
  word |= bit;
}

std::uint64_t LiveKeys::count() const {
  if (is_exact()) return set_;
  const double share = static_cast<double>(set_) / static_cast<double>(tracked_);
  return static_cast<std::uint64_t>(std::llround(share * static_cast<double>(num_)));
}

}  // namespace spillway::load
