// RocksDB's logs as files: syncs them concurrently with writes, and detects a failed log before RocksDB does.
//
// DB::SyncWAL() is not used: concurrently with a failing write it may reach a log that has just failed, and
// RocksDB 7.8.3 with assertions, as in Debian, then ends the process (WritableFileWriter, "Writer has previous error").
// A full drive must not end the process.
#pragma once

#include <rocksdb/file_system.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/mutex.h"

namespace spillway::spill {

// REQUIRES: outlives the files that it watches.
class MainLogs {
 public:
  // `directory`: where RocksDB creates its logs.
  MainLogs(std::shared_ptr<rocksdb::FileSystem> files, const std::string& directory, bool use_fsync);
  ~MainLogs();

  bool is_log(const std::string& path) const;
  // Registers a log that RocksDB begins. RocksDB writes through the returned file.
  std::unique_ptr<rocksdb::FSWritableFile> watch(const std::string& path,
                                                 std::unique_ptr<rocksdb::FSWritableFile> file);
  // Unregisters a log that RocksDB has deleted, archived or recycled. Everything in it is in tables.
  void is_gone(const std::string& path) EXCLUDES(mutex_);

  // Whether RocksDB writes to a log that is watched.
  bool has_any() const EXCLUDES(mutex_);
  // OK: everything that was appended to any log before the call is durable. Callable by any thread. After a failed sync
  // of a log, no sync succeeds until everything in that log is in tables: data may be lost, and the operating system
  // does not report an error twice. RocksDB gets the same error for its next append to that log.
  rocksdb::IOStatus sync() EXCLUDES(syncing_, mutex_);
  // RocksDB has had an error of the log that it writes to. It may accept writes again, and does so after it has
  // recovered from a full drive, but that file accepts no more appends. The next log is a new file.
  bool have_failed() const { return have_failed_.load(std::memory_order_acquire); }
  // Why the log that RocksDB writes to has failed; OK if it has not.
  rocksdb::IOStatus failure() const EXCLUDES(mutex_);

 private:
  struct Log;
  class File;

  rocksdb::IOStatus sync(Log& log) REQUIRES(syncing_) EXCLUDES(mutex_);
  rocksdb::IOStatus sync_names() REQUIRES(syncing_);
  void fail(Log& log, const rocksdb::IOStatus& why) EXCLUDES(mutex_);  // RocksDB has the error
  // A sync has failed. `is_reported`: RocksDB has its error.
  void lose(Log& log, const rocksdb::IOStatus& why, bool is_reported) EXCLUDES(mutex_);
  void close(const std::shared_ptr<Log>& log) EXCLUDES(mutex_);
  void check_newest() REQUIRES(mutex_);

  const std::shared_ptr<rocksdb::FileSystem> files_;
  const std::string directory_;
  const std::string normal_directory_;
  const bool use_fsync_;
  Mutex syncing_ ACQUIRED_BEFORE(mutex_);                              // held by the only sync in progress
  std::unique_ptr<rocksdb::FSDirectory> opened_ GUARDED_BY(syncing_);  // the directory, once it was needed
  std::uint64_t named_ GUARDED_BY(syncing_) = 0;  // the names of logs up to this number are durable
  mutable Mutex mutex_;
  std::uint64_t watched_ GUARDED_BY(mutex_) = 0;               // the number of the newest log
  std::vector<std::shared_ptr<Log>> logs_ GUARDED_BY(mutex_);  // not closed by RocksDB, oldest first
  std::vector<std::shared_ptr<Log>> lost_ GUARDED_BY(mutex_);  // closed since, after a failed sync
  std::atomic<bool> have_failed_{false};
};

}  // namespace spillway::spill
