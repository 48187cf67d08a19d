// Reports that a column family's handle is about to be destroyed. That also covers `delete handle`, which does not call
// the database.
#pragma once

#include <rocksdb/db.h>
#include <rocksdb/listener.h>

#include <functional>

#include "base/mutex.h"

namespace spillway::spill {

// One of RocksDB's listeners.
class HandleWatcher final : public rocksdb::EventListener {
 public:
  using OnDeletion = std::function<void(rocksdb::ColumnFamilyHandle* handle)>;

  // `on_deletion` is called by the thread that destroys a handle. The handle is valid until it returns. Not called
  // after stop(). REQUIRES: no handle is being destroyed at stop().
  void start(OnDeletion on_deletion) {
    const MutexLock lock(mutex_);
    on_deletion_ = std::move(on_deletion);
  }
  void stop() { start(nullptr); }

  void OnColumnFamilyHandleDeletionStarted(rocksdb::ColumnFamilyHandle* handle) override {
    OnDeletion on_deletion;
    {
      const MutexLock lock(mutex_);
      on_deletion = on_deletion_;
    }
    if (on_deletion) on_deletion(handle);
  }

 private:
  Mutex mutex_;
  OnDeletion on_deletion_ GUARDED_BY(mutex_);
};

}  // namespace spillway::spill
