// The seam to a storage engine: operations, observation, and control for the runner.
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

// The cause of a write stall: an index into Engine::stall_causes(). Each engine has its own causes.
using StallCause = std::uint8_t;
inline constexpr StallCause kNoStallCause = 0;
inline constexpr std::size_t kMostStallCauses = 8;
enum class StallState : std::uint8_t { normal, delayed, stopped };
const char* name_of(StallState state);

// One write stall. Times of std::chrono::steady_clock, ns.
struct Stall {
  std::int64_t begin_ns = 0;
  std::int64_t end_ns = 0;
  StallState state = StallState::normal;
  StallCause cause = kNoStallCause;
};

// A value that an engine reports under a name of its own; a unit ends the name.
struct Gauge {
  const char* name = "";  // a literal
  std::uint64_t value = 0;
};

// The state of an engine at one moment. Cheap enough for ten a second.
struct Observation {
  StallState stall_state = StallState::normal;
  StallCause stall_cause = kNoStallCause;
  std::vector<Gauge> gauges;             // the same gauges in the same order each time
  std::optional<SpillStatistics> spill;  // none: the engine has no spill store

  // Sets the gauge, which is added if it is missing.
  void set(const char* name, std::uint64_t value);
  // 0 if there is no such gauge.
  std::uint64_t gauge(std::string_view name) const;
};

// An action of a write-stall policy or of the engine: a decision of ADOC, an event of the accelerator, a checkpoint.
// Time as in Stall.
struct Event {
  std::int64_t at_ns = 0;
  std::string name;                                     // "adoc.jobs", "spill.divert_begin"
  std::vector<std::pair<std::string, double>> figures;  // a unit ends the name
  std::string message;                                  // for people; usually empty
};

// One write of a batch. REQUIRES: key and value outlive the call they are given to.
struct Write {
  enum class Kind : std::uint8_t { put, remove };
  Kind kind = Kind::put;
  std::string_view key;
  std::string_view value;  // of a put
};

enum class Direction : std::uint8_t { forward, backward };

// Where writes go in an engine that has a spill store: as it decides itself, all into the store, or none.
enum class Diversion : std::uint8_t { automatic, always, never };

using Pairs = std::vector<std::pair<std::string, std::string>>;

class Engine {
 public:
  virtual ~Engine() = default;

  virtual Status put(std::string_view key, std::string_view value) = 0;
  virtual Status remove(std::string_view key) = 0;
  // Atomic, also after a crash. Of two writes to one key the later one counts.
  virtual Status write(std::span<const Write> batch) = 0;
  // Returns whether the key exists, and sets `value` unless it is null.
  virtual Result<bool> get(std::string_view key, std::string* value) = 0;
  // Seeks to the first key at or behind `key` (backward: at or before it) and steps over at most `nexts` further pairs,
  // keys and values. Returns the number of pairs seen, and appends them to `pairs` unless it is null.
  virtual Result<std::uint64_t> scan(std::string_view key, std::uint64_t nexts, Direction direction, Pairs* pairs) = 0;
  Result<std::uint64_t> scan(std::string_view key, std::uint64_t nexts) {
    return scan(key, nexts, Direction::forward, nullptr);
  }

  // Names by StallCause; the first is "none". At most kMostStallCauses.
  virtual std::span<const char* const> stall_causes() const = 0;
  virtual Observation observe() = 0;
  // All stalls since the engine was opened, oldest first; one in progress ends at the time of the call.
  virtual std::vector<Stall> stalls() = 0;
  // Cumulative counters under the engine's own names (RocksDB: tickers), for manifests and cross-checks.
  virtual std::map<std::string, std::uint64_t> statistics() = 0;

  // Events since the last call, oldest first.
  virtual std::vector<Event> take_events() { return {}; }

  // Of the writes that begin later. Does nothing in an engine without a spill store.
  virtual void set_diversion(Diversion /*diversion*/) {}

  virtual Status flush() = 0;
  // Waits until there is nothing to flush or compact, or `stop` is set.
  virtual Status wait_for_compaction(const std::atomic<bool>& stop) = 0;
  // Finishes deferred work: rolls back the spill store, flushes, waits for compaction.
  virtual Status settle(const std::atomic<bool>& stop) {
    Status status = flush();
    return status ? wait_for_compaction(stop) : status;
  }
  virtual Status close() = 0;
};

}  // namespace spillway::engine
