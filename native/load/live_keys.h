// How many distinct keys a run has written.
//
// A thread's keys are a function of its ThreadSpec. After the run its stream is replayed, and each key that it put sets
// one bit, so nothing is added to the path of an operation. No workload deletes; one that does would have to be
// replayed in the order of its effects.
#pragma once

#include <cstdint>
#include <vector>

#include "load/workload.h"

namespace spillway::load {

class LiveKeys {
 public:
  // One gibibyte of bits. Beyond that many keys one in every `stride` is tracked, and the count is an estimate.
  static constexpr std::uint64_t kMostBits = std::uint64_t{1} << 33;

  // For the keys [0, num). REQUIRES: num > 0
  explicit LiveKeys(std::uint64_t num, std::uint64_t most_bits = kMostBits);

  // Replays the first `operations` of a thread whose keys were the numbers [0, num).
  // REQUIRES: num is not more than the constructor's
  void replay(const ThreadSpec& thread_spec, std::uint64_t num, std::uint32_t read_write_percent,
              std::uint64_t operations);

  bool is_exact() const { return stride_ == 1; }
  std::uint64_t count() const;

 private:
  void put(std::uint64_t key);

  std::uint64_t num_;
  std::uint64_t stride_;
  std::uint64_t tracked_;  // keys with a bit: 0, stride, 2 stride, …
  std::uint64_t set_ = 0;
  std::vector<std::uint64_t> bits_;
};

}  // namespace spillway::load
