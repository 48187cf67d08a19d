// How long one write waits, and for what. Its causes are those of SPILLWAY_STATISTICS_BY_CAUSE.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>

#include "spill/report/telemetry.h"

namespace spillway::spill {

enum class WaitCause : std::uint8_t {
  rocksdb,       // neither store takes it
  rollback,      // only a rollback can let it through, or one is about to
  commits,       // the drive, or other writes and calls that hold commits up
  low_priority,  // RocksDB's pacing of writes of low priority
  pacing         // slowed to what leaves the spill store
};

// One thread owns it. A write is counted as one that waits when it begins to, under its first cause; its time is added
// to the counts by report().
class WriteWaits {
 public:
  using Clock = std::chrono::steady_clock;

  explicit WriteWaits(Counts& counts) : counts_(&counts) {}

  // From now on it waits for this, whatever it has waited for.
  void wait_for(WaitCause cause) {
    count(cause);
    waits_for_rollback(cause == WaitCause::rollback);
    const auto now = Clock::now();
    if (since_) elapsed(cause_) += now - last_;
    if (!since_) since_ = now;
    cause_ = cause;
    last_ = now;
  }
  // It has waited for this. Ignored where it is waiting for something else at the same time.
  void add(WaitCause cause, Clock::duration waited) {
    if (waited.count() == 0) return;
    count(cause);
    if (!since_) elapsed(cause) += waited;
  }
  void end() {
    if (!since_) return;
    elapsed(cause_) += Clock::now() - last_;
    since_.reset();
    waits_for_rollback(false);
  }
  // Since when it waits, without a pause.
  const std::optional<Clock::time_point>& since() const { return since_; }

  // For a write that is a part of `whole`: what that has counted is not counted again.
  void begin_part_of(const WriteWaits& whole) { is_counted_ = whole.is_counted_; }
  // REQUIRES: end() of the part was called.
  void take_part(const WriteWaits& part) {
    is_counted_ = part.is_counted_;
    if (since_) return;  // its own wait has this time
    for (std::size_t i = 0; i < elapsed_.size(); ++i) elapsed_[i] += part.elapsed_[i];
  }

  // Adds the time of every cause, and their sum. REQUIRES: end() was called.
  void report() const {
    add_to(counts_->wait_rocksdb_us, WaitCause::rocksdb);
    add_to(counts_->wait_rollback_us, WaitCause::rollback);
    add_to(counts_->wait_commits_us, WaitCause::commits);
    add_to(counts_->wait_low_priority_us, WaitCause::low_priority);
    add_to(counts_->wait_pacing_us, WaitCause::pacing);
  }

 private:
  void count(WaitCause cause) {
    if (is_counted_) return;
    is_counted_ = true;
    increment(counts_->waits);
    switch (cause) {
      case WaitCause::rocksdb:
        return increment(counts_->waits_rocksdb);
      case WaitCause::rollback:
        return increment(counts_->waits_rollback);
      case WaitCause::commits:
        return increment(counts_->waits_commits);
      case WaitCause::low_priority:
        return increment(counts_->waits_low_priority);
      case WaitCause::pacing:
        return increment(counts_->waits_pacing);
    }
  }
  void waits_for_rollback(bool does) {
    if (std::exchange(waits_for_rollback_, does) == does) return;
    counts_->waiting_for_rollback.fetch_add(does ? 1 : -1, std::memory_order_relaxed);
  }
  Clock::duration& elapsed(WaitCause cause) { return elapsed_[static_cast<std::size_t>(cause)]; }
  void add_to(std::atomic<std::uint64_t>& count_us, WaitCause cause) const {
    const auto waited = elapsed_[static_cast<std::size_t>(cause)];
    const auto us = static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::microseconds>(waited).count());
    if (us == 0) return;
    increment(count_us, us);
    increment(counts_->wait_us, us);
  }

  Counts* counts_;
  bool is_counted_ = false;
  bool waits_for_rollback_ = false;
  WaitCause cause_ = WaitCause::rocksdb;
  std::optional<Clock::time_point> since_;
  Clock::time_point last_{};  // when the present cause began
  std::array<Clock::duration, 5> elapsed_{};
};

}  // namespace spillway::spill
