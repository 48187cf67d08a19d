// The number and the sizes of the records that a run has left in the database.
#pragma once

#include <cstdint>
#include <vector>

#include "load/ycsb/properties.h"

namespace spillway::load::ycsb {

// Bytes of keys and values, and whether they were counted or estimated.
struct LiveBytes {
  std::uint64_t bytes = 0;
  bool exact = true;
};

class LiveRecords {
 public:
  // One bit for each number. If there are more numbers, one in every `stride` is tracked, and the figures are
  // estimates.
  static constexpr std::uint64_t kMostBits = std::uint64_t{1} << 26;

  // For the numbers [0, end). REQUIRES: end > 0
  explicit LiveRecords(std::uint64_t end, std::uint64_t most_bits = kMostBits);

  // Adds `count` records from `first` on, `step` apart. REQUIRES: step > 0; all are below end
  void add(std::uint64_t first, std::uint64_t step, std::uint64_t count);

  std::uint64_t count() const;
  // Exact if every record is tracked and values have one size.
  LiveBytes bytes(const Properties& properties) const;

 private:
  std::uint64_t end_;
  std::uint64_t stride_;
  std::uint64_t tracked_;
  std::uint64_t set_ = 0;
  std::vector<bool> is_there_;
};

}  // namespace spillway::load::ycsb
