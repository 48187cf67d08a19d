// Writes to RocksDB. The write never blocks inside RocksDB, and never overlaps a diverted write of one of its keys.
#pragma once

#include <rocksdb/options.h>
#include <rocksdb/status.h>
#include <rocksdb/write_batch.h>

#include <cstdint>

#include "spill/commit/commits.h"
#include "spill/live/live_set.h"
#include "spill/main_db/main_db.h"
#include "spill/stall/detector.h"

namespace spillway::spill {

// The result of one try to write to RocksDB.
enum class Attempt : std::uint8_t {
  finished,             // its status says how, and whether it was written
  refused,              // RocksDB cannot take it now
  covered,              // the newest version of a key of it is in the spill store
  announced_elsewhere,  // a diverted write in flight has announced a key of it
  doubtful,             // the spill store may hold a failed write of a key of it
  throttled,            // it has low priority, and compactions are behind
};

// Thread-safe.
class MainWriter {
 public:
  MainWriter(MainDb& main, LiveSet& live, Commits& commits, Detector& detector)
      : main_(main), live_(live), commits_(commits), detector_(detector) {}

  Attempt try_write(const rocksdb::WriteOptions& options, rocksdb::WriteBatch* batch, rocksdb::Status* status);
  // Writes a batch without operations. RocksDB's log takes its log data, if any. With `sync` it is a barrier for both
  // stores: everything that was acknowledged before is durable on return.
  rocksdb::Status write_nothing(const rocksdb::WriteOptions& options, rocksdb::WriteBatch* batch);
  // Makes all writes durable that were diverted before the call.
  rocksdb::Status make_diverted_durable();

 private:
  Attempt try_once(const rocksdb::WriteOptions& options, rocksdb::WriteBatch* batch, bool with_mark,
                   rocksdb::Status* status);
  // Announces the keys of a write that is about to enter RocksDB. Fails if one is in the spill store or being diverted.
  Attempt announce(const rocksdb::WriteBatch& batch, KeyFence::MainKeys& keys) const;

  MainDb& main_;
  LiveSet& live_;
  Commits& commits_;
  Detector& detector_;
};

}  // namespace spillway::spill
