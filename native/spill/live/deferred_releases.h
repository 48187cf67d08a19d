// Dropped generations that no reader uses any more, and that the store is still to release. A release waits for the
// drive, so the thread that used a generation last leaves it to the rollback thread.
#pragma once

#include <vector>

#include "base/mutex.h"
#include "spill/store/store.h"

namespace spillway::spill {

// Thread-safe.
class DeferredReleases {
 public:
  // REQUIRES: while it is true, a thread calls release_all() at intervals.
  void set_deferred(bool is_deferred) {
    const MutexLock lock(mutex_);
    is_deferred_ = is_deferred;
  }
  // Releases the generation in release_all(), or now if releases are not deferred.
  void release(Store& store, GenerationId generation) {
    {
      const MutexLock lock(mutex_);
      if (is_deferred_) return deferred_.push_back(generation);
    }
    store.release(generation);
  }
  void release_all(Store& store) {
    std::vector<GenerationId> all;
    {
      const MutexLock lock(mutex_);
      all.swap(deferred_);
    }
    for (const GenerationId one : all) store.release(one);
  }

 private:
  Mutex mutex_;
  bool is_deferred_ GUARDED_BY(mutex_) = false;
  std::vector<GenerationId> deferred_ GUARDED_BY(mutex_);
};

}  // namespace spillway::spill
