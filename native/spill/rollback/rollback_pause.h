// Prevents rollbacks while the user has paused RocksDB's background work.
#pragma once

#include "base/mutex.h"

namespace spillway::spill {

// An ingestion waits for flushes with the gate closed, and a paused flush never ends. Therefore no rollback begins
// during a pause, and pause() waits for a rollback in progress.
class RollbackPause {
 public:
  // Held by one rollback. Converts to false during a pause.
  class Pass {
   public:
    explicit Pass(RollbackPause& pause) : pause_(pause) {
      const MutexLock lock(pause.mutex_);
      is_in_ = pause.pauses_ == 0;
      if (is_in_) ++pause.running_;
    }
    ~Pass() {
      if (!is_in_) return;
      const MutexLock lock(pause_.mutex_);
      --pause_.running_;
      pause_.ended_.notify_all();
    }
    Pass(const Pass&) = delete;
    Pass& operator=(const Pass&) = delete;
    explicit operator bool() const { return is_in_; }

   private:
    RollbackPause& pause_;
    bool is_in_ = false;
  };

  // Calls are counted: each needs a resume().
  void pause() {
    const MutexLock lock(mutex_);
    ++pauses_;
    while (running_ > 0) ended_.wait(mutex_);
  }
  void resume() {
    const MutexLock lock(mutex_);
    --pauses_;
  }
  bool is_paused() const {
    const MutexLock lock(mutex_);
    return pauses_ > 0;
  }

 private:
  mutable Mutex mutex_;
  CondVar ended_;
  int pauses_ GUARDED_BY(mutex_) = 0;
  int running_ GUARDED_BY(mutex_) = 0;
};

}  // namespace spillway::spill
