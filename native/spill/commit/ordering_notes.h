// Notes: empty sync records in the spill store's log which say that everything before them is kept, whatever RocksDB's
// log tells the next recovery.
//
// A flush takes writes out of RocksDB's log, so each begins with a note. A note that a full store cannot take is owed:
// compactions wait for it (docs/decisions/0013), and everything is brought back.
#pragma once

#include <rocksdb/status.h>

#include <atomic>
#include <cstdint>
#include <functional>

#include "spill/commit/commit_queue.h"
#include "spill/commit/spill_writer.h"

namespace spillway::spill {

class OrderingNotes {
 public:
  OrderingNotes(const CommitContext& context, CommitQueue& queue, SpillWriter& writer)
      : context_(context), queue_(queue), writer_(writer) {}

  // Compactions are held for a note that the store has not taken.
  bool is_owed() const { return is_owed_.load(std::memory_order_acquire); }

  // --- By any thread
  // Before what a flush of RocksDB's takes out of its log. Commits do not wait for the syncs.
  void before_flush();
  // A note, durable when this returns. `in_flush`: as in SpillWriter::sync_concurrently.
  rocksdb::Status add_concurrently(bool in_flush);
  // Runs `held` in the commit queue, where it may wait for flushes of RocksDB's: what those would have noted and synced
  // is, before the first of them is turned away.
  void hold_commits(const std::function<void()>& held);

  // --- In the commit queue
  // A note, durable when this returns. Where the store has no room for it, it is owed.
  rocksdb::Status append_durably() REQUIRES(in_commit_queue);
  // Compactions are not held for it any more: the store has taken it, or nothing is left in the store.
  void end_owing() REQUIRES(in_commit_queue);
  // A diverted write was made after RocksDB's sequence `main_sequence`. A sync write needs no note.
  void on_commit(bool sync, std::uint64_t main_sequence) REQUIRES(in_commit_queue);
  // While the database is opened: the next note is needed if RocksDB's log had a write up to there; 0: none.
  void begin(std::uint64_t main_sequence) REQUIRES(in_commit_queue) { unsynced_main_sequence_ = main_sequence; }

 private:
  rocksdb::Status append() REQUIRES(in_commit_queue);
  rocksdb::Status try_append() REQUIRES(in_commit_queue);
  void owe();

  const CommitContext& context_;
  CommitQueue& queue_;
  SpillWriter& writer_;
  // The last write to RocksDB before the records since the last sync one, if any; 0: none.
  std::uint64_t unsynced_main_sequence_ GUARDED_BY(in_commit_queue) = 0;
  std::atomic<bool> is_owed_{false};
};

}  // namespace spillway::spill
