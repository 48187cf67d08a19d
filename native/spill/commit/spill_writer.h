// The append side of the spill store: the active generation, what is durable, and the state after a failure.
//
// After a failure no write is diverted until a rollback has brought back and dropped everything that the store holds. A
// commit whose append or sync failed is in doubt: reads do not see it, but it may be found when the database is
// reopened. Its keys are therefore kept, and a write to RocksDB of one of these keys waits for that rollback
// (docs/decisions/0015).
#pragma once

#include <rocksdb/status.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>

#include "spill/commit/commit_queue.h"
#include "spill/commit/doubts.h"
#include "spill/live/live_set.h"
#include "spill/main_db/main_db.h"
#include "spill/report/telemetry.h"
#include "spill/store/store.h"
#include "spillway/options.h"

namespace spillway::spill {

// What the parts of this folder share.
struct CommitContext {
  const SpillOptions options;
  Store& store;
  MainDb& main;
  LiveSet& live;
  Telemetry& telemetry;
  std::function<void()> wake_rollback_thread;          // called when the store is full or has failed
  std::function<bool()> may_bring_back;                // false: the user has paused rollbacks
  std::function<void(GenerationId)> request_rollback;  // requests the rollback of everything up to that generation
};

// Counts the commit groups that the store has taken, and those of them that are durable. Thread-safe.
class SyncProgress {
 public:
  std::uint64_t appended() const { return appended_.load(std::memory_order_acquire); }
  std::uint64_t synced() const { return synced_.load(std::memory_order_acquire); }
  bool is_unsynced() const {
    const std::uint64_t synced = this->synced();  // read first: the other only grows
    return synced < appended();
  }
  void append() { appended_.fetch_add(1, std::memory_order_release); }
  void sync_up_to(std::uint64_t appended) { raise_to(synced_, appended); }

 private:
  std::atomic<std::uint64_t> appended_{0};
  std::atomic<std::uint64_t> synced_{0};
};

class SpillWriter {
 public:
  SpillWriter(const CommitContext& context, CommitQueue& queue) : context_(context), queue_(queue) {}

  // --- By any thread
  // Whether a diverted write is not durable yet.
  bool is_unsynced() const { return progress_.is_unsynced(); }
  bool has_failed() const { return has_failed_.load(std::memory_order_acquire); }
  bool is_full() const { return is_full_.load(std::memory_order_acquire); }
  const Doubts& doubts() const { return doubts_; }
  // Makes everything appended so far durable, while commits continue. `in_flush`: a flush of RocksDB calls. The holder
  // of the commit queue may wait for this flush; in that case the call returns at once, and the holder brings back the
  // store.
  rocksdb::Status sync_concurrently(bool in_flush = false);
  // The same, also for a store that has failed; that store is made durable by beginning a generation.
  rocksdb::Status make_durable_concurrently();

  // --- In the commit queue
  // Begins a generation if there is none. Busy: the store is full or could not begin one; nothing was appended.
  rocksdb::Status append(std::span<const rocksdb::Slice> records, std::span<std::uint64_t> offsets)
      REQUIRES(in_commit_queue);
  rocksdb::Status sync() REQUIRES(in_commit_queue);
  // Precondition of a rollback. If RocksDB had a newer version of a key than the durable part of the spill store, then
  // after a loss of power before the drop the store's older version would hide it (I1).
  rocksdb::Status make_durable() REQUIRES(in_commit_queue);
  // The generation that is appended to; null: the next append begins one.
  Generation* active() const REQUIRES(in_commit_queue) { return active_.get(); }
  void seal() REQUIRES(in_commit_queue);
  // Ends the active generation without an event.
  void close() REQUIRES(in_commit_queue) { active_.reset(); }
  // The error of a failed store; nothing is appended after it.
  const rocksdb::Status& failure() const REQUIRES(in_commit_queue) { return failure_; }
  void doubt(const rocksdb::WriteBatch& batch) REQUIRES(in_commit_queue) { doubts_.add(batch); }
  // Returns Busy. The first call since the store had room raises an event and wakes the rollback.
  rocksdb::Status report_full() REQUIRES(in_commit_queue);
  void has_room_again() { is_full_.store(false, std::memory_order_release); }
  // Called when everything is brought back: nothing is in doubt any more, and a store that failed can be used again.
  void on_all_brought_back() REQUIRES(in_commit_queue);
  // The sequence of the next diverted operation.
  Sequence next_sequence() const REQUIRES(in_commit_queue) { return next_sequence_; }
  void take_sequences(std::uint64_t operations) REQUIRES(in_commit_queue) { next_sequence_ += operations; }
  // Called while the database opens.
  void begin_at(GenerationId generation, Sequence sequence) REQUIRES(in_commit_queue) {
    next_generation_ = generation;
    next_sequence_ = sequence;
  }

 private:
  rocksdb::Status open_active() REQUIRES(in_commit_queue);
  rocksdb::Status report_not_begun(const rocksdb::Status& status) REQUIRES(in_commit_queue);
  void report_failure(const rocksdb::Status& status) REQUIRES(in_commit_queue);

  const CommitContext& context_;
  CommitQueue& queue_;
  SyncProgress progress_;
  Doubts doubts_;
  std::shared_ptr<Generation> active_ GUARDED_BY(in_commit_queue);
  GenerationId next_generation_ GUARDED_BY(in_commit_queue) = 1;
  Sequence next_sequence_ GUARDED_BY(in_commit_queue) = 1;
  rocksdb::Status failure_ GUARDED_BY(in_commit_queue);  // why the store accepts no more
  bool has_told_not_begun_ GUARDED_BY(in_commit_queue) =
      false;  // the event was raised for a generation that could not begin
  std::atomic<bool> has_failed_{false};
  std::atomic<bool> is_full_{false};
};

}  // namespace spillway::spill
