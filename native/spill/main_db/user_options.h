// The user's options where RocksDB runs with different ones, so that plain RocksDB finds the user's in the database.
//
// RocksDB's slowdown triggers are raised to its stop triggers (K4), because writes that it would slow down are
// diverted. RocksDB writes these raised triggers into its OPTIONS files; `restore` puts the user's back into their
// text.
#pragma once

#include <rocksdb/options.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>

#include "base/mutex.h"

namespace spillway::spill {

// The points at which RocksDB slows writers down.
struct SlowdownTriggers {
  int l0_files = 0;                 // level0_slowdown_writes_trigger
  std::uint64_t pending_bytes = 0;  // soft_pending_compaction_bytes_limit
};

// The triggers with which RocksDB opens a column family. RocksDB corrects triggers that contradict each other.
SlowdownTriggers slowdown_of(const rocksdb::ColumnFamilyOptions& options);

// The same options with the slowdown triggers raised to the stop triggers.
rocksdb::ColumnFamilyOptions without_slowdown(rocksdb::ColumnFamilyOptions options);

// Thread-safe. Column families are given by name, as in an OPTIONS file.
class UserOptions {
 public:
  using Settings = std::unordered_map<std::string, std::string>;

  explicit UserOptions(rocksdb::DBOptions options) : options_(std::move(options)) {}

  rocksdb::Env* env() const { return options_.env; }
  const rocksdb::DBOptions& database() const { return options_; }  // as the user opened it

  // Adds a column family's options as it is opened. If a family is listed twice its first options count, as in RocksDB.
  void add(const std::string& family, const rocksdb::ColumnFamilyOptions& options);

  // A change of one column family's triggers. It begins before RocksDB is called, because RocksDB writes the OPTIONS
  // file before it returns whether it has accepted the change. The destructor undoes a change that was not kept. One
  // change at a time: others wait.
  class SCOPED_CAPABILITY Change {
   public:
    Change(UserOptions& options, std::string family) ACQUIRE(options.changing_);
    ~Change() RELEASE();
    Change(const Change&) = delete;
    Change& operator=(const Change&) = delete;

    void set(SlowdownTriggers triggers);
    // Returns the `settings` of SetOptions to pass to RocksDB. `now`: the family's options as the user knows them.
    // Settings that RocksDB cannot parse are returned unchanged, and RocksDB refuses them.
    Settings set(const rocksdb::ColumnFamilyOptions& now, const Settings& settings);
    void keep() { is_kept_ = true; }

   private:
    UserOptions& options_;
    const std::string family_;
    const MutexLock one_at_a_time_;
    const std::optional<SlowdownTriggers> before_;
    bool is_kept_ = false;
  };
  // Held while RocksDB writes an OPTIONS file that must not contain a change that may be undone.
  Mutex& one_at_a_time() RETURN_CAPABILITY(changing_) { return changing_; }

  void restore(rocksdb::DBOptions* options) const;
  void restore(const std::string& family, rocksdb::ColumnFamilyOptions* options) const;
  // `text`: that of an OPTIONS file. Returns it with the user's options, and without the guard's sections.
  std::string restore(const std::string& text) const;

 private:
  std::optional<SlowdownTriggers> of(const std::string& family) const EXCLUDES(mutex_);
  void set(const std::string& family, std::optional<SlowdownTriggers> triggers) EXCLUDES(mutex_);

  const rocksdb::DBOptions options_;
  Mutex changing_ ACQUIRED_BEFORE(mutex_);  // held by a Change
  mutable Mutex mutex_;
  std::map<std::string, SlowdownTriggers> slowdown_ GUARDED_BY(mutex_);
};

}  // namespace spillway::spill
