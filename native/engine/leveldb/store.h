// An open LevelDB with its Env, its info log and its stalls: the common part of the engines leveldb and leveldb-vlog.
#pragma once

#include <leveldb/db.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "base/result.h"
#include "engine/engine.h"
#include "engine/engine_kind.h"
#include "engine/leveldb/env.h"
#include "engine/leveldb/info_log.h"
#include "engine/leveldb/options.h"
#include "engine/writer_stalls.h"

namespace spillway::engine {

// LevelDB's fixed limits (db/dbformat.h): from 8 L0 files on each write is put off for a millisecond, at 12 it waits;
// and it waits where the memtable is full and the one before it is not flushed yet.
// NOLINTBEGIN(readability-identifier-naming): enumerators, of a type that all engines share.
struct LevelDbCause {
  static constexpr StallCause memtable = 1;
  static constexpr StallCause l0 = 2;
  static constexpr std::array names = {"none", "memtable", "l0"};
};
// NOLINTEND(readability-identifier-naming)

class LevelDbStore {
 public:
  // REQUIRES: what `spec` points to outlives the store.
  LevelDbStore(const EngineSpec& spec, LevelDbOptions options);
  ~LevelDbStore() { close(); }
  LevelDbStore(const LevelDbStore&) = delete;
  LevelDbStore& operator=(const LevelDbStore&) = delete;

  // Puts another Env between LevelDB and this one's. REQUIRES: not open yet.
  using WrapEnv = std::function<std::unique_ptr<leveldb::Env>(LevelDbEnv& inner, const LevelDbInfoLog& log)>;
  void wrap_env(const WrapEnv& wrap);

  Status open();
  void close();

  leveldb::DB& db() { return *db_; }
  LevelDbEnv& env() { return *env_; }
  const LevelDbOptions& options() const { return options_; }
  WriterStalls& stalls() { return stalls_; }

  // Writes the batch; a stall of this writer ends with it.
  Status write(leveldb::WriteBatch* batch);
  // Into L0, and waits until it is there.
  Status flush();
  // Returns when the background thread has nothing to do, or soon after `stop` is set.
  Status wait_for_compaction(const std::atomic<bool>& stop);

  void observe(Observation& seen);
  void add_statistics(std::map<std::string, std::uint64_t>& figures);
  Status to_status(const leveldb::Status& status, const std::string& what) const;

 private:
  void begin_stall(StallState state, StallCause cause);
  void end_stall();
  std::uint64_t number_property(const std::string& name);

  const std::string directory_;
  LevelDbOptions options_;
  WriterStalls stalls_;
  LevelDbInfoLog log_;
  std::unique_ptr<LevelDbEnv> env_;
  std::unique_ptr<leveldb::Env> outer_;  // null: none
  std::unique_ptr<leveldb::DB> db_;
};

// Of the library in this process: {"leveldb": "1.23"}.
StringMap leveldb_versions();

}  // namespace spillway::engine
