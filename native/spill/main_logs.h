// RocksDB's logs as files: makes durable what was written to them, beside writes, and knows first when one has failed.
//
// DB::SyncWAL() would do it too. But beside a write that fails it may come to a log that has just failed, and there
// RocksDB 7.8.3 with assertions, as Debian has it, ends the process (WritableFileWriter, AssertFalseAndGetStatus...).
// A full drive must not.
#pragma once

#include <rocksdb/file_system.h>

#include <atomic>
#include <cstddef>
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
  // A log that RocksDB begins. What it writes goes through what is returned.
  std::unique_ptr<rocksdb::FSWritableFile> watch(std::unique_ptr<rocksdb::FSWritableFile> file);

  // Whether RocksDB writes to a log that is watched.
  bool has_any() const;
  // What was appended to any log before is durable when it returns OK. By any thread.
  rocksdb::IOStatus sync();
  // A write to the newest log has failed, or a sync of any. RocksDB may take writes again by then, and its recovery
  // from a full drive does, but that file takes nothing more. The next log is a new file.
  bool have_failed() const { return have_failed_.load(std::memory_order_acquire); }

 private:
  struct Log;
  class File;

  rocksdb::IOStatus sync(Log& log);
  rocksdb::IOStatus sync_names();
  void close(const std::shared_ptr<Log>& log);

  const std::shared_ptr<rocksdb::FileSystem> files_;
  const std::string directory_;
  const bool use_fsync_;
  std::mutex syncing_;                            // one sync at a time; also guards what follows
  std::unique_ptr<rocksdb::FSDirectory> opened_;  // the directory, once it was needed
  mutable std::mutex mutex_;                      // of what follows
  std::vector<std::shared_ptr<Log>> logs_;        // that RocksDB has not closed, oldest first
  std::atomic<bool> have_failed_{false};
};

}  // namespace spillway::spill
