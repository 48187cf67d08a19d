// Moves a part of a run that was ingested into L0 straight into the level where most of its keys lie.
//
// RocksDB would rewrite the part once in each level on its way down. A run of a large part of the spill store is as
// large as those levels, so it gains nothing there. A part covers a small range of keys, so the compaction is small.
#pragma once

#include <rocksdb/comparator.h>
#include <rocksdb/db.h>
#include <rocksdb/metadata.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "spill/live/column_families.h"

namespace spillway::spill {

struct PartCompaction {
  std::vector<std::string> inputs;
  int output_level = 0;
};

// The limits within which one is chosen.
struct LevelLimits {
  int base_level = 1;      // the first below L0 that RocksDB uses
  int deepest_level = 64;  // that may be compacted into
  double most_ratio = 5;   // bytes that are rewritten for each byte of L0
};

// The compaction of L0's files with everything that overlaps them down to the deepest level to which no more is
// rewritten than the limits allow. Nothing: L0 is empty, a file is being compacted, or it would rewrite too much.
std::optional<PartCompaction> compaction_of_l0(const rocksdb::ColumnFamilyMetaData& family,
                                               const rocksdb::Comparator& order, const LevelLimits& limits);

// Whether a family's levels may be compacted so: leveled, by itself, in one directory, with no other rule of where data
// lies.
bool has_plain_levels(const rocksdb::ColumnFamilyOptions& options, const rocksdb::DBOptions& database);
// The same of a family with a handle.
bool has_plain_levels(rocksdb::DB& db, const ColumnFamily& family);

// What compacts L0 so, as it is now; `only_to_base`: into the first level below L0 and no further. Empty: nothing is to
// be done. If RocksDB has begun to compact a file meanwhile, what is there is left to it. REQUIRES: it runs while no
// note is owed. It holds the family's handle.
std::function<void()> l0_compaction(rocksdb::DB& db, UsedColumnFamily family, bool only_to_base);

// Runs work in one of RocksDB's compaction threads, so that no more compactions run than the user allows.
class InCompactionThread {
 public:
  InCompactionThread() = default;
  ~InCompactionThread() { wait(); }
  InCompactionThread(const InCompactionThread&) = delete;
  InCompactionThread& operator=(const InCompactionThread&) = delete;

  // REQUIRES: nothing runs (wait()). `env` outlives the work.
  void start(rocksdb::Env& env, std::function<void()> work);
  // Returns when the work has run or, if no thread became free for ten seconds, without it.
  void wait();

 private:
  enum class State : std::uint8_t { none, queued, running };

  static void begin(void* self);
  static void give_up(void* self);
  void enter(State state) EXCLUDES(mutex_);

  rocksdb::Env* env_ = nullptr;
  std::function<void()> work_;
  Mutex mutex_;
  CondVar changed_;
  State state_ GUARDED_BY(mutex_) = State::none;
};

}  // namespace spillway::spill
