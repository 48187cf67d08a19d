// The state of an opening, and its close, which runs once; later calls return the same status.
#pragma once

#include <rocksdb/status.h>

#include <atomic>
#include <functional>
#include <optional>
#include <utility>

#include "base/at_exit.h"
#include "base/mutex.h"

namespace spillway::spill {

// Thread-safe once the database is started.
class Closing {
 public:
  // Called while the database is opened.
  void set_found_writes(bool has_writes) { has_found_writes_ = has_writes; }
  // `at_exit` runs if the process exits before the database is closed.
  void set_started(std::function<void()> at_exit) {
    is_started_ = true;
    at_exit_.emplace(std::move(at_exit));
  }
  bool is_started() const { return is_started_; }
  bool has_found_writes() const { return has_found_writes_; }  // the spill store had writes before the start

  bool is_closed() const { return is_closed_.load(std::memory_order_relaxed); }
  // Runs `may_close`. If it returns OK, runs `close`, unless that was run before. Returns the status of the one that
  // failed, or the status that `close` returned when it was run.
  rocksdb::Status close(const std::function<rocksdb::Status()>& may_close,
                        const std::function<rocksdb::Status()>& close) {
    const MutexLock lock(mutex_);
    if (is_closed_.load(std::memory_order_relaxed)) return status_;
    if (rocksdb::Status status = may_close(); !status.ok()) return status;
    is_closed_.store(true, std::memory_order_seq_cst);
    at_exit_.reset();
    status_ = close();
    return status_;
  }

 private:
  Mutex mutex_;  // held while closing
  rocksdb::Status status_ GUARDED_BY(mutex_);
  std::atomic<bool> is_closed_{false};
  std::optional<AtExit> at_exit_;
  bool is_started_ = false;
  bool has_found_writes_ = false;
};

}  // namespace spillway::spill
