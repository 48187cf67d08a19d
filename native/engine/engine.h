// The seam to a store: what the runner needs of an engine, and what a report shows of it.
//
// By name: factory/factory.h. All methods but open and close may be called from many threads.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "spillway/statistics.h"

namespace spillway::engine {

// Why an engine holds writers back: an index into Engine::stall_causes(). Each engine has causes of its own.
using StallCause = std::uint8_t;
inline constexpr StallCause kNoStallCause = 0;
inline constexpr std::size_t kMostStallCauses = 8;
enum class StallState : std::uint8_t { normal, delayed, stopped };
const char* name_of(StallState state);

// A stall that has ended (or, with an end in the future, one that goes on). Times by std::chrono::steady_clock, ns.
struct Stall {
  std::int64_t begin_ns = 0;
  std::int64_t end_ns = 0;
  StallState state = StallState::normal;
  StallCause cause = kNoStallCause;
};

// A figure of an engine at a moment, by the engine's own name for it; units end the name.
struct Gauge {
  const char* name = "";  // a literal
  std::uint64_t value = 0;
};

// What the engine is going through at this moment. Cheap enough for ten times a second.
struct Observation {
  StallState stall_state = StallState::normal;
  StallCause stall_cause = kNoStallCause;
  std::vector<Gauge> gauges;             // the same ones, in the same order, each time
  std::optional<SpillStatistics> spill;  // none: an engine without a spill store

  // Sets a gauge that is there, or adds it.
  void set(const char* name, std::uint64_t value);
  // 0 where the engine has no such gauge.
  std::uint64_t gauge(std::string_view name) const;
};

// Something that a policy did, at a moment: ADOC's decisions, the accelerator's events. Time as in Stall.
struct Event {
  std::int64_t at_ns = 0;
  std::string name;                                     // "adoc.jobs", "spill.divert_begin"
  std::vector<std::pair<std::string, double>> figures;  // units end the names
  std::string message;                                  // for people; mostly empty
};

// One write of a batch. REQUIRES: key and value outlive the call they are given to.
struct Write {
  enum class Kind : std::uint8_t { put, remove };
  Kind kind = Kind::put;
  std::string_view key;
  std::string_view value;  // of a put
};

enum class Direction : std::uint8_t { forward, backward };

using Pairs = std::vector<std::pair<std::string, std::string>>;

class Engine {
 public:
  virtual ~Engine() = default;

  virtual Status put(std::string_view key, std::string_view value) = 0;
  virtual Status remove(std::string_view key) = 0;
  // All of them or none, also after a crash; of two writes to one key the later counts.
  virtual Status write(std::span<const Write> batch) = 0;
  // Returns true when the key is there, and sets `value` unless it is null.
  virtual Result<bool> get(std::string_view key, std::string* value) = 0;
  // Seeks to the first key at or behind `key` (backward: at or before it) and steps over at most `nexts` further pairs,
  // keys and values. Returns how many pairs were seen, and appends them to `pairs` unless it is null.
  virtual Result<std::uint64_t> scan(std::string_view key, std::uint64_t nexts, Direction direction, Pairs* pairs) = 0;
  Result<std::uint64_t> scan(std::string_view key, std::uint64_t nexts) {
    return scan(key, nexts, Direction::forward, nullptr);
  }

  // Names of what holds this engine's writers back, by StallCause; the first is "none". At most kMostStallCauses.
  virtual std::span<const char* const> stall_causes() const = 0;
  virtual Observation observe() = 0;
  // Every stall since the engine was opened, oldest first; one that goes on ends at the time of the call.
  virtual std::vector<Stall> stalls() = 0;
  // The engine's cumulative figures by its own names (RocksDB: tickers), for manifests and cross-checks.
  virtual std::map<std::string, std::uint64_t> statistics() = 0;

  // What happened since the last call, oldest first.
  virtual std::vector<Event> take_events() { return {}; }

  virtual Status flush() = 0;
  // Returns when nothing is left to flush or compact, or soon after `stop` is set.
  virtual Status wait_for_compaction(const std::atomic<bool>& stop) = 0;
  // Pays what was put off: brings back what was spilled, flushes, then waits for compaction.
  virtual Status settle(const std::atomic<bool>& stop) {
    Status status = flush();
    return status ? wait_for_compaction(stop) : status;
  }
  virtual Status close() = 0;
};

}  // namespace spillway::engine
