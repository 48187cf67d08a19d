// Makes a full drive an error for the writers of a RocksDB, at once.
#pragma once

#include <rocksdb/listener.h>

namespace spillway::engine {

// RocksDB would wait until there is space on the drive, and from 8.8 on its writers wait with it (DBImpl::DelayWrite).
class FullDriveListener final : public rocksdb::EventListener {
 public:
  void OnErrorRecoveryBegin(rocksdb::BackgroundErrorReason /*reason*/, rocksdb::Status error,
                            bool* auto_recovery) override {
    if (error.IsNoSpace()) *auto_recovery = false;
  }
};

}  // namespace spillway::engine
