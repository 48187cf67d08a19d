// Makes room for a run in RocksDB's levels (run_place.h), and watches that it stays free.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>

#include "spill/commit/commits.h"
#include "spill/live/column_families.h"
#include "spill/main_db/main_db.h"
#include "spill/rollback/compaction_thread.h"
#include "spill/rollback/merged_run.h"
#include "spill/rollback/rollback_pause.h"
#include "spill/rollback/run_place.h"
#include "spill/rollback/sorted_files.h"
#include "spill/stall/detector.h"

namespace spillway::spill {

// Of one run at a time. Not thread-safe.
class Placing {
 public:
  Placing(MainDb& main, ColumnFamilies& families, Commits& commits, Detector& detector, RollbackPause& pause)
      : main_(main), families_(families), commits_(commits), detector_(detector), pause_(pause) {}

  // A run that is about to come back. It has no place while a compaction for an earlier one goes on.
  void begin(const MergedRun& run);
  // Whether it has a place below L0.
  bool has_place() const { return place_.has_value(); }
  // How its files are written.
  SortedLevel sorted_level() const {
    return place_ ? SortedLevel{place_->level, place_->base_level, place_->file_bytes} : SortedLevel();
  }

  // Whether the next part of the run, of that range of keys, may be ingested there now. Not yet: what lies in its way
  // is being compacted. Lost: it has no place any more.
  enum class Look : std::uint8_t { is_free, not_yet, is_lost };
  // `is_urgent`: it is lost rather than waited for; so it is while a note is owed, which holds compactions until all is
  // back. `part` matters only once something is in.
  Look look(const KeyRange& part, bool is_urgent);
  // A part was written meanwhile, so the wait for room has cost no time.
  void on_written() { until_ = std::chrono::steady_clock::now() + kLongestWait; }
  // The first part is in: from now on nothing is compacted for the run, since it would be compacted with it.
  void on_ingested() { has_begun_ = true; }
  bool has_begun() const { return has_begun_; }

  // The run has come back, or will not. A compaction that runs goes on.
  void end();
  // The same, and waits for it.
  void finish();

 private:
  // How long to do nothing but wait until RocksDB has compacted what it has begun with. Source: guess
  static constexpr std::chrono::seconds kLongestWait{5};

  // Each compaction that is begun in vain, or behind which something else has come, costs time and flash. Source: guess
  static constexpr int kMostCompactions = 3;

  Look lose();
  bool begin_compaction(UsedColumnFamily family);  // false: it will not be
  void disown_compaction();

  MainDb& main_;
  ColumnFamilies& families_;
  Commits& commits_;
  Detector& detector_;
  RollbackPause& pause_;
  std::optional<RunPlace> place_;
  bool has_begun_ = false;
  int compactions_ = 0;  // begun for this run
  std::chrono::steady_clock::time_point until_{};
  std::shared_ptr<std::atomic<bool>> is_wanted_;  // whether the last compaction is; it looks before it begins
  CompactionThread compaction_;
};

}  // namespace spillway::spill
