// LevelDB's tree with a value log beside it: what puts the two in order.
//
// A write goes to the log's head, and only then to the tree, in groups that one writer leads; so the tree is always a
// prefix of the log. LevelDB's own log holds nothing but the place in the value log at which its memtable begins
// (log_marker_env.h): after a crash everything behind that place is written to the tree again.
//
// What the collector moves is written in the same queue, and only where nobody has written the key since the collector
// asked the tree about it: so whatever stands later in the log is newer, and recovery needs no other rule.
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
#include "engine/vlog/log_marker_env.h"
#include "engine/vlog/value_log.h"
#include "engine/vlog/write_queue.h"

namespace spillway::engine::vlog {

struct StoreOptions {
  std::uint64_t segment_bytes = 0;
  std::uint64_t min_value_bytes = 0;  // smaller values stay in the tree
  std::uint64_t prefetch = 1;         // values that a scan reads at once
};

// The tree as it was at one time, for many questions about it. A get would be counted by LevelDB as a seek of the
// first table that it searches in vain, and from a hundred seeks on a table is compacted: a collector that gets a key
// for each record writes more to the tree than it saves in the log. Of what iterators read LevelDB counts rarely: one
// key in a MiB of keys and values, on average, and only where two tables may hold it. Source: LevelDB 1.23,
// db/version_set.cc (UpdateStats, RecordReadSample), db/db_iter.cc (ParseKey), db/dbformat.h (kReadBytesPeriod).
class TreeView {
 public:
  // REQUIRES: the tree is open, and outlives it.
  explicit TreeView(LevelDbStore& tree);
  ~TreeView();
  TreeView(TreeView&&) noexcept = default;
  // Whether the tree holds this very address for the key.
  Result<bool> is_live(std::string_view key, const Address& address);

 private:
  LevelDbStore& tree_;
  std::unique_ptr<leveldb::Iterator> iterator_;
};

class Store {
 public:
  // REQUIRES: what `spec` points to outlives the store.
  Store(const EngineSpec& spec, LevelDbOptions leveldb, StoreOptions options);
  ~Store() { (void)close(); }
  Store(const Store&) = delete;
  Store& operator=(const Store&) = delete;

  Status open();
  // Also an error for which writes were refused.
  Status close();

  Status write(std::span<const Write> writes);
  Result<bool> get(std::string_view key, std::string* value);
  Result<std::uint64_t> scan(std::string_view key, std::uint64_t nexts, Direction direction, Pairs* pairs);
  // Everything that was written before is in the tree's tables.
  Status flush();

  // --- For the collector.

  // From now on until move() was called, remembers which of the keys somebody writes.
  void watch(std::unordered_set<std::string> keys);
  // The tree as it is now.
  TreeView view() { return TreeView(tree_); }
  // Appends the pairs, all but those whose keys were written since watch(), and ends the watch.
  Status move(std::span<const Write> pairs);
  // Where the part of the log begins that is not in the tree's tables.
  Position durable() const;

  ValueLog& log() { return log_; }
  LevelDbStore& tree() { return tree_; }
  std::uint64_t appended_bytes() const { return appended_bytes_; }
  std::uint64_t moved_bytes() const { return moved_bytes_; }
  void add_statistics(std::map<std::string, std::uint64_t>& figures);

 private:
  struct PendingValue {  // a pair of a scan whose value is not read yet
    std::string key;
    std::string held;  // by the tree
    std::string value;
  };

  Status check_kind() const;
  LogMarkerHooks hooks();
  Result<Position> recovery_begin(const LogMarkerEnv& env) const;
  Status replay(Position begin);
  void commit_group(std::span<Commit*> group);
  Status append_group(std::span<Commit*> group, std::uint64_t bytes);
  bool may_move(const std::string& key) const;
  void append_one(const Write& write, bool more, Position* at);
  Status write_tree();
  void on_new_log(Position begin);

  // False: there is no segment that the address names; it was collected meanwhile.
  Result<bool> fetch(const ValueLog::Segments& segments, std::string_view key, std::string_view held,
                     std::string* value);
  Status fetch_all(const ValueLog::Segments& segments, std::vector<PendingValue>& wanted);

  const std::string directory_;
  const StoreOptions options_;
  const bool sync_;
  bool had_segments_ = false;  // when it was opened
  ValueLog log_;
  LevelDbStore tree_;
  bool open_ = false;
  const LogMarkerEnv* opening_ = nullptr;  // while LevelDB opens its database

  // Of whoever leads, or opens.
  std::string buffer_;         // of the log, for a group
  leveldb::WriteBatch batch_;  // of the tree, for a group
  std::string address_text_;
  Position tree_end_;                        // before it the log is in the tree
  std::unordered_set<std::string> watched_;  // and not written since
  std::unordered_set<std::string> written_;  // by a group, while something is watched
  Status failed_;                            // nothing can be written any more

  mutable std::mutex mutex_;
  Position memtable_begin_;  // guarded by mutex_
  Position durable_;         // guarded by mutex_
  std::atomic<std::uint64_t> appended_bytes_{0};
  std::atomic<std::uint64_t> moved_bytes_{0};
  std::atomic<std::uint64_t> replayed_bytes_{0};
  WriteQueue queue_;
};

}  // namespace spillway::engine::vlog
