// How spillway::DB diverts writes and brings them back. docs/LIBRARY.md explains each default.
#pragma once

#include <rocksdb/slice.h>
#include <rocksdb/status.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace spillway {

namespace spill {
class Store;
}

// When diverted writes are brought back into RocksDB (K8). During a write stall that happens only for a call that waits
// for it: Rollback(), or one that needs every write in RocksDB (docs/decisions/0018).
enum class RollbackPolicy {
  adaptive,  // while reads come, writes are few or RocksDB keeps up, and when mostly full; not in a burst of writes
  eager,     // as soon as the stall is over
  lazy,      // when a generation is full, or writes have ceased
  off,       // only for a call that waits for it, or when the spill store or the key index is full
};

// When a write is diverted past RocksDB. Counts are compared as RocksDB compares its own triggers.
struct DivertPolicy {
  // L0 files from which on writes are diverted; 0: RocksDB's level0_stop_writes_trigger, less one.
  int divert_l0_files = 0;
  // Writes return to RocksDB below this number of L0 files; 0: midway between the compaction trigger and
  // `divert_l0_files`.
  int resume_l0_files = 0;
  // Pending compaction bytes, as a share of hard_pending_compaction_bytes_limit.
  double divert_pending = 0.98;
  double resume_pending = 0.9;
};

// An event for SpillListener. The listener is called in the thread that caused the event: it must return quickly and
// must not call the DB.
struct SpillEvent {
  enum class Kind {
    divert_begin,  // writes go to the spill store from now on
    divert_end,    // and back to RocksDB
    spill_full,    // the spill store or the key index takes no more: writes go to RocksDB and wait with it
    generation_sealed,
    rollback_begin,
    rollback_end,     // the writes of a generation are durable in RocksDB
    rollback_failed,  // `message` says why; the writes stay in the spill store, and the rollback is retried
    store_failed,     // `message` says how; writes go to RocksDB, and wait with it, until a rollback has succeeded
    root_handed_out,  // by GetRootDB or GetBaseDB: nothing is diverted until the database is reopened
  };
  Kind kind = Kind::divert_begin;
  std::uint64_t generation = 0;
  std::uint64_t entries = 0;     // operations
  std::uint64_t bytes = 0;       // of their keys and values
  std::int64_t duration_us = 0;  // of the diversion or the rollback that ended
  std::string message;
};
const char* name_of(SpillEvent::Kind kind);

class SpillCloseListener;

class SpillListener {
 public:
  virtual ~SpillListener() = default;
  virtual void on_spill_event(const SpillEvent& event) = 0;
  // Itself, of a SpillCloseListener. Run-time type information would tell it too, and RocksDB's release builds have
  // none.
  virtual SpillCloseListener* as_close_listener() { return nullptr; }
};

struct SpillOptions {
  // Where the software region keeps its files. Empty: the directory "spill" in the database's. It is reached through
  // the database's Env.
  std::string path;
  // Bytes that the region may hold, sorted runs included.
  std::uint64_t capacity_bytes = std::uint64_t{4} << 30;
  // A generation that has reached this size is sealed, and the next one begins.
  std::uint64_t generation_bytes = std::uint64_t{256} << 20;
  // Most memory of the key index, in bytes. A full index ends diversion as a full spill store does.
  std::uint64_t index_bytes = std::uint64_t{256} << 20;
  // Replaces the software region: the key-value namespace of a drive. See spill/store/store.h.
  std::shared_ptr<spill::Store> store;

  RollbackPolicy rollback = RollbackPolicy::adaptive;
  DivertPolicy divert;
  // Milliseconds between two polls of the detector. RocksDB's own notification of a stall is handled at once. Source:
  // K3.
  std::uint32_t poll_ms = 100;
  // A generation of at most this size is put back through RocksDB's log and memtable; a larger one is ingested as
  // sorted runs. Measured by bench/spill_rollback.
  std::uint64_t put_back_bytes = std::uint64_t{1} << 20;
  std::vector<std::shared_ptr<SpillListener>> listeners;
};

}  // namespace spillway
