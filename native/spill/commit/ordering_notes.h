// Notes: empty records in the spill store's log. A note says up to which sequence RocksDB's writes are durable:
// recovery keeps all records that follow none after it, whatever it finds in RocksDB's log. If that is so for all
// records before the note, it is a sync record, and says that all of them are kept.
//
// A flush removes writes from RocksDB's log, so each flush first appends a note. If the store is full and refuses a
// note, the note is owed: compactions wait for it (docs/decisions/0013), and everything is brought back.
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

  // Whether a note is owed, and compactions are held for it.
  bool is_owed() const { return is_owed_.load(std::memory_order_acquire); }

  // --- By any thread
  // Called before a flush removes writes from RocksDB's log. Commits do not wait for its syncs.
  void before_flush();
  // Appends a note; durable on return. `in_flush`: as in SpillWriter::sync_concurrently. REQUIRES: in a flush, what is
  // flushed is durable
  rocksdb::Status add_concurrently(bool in_flush);
  // Runs `held` in the commit queue, where it may wait for flushes of RocksDB. Before flushes are refused the queue,
  // the note and the syncs that they would have made are made.
  void hold_commits(const std::function<void()>& held);

  // --- In the commit queue
  // Appends a note; durable on return. If the store has no room, the note is owed.
  rocksdb::Status append_durably() REQUIRES(in_commit_queue);
  // Releases the compactions that were held for a note: the store has taken it, or the store is empty.
  void end_owing() REQUIRES(in_commit_queue);
  // Records that a diverted write follows RocksDB's sequence `main_sequence`. A sync write needs no note.
  void on_commit(bool sync, std::uint64_t main_sequence) REQUIRES(in_commit_queue);
  // Called while the database opens: the next note is needed if RocksDB's log had a write up to that sequence; 0: none.
  void begin(std::uint64_t main_sequence) REQUIRES(in_commit_queue) { unsynced_main_sequence_ = main_sequence; }

 private:
  // `all` that was diverted: RocksDB's log is synced for it if it must be. Or what follows `durable` writes to RocksDB.
  enum class Covers : std::uint8_t { all, durable };
  rocksdb::Status append(Covers covers) REQUIRES(in_commit_queue);
  rocksdb::Status try_append(Covers covers) REQUIRES(in_commit_queue);
  void owe();

  const CommitContext& context_;
  CommitQueue& queue_;
  SpillWriter& writer_;
  // The last write to RocksDB that precedes the records since the last sync record; 0: none.
  std::uint64_t unsynced_main_sequence_ GUARDED_BY(in_commit_queue) = 0;
  std::atomic<bool> is_owed_{false};
};

}  // namespace spillway::spill
