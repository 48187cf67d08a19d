#include "lsm/processor.h"

#include <algorithm>
#include <cmath>

namespace spillway::lsm {
namespace {

constexpr double kAlmostNs = 0.01;  // of service: what rounding may leave

}  // namespace

double Processor::slowdown(double more) const { return std::max(1.0, (busy_ + more) / cores_); }

void Processor::serve(Nanos now) {
  served_ns_ += static_cast<double>(now - at_) / slowdown();
  at_ = now;
}

void Processor::change_load(double by) {
  busy_ = std::max(0.0, busy_ + by);
  ++changes_;
  next_done_.reset();
  if (work_.empty()) return;
  const double left = std::max(0.0, work_.top().until - served_ns_);
  next_done_ = at_ + static_cast<Nanos>(std::ceil(left * slowdown()));
}

void Processor::enter(Nanos now, double load) {
  serve(now);
  change_load(load);
}

void Processor::leave(Nanos now, double load) {
  serve(now);
  change_load(-load);
}

void Processor::begin(Nanos now, double alone_ns, std::uint32_t id) {
  serve(now);
  work_.push({served_ns_ + alone_ns, begun_++, id});
  change_load(1);
}

void Processor::take_done(Nanos now, std::vector<std::uint32_t>& ids) {
  serve(now);
  double done = 0;
  for (; !work_.empty() && work_.top().until <= served_ns_ + kAlmostNs; work_.pop()) {
    ids.push_back(work_.top().id);
    ++done;
  }
  change_load(-done);
}

}  // namespace spillway::lsm
