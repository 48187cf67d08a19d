// Calls of RocksDB's that need everything to be in RocksDB, or that change it past its log.
//
// They are made while the commit queue is held, so no write is diverted meanwhile, and one that was about to be
// diverted comes after them. What is long about them is done before: everything but a small rest is brought back while
// diversion goes on, and large memtables are flushed.
#pragma once

#include <rocksdb/status.h>

#include <cstdint>
#include <functional>
#include <optional>

#include "spill/commit/key_versions.h"
#include "spill/rollback/bring_back.h"
#include "spill/rollback/rollback.h"

namespace spillway::spill {

// Thread-safe. None of these is called in the commit queue.
class MainOnly {
 public:
  MainOnly(const RollbackContext& context, BringBack& bring_back, Rollback& rollback)
      : context_(context), bring_back_(bring_back), rollback_(rollback) {}

  // `may_flush`: background work is not paused by the user, or waits with the pause until the action is over, so that
  // the action may wait for a flush.
  using Action = std::function<rocksdb::Status(bool may_flush)>;
  // Runs `action` in the commit queue while nothing lies in the spill store. Writes are diverted until all but a small
  // rest is back; those that come later wait for the rest and for `action`, which therefore has to be short.
  // `written`: of a database with transactions, where `action` may write any key.
  rocksdb::Status run(const Action& action, KeyVersions* written = nullptr);
  // The same without a wait: nothing if a rollback is under way, rollbacks are paused, or more than `most_bytes` are
  // left in the spill store.
  enum class Rest : std::uint8_t { not_now, too_large, brought_back, failed };
  Rest try_run(std::uint64_t most_bytes, const std::function<void()>& action);
  // Runs `action`, which gives RocksDB a later sequence number without its log, in the commit queue. No diverted write
  // may know that number before it counts as durable: recovery would take the write for one after a loss.
  rocksdb::Status run_raising_sequence(const std::function<rocksdb::Status()>& action);
  // Ingests files of the user's by `ingest`. `may_flush`: as the user says (allow_blocking_flush).
  rocksdb::Status ingest(bool may_flush, const std::function<rocksdb::Status()>& ingest, KeyVersions* versions);

 private:
  // One round; nothing if there is too much left for it, or RocksDB has no room.
  std::optional<rocksdb::Status> try_round(int round, const Action& action, KeyVersions* written);

  const RollbackContext& context_;
  BringBack& bring_back_;
  Rollback& rollback_;
};

}  // namespace spillway::spill
