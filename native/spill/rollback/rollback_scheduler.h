// Decides when the next rollback begins, from requests and earlier outcomes. It has no thread and no clock.
#pragma once

#include <rocksdb/status.h>

#include <chrono>
#include <cstdint>

#include "spill/stall/policy.h"
#include "spill/store/store.h"

namespace spillway::spill {

// Not thread-safe. Times are by std::chrono::steady_clock.
class RollbackScheduler {
 public:
  using Time = std::chrono::steady_clock::time_point;

  // Rates are taken over this long at least: between two looks that follow one another at once nobody may have written.
  // Source: half a poll of the detector (K3)
  static constexpr std::chrono::duration<double> kLeastWindow{0.05};

  // `poll_interval`: time between two checks for generations to bring back.
  RollbackScheduler(std::chrono::milliseconds poll_interval, Time now)
      : poll_interval_(poll_interval), observed_{.at = now}, last_diverted_(now) {}

  // --- Requests
  // A call waits for the generations up to `last`: its write can proceed only when they are back.
  void await(GenerationId last);
  void ask_for(GenerationId last);
  // Makes a rollback due now. Only a call that `insists` shortens the pause after a failed rollback: nothing else would
  // let the caller proceed.
  void wake(bool insists);

  // --- The next one
  bool is_due() const { return is_due_; }
  // How long to wait before the next check for generations to bring back.
  std::chrono::milliseconds pause() const;
  // Called at the start of a check.
  void begin() { is_due_ = false; }
  // Operations since the database was opened: reads while something was live, writes, and those of them diverted.
  struct Activity {
    std::uint64_t reads = 0;
    std::uint64_t writes = 0;
    std::uint64_t diverted = 0;
  };
  // Sets the fields of `state` that depend on time and on requests. `oldest`: the oldest live generation.
  void observe(const Activity& activity, GenerationId oldest, Time now, RollbackState* state);

  // --- How it ended
  struct Outcome {
    Time began{};
    std::uint64_t generations = 0;  // to be brought back; 0: none
    bool has_more = false;          // parts of what has begun are left
    bool is_paused = false;         // by the user: the check was skipped
    rocksdb::Status status;         // TryAgain: RocksDB has no room for it now
  };
  // Whether the attempt counts as failed. `is_stopping`: the database closes, and a failure is not counted.
  bool end(const Outcome& outcome, Time now, bool is_stopping);
  // Whether the next attempt begins without a wake-up.
  bool retries_by_itself() const { return retries_by_itself_; }
  std::uint64_t failures() const { return failures_; }
  const rocksdb::Status& last_failure() const { return last_failure_; }

 private:
  struct Observed {
    Time at{};
    Activity activity = {};
    double reads_per_s = 0;  // of the window that ended then
    double writes_per_s = 0;
  };

  const std::chrono::milliseconds poll_interval_;
  bool is_due_ = false;
  bool is_retried_soon_ = false;  // the last attempt was too early, or brought back a part
  bool retries_by_itself_ = false;
  GenerationId awaited_until_ = 0;
  GenerationId asked_until_ = 0;  // never lowered: a write may have asked as well
  std::chrono::milliseconds failure_pause_{0};
  std::uint64_t failures_ = 0;
  rocksdb::Status last_failure_;
  Observed observed_;
  std::uint64_t diverted_ = 0;  // at the last look
  Time last_diverted_;
  Time last_ended_{};
  double last_took_s_ = 0;
};

}  // namespace spillway::spill
