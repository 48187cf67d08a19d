// Records in RocksDB's own log which diverted writes precede a write to RocksDB. So no log is synced only to keep their
// order (T26). Exceptions are writes without RocksDB's log and batches that cannot carry a mark.
//
// A *mark* names the newest diverted write that was acknowledged before a write to RocksDB began. It is in the log with
// that write or before it. Recovery replays RocksDB's log up to the first mark whose diverted write is lost. A flush
// removes writes from the log. They are safe because both logs are synced before the flush begins.
#pragma once

#include <rocksdb/listener.h>
#include <rocksdb/wal_filter.h>
#include <rocksdb/write_batch.h>

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <unordered_set>

#include "base/mutex.h"
#include "spill/store/record.h"
#include "spill/store/store.h"

namespace spillway::spill {

// The mark as log data of a WriteBatch, which goes into RocksDB's log and into no memtable.
std::string encode(const Mark& mark);
std::optional<Mark> decode_mark(const rocksdb::Slice& log_data);

// The part of the spill store that survived a crash.
struct Survivors {
  std::unordered_set<GenerationId> generations;  // begun and not dropped, even those without a surviving record
  Sequence last = 0;                             // that of the last intact record
};
// A mark that names a dropped generation survives, because RocksDB had the generation's contents durably.
bool survives(const Mark& mark, const Survivors& survivors);

// One of RocksDB's listeners, and the filter of its log during Open. Outlives RocksDB.
class MainOrder final : public rocksdb::EventListener {
 public:
  MainOrder();
  ~MainOrder() override;

  // Makes RocksDB's replay stop at the first mark that does not survive. For DBOptions::wal_filter.
  rocksdb::WalFilter* filter(Survivors survivors);

  // The sequence of the last write that RocksDB replayed; 0 if it replayed none.
  std::uint64_t replayed() const;

  // RocksDB's flushes call `before_flush` before their contents leave the log, until stop() returns.
  void start(std::function<void()> before_flush);
  void stop();

  // Compactions wait while they are held for any reason, a minute at most. They may set sequence numbers in tables to
  // 0, and until a note is durable, those numbers are the only evidence of how far RocksDB's contents are durable.
  enum class Until : unsigned {
    opened = 1,      // while it opens
    ingested = 2,    // a rollback's ingestion has its note
    note_taken = 4,  // the spill store has taken the note that it refused, or holds nothing any more
  };
  void hold_compactions(Until until);
  void let_compactions_run(Until until);
  void let_compactions_run();  // releases all holds
  // Waits until none is held: before a compaction that RocksDB does not announce. False: it is not to run, since one is
  // still held after a minute, or `is_wanted` has become false.
  bool await_compactions(const std::atomic<bool>* is_wanted = nullptr);

  void OnFlushBegin(rocksdb::DB* db, const rocksdb::FlushJobInfo& info) override;
  void OnCompactionBegin(rocksdb::DB* db, const rocksdb::CompactionJobInfo& info) override;

 private:
  class Filter;

  std::unique_ptr<Filter> filter_;
  Mutex mutex_;
  std::function<void()> before_flush_ GUARDED_BY(mutex_);
  Mutex held_mutex_;
  CondVar released_;
  unsigned held_until_ GUARDED_BY(held_mutex_) = static_cast<unsigned>(Until::opened);
};

}  // namespace spillway::spill
