// Wakes writers that neither store accepts when room may have become available.
#pragma once

#include <chrono>

#include "base/mutex.h"

namespace spillway::spill {

// Thread-safe.
class RoomSignal {
 public:
  // Returns when notify() is called, or after some milliseconds. That time is the upper bound on the delay after a
  // missed wake-up.
  void wait() {
    constexpr std::chrono::milliseconds kLongest{2};
    const MutexLock lock(mutex_);
    room_.wait_for(mutex_, kLongest);
  }
  void notify() { room_.notify_all(); }

 private:
  Mutex mutex_;
  CondVar room_;
};

}  // namespace spillway::spill
