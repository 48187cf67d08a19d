// Calls of RocksDB's that need everything to be in RocksDB, or that change it past its log.
//
// They are made while the commit queue is held, so no write is diverted meanwhile, and one that was about to be
// diverted comes after them. What is long about them is done before: everything but a small rest is brought back while
// diversion goes on, large memtables are flushed, and files are copied to where RocksDB only has to link them.
#include <rocksdb/file_system.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <mutex>
#include <optional>

#include "spill/db/db_impl.h"
#include "spill/main_db/external_files.h"

namespace spillway::spill {
namespace {

using rocksdb::ColumnFamilyHandle;
using rocksdb::Status;

// So much is brought back while writers to the spill store wait. Source: guess, some tens of milliseconds at 200 MB/s.
constexpr std::uint64_t kSmallRest = std::uint64_t{4} << 20;
// A rollback that does not catch up with the writes that are diverted meanwhile ends with a longer wait. Source: guess.
constexpr int kMostRounds = 10;
// From the second round on, a group of diverted writes pauses for so long, twice as long in each round, so that the
// rollback catches up. Source: guess, a fifth of a millisecond in the fourth round.
constexpr std::chrono::microseconds kFirstPause{50};

// While it lives, groups of diverted writes pause.
class Paced {
 public:
  explicit Paced(std::atomic<std::int64_t>& pause_us) : pause_us_(pause_us) {}
  ~Paced() { pause_us_.fetch_sub(added_, std::memory_order_relaxed); }
  Paced(const Paced&) = delete;
  Paced& operator=(const Paced&) = delete;
  void more() {
    const std::int64_t more = added_ == 0 ? kFirstPause.count() : added_;
    pause_us_.fetch_add(more, std::memory_order_relaxed);
    added_ += more;
  }

 private:
  std::atomic<std::int64_t>& pause_us_;
  std::int64_t added_ = 0;
};

}  // namespace

Status DbImpl::with_main_only(const std::function<Status()>& action, KeyVersions* written) {
  Paced paced(diverted_pause_us_);
  for (int round = 1;; ++round) {
    if (round > 1) paced.more();
    const bool is_paused = rollback_pause_.is_paused();  // then nothing is flushed, and no rollback begins
    if (!is_paused) {
      if (Status status = Rollback(); !status.ok()) return status;
      if (Status status = flush_large_memtables(); !status.ok()) return status;
    }
    // First: a write that holds keys may be in doubt, and wait for a rollback.
    std::optional<KeyVersions::AnyKey> any_key;
    if (written != nullptr) any_key.emplace(*written);
    std::unique_lock no_other(bringing_back_, std::defer_lock);
    if (any_key && round < kMostRounds && !no_other.try_lock()) {  // nobody has to wait for that one
      any_key.reset();
      no_other.lock();
      continue;
    }
    if (!no_other.owns_lock()) no_other.lock();
    std::uint64_t rest = 0;
    for (const auto& generation : *live()) rest += generation->user_bytes();
    if (rest > kSmallRest && round < kMostRounds && !is_paused) continue;
    Status status;
    bool has_no_room = false;
    {
      const RollbackPause::Pass pass(rollback_pause_);  // an ingestion may wait for a flush
      hold_commits([&] {
        status = bring_back_held(pass ? Way::ingest : Way::put_back);
        has_no_room = status.IsTryAgain();
        may_flush_alone_ = static_cast<bool>(pass);  // and a pause that has begun waits for that
        if (status.ok()) status = action();
      });
    }
    if (has_no_room && round < kMostRounds) continue;  // RocksDB stalls and ingests nothing
    if (any_key) any_key->is_written();
    tell_of_room();
    return status;
  }
}

Status DbImpl::with_sequence_raised(const std::function<Status()>& action) {
  Status status;
  hold_commits([&] {
    status = action();
    // Also where it failed: it may have got that far.
    const Status durable = make_main_durable();
    if (status.ok()) status = durable;
  });
  return status;
}

Status DbImpl::IngestExternalFile(ColumnFamilyHandle* family, const std::vector<std::string>& files,
                                  const rocksdb::IngestExternalFileOptions& options) {
  rocksdb::IngestExternalFileArg argument;
  argument.column_family = family;
  argument.external_files = files;
  argument.options = options;
  return IngestExternalFiles({argument});
}

Status DbImpl::IngestExternalFiles(const std::vector<rocksdb::IngestExternalFileArg>& arguments) {
  ExternalFiles files(base().GetEnv()->GetFileSystem(), sorted_directory_);
  auto linked = arguments;
  for (auto& argument : linked) {
    if (argument.options.move_files) continue;
    if (Status status = files.copy(argument.external_files, &argument.external_files); !status.ok()) return status;
    argument.options.move_files = true;  // the copies
    argument.options.failed_move_fall_back_to_copy = true;
  }
  const bool may_flush =
      std::ranges::all_of(arguments, [](const auto& one) { return one.options.allow_blocking_flush; });
  return ingest_for_user(may_flush, [&] { return base().IngestExternalFiles(linked); });
}

Status DbImpl::ingest_for_user(bool may_flush, const std::function<Status()>& ingest) {
  if (!ingested_files_->may_ingest()) return IngestedFiles::refusal();
  const auto alone = [&] {
    if (!ingested_files_->may_ingest()) return IngestedFiles::refusal();  // since everything was brought back
    Status status = sync_main_log();  // what is ingested is newer than everything in RocksDB's log
    // What was put back is in memtables that RocksDB would not have, and so not refuse to ingest over.
    if (status.ok() && !may_flush && has_put_back() && may_flush_alone_) status = flush_all_families();
    if (status.ok()) status = ingest();
    const Status durable = make_main_durable();  // it has a number, and is not in the log
    return status.ok() ? durable : status;
  };
  return with_main_only(alone, versions_.get());
}

Status DbImpl::import_column_family(const rocksdb::ColumnFamilyOptions& options, const std::string& name,
                                    const rocksdb::ImportColumnFamilyOptions& import_options,
                                    const rocksdb::ExportImportFilesMetaData& metadata, ColumnFamilyHandle** handle) {
  ExternalFiles files(base().GetEnv()->GetFileSystem(), sorted_directory_);
  auto linked = metadata;
  auto with_links = import_options;
  if (!import_options.move_files) {
    for (auto& file : linked.files) {
      std::vector<std::string> copies;
      if (Status status = files.copy({file.db_path + "/" + file.name}, &copies); !status.ok()) return status;
      file.db_path = sorted_directory_;
      file.name = copies.front().substr(sorted_directory_.size());
    }
    with_links.move_files = true;  // the copies
  }
  return with_sequence_raised(
      [&] { return base().CreateColumnFamilyWithImport(options, name, with_links, linked, handle); });
}

}  // namespace spillway::spill
