// LevelDB's seam to the operating system on a Volume: contents in an ordinary directory, through the host's own file
// system; time and wear on the Volume's drive. The counterpart of fs/rocksdb/file_system.h.
//
// Causes: the log, MANIFEST and CURRENT by the file's name, tables by what the info log says of them; reads by the
// thread, for LevelDB's only background thread flushes and compacts and nothing else. All access is buffered: LevelDB
// knows no direct I/O. A write that LevelDB puts off for a millisecond is seen here, too: it sleeps through the Env.
#pragma once

#include <leveldb/env.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "engine/leveldb/info_log.h"
#include "fs/volume.h"
#include "fs/write_counts.h"

namespace spillway::engine {

struct LevelDbEnvOptions {
  fs::Volume* volume = nullptr;       // null: no drive, only the host's files. REQUIRES: outlives the env and its files
  bool host_sync = true;              // also sync the host's files; without a volume always
  fs::WriteCounts* writes = nullptr;  // of the host's files, by cause; may be null. REQUIRES: as of volume
  // Called before and after the millisecond by which LevelDB delays a writer.
  std::function<void()> on_delay_begin;
  std::function<void()> on_delay_end;
  // Called by a writer for which a new log was made: its wait for a memtable is over.
  std::function<void()> on_new_log;
};

class LevelDbEnv final : public leveldb::EnvWrapper {
 public:
  // REQUIRES: `log` outlives the env.
  LevelDbEnv(const LevelDbInfoLog& log, LevelDbEnvOptions options);
  ~LevelDbEnv() override;

  leveldb::Status NewSequentialFile(const std::string& path, leveldb::SequentialFile** result) override;
  leveldb::Status NewRandomAccessFile(const std::string& path, leveldb::RandomAccessFile** result) override;
  leveldb::Status NewWritableFile(const std::string& path, leveldb::WritableFile** result) override;
  leveldb::Status NewAppendableFile(const std::string& path, leveldb::WritableFile** result) override;
  leveldb::Status GetChildren(const std::string& directory, std::vector<std::string>* names) override;
  leveldb::Status RemoveFile(const std::string& path) override;
  leveldb::Status RenameFile(const std::string& from, const std::string& to) override;
  void Schedule(void (*function)(void*), void* argument) override;
  void SleepForMicroseconds(int micros) override;

  // Whether background work is queued or running.
  bool busy() const { return *scheduled_ > 0; }
  // Whether the drive had no space for a write since the env was made.
  bool drive_full() const { return drive_full_; }
  // Bytes of tables that are on the drive: those written and not removed.
  std::uint64_t table_bytes() const { return table_bytes_; }

  // For its files. Converts `status`, and remembers a full drive.
  leveldb::Status to_leveldb_status(const Status& status, const std::string& path);
  void add_table_bytes(std::int64_t bytes) { table_bytes_ += static_cast<std::uint64_t>(bytes); }

 private:
  leveldb::Status wrap_writer(const std::string& path, leveldb::WritableFile* made, std::uint64_t offset,
                              leveldb::WritableFile** result);
  fs::Cause cause_of(const std::string& path) const;
  std::uint64_t host_size(const std::string& path);

  const LevelDbInfoLog& log_;
  const LevelDbEnvOptions options_;
  const std::shared_ptr<std::atomic<int>> scheduled_ = std::make_shared<std::atomic<int>>(0);
  std::atomic<bool> drive_full_{false};
  std::atomic<std::uint64_t> table_bytes_{0};
};

}  // namespace spillway::engine
