// Runs calls of RocksDB that need everything to be in RocksDB, or that change it without its log.
//
// The commit queue is held during such a call: no write is diverted, and one that was about to be diverted follows the
// call. Long steps run before it: all but a small rest is brought back while diversion continues, and large memtables
// are flushed.
#pragma once

#include <rocksdb/status.h>

#include <cstdint>
#include <functional>
#include <optional>

#include "spill/commit/key_versions.h"
#include "spill/rollback/bring_back.h"
#include "spill/rollback/rollback_thread.h"

namespace spillway::spill {

// Thread-safe. None of these is called in the commit queue.
class MainOnly {
 public:
  // Largest rest that is brought back while writers to the spill store wait. Source: guess, some tens of milliseconds
  // at 200 MB/s.
  static constexpr std::uint64_t kSmallRest = std::uint64_t{4} << 20;

  MainOnly(const RollbackContext& context, BringBack& bring_back, RollbackThread& rollback)
      : context_(context), bring_back_(bring_back), rollback_(rollback) {}

  // `may_flush`: the action may wait for a flush. The user has not paused background work, or a pause waits for the
  // action.
  using Action = std::function<rocksdb::Status(bool may_flush)>;
  // Runs `action` in the commit queue, with BringBack's mutex held, while nothing lies in the spill store. Writes are
  // diverted until all but a small rest is back; those that come later wait for the rest and for `action`, which
  // therefore has to be short. `written`: of a database with transactions, where `action` may write any key.
  rocksdb::Status run(const Action& action, KeyVersions* written = nullptr) EXCLUDES(bring_back_.mutex());
  // The same without waiting. Does nothing if a rollback is in progress, rollbacks are paused, or more than
  // `most_bytes` are left in the spill store.
  enum class Rest : std::uint8_t { not_now, too_large, brought_back, failed };
  Rest try_run(std::uint64_t most_bytes, const std::function<void()>& action) EXCLUDES(bring_back_.mutex());
  // Runs `action`, which gives RocksDB a later sequence number without its log, in the commit queue. No diverted write
  // may know that number before it counts as durable: recovery would take the write for one after a loss.
  rocksdb::Status run_raising_sequence(const std::function<rocksdb::Status()>& action);
  // Ingests files of the user's by `ingest`. `may_flush`: as the user says (allow_blocking_flush).
  rocksdb::Status ingest(bool may_flush, const std::function<rocksdb::Status()>& ingest, KeyVersions* versions);

 private:
  // One round. Returns nothing if too much is left for it, or RocksDB has no room.
  std::optional<rocksdb::Status> try_round(int round, const Action& action, KeyVersions* written)
      EXCLUDES(bring_back_.mutex());

  const RollbackContext& context_;
  BringBack& bring_back_;
  RollbackThread& rollback_;
};

}  // namespace spillway::spill
