// Places in the store of dropped generations that no reader uses any more. To release one takes the drive, so the
// thread that reads or commits last leaves that to the rollback thread.
#pragma once

#include <vector>

#include "base/mutex.h"
#include "spill/store/store.h"

namespace spillway::spill {

// Thread-safe.
class UnreadPlaces {
 public:
  // Whether release_all() is called again and again.
  void set_deferred(bool is_deferred) {
    const MutexLock lock(mutex_);
    is_deferred_ = is_deferred;
  }
  // Releases the place later, or now if nothing is deferred.
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
