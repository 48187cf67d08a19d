#include "load/workload.h"

#include <algorithm>
#include <array>
#include <utility>

namespace spillway::load {
namespace {

// Writes by which an exact mix's writer may be ahead of its readers: some 0.1 s of a fast store, and 0.2 points of the
// share in a run of a hundred thousand operations. Source: guess
constexpr double kMixLead = 2000;
constexpr std::uint64_t kArrivalSeed = 0x6172726976616c;  // "arrival": makes the gaps independent of the keys

constexpr std::array kNames = {
    std::pair{Workload::fillseq, "fillseq"},
    std::pair{Workload::fillrandom, "fillrandom"},
    std::pair{Workload::filluniquerandom, "filluniquerandom"},
    std::pair{Workload::overwrite, "overwrite"},
    std::pair{Workload::readrandom, "readrandom"},
    std::pair{Workload::seekrandom, "seekrandom"},
    std::pair{Workload::readwhilewriting, "readwhilewriting"},
    std::pair{Workload::readrandomwriterandom, "readrandomwriterandom"},
    std::pair{Workload::waitforcompaction, "waitforcompaction"},
    std::pair{Workload::settle, "settle"},
    std::pair{Workload::ycsb_load, "ycsb-load"},
    std::pair{Workload::ycsb_run, "ycsb-run"},
};

Pattern pattern_of(Workload workload) {
  switch (workload) {
    case Workload::fillseq:
      return Pattern::put_sequential;
    case Workload::filluniquerandom:
      return Pattern::put_unique;
    case Workload::readrandom:
    case Workload::readwhilewriting:
      return Pattern::get_uniform;
    case Workload::seekrandom:
      return Pattern::scan_uniform;
    case Workload::readrandomwriterandom:
      return Pattern::mixed_uniform;
    case Workload::ycsb_load:
      return Pattern::ycsb_load;
    case Workload::ycsb_run:
      return Pattern::ycsb_run;
    case Workload::fillrandom:
    case Workload::overwrite:
    case Workload::waitforcompaction:
    case Workload::settle:
      break;
  }
  return Pattern::put_uniform;
}

// The operations of one thread. YCSB counts operations over all threads. If the number does not divide evenly, the
// first threads have one more.
std::optional<std::uint64_t> ycsb_operations_of(const PhaseSpec& phase, std::uint64_t thread) {
  const bool loads = phase.workload == Workload::ycsb_load;
  const std::uint64_t total = loads ? phase.ycsb->inserts_of_load() : phase.ycsb->operationcount;
  const std::uint64_t share = total / phase.threads + (thread < total % phase.threads ? 1 : 0);
  if (loads) return std::min(phase.operations.value_or(share), share);
  if (phase.operations || phase.duration_s) return phase.operations;
  return total == 0 ? std::nullopt : std::optional(share);
}

std::uint64_t expected_inserts(const PhaseSpec& phase) {
  const double total = phase.operations ? static_cast<double>(*phase.operations) * phase.threads
                                        : static_cast<double>(phase.ycsb->operationcount);
  constexpr double kAllowance = 2;  // Source: YCSB's CoreWorkload
  constexpr double kMost = 0x1p62;  // records and inserts together stay below 2^63
  return static_cast<std::uint64_t>(std::min(total * phase.ycsb->insertproportion * kAllowance, kMost));
}

// The arrivals of all threads whose operations count for the phase.
std::optional<ArrivalSpec> arrivals_of(const PhaseSpec& phase) {
  if (phase.arrivals || !phase.rate_ops_s) return phase.arrivals;
  ArrivalSpec constant;
  constant.rate_ops_s = *phase.rate_ops_s;
  return constant;
}

std::optional<std::uint64_t> operations_of(const PhaseSpec& phase, std::uint64_t num) {
  if (each_key_once(phase.workload)) return std::min(phase.operations.value_or(num), num);
  if (!phase.operations && !phase.duration_s && is_fill(phase.workload)) return num;
  return phase.operations;
}

}  // namespace

const char* name_of(Workload workload) {
  for (const auto& [value, name] : kNames) {
    if (value == workload) return name;
  }
  return "unknown";
}

bool each_key_once(Workload workload) {
  return workload == Workload::fillseq || workload == Workload::filluniquerandom;
}

bool is_fill(Workload workload) {
  return each_key_once(workload) || workload == Workload::fillrandom || workload == Workload::overwrite;
}

bool is_ycsb(Workload workload) { return workload == Workload::ycsb_load || workload == Workload::ycsb_run; }

std::optional<double> PhaseSpec::time_limit_s() const {
  if (duration_s || workload != Workload::ycsb_run || !ycsb || ycsb->maxexecutiontime <= 0) return duration_s;
  return ycsb->maxexecutiontime;
}

bool is_wait(Workload workload) { return workload == Workload::waitforcompaction || workload == Workload::settle; }

std::optional<Workload> parse_workload(std::string_view name) {
  for (const auto& [value, known] : kNames) {
    if (name == known) return value;
  }
  return std::nullopt;
}

std::vector<std::string> workload_names() {
  std::vector<std::string> names;
  names.reserve(kNames.size());
  for (const auto& [value, name] : kNames) names.emplace_back(name);
  return names;
}

std::vector<ThreadSpec> make_thread_specs(const PhaseSpec& phase, std::uint64_t num, std::uint64_t seed,
                                          std::uint64_t phase_index, std::uint64_t inserted_before) {
  std::vector<ThreadSpec> thread_specs;
  if (is_wait(phase.workload)) return thread_specs;
  const std::uint64_t phase_seed = ssd::mix(seed ^ ssd::mix(phase_index));
  for (std::uint32_t thread = 0; thread < phase.threads; ++thread) {
    ThreadSpec thread_spec;
    thread_spec.pattern = pattern_of(phase.workload);
    thread_spec.seed = ssd::mix(phase_seed + thread);
    thread_spec.operations = is_ycsb(phase.workload) ? ycsb_operations_of(phase, thread) : operations_of(phase, num);
    if (is_ycsb(phase.workload))
      thread_spec.requester = {thread, phase.threads, inserted_before, expected_inserts(phase)};
    thread_spec.arrivals = arrivals_of(phase);
    thread_spec.thread = thread;
    thread_spec.threads = phase.threads;
    thread_spec.arrival_seed = ssd::mix(thread_spec.seed ^ kArrivalSeed);
    if (phase.workload == Workload::readwhilewriting && phase.read_write_percent) {
      const double reads = *phase.read_write_percent;
      thread_spec.shares_limit = phase.exact_mix;
      thread_spec.per_paced_operation = reads / (100 - reads) / (phase.exact_mix ? 1 : phase.threads);
    }
    thread_specs.push_back(thread_spec);
  }
  if (phase.workload == Workload::readwhilewriting) {
    ThreadSpec writer;
    writer.pattern = Pattern::put_uniform;
    writer.seed = ssd::mix(phase_seed + phase.threads);
    if (phase.write_rate_ops_s) writer.arrivals.emplace().rate_ops_s = *phase.write_rate_ops_s;
    writer.background = true;
    if (phase.exact_mix && phase.read_write_percent) {
      const double reads = *phase.read_write_percent;
      writer.per_paced_operation = (100 - reads) / reads;
      writer.lead = kMixLead;
    }
    thread_specs.push_back(writer);
  }
  return thread_specs;
}

OperationStream::OperationStream(const ThreadSpec& thread_spec, std::uint64_t num, std::uint32_t read_write_percent)
    : pattern_(thread_spec.pattern),
      num_(num),
      read_write_percent_(read_write_percent),
      random_(thread_spec.seed),
      order_(num, thread_spec.seed) {}

}  // namespace spillway::load
