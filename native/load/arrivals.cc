#include "load/arrivals.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

namespace spillway::load {
namespace {

// The k-th arrival of a steady stream of `rate` a second that is `phase` gaps late, in seconds since the stream began.
double time_of(std::uint64_t k, double phase, double rate) { return (static_cast<double>(k) + phase) / rate; }

// The number of such arrivals before `time_s`.
std::uint64_t count_before(double time_s, double phase, double rate) {
  const double gaps = time_s * rate - phase;
  return gaps <= 0 ? 0 : static_cast<std::uint64_t>(std::ceil(gaps));
}

// The time `after_ns` after `begin_ns`. A time beyond the range of nanoseconds is beyond the end of every phase.
std::int64_t time_after(std::int64_t begin_ns, double after_ns) {
  constexpr std::int64_t kFurthest = Arrivals::kNever - 1;
  if (!(after_ns < static_cast<double>(kFurthest - begin_ns))) return kFurthest;
  return begin_ns + static_cast<std::int64_t>(after_ns);
}

class Constant final : public Arrivals {
 public:
  Constant(std::int64_t begin_ns, double rate_ops_s, double phase)
      : begin_ns_(begin_ns),
        interval_ns_(std::min(1e9 / rate_ops_s, std::numeric_limits<double>::max())),
        phase_(phase) {}

  std::int64_t next_ns() override {
    return time_after(begin_ns_, (static_cast<double>(given_++) + phase_) * interval_ns_);
  }
  std::uint64_t rest_before(std::int64_t time_ns) override {
    const double gaps = static_cast<double>(time_ns - begin_ns_) / interval_ns_ - phase_;
    const std::uint64_t all = gaps <= 0 ? 0 : static_cast<std::uint64_t>(std::ceil(gaps));
    return std::max(all, given_) - given_;
  }

 private:
  std::int64_t begin_ns_;
  double interval_ns_;
  double phase_;
  std::uint64_t given_ = 0;
};

// Each thread has its share of the rate. Together they are a Poisson process of the whole rate.
class Poisson final : public Arrivals {
 public:
  Poisson(std::int64_t begin_ns, double rate_ops_s, std::uint64_t seed)
      : rate_per_ns_(std::max(rate_ops_s * 1e-9, std::numeric_limits<double>::min())),
        last_ns_(static_cast<double>(begin_ns)),
        random_(seed) {}

  std::int64_t next_ns() override {
    last_ns_ += std::exponential_distribution<double>(rate_per_ns_)(random_);
    return time_after(0, last_ns_);
  }
  // Their number is drawn at once, not each arrival.
  std::uint64_t rest_before(std::int64_t time_ns) override {
    const double expected = (static_cast<double>(time_ns) - last_ns_) * rate_per_ns_;
    return expected <= 0 ? 0 : std::poisson_distribution<std::uint64_t>(expected)(random_);
  }

 private:
  double rate_per_ns_;
  double last_ns_;
  std::mt19937_64 random_;
};

class Bursts final : public Arrivals {
 public:
  // The rates are those of this thread.
  Bursts(const ArrivalSpec& spec, std::int64_t begin_ns, double rate_ops_s, double gap_rate_ops_s, double phase)
      : begin_ns_(begin_ns),
        burst_s_(spec.burst_s),
        gap_s_(spec.gap_s),
        rate_ops_s_(rate_ops_s),
        gap_rate_ops_s_(gap_rate_ops_s),
        phase_(phase),
        in_burst_(count_before(spec.burst_s, phase, rate_ops_s)),
        in_gap_(gap_rate_ops_s > 0 ? count_before(spec.gap_s, phase, gap_rate_ops_s) : 0) {}

  std::int64_t next_ns() override {
    if (in_burst_ + in_gap_ == 0) return kNever;
    const std::uint64_t index = given_ % (in_burst_ + in_gap_);
    const std::uint64_t period = given_ / (in_burst_ + in_gap_);
    ++given_;
    const double begin_s = static_cast<double>(period) * (burst_s_ + gap_s_);
    const double time_s = index < in_burst_ ? time_of(index, phase_, rate_ops_s_)
                                            : burst_s_ + time_of(index - in_burst_, phase_, gap_rate_ops_s_);
    return time_after(begin_ns_, (begin_s + time_s) * 1e9);
  }
  std::uint64_t rest_before(std::int64_t time_ns) override {
    const double time_s = static_cast<double>(time_ns - begin_ns_) * 1e-9;
    if (time_s <= 0) return 0;
    const double periods = std::floor(time_s / (burst_s_ + gap_s_));
    const double into_s = time_s - periods * (burst_s_ + gap_s_);
    std::uint64_t all = static_cast<std::uint64_t>(periods) * (in_burst_ + in_gap_);
    all += count_before(std::min(into_s, burst_s_), phase_, rate_ops_s_);
    if (into_s > burst_s_ && gap_rate_ops_s_ > 0) all += count_before(into_s - burst_s_, phase_, gap_rate_ops_s_);
    return std::max(all, given_) - given_;
  }

