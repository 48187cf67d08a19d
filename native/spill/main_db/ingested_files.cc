#include "spill/main_db/ingested_files.h"

#include <algorithm>
#include <charconv>
#include <iterator>
#include <vector>

namespace spillway::spill {
namespace {

// "<directory>/000123.sst".
std::optional<std::uint64_t> number_in(const std::string& path) {
  const std::size_t slash = path.find_last_of('/');
  const char* const name = path.data() + (slash == std::string::npos ? 0 : slash + 1);
  std::uint64_t number = 0;
  const auto read = std::from_chars(name, path.data() + path.size(), number);
  return read.ec == std::errc() ? std::optional(number) : std::nullopt;
}

bool overlap(const rocksdb::SstFileMetaData& a, const rocksdb::SstFileMetaData& b, const rocksdb::Comparator& order) {
  return order.Compare(a.smallestkey, b.largestkey) <= 0 && order.Compare(b.smallestkey, a.largestkey) <= 0;
}

// How long RocksDB's thread goes on after it has recovered. Source: guess, some instructions on a very loaded machine
constexpr std::chrono::seconds kMoment{1};

}  // namespace

bool lie_above_older(const rocksdb::ColumnFamilyMetaData& family, const rocksdb::Comparator& order,
                     const FileNumbers& ingested, std::uint64_t before) {
  std::vector<const rocksdb::SstFileMetaData*> above;  // of the levels so far, without the ingested ones
  std::size_t seen = 0;
  for (const rocksdb::LevelMetaData& level : family.levels) {
    const auto is_one = [&](const rocksdb::SstFileMetaData& file) { return ingested.contains(file.file_number); };
    // L0 is searched in the order of sequence numbers, the other levels from the top.
    if (level.level == 0) {
      for (const auto& file : level.files) {
        if (!is_one(file)) above.push_back(&file);
      }
    }
    for (const auto& file : level.files) {
      if (!is_one(file)) continue;
      ++seen;
      if (level.level == 0 && file.smallest_seqno > before) continue;
      if (std::ranges::any_of(above, [&](const auto* other) { return overlap(file, *other, order); })) return false;
    }
    if (level.level == 0) continue;
    for (const auto& file : level.files) {
      if (!is_one(file)) above.push_back(&file);
    }
  }
  return seen == ingested.size();
}

void IngestedFiles::expect(const std::string& path) {
  const MutexLock lock(mutex_);
  numbers_[path] = std::nullopt;
}

std::optional<std::uint64_t> IngestedFiles::take(const std::string& path) {
  const MutexLock lock(mutex_);
  const auto found = numbers_.find(path);
  if (found == numbers_.end()) return std::nullopt;
  const std::optional<std::uint64_t> number = found->second;
  numbers_.erase(found);
  return number;
}

void IngestedFiles::OnExternalFileIngested(rocksdb::DB*, const rocksdb::ExternalFileIngestionInfo& info) {
  const MutexLock lock(mutex_);
  if (const auto found = numbers_.find(info.external_file_path); found != numbers_.end()) {
    found->second = number_in(info.internal_file_path);
  }
}

// RocksDB reports a transient failure before it has set a severity. It retries a compaction that failed so.
void IngestedFiles::OnBackgroundError(rocksdb::BackgroundErrorReason reason, rocksdb::Status* error) {
  is_drive_full_.store(error->IsNoSpace(), std::memory_order_release);
  has_any_error_.store(true, std::memory_order_release);
  if (error->severity() != rocksdb::Status::kNoError) {
    {
      const MutexLock lock(mutex_);
      last_error_ = *error;
    }
    error_count_.fetch_add(1, std::memory_order_release);
  }
  if (error->severity() == rocksdb::Status::kSoftError) return;
  const bool passes = error->severity() == rocksdb::Status::kNoError;
  if (passes && reason == rocksdb::BackgroundErrorReason::kCompaction) return;
  if (!passes) is_stuck_.store(true, std::memory_order_release);
  has_failed_.store(true, std::memory_order_release);
  recovers_by_itself_.store(false, std::memory_order_release);  // unless the call below follows
}

// RocksDB announces only a recovery that it may be kept from: the one from a full drive.
void IngestedFiles::OnErrorRecoveryBegin(rocksdb::BackgroundErrorReason, rocksdb::Status, bool* auto_recovery) {
  if (by_hand_.load() > 0) *auto_recovery = false;
  recovers_by_itself_.store(*auto_recovery, std::memory_order_release);
}

void IngestedFiles::OnErrorRecoveryCompleted(rocksdb::Status) {
  if (by_hand_.load() == 0) recovered_.store(std::chrono::steady_clock::now());
}

bool IngestedFiles::is_just_recovered() const {
  const auto at = recovered_.load();
  return at != std::chrono::steady_clock::time_point{} && std::chrono::steady_clock::now() - at < kMoment;
}

rocksdb::Status IngestedFiles::last_error() const {
  const MutexLock lock(mutex_);
  return last_error_;
}

rocksdb::Status IngestedFiles::refusal() {
  return rocksdb::Status::Aborted(
      "RocksDB was stopped by an error in this opening, and ingests no files until the database is reopened");
}

rocksdb::Status cannot_move() {
  return rocksdb::Status::NotSupported(
      "move_files on a file system that changes a file when it is reopened, as RocksDB's encrypted one does: RocksDB "
      "could not open the table any more");
}

rocksdb::Status ingest_and_check_levels(FileIngestion& ingestion, IngestedFiles& ingested_files, bool* lies_above) {
  rocksdb::DB& db = ingestion.db();
  const std::uint64_t before = db.GetLatestSequenceNumber();
  for (const auto& one : ingestion.arguments()) {
    for (const std::string& path : one.external_files) ingested_files.expect(path);
  }
  const rocksdb::Status status = ingested_files.may_ingest() ? ingestion.commit() : IngestedFiles::refusal();
  *lies_above = true;
  for (const auto& one : ingestion.arguments()) {
    FileNumbers numbers;
    for (const std::string& path : one.external_files) {
      if (const auto number = ingested_files.take(path)) numbers.insert(*number);
    }
    if (!status.ok() || !*lies_above) continue;
    rocksdb::ColumnFamilyMetaData now;
    db.GetColumnFamilyMetaData(one.column_family, &now);
    *lies_above = numbers.size() == one.external_files.size() &&
                  lie_above_older(now, *one.column_family->GetComparator(), numbers, before);
  }
  return status;
}

}  // namespace spillway::spill
