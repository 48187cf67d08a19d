// Writes to RocksDB. The write never blocks inside RocksDB, and never overlaps a diverted write of one of its keys.
#pragma once

#include <rocksdb/options.h>
#include <rocksdb/status.h>
#include <rocksdb/write_batch.h>

#include <cstdint>
#include <optional>

#include "base/steps.h"
#include "spill/commit/commits.h"
#include "spill/live/live_set.h"
#include "spill/main_db/low_priority.h"
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

  // Inlined: a write passes few frames on its way to RocksDB (SPILLWAY_FRAME_FOR_TSAN).
  [[gnu::always_inline]] Attempt try_write(const rocksdb::WriteOptions& options, rocksdb::WriteBatch* batch,
                                           rocksdb::Status* status) {
    if (commits_.writer.is_unsynced()) [[unlikely]]
      return try_with_unsynced(options, batch, status);
    return try_once(options, batch, /*with_mark=*/false, status);
  }
  // Writes a batch without operations. RocksDB's log takes its log data, if any. With `sync` it is a barrier for both
  // stores: everything that was acknowledged before is durable on return.
  rocksdb::Status write_nothing(const rocksdb::WriteOptions& options, rocksdb::WriteBatch* batch);
  // Makes all writes durable that were diverted before the call.
  rocksdb::Status make_diverted_durable();

 private:
  // REQUIRES: what was diverted before the call is durable, or `with_mark`.
  [[gnu::always_inline]] Attempt try_once(const rocksdb::WriteOptions& options, rocksdb::WriteBatch* batch,
                                          bool with_mark, rocksdb::Status* status);
  // A diverted write is not durable yet, or was not a moment ago.
  Attempt try_with_unsynced(const rocksdb::WriteOptions& options, rocksdb::WriteBatch* batch, rocksdb::Status* status);
  // Announces the keys of a write that is about to enter RocksDB. Fails if one is in the spill store or being diverted.
  Attempt announce(const rocksdb::WriteBatch& batch, KeyFence::MainKeys& keys) const;

  MainDb& main_;
  LiveSet& live_;
  Commits& commits_;
  Detector& detector_;
};

inline Attempt MainWriter::try_once(const rocksdb::WriteOptions& options, rocksdb::WriteBatch* batch, bool with_mark,
                                    rocksdb::Status* status) {
  steps::reached("spill.write.before_main");
  {
    const Gate::Pass pass(commits_.pipeline.gate());
    if (!pass) return Attempt::refused;
    KeyFence& fence = commits_.pipeline.fence();
    std::optional<KeyFence::MainKeys> keys;  // mostly not needed
    // The order matters: if the group has ended by the first read, the second sees its live entries, unless they are
    // back.
    const bool any_group = fence.has_groups();
    steps::reached("spill.write.looked_for_groups");
    if (any_group || live_.has_any(std::memory_order_seq_cst)) {
      keys.emplace(fence);
      if (const Attempt met = announce(*batch, *keys); met != Attempt::finished) return met;
    }
    steps::reached("spill.write.announced");
    rocksdb::WriteOptions at_once = options;
    at_once.no_slowdown = true;
    *status = with_mark ? main_.write_marked(at_once, batch, live_) : main_.write(at_once, batch);
  }
  if (status->IsIncomplete()) [[unlikely]] {
    if (LowPriority::is_throttled(*status)) return Attempt::throttled;
    detector_.report_refusal();
    return Attempt::refused;
  }
  // RocksDB's log is now durable up to this write, so everything that its marks name must be durable too.
  if (status->ok() && options.sync) *status = make_diverted_durable();
  return Attempt::finished;
}

}  // namespace spillway::spill
