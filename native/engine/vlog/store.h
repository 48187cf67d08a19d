// LevelDB's tree and a value log, and the order of writes to them.
//
// A write goes to the log's head first and then to the tree, in groups with one leader. So the tree is always a prefix
// of the log. LevelDB's own log contains only the position in the value log at which its memtable begins
// (log_position_env.h). After a crash everything after that position is written to the tree again.
//
// The collector's moves go through the same queue. A record is moved only if its key was not written since the
// collector read the tree. So what is later in the log is newer, and recovery needs no other rule.
#pragma once

#include <leveldb/iterator.h>
#include <leveldb/write_batch.h>

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "base/result.h"
#include "engine/engine.h"
#include "engine/engine_kind.h"
#include "engine/leveldb/store.h"
#include "engine/vlog/log_position_env.h"
#include "engine/vlog/value_log.h"
#include "engine/vlog/write_queue.h"

namespace spillway::engine::vlog {

struct StoreOptions {
  std::uint64_t segment_bytes = 0;
  std::uint64_t min_value_bytes = 0;  // smaller values stay in the tree
  std::uint64_t prefetch = 1;         // values that a scan reads together
};

// The tree as of one time, for many look-ups. LevelDB counts a get as a seek of the first table that it searches in
// vain, and compacts a table after a hundred such seeks. A collector that used a get for each record would write more
// to the tree than it saves in the log. For iterators LevelDB counts rarely: one key in a MiB of keys and values, on
// average, and only if two tables may hold it. Source: LevelDB 1.23, db/version_set.cc (UpdateStats, RecordReadSample),
// db/db_iter.cc (ParseKey), db/dbformat.h (kReadBytesPeriod).
class TreeView {
 public:
  // REQUIRES: the tree is open, and outlives it.
  explicit TreeView(LevelDbStore& tree);
  ~TreeView();
  TreeView(TreeView&&) noexcept = default;
  // Whether the tree has exactly this address for the key.
  Result<bool> is_live(std::string_view key, const Address& address);

 private:
  LevelDbStore& tree_;
  std::unique_ptr<leveldb::Iterator> iterator_;
};

class Store {
 public:
  // REQUIRES: the objects to which `spec` points outlive the store.
  Store(const EngineSpec& spec, LevelDbOptions leveldb, StoreOptions options);
  ~Store() { (void)close(); }
  Store(const Store&) = delete;
  Store& operator=(const Store&) = delete;

  Status open();
  // Also returns an error after which writes were refused.
  Status close();

  Status write(std::span<const Write> writes);
  Result<bool> get(std::string_view key, std::string* value);
  Result<std::uint64_t> scan(std::string_view key, std::uint64_t nexts, Direction direction, Pairs* pairs);
  // Returns when everything that was written before is in the tree's tables.
  Status flush();

  // --- For the collector

  // Until move() is called, records which of the keys are written.
  void watch(std::unordered_set<std::string> keys);
  // The current tree.
  TreeView view() { return TreeView(tree_); }
  // Appends the pairs whose keys were not written since watch(), and ends the watch.
  Status move(std::span<const Write> pairs);
  // The position from which the log is not in the tree's tables.
  Position durable() const;

  ValueLog& log() { return log_; }
  LevelDbStore& tree() { return tree_; }
  std::uint64_t appended_bytes() const { return appended_bytes_; }
  std::uint64_t moved_bytes() const { return moved_bytes_; }
  void add_statistics(std::map<std::string, std::uint64_t>& figures);

 private:
  struct PendingValue {  // a pair of a scan whose value is not read yet
    std::string key;
    std::string held;  // what the tree has for it
    std::string value;
  };

  Status check_kind() const;
  LogPositionHooks hooks();
  Result<Position> recovery_begin(const LogPositionEnv& env) const;
  Status replay(Position begin);
  void commit_group(std::span<Commit*> group);
  Status append_group(std::span<Commit*> group, std::uint64_t bytes);
  bool may_move(const std::string& key) const;
  void append_one(const Write& write, bool more, Position* at);
  Status write_tree();
  void on_new_log(Position begin);

  // False: the address's segment was removed meanwhile.
  Result<bool> fetch(const ValueLog::Segments& segments, std::string_view key, std::string_view held,
                     std::string* value);
  Status fetch_all(const ValueLog::Segments& segments, std::vector<PendingValue>& wanted);

  const std::string directory_;
  const StoreOptions options_;
  const bool sync_;
  bool had_segments_ = false;  // at the time of open()
  ValueLog log_;
  LevelDbStore tree_;
  bool open_ = false;
  const LogPositionEnv* opening_ = nullptr;  // while LevelDB opens its database

  // Used by the leader of a group, and by open().
  std::string buffer_;         // for the log, of one group
  leveldb::WriteBatch batch_;  // for the tree, of one group
  std::string address_text_;
  Position tree_end_;                        // the log before it is in the tree
  std::unordered_set<std::string> watched_;  // keys not written since watch()
  std::unordered_set<std::string> written_;  // keys written by the current group, during a watch
  Status failed_;                            // no write is accepted any more

  mutable std::mutex mutex_;
  Position memtable_begin_;  // guarded by mutex_
  Position durable_;         // guarded by mutex_
  std::atomic<std::uint64_t> appended_bytes_{0};
  std::atomic<std::uint64_t> moved_bytes_{0};
  std::atomic<std::uint64_t> replayed_bytes_{0};
  WriteQueue queue_;
};

}  // namespace spillway::engine::vlog
