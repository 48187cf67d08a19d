// Flushes of RocksDB's memtables that this library requests.
#include <chrono>
#include <thread>

#include "spill/compat/file_ingestion.h"
#include "spill/main_db/main_db.h"

namespace spillway::spill {
namespace {

using rocksdb::ColumnFamilyHandle;
using rocksdb::Status;

// RocksDB flushes its memtables before it ingests, while the gate is closed. Larger memtables are flushed before, while
// writes continue, so that the gate is closed for milliseconds. Source: guess, between the cost of one more small L0
// file and that of a longer closed gate.
constexpr std::uint64_t kLargeMemtable = std::uint64_t{4} << 20;
constexpr std::chrono::milliseconds kLookAtFlushAgain{2};
// Source: guess, many memtables of RocksDB's default size.
constexpr std::chrono::seconds kLongestFlush{30};

// RocksDB skips dropped families.
Status flush_at_once(rocksdb::DB& db, const std::vector<ColumnFamilyHandle*>& families) {
  rocksdb::FlushOptions options;
  options.allow_write_stall = true;  // no writer of this library blocks inside RocksDB
  const Status status = db.Flush(options, families);
  return status.IsColumnFamilyDropped() ? Status() : status;
}

}  // namespace

Status MainDb::flush_large_memtables() {
  std::vector<std::uint32_t> large;
  families_.for_each([&](const ColumnFamily& family) {
    std::uint64_t bytes = 0;
    if (family.handle == nullptr) return;
    db_->GetIntProperty(family.handle, rocksdb::DB::Properties::kCurSizeActiveMemTable, &bytes);
    if (bytes > kLargeMemtable) large.push_back(family.id);
  });
  if (!large.empty() && user_options().database().atomic_flush) return flush_all_families();
  for (const std::uint32_t id : large) {
    const UsedColumnFamily family = families_.use(id);
    if (family.handle == nullptr) continue;
    if (Status status = flush_at_once(*db_, {family.handle}); !status.ok()) return status;
  }
  return {};
}

bool MainDb::are_memtables_empty(const ColumnFamily& family) const {
  std::uint64_t active = 0;
  std::uint64_t waiting = 0;
  db_->GetIntProperty(family.handle, rocksdb::DB::Properties::kNumEntriesActiveMemTable, &active);
  db_->GetIntProperty(family.handle, rocksdb::DB::Properties::kNumImmutableMemTable, &waiting);
  return active + waiting == 0;
}

Status MainDb::flush_memtables_of(const ColumnFamily& family) {
  if (are_memtables_empty(family)) return {};
  if (user_options().database().atomic_flush) return flush_all_families();
  return flush_at_once(*db_, {family.handle});
}

// RocksDB itself flushes those that have a key between the file's first and last one.
Status MainDb::flush_before_ingestion(const std::vector<ColumnFamilyHandle*>& families) {
  if (kIngestsOverMemtables) return {};
  if (user_options().database().atomic_flush) return flush_all_families();
  for (auto* const family : families) {
    if (Status status = flush_at_once(*db_, {family}); !status.ok()) return status;
  }
  return {};
}

// RocksDB flushes in the pool of compactions when the other pool has no thread. Its Open gives that pool threads, and
// the user can take them away afterwards.
void MainDb::hold_compactions(MainOrder::Until until) {
  db_->GetEnv()->IncBackgroundThreadsIfNeeded(1, rocksdb::Env::HIGH);
  parts_.order->hold_compactions(until);
}

// Without atomic_flush one by one, because RocksDB stops at the first dropped one.
Status MainDb::flush_all_families() {
  std::vector<std::uint32_t> ids;
  families_.for_each([&](const ColumnFamily& family) { ids.push_back(family.id); });
  std::vector<UsedColumnFamily> in_use;
  std::vector<ColumnFamilyHandle*> handles;
  for (const std::uint32_t id : ids) {
    const UsedColumnFamily& family = in_use.emplace_back(families_.use(id));
    if (family.handle != nullptr && !family.is_dropped) handles.push_back(family.handle);
  }
  const bool is_atomic = user_options().database().atomic_flush;
  Status status;
  if (is_atomic) status = flush_at_once(*db_, handles);
  for (auto* const handle : handles) {
    if (status.ok() && !is_atomic) status = flush_at_once(*db_, {handle});
  }
  return status.ok() && !ingested_files().may_ingest() ? wait_for_flushes(ids) : status;
}

// While RocksDB 7.8.3 counts as stopped (IngestedFiles::may_ingest), it returns OK without waiting for a flush.
Status MainDb::wait_for_flushes(const std::vector<std::uint32_t>& families) {
  const auto began = std::chrono::steady_clock::now();
  for (const std::uint32_t id : families) {
    for (;;) {
      std::uint64_t waiting = 0;
      {
        const UsedColumnFamily family = families_.use(id);
        if (family.handle == nullptr || family.is_dropped) break;
        (void)db_->GetIntProperty(family.handle, rocksdb::DB::Properties::kNumImmutableMemTable, &waiting);
      }
      if (waiting == 0) break;
      if (Status status = error(); !status.ok()) return status;
      if (is_stopping()) return Status::ShutdownInProgress();
      if (std::chrono::steady_clock::now() - began > kLongestFlush) {
        return Status::TimedOut("RocksDB has not come to the end of a flush");
      }
      std::this_thread::sleep_for(kLookAtFlushAgain);
    }
  }
  return {};
}

}  // namespace spillway::spill
