// Where writers wait that neither store takes now, until something says that there may be room.
#pragma once

#include <chrono>

#include "base/mutex.h"

namespace spillway::spill {

// Thread-safe.
class RoomSignal {
 public:
  // Returns when somebody says that there may be room, and after some milliseconds in any case, which is the upper
  // bound on the delay after a change that nobody signals.
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