 private:
  std::int64_t begin_ns_;
  double burst_s_;
  double gap_s_;
  double rate_ops_s_;
  double gap_rate_ops_s_;
  double phase_;
  std::uint64_t in_burst_;  // arrivals of one burst
  std::uint64_t in_gap_;
  std::uint64_t given_ = 0;
};

class Trace final : public Arrivals {
 public:
  Trace(std::shared_ptr<const std::vector<std::int64_t>> times_ns, std::int64_t begin_ns, std::uint32_t thread,
        std::uint32_t threads)
      : times_ns_(std::move(times_ns)), begin_ns_(begin_ns), next_(thread), threads_(threads) {}

  std::int64_t next_ns() override {
    if (next_ >= times_ns_->size()) return kNever;
    const std::int64_t time_ns = begin_ns_ + (*times_ns_)[next_];
    next_ += threads_;
    return time_ns;
  }
  std::uint64_t rest_before(std::int64_t time_ns) override {
    const auto end = std::lower_bound(times_ns_->begin(), times_ns_->end(), time_ns - begin_ns_);
    const auto all = static_cast<std::size_t>(end - times_ns_->begin());
    return all <= next_ ? 0 : (all - next_ + threads_ - 1) / threads_;
  }

 private:
  std::shared_ptr<const std::vector<std::int64_t>> times_ns_;
  std::int64_t begin_ns_;
  std::size_t next_;
  std::uint32_t threads_;
};

bool is_above_0(double value) { return value > 0 && std::isfinite(value); }

}  // namespace

std::unique_ptr<Arrivals> make_arrivals(const ArrivalSpec& spec, std::int64_t begin_ns, std::uint32_t thread,
                                        std::uint32_t threads, std::uint64_t seed) {
  const double rate = spec.rate_ops_s / threads;
  const double phase = static_cast<double>(thread) / threads;
  switch (spec.process) {
    case ArrivalSpec::Process::constant:
      break;
    case ArrivalSpec::Process::poisson:
      return std::make_unique<Poisson>(begin_ns, rate, seed);
    case ArrivalSpec::Process::bursts:
      return std::make_unique<Bursts>(spec, begin_ns, rate, spec.gap_rate_ops_s / threads, phase);
    case ArrivalSpec::Process::trace:
      return std::make_unique<Trace>(spec.times_ns, begin_ns, thread, threads);
  }
  return std::make_unique<Constant>(begin_ns, rate, phase);
}

std::string find_problem(const ArrivalSpec& spec) {
  const bool is_trace = spec.process == ArrivalSpec::Process::trace;
  const bool has_bursts = spec.process == ArrivalSpec::Process::bursts;
  if (is_trace != (spec.times_ns != nullptr)) return ".file belongs to the process trace, which needs it";
  if (is_trace) return spec.rate_ops_s == 0 ? "" : ".process is trace, which has no rate: remove rate_ops_s";
  if (!is_above_0(spec.rate_ops_s)) return " needs rate_ops_s, above 0 operations a second";
  if (!has_bursts) {
    const bool has_none = spec.burst_s == 0 && spec.gap_s == 0 && spec.gap_rate_ops_s == 0;
    return has_none ? "" : ": burst_s, gap_s and gap_rate_ops_s belong to the process bursts; remove them";
  }
  if (!is_above_0(spec.burst_s)) return ".burst_s must be above 0 seconds";
  if (!is_above_0(spec.gap_s)) return ".gap_s must be above 0 seconds";
  if (!(spec.gap_rate_ops_s >= 0 && std::isfinite(spec.gap_rate_ops_s))) {
    return ".gap_rate_ops_s must be 0 operations a second or more";
  }
  if (spec.rate_ops_s * spec.burst_s + spec.gap_rate_ops_s * spec.gap_s < 1) {
    return ": less than one operation arrives in a burst and its gap; raise rate_ops_s or burst_s";
  }
  return "";
}

}  // namespace spillway::load
