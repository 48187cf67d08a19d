// Where RocksDB has put the files that it ingested.
//
// IngestExternalFiles chooses a file's level by what the family's SuperVersion shows. A flush or a compaction of the
// family whose MANIFEST record another thread wrote is part of the current Version before it is part of the
// SuperVersion (RocksDB 7.8.3, db/external_sst_file_ingestion_job.cc). An ingestion in between overlooks what was moved
// and puts the file below older versions of its keys, which readers then find. So its level is checked afterwards,
// and a file that lies too deep is ingested once more: above the file that was misplaced, since it has the same keys
// (docs/decisions/0016).
#pragma once

#include <rocksdb/comparator.h>
#include <rocksdb/db.h>
#include <rocksdb/listener.h>
#include <rocksdb/metadata.h>

#include <atomic>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "base/mutex.h"
#include "spill/store/store.h"

namespace spillway::spill {

using FileNumbers = std::unordered_set<std::uint64_t>;

// Whether each of those files of the family lies above everything older with which its range of keys overlaps. May be
// false where only ranges overlap and no key does. `before`: the latest sequence number when they were ingested.
bool lie_above_older(const rocksdb::ColumnFamilyMetaData& family, const rocksdb::Comparator& order,
                     const FileNumbers& ingested, std::uint64_t before);

// Among RocksDB's listeners. Knows the numbers that RocksDB gives to files.
class IngestedFiles final : public rocksdb::EventListener {
 public:
  // Announces that the file at that path is about to be ingested.
  void expect(const std::string& path);
  // Nothing: it was not ingested. It is not expected any more.
  std::optional<std::uint64_t> take(const std::string& path);

  // Not once RocksDB has had an error that stopped it, until the database is reopened. RocksDB 7.8.3 takes itself for
  // stopped when it has recovered from one (db/error_handler.cc, ClearBGError), and gives a file that is ingested then
  // the number 0 (db/db_impl/db_impl.cc, ReserveFileNumbersBeforeIngestion), or ends the process where it has
  // assertions.
  bool may_ingest() const { return !has_failed_.load(std::memory_order_acquire); }
  // It takes itself for stopped, for certain. (From what it takes for a passing failure it may recover in another way.)
  bool is_stuck() const { return is_stuck_.load(std::memory_order_acquire); }
  bool is_drive_full() const { return is_drive_full_.load(std::memory_order_acquire); }  // says the last one
  // Also one that did not stop it, or is over.
  bool has_any_error() const { return has_any_error_.load(std::memory_order_acquire); }
  // How many errors RocksDB has reported that stop its background work until it has recovered, and the last one.
  std::uint64_t error_count() const { return error_count_.load(std::memory_order_acquire); }
  rocksdb::Status last_error() const;
  static rocksdb::Status refusal();

  void OnExternalFileIngested(rocksdb::DB* db, const rocksdb::ExternalFileIngestionInfo& info) override;
  void OnBackgroundError(rocksdb::BackgroundErrorReason reason, rocksdb::Status* error) override;

 private:
  std::atomic<bool> has_any_error_{false};
  std::atomic<bool> is_drive_full_{false};
  std::atomic<bool> has_failed_{false};
  std::atomic<bool> is_stuck_{false};
  std::atomic<std::uint64_t> error_count_{0};
  mutable Mutex mutex_;
  rocksdb::Status last_error_ GUARDED_BY(mutex_);
  // By path; the user's files are not in it.
  std::unordered_map<std::string, std::optional<std::uint64_t>> numbers_ GUARDED_BY(mutex_);
};

// How often the same files are ingested, when RocksDB refuses or misplaces them because a flush or a compaction is just
// ending. Each time, misplaced files get a higher level. Source: guess, twice the levels of a default RocksDB and more.
inline constexpr int kMostIngestions = 16;

// Ingests and looks: `lies_above_older` is true also where nothing was ingested. `told` is among the database's
// listeners. REQUIRES: no writes to it meanwhile, no compaction begins, and the handles stay.
rocksdb::Status ingest_and_look(rocksdb::DB& db, IngestedFiles& told,
                                const std::vector<rocksdb::IngestExternalFileArg>& arguments, bool* lies_above_older);

}  // namespace spillway::spill
