// The files under one directory as a drive that fails, delays and loses power.
#pragma once

#include <rocksdb/io_status.h>

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <shared_mutex>
#include <string>

#include "base/result.h"
#include "faults/drive_journal.h"
#include "faults/fault_rules.h"

namespace spillway::faults {

rocksdb::IOStatus to_io_status(const Status& status);

// The journal and the fault rule, shared by the file system and its files. Thread-safe.
class Drive {
 public:
  // REQUIRES: `root` is absolute and normalized.
  Drive(std::string root, DriveJournal journal) : root_(std::move(root)), journal_(std::move(journal)) {}

  // The name, relative to the root, of a file under the root that holds data.
  std::optional<std::string> name_of(const std::string& path) const;
  bool is_root(const std::string& path) const;

  void set_fault_rule(FileFaultRule rule);
  void cut_power();
  bool is_off();

  // Applies the rule, and waits for its delay. `grows`: bytes by which a write may lengthen the file.
  FileFault fault_of(Action action, const std::string& name, std::uint64_t bytes, std::uint64_t grows = 0);
  // The error that a read returns instead of its bytes; OK: it may read.
  rocksdb::IOStatus fault_of_read(const std::string& name, std::uint64_t bytes);

  // Changes the files and the journal under one lock. IOError after the power was cut.
  template <typename Work>
  rocksdb::IOStatus change(Work work) {
    const std::unique_lock lock(journal_mutex_);
    if (off_) return power_is_off();
    return work(journal_);
  }

 private:
  static rocksdb::IOStatus power_is_off();

  const std::string root_;
  std::shared_mutex rule_mutex_;
  std::shared_ptr<const FileFaultRule> rule_;  // guarded by rule_mutex_
  std::mutex journal_mutex_;
  DriveJournal journal_;  // guarded by journal_mutex_
  bool off_ = false;      // guarded by journal_mutex_
};

}  // namespace spillway::faults
