// A write into RocksDB that never sleeps there, and that no diverted write of one of its keys overlaps.
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

// What became of a try to write to RocksDB.
enum class Attempt : std::uint8_t {
  taken,                // its status says how
  refused,              // RocksDB cannot take it now
  covered,              // the newest version of a key of it is in the spill store
  announced_elsewhere,  // a key of it may be on its way there
  doubtful,             // a key of it may be there since a write of it failed
  throttled,            // it is of low priority, and compactions are behind
};

// Thread-safe.
class MainWriter {
 public:
  MainWriter(MainDb& main, LiveSet& live, Commits& commits, Detector& detector)
      : main_(main), live_(live), commits_(commits), detector_(detector) {}

  Attempt try_write(const rocksdb::WriteOptions& options, rocksdb::WriteBatch* batch, rocksdb::Status* status);
  // A batch without operations. RocksDB's log takes its log data, if any. With `sync` it is a barrier for both stores:
  // everything that was acknowledged before is durable when it returns.
  rocksdb::Status write_nothing(const rocksdb::WriteOptions& options, rocksdb::WriteBatch* batch);
  // Makes durable what was diverted until now.
  rocksdb::Status make_diverted_durable();

 private:
  Attempt try_write(const rocksdb::WriteOptions& options, rocksdb::WriteBatch* batch, bool with_mark,
                    rocksdb::Status* status);
  // Announces the keys of a write that is about to enter RocksDB. None may be in the spill store, or on its way there.
  Attempt announce(const rocksdb::WriteBatch& batch, KeyFence::MainKeys& keys) const;

  MainDb& main_;
  LiveSet& live_;
  Commits& commits_;
  Detector& detector_;
};

}  // namespace spillway::spill
