// Decides where a write goes: into RocksDB, or past it into the spill store. The decision to divert a write is made
// here.
#pragma once

#include <rocksdb/options.h>
#include <rocksdb/status.h>
#include <rocksdb/write_batch.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "spill/commit/commits.h"
#include "spill/commit/key_versions.h"
#include "spill/main_db/low_priority.h"
#include "spill/rollback/main_only.h"
#include "spill/rollback/rollback_thread.h"
#include "spill/route/batch_traits.h"
#include "spill/route/main_writer.h"
#include "spill/route/write_waits.h"
#include "spill/stall/detector.h"
#include "spill/stall/divert_cause.h"
#include "spill/stall/room_signal.h"
#include "spillway/db.h"

namespace spillway::spill {

// Thread-safe.
class Router {
 public:
  struct Parts {
    MainDb& main;
    LiveSet& live;
    Commits& commits;
    std::shared_ptr<Detector> detector;
    RoomSignal& room;
    RollbackThread& rollback;
    MainOnly& main_only;
    Telemetry& telemetry;
  };
  // `policy`: that of the detector.
  Router(const Parts& parts, const DivertPolicy& policy)
      : parts_(parts),
        main_writer_(parts.main, parts.live, parts.commits, *parts.detector),
        causes_(policy, parts.telemetry.counts) {}

  // Returns when one of the stores has taken the batch, or with the reason why none did.
  rocksdb::Status write(const rocksdb::WriteOptions& options, rocksdb::WriteBatch* batch) {
    return versions_ == nullptr ? write(options, batch, nullptr) : write_if_unchanged(options, batch, {});
  }
  // The same of a batch with one operation that is neither a SingleDelete nor a DeleteRange.
  [[gnu::always_inline]] rocksdb::Status write_one(const rocksdb::WriteOptions& options, rocksdb::WriteBatch* batch);
  void set_diversion(Diversion diversion);
  // Whether writes that can be diverted are diverted now.
  bool is_diverting() const;
  Detector& detector() const { return *parts_.detector; }
  // Counts diversions and their causes. The detector calls it after each poll.
  void count_diversions(const Signals& signals, Route before, Route now);

  // --- For transactions
  // From now on every write records the versions of its keys. REQUIRES: no write has begun.
  void note_versions() { versions_ = std::make_unique<KeyVersions>(); }
  KeyVersions* versions() const { return versions_.get(); }  // null: no transactions
  // Busy: a key in `seen` was written after it was read, and nothing was written. REQUIRES: note_versions() was called.
  rocksdb::Status write_if_unchanged(const rocksdb::WriteOptions& options, rocksdb::WriteBatch* batch,
                                     const std::vector<KeyVersions::Seen>& seen);

 private:
  using Clock = WriteWaits::Clock;

  // A write that is tried until one of the stores takes it or it fails.
  struct PendingWrite {
    explicit PendingWrite(Counts& counts) : waits(counts) {}

    rocksdb::WriteOptions options;  // the user's; `low_pri` is cleared once the write has waited for it
    rocksdb::WriteBatch* batch = nullptr;
    KeyVersions::Holding* held = nullptr;  // the locks of its keys, released while it waits
    rocksdb::Status status;                // the result of the last try

    bool is_low_priority = false;          // as the user gave it
    bool has_diverted_key = false;         // the last try found a key of it in the spill store
    bool is_in_doubt = false;              // the spill store failed during this write, and may hold it
    bool has_doubtful_key = false;         // the spill store may hold a failed write of one of its keys
    bool is_for_main = false;              // a key of it can only go to RocksDB
    bool may_empty_store_in_queue = true;  // see try_with_rest_brought_back
    std::uint64_t max_bytes_in_queue = MainOnly::kSmallRest;  // most bytes that are brought back while others wait
    std::optional<std::uint64_t> rollbacks_failed;            // failure count when it began to wait for a rollback
    WaitCause waits_for = WaitCause::rocksdb;                 // if the last try ended with Next::waits
    WriteWaits waits;                                         // since() is set while neither store takes it
    std::uint64_t errors_before = 0;                          // RocksDB's error count when the wait began
  };

