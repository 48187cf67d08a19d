#include "load/ycsb/live_records.h"

#include <cmath>

#include "load/ycsb/records.h"

namespace spillway::load::ycsb {

LiveRecords::LiveRecords(std::uint64_t end, std::uint64_t most_bits)
    : end_(end), stride_((end - 1) / most_bits + 1), tracked_((end - 1) / stride_ + 1), is_there_(tracked_) {}

void LiveRecords::add(std::uint64_t first, std::uint64_t step, std::uint64_t count) {
  for (std::uint64_t i = 0; i < count; ++i) {
    const std::uint64_t record = first + i * step;
    if (record % stride_ != 0 || is_there_[record / stride_]) continue;
    is_there_[record / stride_] = true;
    ++set_;
  }
}

std::uint64_t LiveRecords::count() const {
  const double share = static_cast<double>(set_) / static_cast<double>(tracked_);
  return stride_ == 1 ? set_ : static_cast<std::uint64_t>(std::llround(share * static_cast<double>(end_)));
}

LiveBytes LiveRecords::bytes(const Properties& properties) const {
  const KeyNames names(properties);
  std::uint64_t key_bytes = 0;
  for (std::uint64_t i = 0; i < tracked_; ++i) {
    if (is_there_[i]) key_bytes += names.key_bytes(i * stride_);
  }
  const auto records = static_cast<double>(count());
  const double keys = set_ == 0 ? 0 : static_cast<double>(key_bytes) / static_cast<double>(set_) * records;
  const bool exact = stride_ == 1 && properties.fieldlengthdistribution == Length::constant;
  return {static_cast<std::uint64_t>(std::llround(keys + records * mean_value_bytes(properties))), exact};
}

}  // namespace spillway::load::ycsb
