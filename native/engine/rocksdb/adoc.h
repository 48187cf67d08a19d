// ADOC (Yu et al., FAST'23), for comparison: tunes the number of background jobs and the size of a memtable of a stock
// RocksDB, so that flushes and compactions keep pace with writes. RocksDB's own slowdown stays on.
//
// Once in an interval in which at least one flush ended:
//   jobs    keep; immutable memtables >= 1: + 2; f < 0.5 fmax: half; L0 or pending compaction at its limit: + 2
//   buffer  keep; f < 0.5 fmax or immutable memtables > 1: + the initial buffer; pending compaction at its limit: half
// where of several rules that hold the last counts, f is the mean bandwidth of the flushes since the last interval
// [B/s] and fmax its largest so far. Then both are brought within their bounds. Source: ADOC's public
// code (supermt/FEAT_7.11, utilities/DOTA); K12. Its first flush is acted upon here and only noted there.
#pragma once

#include <cstdint>
#include <string>

namespace spillway::engine {

// Settings of a plan; defaults are those of the public code. A plan with smaller memtables has to scale the bounds,
// too.
struct AdocOptions {
  std::int64_t interval_ms = 1000;                 // Source: ADOC's code
  std::uint32_t least_jobs = 2;                    // Source: ADOC's code
  std::uint32_t most_jobs = 20;                    // Source: ADOC's code
  std::uint64_t least_buffer_bytes = 64ULL << 20;  // Source: ADOC's code
  std::uint64_t most_buffer_bytes = 512ULL << 20;  // Source: ADOC's code
};

// The first relation that does not hold, as a sentence; "" when there is none.
std::string find_problem(const AdocOptions& options);

struct AdocSignals {
  double flush_bytes_s = 0;       // f
  double most_flush_bytes_s = 0;  // fmax, this interval's included
  std::uint64_t immutable_memtables = 0;
  double l0_share = 0;       // L0 files / slowdown trigger
  double pending_share = 0;  // pending compaction bytes / soft limit
};

struct AdocSettings {
  std::uint32_t jobs = 2;
  std::uint64_t buffer_bytes = 64ULL << 20;

  bool operator==(const AdocSettings&) const = default;
};

enum class AdocJobsRule : std::uint8_t { keep, more_for_memtables, half_for_slow_flush, more_for_debt };
enum class AdocBufferRule : std::uint8_t { keep, more, half };
const char* name_of(AdocJobsRule rule);
const char* name_of(AdocBufferRule rule);

struct AdocDecision {
  AdocSettings settings;
  AdocJobsRule jobs_rule = AdocJobsRule::keep;
  AdocBufferRule buffer_rule = AdocBufferRule::keep;
};

// Pure. `initial_buffer_bytes`: of a memtable when the store was opened.
AdocDecision decide(const AdocSignals& signals, const AdocSettings& present, const AdocOptions& options,
                    std::uint64_t initial_buffer_bytes);

}  // namespace spillway::engine
