// The user's options where RocksDB runs with others, so that RocksDB without Spillway finds them as they were.
//
// RocksDB's slowdown triggers are raised to its stop triggers (K4), because writes that it would slow down are
// diverted. RocksDB writes these raised triggers into its OPTIONS files; `restore` puts the user's back into their
// text.
#pragma once

#include <rocksdb/options.h>

#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>

#include "base/mutex.h"

namespace spillway::spill {

// Where RocksDB slows writers down.
struct SlowdownTriggers {
  int l0_files = 0;                 // level0_slowdown_writes_trigger
  std::uint64_t pending_bytes = 0;  // soft_pending_compaction_bytes_limit
};

// The triggers with which RocksDB would open a column family: it corrects those that contradict each other.
SlowdownTriggers slowdown_of(const rocksdb::ColumnFamilyOptions& options);

// The same options with the slowdown where RocksDB's stop is.
rocksdb::ColumnFamilyOptions without_slowdown(rocksdb::ColumnFamilyOptions options);

// Thread-safe. Column families by their names, as in an OPTIONS file.
class UserOptions {
 public:
  using Settings = std::unordered_map<std::string, std::string>;

  explicit UserOptions(rocksdb::DBOptions options) : options_(std::move(options)) {}

  rocksdb::Env* env() const { return options_.env; }
  const rocksdb::DBOptions& database() const { return options_; }  // as it was opened

  // Adds a column family's options as it is opened. One that is listed twice has its first options, as in RocksDB.
  void add(const std::string& family, const rocksdb::ColumnFamilyOptions& options);

  // One column family's triggers are about to change: RocksDB writes the OPTIONS file before it says whether they have.
  // A change that is not kept is undone. One at a time: others wait.
  class Change {
   public:
    Change(UserOptions& options, std::string family);
    ~Change();
    Change(const Change&) = delete;
    Change& operator=(const Change&) = delete;

    void set(SlowdownTriggers triggers);
    // `settings` of SetOptions, as RocksDB has to be given them. `now` are the family's options as the user knows them.
    // Settings that RocksDB cannot read stay as they are, for RocksDB to refuse.
    Settings set(const rocksdb::ColumnFamilyOptions& now, const Settings& settings);
    void keep() { is_kept_ = true; }

   private:
    UserOptions& options_;
    const std::string family_;
    const std::lock_guard<std::mutex> one_at_a_time_;
    const std::optional<SlowdownTriggers> before_;
    bool is_kept_ = false;
  };
  // RocksDB writes an OPTIONS file in `action` that must not have a change in it that may be undone.
  std::mutex& one_at_a_time() { return changing_; }

  void restore(rocksdb::DBOptions* options) const;
  void restore(const std::string& family, rocksdb::ColumnFamilyOptions* options) const;
  // `text` of an OPTIONS file, without the guard's sections.
  std::string restore(const std::string& text) const;

 private:
  std::optional<SlowdownTriggers> of(const std::string& family) const;
  void set(const std::string& family, std::optional<SlowdownTriggers> triggers);

  const rocksdb::DBOptions options_;
  std::mutex changing_;
  mutable Mutex mutex_;
  std::map<std::string, SlowdownTriggers> slowdown_ GUARDED_BY(mutex_);
};

}  // namespace spillway::spill
