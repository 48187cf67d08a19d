// The thread that brings diverted writes back, when the policy decides so or a caller requests it.
#pragma once

#include <rocksdb/status.h>

#include <atomic>
#include <cstdint>
#include <thread>
#include <utility>

#include "base/mutex.h"
#include "spill/rollback/bring_back.h"
#include "spill/rollback/rollback_scheduler.h"

namespace spillway::spill {

// Thread-safe.
class RollbackThread {
 public:
  RollbackThread(const RollbackContext& context, BringBack& bring_back)
      : context_(context),
        bring_back_(bring_back),
        scheduler_(std::chrono::milliseconds(context.options.poll_ms), std::chrono::steady_clock::now()) {}
  ~RollbackThread() { stop(); }
  RollbackThread(const RollbackThread&) = delete;
  RollbackThread& operator=(const RollbackThread&) = delete;

  void start();
  void stop();  // REQUIRES: MainDb::stop() was called, so that no caller waits for a rollback

  // See RollbackScheduler. Neither blocks.
  void wake(bool insists = false);
  void ask_for(GenerationId last);
  // Brings back everything that is live now, and waits until it is durable in RocksDB.
  rocksdb::Status bring_back_all();
  // The number of failed rollbacks, and the last error.
  std::pair<std::uint64_t, rocksdb::Status> failures();
  // Whether a run is on its way back, in parts.
  bool is_under_way() const { return bring_back_.is_under_way(); }
  // Whether a rollback is in progress because the store is full or nearly so. If so, there will be room soon.
  bool is_making_room() const { return is_making_room_.load(std::memory_order_acquire); }

 private:
  void run();
  RollbackState observe();
  RollbackScheduler::Outcome bring_back_next();
  rocksdb::Status bring_back_until(GenerationId last);

  const RollbackContext& context_;
  BringBack& bring_back_;
  Mutex mutex_;
  CondVar wake_;
  CondVar ended_;  // signalled at the end of each attempt
  RollbackScheduler scheduler_ GUARDED_BY(mutex_);
  std::atomic<bool> is_making_room_{false};
  std::thread thread_;
};

}  // namespace spillway::spill
