#include "engine/rocksdb/flow_window.h"

#include <algorithm>
#include <vector>

namespace spillway::engine {

namespace {

// Source: tikv/tikv, src/storage/txn/flow_controller/singleton_flow_controller.rs, also of the next two
constexpr std::int64_t kStaleNs = 300'000'000'000;
constexpr std::size_t kLeastKept = 2;
constexpr double kRise = 2;  // less is no trend

}  // namespace

void FlowWindow::add(double value, std::int64_t now_ns) {
  if (values_.size() == capacity_) values_.pop_front();
  values_.push_back({value, now_ns});
  while (values_.size() > kLeastKept && now_ns - values_.front().at_ns > kStaleNs) values_.pop_front();
}

double FlowWindow::newest() const { return values_.empty() ? 0 : values_.back().value; }

double FlowWindow::mean() const {
  if (values_.empty()) return 0;
  double sum = 0;
  for (const Value& each : values_) sum += each.value;
  return sum / static_cast<double>(values_.size());
}

double FlowWindow::percentile_90() const {
  if (values_.empty()) return 0;
  std::vector<double> sorted;
  for (const Value& each : values_) sorted.push_back(each.value);
  std::sort(sorted.begin(), sorted.end());
  return sorted[(sorted.size() - 1) * 9 / 10];
}

bool FlowWindow::is_rising(std::int64_t least_span_ns) const {
  if (values_.size() < 2 || values_.back().at_ns - values_.front().at_ns < least_span_ns) return false;
  const std::size_t older = values_.size() / 2;
  double older_sum = 0;
  double newer_sum = 0;
  for (std::size_t i = 0; i < values_.size(); ++i) (i < older ? older_sum : newer_sum) += values_[i].value;
  const auto newer = static_cast<double>(values_.size() - older);
  return newer_sum / newer > older_sum / static_cast<double>(older) + kRise;
}

}  // namespace spillway::engine
