// A rocksdb::FileSystem on real files under one directory. It fails and delays operations by a rule, and records what
// was synced, so that power_loss() can compute what a drive would have kept.
//
// Both of the accelerator's stores reach their files through RocksDB's FileSystem, so one of these in the Env serves
// both. Files outside the directory, RocksDB's locks and its info logs are forwarded unchanged. Nothing is synced to
// the host's drive: a sync only makes data durable for power_loss(). Direct I/O is disabled.
#pragma once

#include <rocksdb/file_system.h>

#include <memory>
#include <string>

#include "base/result.h"
#include "faults/fault_rules.h"
#include "spill/compat/file_syncing_wrapper.h"

namespace spillway::faults {

class FaultyFileSystem : public spill::FileSyncingWrapper {
 public:
  // REQUIRES: no other process, and no other FaultyFileSystem, writes under `root`.
  static Result<std::shared_ptr<FaultyFileSystem>> open(
      const std::string& root, const std::shared_ptr<rocksdb::FileSystem>& host = rocksdb::FileSystem::Default());

  // Applies the rule from now on. An empty rule affects nothing. Thread-safe.
  virtual void set_fault_rule(FileFaultRule rule) = 0;
  // From now on nothing under the root changes any more, and every operation fails. The store above can be closed, and
  // power_loss() sees the files as of this moment. Thread-safe.
  virtual void cut_power() = 0;

 protected:
  using FileSyncingWrapper::FileSyncingWrapper;
};

}  // namespace spillway::faults
