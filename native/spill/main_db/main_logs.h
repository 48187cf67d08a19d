// RocksDB's logs as files: syncs them concurrently with writes, and detects a failed log before RocksDB does.
//
// DB::SyncWAL() is not used: concurrently with a failing write it may reach a log that has just failed, and
// RocksDB 7.8.3 with assertions, as in Debian, then ends the process (WritableFileWriter, "Writer has previous error").
// A full drive must not end the process.
#pragma once

#include <rocksdb/file_system.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace spillway::spill {

// Outlives the files that it watches.
class MainLogs {
 public:
  // `directory`: where RocksDB makes its logs.
  MainLogs(std::shared_ptr<rocksdb::FileSystem> files, const std::string& directory, bool use_fsync);
  ~MainLogs();

  bool is_log(const std::string& path) const;
  // Registers a log that RocksDB begins. RocksDB writes through the returned file.
  std::unique_ptr<rocksdb::FSWritableFile> watch(const std::string& path,
                                                 std::unique_ptr<rocksdb::FSWritableFile> file);
  // Unregisters a log that RocksDB has deleted, archived or recycled: everything in it is in tables.
  void is_gone(const std::string& path);

  // Whether RocksDB writes to a log that is watched.
  bool has_any() const;
  // What was appended to any log before is durable when it returns OK. By any thread. Where a sync has failed, no later
  // one is a success until everything of that log is in tables: what it was to keep may be lost, and no error is
  // reported twice. RocksDB gets the same error for its next append to that log.
  rocksdb::IOStatus sync();
  // RocksDB knows of an error of the log that it writes to. It may take writes again by then, and its recovery from a
  // full drive does, but that file takes nothing more. The next log is a new file.
  bool have_failed() const { return have_failed_.load(std::memory_order_acquire); }
  // Why the log that RocksDB writes to has failed; OK if it has not.
  rocksdb::IOStatus failure() const;

 private:
  struct Log;
  class File;

  rocksdb::IOStatus sync(Log& log);
  rocksdb::IOStatus sync_names();
  void fail(Log& log, const rocksdb::IOStatus& why);                 // RocksDB knows
  static void note_failure(Log& log, const rocksdb::IOStatus& why);  // REQUIRES: mutex_
  void lose(Log& log, const rocksdb::IOStatus& why, bool is_told);   // of a sync; `is_told`: RocksDB knows
  rocksdb::IOStatus why_of(const Log& log) const;
  void close(const std::shared_ptr<Log>& log);
  void look_at_newest();  // REQUIRES: mutex_

  const std::shared_ptr<rocksdb::FileSystem> files_;
  const std::string directory_;
  const std::string normal_directory_;
  const bool use_fsync_;
  std::mutex syncing_;                            // one sync at a time; also guards what follows
  std::unique_ptr<rocksdb::FSDirectory> opened_;  // the directory, once it was needed
  mutable std::mutex mutex_;                      // of what follows
  std::vector<std::shared_ptr<Log>> logs_;        // that RocksDB has not closed, oldest first
  std::vector<std::shared_ptr<Log>> lost_;        // closed since, of which a sync has failed
  std::atomic<bool> have_failed_{false};
};

}  // namespace spillway::spill
