// The spill store as the commit pipeline writes it: the generation that is appended to, what is durable, and what is
// known of a store that has failed.
//
// After a failure nothing is diverted until a rollback has brought back and dropped everything that the store holds. A
// commit whose append or sync failed is in doubt: nobody can read it, and it may be there when the database is opened
// again. So its keys are kept, and whoever writes one of them to RocksDB waits for that rollback
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

// What the parts of this folder work on.
struct CommitContext {
  const SpillOptions options;
  Store& store;
  MainDb& main;
  LiveSet& live;
  Telemetry& telemetry;
  std::function<void()> wake_rollback;              // the store is full, or has failed
  std::function<void(GenerationId)> want_rollback;  // of everything up to that generation
};

// How many groups of commits the store has taken, and how many of them are durable. Thread-safe.
class SyncProgress {
 public:
  std::uint64_t appended() const { return appended_.load(std::memory_order_acquire); }
  std::uint64_t synced() const { return synced_.load(std::memory_order_acquire); }
  bool is_unsynced() const {
    const std::uint64_t synced = this->synced();  // first: the other only grows
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
  // A diverted write is not durable yet.
  bool is_unsynced() const { return progress_.is_unsynced(); }
  bool has_failed() const { return has_failed_.load(std::memory_order_acquire); }
  bool is_full() const { return is_full_.load(std::memory_order_acquire); }
  const Doubts& doubts() const { return doubts_; }
  // Makes durable what was appended until now, while commits go on. `in_flush`: called by a flush of RocksDB's, which
  // whoever holds the commit queue may wait for; then that one brings back what the store has.
  rocksdb::Status sync_concurrently(bool in_flush = false);
  // The same, also in a store that has failed, which makes a generation durable when the next one begins.
  rocksdb::Status make_durable_concurrently();

  // --- In the commit queue
  // Begins a generation if there is none. Busy: the store is full, or could not begin one; nothing was taken.
  rocksdb::Status append(std::span<const rocksdb::Slice> records, std::span<std::uint64_t> offsets)
      REQUIRES(in_commit_queue);
  rocksdb::Status sync() REQUIRES(in_commit_queue);
  // What is brought back must not be newer in RocksDB than in the spill store when the power goes before that has
  // dropped it: what the store still had would hide it (I1).
  rocksdb::Status make_durable() REQUIRES(in_commit_queue);
  // The generation that is appended to; null: the next append begins one.
  Generation* active() const REQUIRES(in_commit_queue) { return active_.get(); }
  void seal() REQUIRES(in_commit_queue);
  // Nothing can be appended to it any more; nobody is told.
  void close() REQUIRES(in_commit_queue) { active_.reset(); }
  // Nothing is appended behind what has failed.
  const rocksdb::Status& failure() const REQUIRES(in_commit_queue) { return failure_; }
  void doubt(const rocksdb::WriteBatch& batch) REQUIRES(in_commit_queue) { doubts_.add(batch); }
  // Busy. The first since there was room raises an event and wakes the rollback.
  rocksdb::Status report_full() REQUIRES(in_commit_queue);
  void has_room_again() { is_full_.store(false, std::memory_order_release); }
  // A store that failed is clean again: what it could not take is nowhere, what it held is in RocksDB.
  void recover_from_failure() REQUIRES(in_commit_queue);
  // Of the next operation that is diverted.
  Sequence next_sequence() const REQUIRES(in_commit_queue) { return next_sequence_; }
  void take_sequences(std::uint64_t operations) REQUIRES(in_commit_queue) { next_sequence_ += operations; }
  // While the database is opened.
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
  rocksdb::Status failure_ GUARDED_BY(in_commit_queue);          // why the store takes no more
  bool has_told_not_begun_ GUARDED_BY(in_commit_queue) = false;  // of a generation that could not be begun
  std::atomic<bool> has_failed_{false};
  std::atomic<bool> is_full_{false};
};

}  // namespace spillway::spill
