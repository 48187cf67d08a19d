// Lists of RocksDB's files. Those who copy them get files that hold everything that was acknowledged before.
#include <algorithm>
#include <chrono>
#include <limits>
#include <thread>

#include "spill/db/db_impl.h"

namespace spillway::spill {
namespace {

constexpr std::chrono::milliseconds kLookAgain{2};
// Source: guess, many memtables of RocksDB's default size.
constexpr std::chrono::seconds kLongestFlush{30};

// RocksDB 7.8.3 tells of one family's files by its SuperVersion, which may be without a table whose flush it has waited
// for, if another thread wrote that to the MANIFEST (docs/decisions/0016). Of all families it tells by what is in
// there.
void show_current(rocksdb::DB& db, rocksdb::ColumnFamilyMetaData* metadata) {
  std::vector<rocksdb::ColumnFamilyMetaData> all;
  db.GetAllColumnFamilyMetaData(&all);
  const auto is_it = [&](const rocksdb::ColumnFamilyMetaData& one) { return one.name == metadata->name; };
  const auto newest = std::find_if(all.rbegin(), all.rend(), is_it);  // others of the name are dropped
  if (newest == all.rend()) return;
  metadata->size = newest->size;
  metadata->file_count = newest->file_count;
  metadata->levels.swap(newest->levels);
  metadata->blob_file_size = newest->blob_file_size;
  metadata->blob_file_count = newest->blob_file_count;
  metadata->blob_files.swap(newest->blob_files);
}

}  // namespace

using rocksdb::ColumnFamilyHandle;
using rocksdb::Status;

Status DbImpl::DisableFileDeletions() {
  const Status status = base().DisableFileDeletions();
  if (status.ok()) copying_.begin();
  return status;
}

Status DbImpl::EnableFileDeletions(bool force) {
  const Status copied = copying_.end(force);
  const Status enabled = base().EnableFileDeletions(force);
  return copied.ok() ? enabled : copied;
}

// With atomic_flush in one call, for all of them have to be of one moment; RocksDB leaves out those that are dropped.
// Else one by one, for RocksDB would end with the first that is.
Status DbImpl::flush_all_families() {
  std::vector<std::uint32_t> ids;
  families_.for_each([&](const ColumnFamily& family) { ids.push_back(family.id); });
  rocksdb::FlushOptions options;
  options.allow_write_stall = true;  // nobody sleeps in it
  std::vector<UsedColumnFamily> in_use;
  std::vector<ColumnFamilyHandle*> handles;
  for (const std::uint32_t id : ids) {
    const UsedColumnFamily& family = in_use.emplace_back(families_.use(id));
    if (family.handle != nullptr && !family.is_dropped) handles.push_back(family.handle);
  }
  const auto flush = [&](const std::vector<ColumnFamilyHandle*>& some) {
    const Status status = base().Flush(options, some);
    return status.IsColumnFamilyDropped() ? Status() : status;
  };
  Status status;
  if (user_options_->database().atomic_flush) status = flush(handles);
  for (auto* const handle : handles) {
    if (status.ok() && !user_options_->database().atomic_flush) status = flush({handle});
  }
  return status.ok() && !ingested_files_->may_ingest() ? wait_for_flushes(ids) : status;
}

// All that has to be flushed is flushed by flush_all_families.
bool DbImpl::knows_every_family() const {
  bool result = !root_handed_out_.load(std::memory_order_acquire);
  families_.for_each([&](const ColumnFamily& family) { result &= family.handle != nullptr || family.is_dropped; });
  return result;
}

// RocksDB 7.8.3 does not wait for a flush while it takes itself for stopped (IngestedFiles::may_ingest), and says OK.
Status DbImpl::wait_for_flushes(const std::vector<std::uint32_t>& ids) {
  const auto began = std::chrono::steady_clock::now();
  for (const std::uint32_t id : ids) {
    for (;;) {
      std::uint64_t waiting = 0;
      {
        const UsedColumnFamily family = families_.use(id);
        if (family.handle == nullptr || family.is_dropped) break;
        (void)base().GetIntProperty(family.handle, rocksdb::DB::Properties::kNumImmutableMemTable, &waiting);
      }
      if (waiting == 0) break;
      if (Status status = error_of_rocksdb(); !status.ok()) return status;
      if (stopping_.load(std::memory_order_acquire)) return Status::ShutdownInProgress();
      if (std::chrono::steady_clock::now() - began > kLongestFlush) {
        return Status::TimedOut("RocksDB has not come to the end of a flush");
      }
      std::this_thread::sleep_for(kLookAgain);
    }
  }
  return {};
}

// In the commit queue, where nobody waits for what is paused. RocksDB's own flush would wait for the end of a stall
// before it begins, so `call` is to ask for none, unless there are families that only RocksDB knows.
Status DbImpl::with_flushing(bool may_flush, const std::function<Status(bool flushes)>& call) {
  if (!may_flush && are_memtables_empty()) return call(false);
  if (!may_flush) {
    return Status::Aborted("background work is paused, and nothing can be flushed",
                           "call ContinueBackgroundWork first");
  }
  const bool flushes = !knows_every_family() || user_options_->database().allow_2pc;  // then RocksDB does in any case
  const Status flushed = flushes && ingested_files_->may_ingest() ? Status() : flush_all_families();
  return flushed.ok() ? call(flushes) : flushed;
}

// Without the logs of what is in tables by now, as RocksDB lists them where it has flushed itself.
Status DbImpl::list_without_logs(rocksdb::LiveFilesStorageInfoOptions options,
                                 std::vector<rocksdb::LiveFileStorageInfo>* files) {
  std::uint64_t oldest = 0;
  base().GetIntProperty(rocksdb::DB::Properties::kMinLogNumberToKeep, &oldest);
  options.wal_size_for_flush = std::numeric_limits<std::uint64_t>::max();
  const Status status = base().GetLiveFilesStorageInfo(options, files);
  std::erase_if(*files, [&](const rocksdb::LiveFileStorageInfo& one) {
    return one.file_type == rocksdb::kWalFile && one.file_number < oldest;
  });
  return status;
}

// Everybody else is told of the files as they are, as of a RocksDB whose memtables are not in them either.
Status DbImpl::list_files(const std::function<Status()>& list) {
  if (!copying_.is_this_thread()) return list();
  const auto list_though_paused = [&] {  // then nothing can be flushed, and RocksDB waits for nobody here
    copying_.failed(Status::Aborted("background work is paused, so the lists of files were not whole",
                                    "call ContinueBackgroundWork first"));
    return list();
  };
  if (rollback_pause_.is_paused()) return list_though_paused();
  const Status status = with_main_only([&] {
    if (!may_flush_alone_) return list_though_paused();
    const Status flushed = flush_all_families();
    return flushed.ok() ? list() : flushed;
  });
  if (!status.ok()) copying_.failed(status);
  return status;
}

Status DbImpl::GetLiveFilesChecksumInfo(rocksdb::FileChecksumList* files) {
  return list_files([&] { return base().GetLiveFilesChecksumInfo(files); });
}

void DbImpl::GetLiveFilesMetaData(std::vector<rocksdb::LiveFileMetaData>* files) {
  (void)list_files([&] {
    base().GetLiveFilesMetaData(files);
    return Status();
  });
}

void DbImpl::GetColumnFamilyMetaData(ColumnFamilyHandle* family, rocksdb::ColumnFamilyMetaData* metadata) {
  (void)list_files([&] {
    base().GetColumnFamilyMetaData(family, metadata);
    if (copying_.is_this_thread() && !families_.of(family->GetID()).is_dropped) show_current(base(), metadata);
    return Status();
  });
}

void DbImpl::GetAllColumnFamilyMetaData(std::vector<rocksdb::ColumnFamilyMetaData>* metadata) {
  (void)list_files([&] {
    base().GetAllColumnFamilyMetaData(metadata);
    std::erase_if(*metadata, [](const rocksdb::ColumnFamilyMetaData& one) { return is_guard(one.name); });
    return Status();
  });
}

Status DbImpl::GetLiveFiles(std::vector<std::string>& files, std::uint64_t* manifest_bytes, bool flush_memtable) {
  return with_main_only([&] {
    // What was put back, and maybe flushed by the user before, is in memtables.
    const bool flushes = flush_memtable || (has_put_back() && may_flush_alone_);
    const auto list = [&](bool by_rocksdb) {
      copying_.listed(counts_.rollbacks_by_ingest.load());
      return binding_->without_guard([&] { return base().GetLiveFiles(files, manifest_bytes, by_rocksdb); });
    };
    return flushes ? with_flushing(may_flush_alone_, list) : list(false);
  });
}

// As RocksDB understands LiveFilesStorageInfoOptions::wal_size_for_flush, for which it does not look with allow_2pc.
Status DbImpl::have_logs_grown_to(std::uint64_t bytes, bool* result) {
  *result = bytes == 0 || user_options_->database().allow_2pc;
  if (*result || bytes == std::numeric_limits<std::uint64_t>::max()) return {};
  rocksdb::VectorLogPtr logs;
  const Status status = base().GetSortedWalFiles(logs);
  std::uint64_t total = 0;
  for (const auto& log : logs) total += log->SizeFileBytes();
  *result = total >= bytes;
  return status;
}

Status DbImpl::GetLiveFilesStorageInfo(const rocksdb::LiveFilesStorageInfoOptions& options,
                                       std::vector<rocksdb::LiveFileStorageInfo>* files) {
  const auto list = [&](bool by_rocksdb) {
    return binding_->without_guard([&] {
      return by_rocksdb ? base().GetLiveFilesStorageInfo(options, files) : list_without_logs(options, files);
    });
  };
  return with_main_only([&] {
    bool flushes = false;
    const Status status = have_logs_grown_to(options.wal_size_for_flush, &flushes);
    if (!status.ok()) return status;
    if (flushes) return with_flushing(may_flush_alone_, list);
    return binding_->without_guard([&] { return base().GetLiveFilesStorageInfo(options, files); });
  });
}

Status DbImpl::GetSortedWalFiles(rocksdb::VectorLogPtr& files) {
  return with_main_only([&] {
    if (copying_.has_listed_before(counts_.rollbacks_by_ingest.load())) {
      return Status::Aborted(
          "what was diverted has become tables since GetLiveFiles, which are neither in its list nor in a log",
          "call GetLiveFiles again");
    }
    return base().GetSortedWalFiles(files);
  });
}

Status DbImpl::GetCurrentWalFile(std::unique_ptr<rocksdb::LogFile>* file) {
  return with_main_only([&] { return base().GetCurrentWalFile(file); });
}

}  // namespace spillway::spill
