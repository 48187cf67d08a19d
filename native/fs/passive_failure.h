// The first failure of a passive volume, whose calls do not fail (VolumeOptions::passive). Thread-safe.
#pragma once

#include <atomic>
#include <mutex>
#include <utility>

#include "base/result.h"

namespace spillway::fs {

class PassiveFailure {
 public:
  explicit PassiveFailure(bool passive) : passive_(passive) {}

  // After the first failure the volume charges nothing any more.
  bool has_failed() const { return has_failed_.load(std::memory_order_acquire); }

  // The status to return to the caller. For a passive volume a failure becomes OK, and the first one is kept.
  Status status_for_caller(Status status) {
    if (status || !passive_) return status;
    const std::lock_guard lock(mutex_);
    if (first_) first_ = std::move(status);
    has_failed_.store(true, std::memory_order_release);
    return Status::ok();
  }

  Status first() const {
    const std::lock_guard lock(mutex_);
    return first_;
  }

 private:
  const bool passive_;
  std::atomic<bool> has_failed_ = false;
  mutable std::mutex mutex_;
  Status first_;  // guarded by mutex_
};

}  // namespace spillway::fs
