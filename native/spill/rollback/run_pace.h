// How fast runs of a burst that goes on come back into L0: as fast as RocksDB compacts L0, by and by. Faster, L0 would
// fill up, and then nothing could come back for as long as RocksDB compacts all of it.
#pragma once

#include <chrono>
#include <deque>
#include <optional>

namespace spillway::spill {

// A proportional controller of the mean number of files in L0. Not thread-safe.
class RunPace {
 public:
  using Time = std::chrono::steady_clock::time_point;
  using Seconds = std::chrono::duration<double>;

  // Of RocksDB's compaction trigger: files in L0 where as many come as leave. Source: guess, some come while others are
  // compacted
  static constexpr double kTarget = 1.5;
  // Of the trigger: with x times more files than that, runs take 1 + kSlower (x - 1) times as long at once. Source:
  // spill_run_pace_test.cc, compactions that become slower
  static constexpr double kEasy = 2;
  static constexpr double kSlower = 1.5;
  // The mean of L0's files is taken over so long, about what RocksDB takes to compact L0, and files that left are
  // counted for so long, some compactions of it. Source: spill_run_pace_test.cc; with 4 and 30 s seconds swing twice as
  // much
  static constexpr Seconds kMean{12};
  static constexpr Seconds kWindow{60};
  // No run takes longer. Source: guess; its generations are to come back more often than DrainPacer's patience lasts
  static constexpr Seconds kLongest{20};

  // As often as anything may have changed. Time with fewer files than the trigger does not count: RocksDB compacts
  // none.
  void observe(int l0_files, int l0_compaction_trigger, Time now);
  // How long a run that becomes one file is to take; nothing: as long as it takes.
  std::optional<Seconds> seconds_of_run(int l0_compaction_trigger) const;

 private:
  struct Step {  // between two observations
    Time at;
    Seconds busy{0};  // with enough files to compact
    int left = 0;     // files
  };

  int files_ = 0;
  double mean_files_ = 0;
  Time at_{};
  std::deque<Step> steps_;  // of the window
  Seconds busy_{0};         // of all of them
  int left_ = 0;
};

}  // namespace spillway::spill
