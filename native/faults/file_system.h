// A rocksdb::FileSystem on real files under one directory that fails and delays what it is asked for, and remembers
// what was synced, so that power_loss() can say what a drive would have kept.
//
// Both of the accelerator's stores reach their files through RocksDB's file system, so one of these beneath the Env is
// beneath both. Files outside the directory, RocksDB's locks and its info logs pass through untouched. Nothing is
// synced to the host's drive: a sync makes durable what power_loss() keeps, and costs nothing else. Direct I/O is
// switched off.
#pragma once

#include <rocksdb/file_system.h>

#include <memory>
#include <string>

#include "base/result.h"
#include "faults/fault_rules.h"

namespace spillway::faults {

class FaultyFileSystem : public rocksdb::FileSystemWrapper {
 public:
  // REQUIRES: no other process, and no other of these, writes under `root`.
  static Result<std::shared_ptr<FaultyFileSystem>> open(
      const std::string& root, const std::shared_ptr<rocksdb::FileSystem>& host = rocksdb::FileSystem::Default());

  // From now on; an empty one leaves everything alone. Thread-safe.
  virtual void set_fault_rule(FaultRule rule) = 0;
  // From now on nothing changes under the root any more, and everything asked for fails: the store above can be closed,
  // and power_loss() sees the files as they were at this moment. Thread-safe.
  virtual void cut_power() = 0;

 protected:
  using FileSystemWrapper::FileSystemWrapper;
};

}  // namespace spillway::faults
