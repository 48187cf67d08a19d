// Records in RocksDB's own log which diverted writes precede a write to RocksDB, so that no log is synced only to keep
// their order (T26), except for writes that are not in RocksDB's log and batches that cannot carry a mark.
//
// A *mark* names the newest diverted write that was acknowledged before a write to RocksDB began, and stands in the log
// with that write or before it. Recovery replays RocksDB's log up to the first mark whose diverted write is lost. A
// flush removes writes from the log; they are safe because both logs are synced before it begins.
#pragma once

#include <rocksdb/listener.h>
#include <rocksdb/wal_filter.h>
#include <rocksdb/write_batch.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <unordered_set>

#include "base/mutex.h"
#include "spill/store/record.h"
#include "spill/store/store.h"

namespace spillway::spill {

// As a WriteBatch's log data: it goes into RocksDB's log and into no memtable.
std::string encode(const Mark& mark);
std::optional<Mark> decode_mark(const rocksdb::Slice& log_data);

// The part of the spill store that survived a crash.
struct Survivors {
  std::unordered_set<GenerationId> generations;  // begun and never dropped, even where nothing of them is left
  Sequence last = 0;                             // of the last record that is whole
};
// A mark of a dropped generation survives: RocksDB had its contents durably.
bool survives(const Mark& mark, const Survivors& survivors);

// Among RocksDB's listeners, and its log's filter while it opens. Outlives RocksDB.
class MainOrder final : public rocksdb::EventListener {
 public:
  MainOrder();
  ~MainOrder() override;

  // Ends RocksDB's replay at the first mark that does not survive. For DBOptions::wal_filter.
  rocksdb::WalFilter* filter(Survivors survivors);

  // The sequence of the last write that RocksDB replayed; 0 if it replayed none.
  std::uint64_t replayed() const;

  // `before_flush` is called from RocksDB's flushes, before what they flush leaves the log, until stop() returns.
  void start(std::function<void()> before_flush);
  void stop();

  // Compactions wait while they are held for any reason, a minute at most: they may take the sequence numbers out of
  // tables, which are what tells how far RocksDB has got until a note says so.
  enum class Until : unsigned {
    opened = 1,       // at first
    ingested = 2,     // a rollback's ingestion is noted down
    note_stands = 4,  // a note that the spill store could not take stands there, or nothing is left in that
  };
  void hold_compactions(Until until);
  void let_compactions_run(Until until);
  void let_compactions_run();  // releases all holds

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