  enum class Next : std::uint8_t { ended, again, waits };

  // Whether the spill store is empty and no write is to be diverted.
  bool is_idle() const { return !parts_.live.has_any() && !is_diverting(); }
  // Whether RocksDB may refuse the write for its options, whatever the batch holds.
  static bool is_special(const rocksdb::WriteOptions& options) {
    return (options.sync && options.disableWAL) || options.rate_limiter_priority != rocksdb::Env::IO_TOTAL ||
           options.protection_bytes_per_key != 0;
  }
  // Whether writes may be diverted once RocksDB is near a write stall.
  bool may_divert() const;

  // `whole`: the write of which the batch is a part; waits count as its own. Null: the batch is all of it.
  rocksdb::Status write(const rocksdb::WriteOptions& options, rocksdb::WriteBatch* batch, KeyVersions::Holding* held,
                        PendingWrite* whole = nullptr);
  // Of a batch that either store may take. `for_keys`: how long it has waited for the locks of its keys.
  rocksdb::Status write_either_way(const rocksdb::WriteOptions& options, rocksdb::WriteBatch* batch,
                                   KeyVersions::Holding* held, PendingWrite* whole, std::chrono::nanoseconds for_keys);
  rocksdb::Status write_without_single_removes(const rocksdb::WriteOptions& options, rocksdb::WriteBatch* batch,
                                               KeyVersions::Holding* held);
  void write_either_way(PendingWrite& write);
  Next try_either_way(PendingWrite& write);
  // False: it was not diverted, and its status says why.
  bool divert(PendingWrite& write, bool must_divert);
  Next try_main(PendingWrite& write);
  Next after(Attempt attempt, PendingWrite& write);
  // For a batch with a key that lies in the spill store and a key that only RocksDB can take.
  Next try_with_main_only(PendingWrite& write);
  std::optional<Attempt> try_with_rest_brought_back(PendingWrite& write);

  // Whether it may wait for room. If not, its status says why it ends.
  bool may_wait(PendingWrite& write);
  rocksdb::Status wait_for_rollback(PendingWrite& write);
  rocksdb::Status wait(PendingWrite& write, const std::function<void()>& wait);

  const Parts parts_;
  MainWriter main_writer_;
  LowPriority low_priority_;
  DivertCauses causes_;  // used by the detector alone
  std::atomic<Diversion> diversion_{Diversion::automatic};
  std::unique_ptr<KeyVersions> versions_;
};

inline bool Router::is_diverting() const {
  if (parts_.main.is_handed_out()) return false;
  if (parts_.commits.writer.has_failed()) return false;  // until a rollback has emptied the failed store
  switch (diversion_.load(std::memory_order_relaxed)) {
    case Diversion::always:
      return true;
    case Diversion::never:
      return parts_.commits.pipeline.gate().is_closed();
    case Diversion::automatic:
      break;
  }
  // While a run comes back, RocksDB gets nothing else: a flush in between would lie across all parts of it. Nor between
  // two runs of a burst that the store cannot hold.
  return parts_.detector->route() == Route::spill || parts_.rollback.is_under_way() ||
         (parts_.commits.pacer.is_watching() && !parts_.detector->is_burst_over()) ||
         parts_.commits.pipeline.gate().is_closed();
}

inline rocksdb::Status Router::write_one(const rocksdb::WriteOptions& options, rocksdb::WriteBatch* batch) {
  if (versions_ != nullptr || !is_idle() || is_special(options)) return write(options, batch);
  rocksdb::Status status;
  if (main_writer_.try_write(options, batch, &status) == Attempt::finished) return status;
  return write_either_way(options, batch, nullptr, nullptr, {});
}

}  // namespace spillway::spill
