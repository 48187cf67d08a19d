#include "load/run_spec.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "load/ycsb/records.h"

namespace spillway::load {
namespace {

constexpr std::uint32_t kMostKeyBytes = 64 << 10;      // RocksDB accepts 8 MiB, more than any workload here needs
constexpr std::uint32_t kMostValueBytes = 1U << 30;    // the value buffer holds two
constexpr std::uint32_t kMostThreads = 1024;           // each has 120 KB of histograms
constexpr std::int64_t kLeastIntervalNs = 10'000'000;  // shorter intervals would make sampling itself a noticeable load

std::string problem_of_pairs(const PairSpec& pairs) {
  if (pairs.key_bytes < 1 || pairs.key_bytes > kMostKeyBytes) {
    return "load.key_bytes is " + std::to_string(pairs.key_bytes) + ": choose 1 to " + std::to_string(kMostKeyBytes);
  }
  if (pairs.value_bytes > kMostValueBytes) {
    return "load.value_bytes is " + std::to_string(pairs.value_bytes) + ": choose at most " +
           std::to_string(kMostValueBytes);
  }
  if (!(pairs.compression_ratio > 0 && pairs.compression_ratio <= 1)) {
    return "load.compression_ratio is the compressed share of a value: choose a number above 0 and at most 1";
  }
  if (pairs.num < 1) return "load.num is 0: a run needs at least one key";
  if (pairs.key_bytes < 8 && pairs.num > std::uint64_t{1} << (8 * pairs.key_bytes)) {
    return "load.num is " + std::to_string(pairs.num) + ", but load.key_bytes = " + std::to_string(pairs.key_bytes) +
           " has room for " + std::to_string(std::uint64_t{1} << (8 * pairs.key_bytes)) +
           " different keys: use longer keys or fewer";
  }
  return "";
}

std::string problem_of_end(const PhaseSpec& phase, const PairSpec& pairs, const std::string& key) {
  const std::string workload = name_of(phase.workload);
  if (is_wait(phase.workload)) {
    const bool bounded = phase.operations || phase.duration_s || phase.is_open_loop();
    return bounded ? key + ": " + workload + " ends by itself; remove operations, duration_s, rate_ops_s and arrivals"
                   : "";
  }
  if (phase.ends_with_trace() && !phase.operations && !phase.duration_s) return "";
  if (!phase.operations && !phase.duration_s && !is_fill(phase.workload) && !is_ycsb(phase.workload)) {
    return key + " has no end: give operations (for each thread) or duration_s";
  }
  if (phase.workload == Workload::ycsb_run && !phase.operations && !phase.time_limit_s() &&
      phase.ycsb->operationcount == 0) {
    return key + " has no end: give ycsb.operationcount (over all threads), operations (for each) or duration_s";
  }
  if (phase.operations && *phase.operations == 0) return key + ".operations is 0: give at least 1";
  if (phase.duration_s && !(*phase.duration_s > 0 && std::isfinite(*phase.duration_s))) {
    return key + ".duration_s must be above 0 seconds";
  }
  if (each_key_once(phase.workload) && phase.operations && *phase.operations > pairs.num) {
    return key + ".operations is " + std::to_string(*phase.operations) + ", but " + workload +
           " writes each of load.num = " + std::to_string(pairs.num) + " keys once: lower it or raise load.num";
  }
  return "";
}

std::string problem_of_mix(const PhaseSpec& phase, const std::string& key) {
  if (phase.exact_mix && (phase.workload != Workload::readwhilewriting || !phase.read_write_percent)) {
    return key + ".exact_mix belongs to readwhilewriting with read_write_percent";
  }
  if (phase.exact_mix && phase.write_rate_ops_s) {
    return key + ".exact_mix and write_rate_ops_s both pace the writer: give one of them";
  }
  if (!phase.read_write_percent) return "";
  const std::string percent = key + ".read_write_percent";
  if (*phase.read_write_percent > 100) return percent + " is above 100: it is the share of reads";
  if (phase.workload == Workload::readrandomwriterandom) return "";
  if (phase.workload != Workload::readwhilewriting) {
    return percent + " belongs to readrandomwriterandom and readwhilewriting; remove it from " +
           name_of(phase.workload);
  }
  if (*phase.read_write_percent == 0 || *phase.read_write_percent == 100) {
    return percent + " of readwhilewriting, which has both, must be above 0 and below 100";
  }
  if (phase.rate_ops_s || phase.arrivals) return percent + " and rate_ops_s both pace the readers: give one of them";
  return "";
}

// The earlier phase whose rate a phase has a share of.
std::string problem_of_rate_of(const std::vector<PhaseSpec>& phases, std::size_t index) {
  const PhaseSpec& phase = phases[index];
  if (!phase.rate_of) return "";
  const std::string key = "phases[" + std::to_string(index) + "]";
  if (is_wait(phase.workload) || phase.workload == Workload::readwhilewriting) {
    return key + ".rate_of belongs to workloads whose threads all have one rate: remove it from " +
           name_of(phase.workload);
  }
  if (phase.rate_ops_s || phase.arrivals) {
    return key + ".rate_of is a rate of its own, at a constant pace: remove rate_ops_s and arrivals";
  }
  if (!(phase.rate_share > 0 && std::isfinite(phase.rate_share))) return key + ".rate_share must be above 0";
  const auto end = phases.begin() + static_cast<std::ptrdiff_t>(index);
  const auto found =
      std::find_if(phases.begin(), end, [&](const PhaseSpec& one) { return one.name == *phase.rate_of; });
  if (found == end) return key + ".rate_of is \"" + *phase.rate_of + "\": name a phase before this one";
  if (is_wait(found->workload)) {
    return key + ".rate_of is \"" + *phase.rate_of + "\", which has no operations: name a phase that has";
  }
  return "";
}

std::string problem_of_phase(const PhaseSpec& phase, const PairSpec& pairs, const std::string& key) {
  const std::string workload = name_of(phase.workload);
  if (phase.name.empty()) return key + ".name is empty: give the phase a name";
  if (phase.threads < 1 || phase.threads > kMostThreads) {
    return key + ".threads is " + std::to_string(phase.threads) + ": choose 1 to " + std::to_string(kMostThreads);
  }
  if (phase.workload == Workload::filluniquerandom && phase.threads != 1) {
    return key + ".threads is " + std::to_string(phase.threads) +
           ", but filluniquerandom writes each key once and has one thread: set it to 1 or use fillrandom";
  }
  if (is_ycsb(phase.workload) != phase.ycsb.has_value()) {
    return key + ".ycsb " +
           (phase.ycsb ? "belongs to ycsb-load and ycsb-run: remove it from " + workload
                       : "is missing: " + workload + " needs YCSB's properties");
  }
  if (phase.ycsb) {
    std::string problem = ycsb::find_problem(*phase.ycsb, key + ".ycsb.", phase.workload == Workload::ycsb_load);
    if (!problem.empty()) return problem;
  }
  if (std::string end = problem_of_end(phase, pairs, key); !end.empty()) return end;
  const auto rates = {std::pair{".rate_ops_s", phase.rate_ops_s},
                      std::pair{".write_rate_ops_s", phase.write_rate_ops_s}};
  for (const auto& [name, rate] : rates) {
    if (rate && !(*rate > 0 && std::isfinite(*rate))) {
      return key + name + " must be above 0 operations a second; null stands for a closed loop";
    }
  }
  if (phase.write_rate_ops_s && phase.workload != Workload::readwhilewriting) {
    return key + ".write_rate_ops_s belongs to readwhilewriting: use rate_ops_s with " + workload;
  }
  if (phase.seek_nexts != 0 && phase.workload != Workload::seekrandom) {
    return key + ".seek_nexts belongs to seekrandom: remove it from " + workload;
  }
  return problem_of_mix(phase, key);
}

// The settings in which all YCSB phases must agree. All use one set of records, which is loaded before any other phase.
std::string problem_of_ycsb(const std::vector<PhaseSpec>& phases, const std::vector<FinishedPhase>& past) {
  const PhaseSpec* first = nullptr;
  bool loaded = false;
  for (const FinishedPhase& done : past) {
    if (done.phase.ycsb && first == nullptr) first = &done.phase;
    loaded = loaded || done.phase.workload == Workload::ycsb_load;
  }
  for (std::size_t i = 0; i < phases.size(); ++i) {
    const PhaseSpec& phase = phases[i];
    if (!phase.ycsb) continue;
    const std::string key = "phases[" + std::to_string(i) + "]";
    if (first == nullptr) first = &phase;
    const std::string differs = ycsb::first_difference_of_records(*first->ycsb, *phase.ycsb);
    if (!differs.empty()) {
      return key + ".ycsb." + differs + " is not that of phase \"" + first->name +
             "\": the records are the same in all phases, give it one value";
    }
    loaded = loaded || phase.workload == Workload::ycsb_load;
    if (!loaded) return key + ": ycsb-run would find no records; put a phase of ycsb-load before it";
  }
  return "";
}

}  // namespace

std::string find_problem(const RunSpec& spec) {
  if (std::string pairs = problem_of_pairs(spec.pairs); !pairs.empty()) return pairs;
  if (spec.sample_interval_ns < kLeastIntervalNs) {
    return "sample_interval_ms must be at least " + std::to_string(kLeastIntervalNs / 1'000'000);
  }
  if (spec.phases.empty()) return "phases is empty: a run needs at least one phase";
  std::set<std::string> names;
  for (std::size_t i = 0; i < spec.phases.size(); ++i) {
    const std::string key = "phases[" + std::to_string(i) + "]";
    if (std::string phase = problem_of_phase(spec.phases[i], spec.pairs, key); !phase.empty()) return phase;
    if (!names.insert(spec.phases[i].name).second) {
      return key + ".name \"" + spec.phases[i].name + "\" is taken by an earlier phase: choose another";
    }
    if (std::string rate = problem_of_rate_of(spec.phases, i); !rate.empty()) return rate;
  }
  return problem_of_ycsb(spec.phases, spec.earlier_phases);
}

std::uint64_t least_live_bytes(const RunSpec& spec, bool compressed) {
  const auto num = static_cast<double>(spec.pairs.num);
  double uniform_writes = 0;
  double keys = 0;
  double ycsb_records = 0;
  double ycsb_bytes = 0;  // of one record
  const double packed = compressed ? spec.pairs.compression_ratio : 1.0;
  for (const PhaseSpec& phase : spec.phases) {
    if (phase.workload == Workload::ycsb_load && !phase.operations && !phase.duration_s) {
      ycsb_records = std::max(ycsb_records, static_cast<double>(phase.ycsb->inserts_of_load()));
      const auto prefix = static_cast<double>(phase.ycsb->keyprefix.size());
      ycsb_bytes = prefix + phase.ycsb->zeropadding + ycsb::mean_value_bytes(*phase.ycsb) * packed;
    }
    if (phase.duration_s || !is_fill(phase.workload)) continue;
    const auto operations = static_cast<double>(phase.operations.value_or(spec.pairs.num));
    if (each_key_once(phase.workload)) {
      keys = std::max(keys, operations);
    } else {
      uniform_writes += operations * phase.threads;
    }
  }
  keys = std::max(keys, num * -std::expm1(-uniform_writes / num));
  const double value_bytes = spec.pairs.value_bytes * packed;
  const double bytes = keys * (spec.pairs.key_bytes + value_bytes) + ycsb_records * ycsb_bytes;
  constexpr std::uint64_t kMost = std::numeric_limits<std::uint64_t>::max();
  return bytes < static_cast<double>(kMost) ? static_cast<std::uint64_t>(bytes) : kMost;
}

}  // namespace spillway::load
