// The seam to a store: what the runner needs of an engine, and what a report shows of it.
//
// Implementations: rocksdb, and spillway (RocksDB with the accelerator); rocksdb-blob, leveldb and wiredtiger behind
// the same seam later. All methods but open and close may be called from many threads.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"

namespace spillway::engine {

// Why RocksDB-like engines hold writers back (K1). The order is that in which RocksDB tests them.
enum class StallCause : std::uint8_t { none, memtable, l0, pending_compaction_bytes };
enum class StallState : std::uint8_t { normal, delayed, stopped };
const char* name_of(StallCause cause);
const char* name_of(StallState state);

// A stall that has ended (or, with an end in the future, one that goes on). Times by std::chrono::steady_clock, ns.
struct Stall {
  std::int64_t begin_ns = 0;
  std::int64_t end_ns = 0;
  StallState state = StallState::normal;
  StallCause cause = StallCause::none;
};

// What lies in an engine's spill store, and what went there and came back since the engine was opened.
struct SpillObservation {
  bool diverting = false;  // writes go there at this moment
  std::uint64_t live_generations = 0;
  std::uint64_t live_bytes = 0;  // of keys and values that were not yet brought back
  std::uint64_t index_bytes = 0;
  std::uint64_t diverted_writes = 0;
  std::uint64_t diverted_bytes = 0;
  std::uint64_t rolled_back_bytes = 0;
  std::uint64_t waits = 0;  // writes that had to wait all the same
};

// What the engine is going through at this moment. Cheap enough for ten times a second.
struct Observation {
  StallState stall_state = StallState::normal;
  StallCause stall_cause = StallCause::none;
  std::uint32_t l0_files = 0;
  std::uint32_t immutable_memtables = 0;
  std::uint64_t memtable_bytes = 0;  // active and immutable
  std::uint64_t pending_compaction_bytes = 0;
  std::uint32_t running_flushes = 0;
  std::uint32_t running_compactions = 0;
  std::uint64_t live_bytes = 0;  // bytes in live table and blob files
  // What a policy may change while the store runs: threads for flushes and compactions, and the size of a memtable.
  std::uint32_t background_jobs = 0;
  std::uint64_t write_buffer_bytes = 0;
  std::optional<SpillObservation> spill;  // none: an engine without a spill store
};

// Something that a policy did, at a moment: ADOC's decisions, the accelerator's events. Time as in Stall.
struct Event {
  std::int64_t at_ns = 0;
  std::string name;                                     // "adoc.jobs", "spill.divert_begin"
  std::vector<std::pair<std::string, double>> figures;  // units end the names
  std::string message;                                  // for people; mostly empty
};

class Engine {
 public:
  virtual ~Engine() = default;

  virtual Status put(std::string_view key, std::string_view value) = 0;
  virtual Status remove(std::string_view key) = 0;
  // Returns true when the key is there, and sets `value` unless it is null.
  virtual Result<bool> get(std::string_view key, std::string* value) = 0;
  // Seeks to `key` and steps over at most `nexts` further pairs; returns how many pairs were seen.
  virtual Result<std::uint64_t> scan(std::string_view key, std::uint64_t nexts) = 0;

  virtual Observation observe() = 0;
  // Every stall since the engine was opened, oldest first; one that goes on ends at the time of the call.
  virtual std::vector<Stall> stalls() = 0;
  // The engine's own cumulative figures by their own names (RocksDB: tickers), for manifests and cross-checks.
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
