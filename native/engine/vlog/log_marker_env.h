// LevelDB without its log: the value log is the log (WiscKey, section 3.4.2).
//
// LevelDB 1.23 cannot be told to keep none. Its log files stay, with the numbers and the life that LevelDB gives them,
// but each one holds only the position in the value log at which its memtable begins; what LevelDB appends is dropped,
// and when LevelDB reads a log, it is empty. LevelDB removes a log when its memtable is in the tree, so the first log
// that it reads when a database is opened says from where on the value log is not in the tree.
//
// Two orders hold on the drive. Before a flushed memtable's table is synced, the value log is, as far as the memtable
// refers to it. Before a MANIFEST is synced, which may end the life of older logs, the newest log's position is.
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

struct LogMarkerHooks {
  // The position at which the memtable begins that LevelDB makes a log for; called by the thread that writes, or opens.
  // An error keeps the log from being made, and with it the memtable.
  std::function<Result<Position>()> begin;
  // That log is there. `begin` is what it holds.
  std::function<void(Position begin)> on_new_log;
  // A table of a flushed memtable is about to be synced; called by LevelDB's background thread.
  std::function<leveldb::Status()> before_flush_sync;
};

class LogMarkerEnv final : public leveldb::EnvWrapper {
 public:
  // REQUIRES: `target` and `log` outlive it.
  LogMarkerEnv(leveldb::Env* target, const LevelDbInfoLog& log, LogMarkerHooks hooks);
  ~LogMarkerEnv() override;

  leveldb::Status NewSequentialFile(const std::string& path, leveldb::SequentialFile** result) override;
  leveldb::Status NewWritableFile(const std::string& path, leveldb::WritableFile** result) override;

  // What the first log held that LevelDB read; none: it read none, or that one was not whole.
  std::optional<Position> first_position() const { return first_; }

  // Whether a log of LevelDB's is one that this made. What cannot be read is not.
  static bool is_marker(const std::string& path);

  // For its files.
  leveldb::Status before_flush_sync() const { return hooks_.before_flush_sync(); }
  leveldb::Status sync_newest_log();

 private:
  struct Marker;

  const LevelDbInfoLog& log_;
  const LogMarkerHooks hooks_;
  bool read_a_log_ = false;
  std::optional<Position> first_;
  std::mutex mutex_;
  std::shared_ptr<Marker> newest_;  // guarded by mutex_
};

}  // namespace spillway::engine::vlog
