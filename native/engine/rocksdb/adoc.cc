#include "engine/rocksdb/adoc.h"

#include <algorithm>

namespace spillway::engine {

namespace {

constexpr double kSlowFlush = 0.5;      // of the fastest. Source: ADOC's code
constexpr std::uint32_t kJobsStep = 2;  // Source: ADOC's code

AdocJobsRule jobs_rule(const AdocSignals& signals) {
  AdocJobsRule rule = AdocJobsRule::keep;
  if (signals.immutable_memtables >= 1) rule = AdocJobsRule::more_for_memtables;
  if (signals.flush_bytes_s < kSlowFlush * signals.most_flush_bytes_s) rule = AdocJobsRule::half_for_slow_flush;
  if (signals.pending_share >= 1 || signals.l0_share >= 1) rule = AdocJobsRule::more_for_debt;
  return rule;
}

AdocBufferRule buffer_rule(const AdocSignals& signals) {
  const bool slow = signals.flush_bytes_s < kSlowFlush * signals.most_flush_bytes_s;
  AdocBufferRule rule = AdocBufferRule::keep;
  if (slow || signals.immutable_memtables > 1) rule = AdocBufferRule::more;
  if (signals.pending_share >= 1) rule = AdocBufferRule::half;
  return rule;
}

std::uint32_t jobs_after(AdocJobsRule rule, std::uint32_t jobs, const AdocOptions& options) {
  if (rule == AdocJobsRule::keep) return jobs;
  const std::uint32_t wanted = rule == AdocJobsRule::half_for_slow_flush ? jobs / 2 : jobs + kJobsStep;
  return std::clamp(wanted, options.least_jobs, options.most_jobs);
}

std::uint64_t buffer_after(AdocBufferRule rule, std::uint64_t bytes, const AdocOptions& options, std::uint64_t step) {
  if (rule == AdocBufferRule::keep) return bytes;
  const std::uint64_t wanted = rule == AdocBufferRule::half ? bytes / 2 : bytes + step;
  return std::clamp(wanted, options.least_buffer_bytes, options.most_buffer_bytes);
}

}  // namespace

const char* name_of(AdocJobsRule rule) {
  switch (rule) {
    case AdocJobsRule::keep:
      return "keep";
    case AdocJobsRule::more_for_memtables:
      return "more_for_memtables";
    case AdocJobsRule::half_for_slow_flush:
      return "half_for_slow_flush";
    case AdocJobsRule::more_for_debt:
      return "more_for_debt";
  }
  return "?";
}

const char* name_of(AdocBufferRule rule) {
  switch (rule) {
    case AdocBufferRule::keep:
      return "keep";
    case AdocBufferRule::more:
      return "more";
    case AdocBufferRule::half:
      return "half";
  }
  return "?";
}

std::string find_problem(const AdocOptions& options) {
  if (options.interval_ms < 1) return "engine.adoc.interval_ms is 0: choose at least 1";
  if (options.least_jobs < 1 || options.least_jobs > options.most_jobs) {
    return "engine.adoc.least_jobs is " + std::to_string(options.least_jobs) +
           ": choose 1 to engine.adoc.most_jobs = " + std::to_string(options.most_jobs);
  }
  if (options.least_buffer_bytes < 1 || options.least_buffer_bytes > options.most_buffer_bytes) {
    return "engine.adoc.least_buffer_bytes is " + std::to_string(options.least_buffer_bytes) +
           ": choose 1 to engine.adoc.most_buffer_bytes = " + std::to_string(options.most_buffer_bytes);
  }
  return "";
}

AdocDecision decide(const AdocSignals& signals, const AdocSettings& present, const AdocOptions& options,
                    std::uint64_t initial_buffer_bytes) {
  AdocDecision decision;
  decision.jobs_rule = jobs_rule(signals);
  decision.buffer_rule = buffer_rule(signals);
  decision.settings.jobs = jobs_after(decision.jobs_rule, present.jobs, options);
  decision.settings.buffer_bytes =
      buffer_after(decision.buffer_rule, present.buffer_bytes, options, initial_buffer_bytes);
  return decision;
}

}  // namespace spillway::engine
