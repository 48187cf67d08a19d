// Replaces LevelDB's log by the value log (WiscKey, section 3.4.2).
//
// LevelDB 1.23 cannot run without a log. It still creates, numbers and removes its log files, but each one holds only
// the position in the value log at which its memtable begins. What LevelDB appends is dropped, and when LevelDB reads a
// log, it is empty. LevelDB removes a log when its memtable is in the tree. So the first log that it reads when a
// database is opened has the position from which the value log is not in the tree.
//
// Two orders hold on the drive. The value log is durable up to a flushed memtable's last record before the memtable's
// table is synced. The newest log's position is durable before a MANIFEST is synced, because that may remove older
// logs.
#pragma once

#include <leveldb/env.h>

#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "base/result.h"
#include "engine/leveldb/info_log.h"
#include "engine/vlog/record.h"

namespace spillway::engine::vlog {

struct LogPositionHooks {
  // The position at which the memtable of a new log begins. Called by the thread that writes, or opens. An error
  // prevents the log, and with it the memtable.
  std::function<Result<Position>()> begin;
  // That log was created with the position `begin`.
  std::function<void(Position begin)> on_new_log;
  // A table of a flushed memtable is about to be synced; called by LevelDB's background thread.
  std::function<leveldb::Status()> before_flush_sync;
};

class LogPositionEnv final : public leveldb::EnvWrapper {
 public:
  // REQUIRES: `target` and `log` outlive it.
  LogPositionEnv(leveldb::Env* target, const LevelDbInfoLog& log, LogPositionHooks hooks);
  ~LogPositionEnv() override;

  leveldb::Status NewSequentialFile(const std::string& path, leveldb::SequentialFile** result) override;
  leveldb::Status NewWritableFile(const std::string& path, leveldb::WritableFile** result) override;

  // The position in the first log that LevelDB read; none if it read none, or if that one was incomplete.
  std::optional<Position> first_position() const { return first_; }

  // Whether a log of LevelDB was created by this class. False if it cannot be read.
  static bool holds_position(const std::string& path);

  // Called by its files.
  leveldb::Status before_flush_sync() const { return hooks_.before_flush_sync(); }
  leveldb::Status sync_newest_log();

 private:
  struct PositionLog;

  const LevelDbInfoLog& log_;
  const LogPositionHooks hooks_;
  bool read_a_log_ = false;
  std::optional<Position> first_;
  std::mutex mutex_;
  std::shared_ptr<PositionLog> newest_;  // guarded by mutex_
};

}  // namespace spillway::engine::vlog
