#include "spill/db/file_lists.h"

#include <algorithm>
#include <cstdlib>
#include <limits>

#include "spill/compat/rocksdb_calls.h"

namespace spillway::spill {

using rocksdb::ColumnFamilyHandle;
using rocksdb::Status;

namespace {

// RocksDB 7.8.3 reads one family's files from its SuperVersion. That may lack a table whose flush RocksDB has waited
// for, if another thread wrote the table to the MANIFEST (docs/decisions/0016). The function for all families reads the
// current Version.
void show_current(rocksdb::DB& db, rocksdb::ColumnFamilyMetaData* metadata) {
  std::vector<rocksdb::ColumnFamilyMetaData> all;
  db.GetAllColumnFamilyMetaData(&all);
  const auto is_it = [&](const rocksdb::ColumnFamilyMetaData& one) { return one.name == metadata->name; };
  const auto newest = std::find_if(all.rbegin(), all.rend(), is_it);  // earlier ones of that name are dropped
  if (newest == all.rend()) return;
  metadata->size = newest->size;
  metadata->file_count = newest->file_count;
  metadata->levels.swap(newest->levels);
  metadata->blob_file_size = newest->blob_file_size;
  metadata->blob_file_count = newest->blob_file_count;
  metadata->blob_files.swap(newest->blob_files);
}

// A property of tables that SstFileWriter has made. Source: RocksDB 7.8.3, table/sst_file_writer_collectors.h
constexpr const char* kIngestedProperty = "rocksdb.external_sst_file.version";

std::uint64_t file_number_of(const std::string& path) {
  return std::strtoull(path.c_str() + path.find_last_of('/') + 1, nullptr, 10);
}

// Whether CreateColumnFamilyWithImport may read an older version where the family itself has a newer one. A level may
// have several tables of one user key, in the order of sequence numbers: RocksDB moves level-0 tables that have no
// other key without merging them. The sequence number of an ingested table is not in the table, and an import orders
// tables by what is in them (docs/decisions/0014).
Status check_can_be_imported(rocksdb::DB& db, ColumnFamilyHandle* family,
                             const rocksdb::ColumnFamilyMetaData& metadata) {
  const rocksdb::Comparator& order = *family->GetComparator();
  std::vector<std::uint64_t> neighbours;  // that share a user key
  for (const rocksdb::LevelMetaData& level : metadata.levels) {
    if (level.level == 0) continue;
    for (std::size_t i = 1; i < level.files.size(); ++i) {
      if (order.Compare(level.files[i - 1].largestkey, level.files[i].smallestkey) < 0) continue;
      neighbours.insert(neighbours.end(), {level.files[i - 1].file_number, level.files[i].file_number});
    }
  }
  if (neighbours.empty()) return {};
  rocksdb::TablePropertiesCollection tables;
  if (Status status = db.GetPropertiesOfAllTables(family, &tables); !status.ok()) return status;
  for (const auto& [path, table] : tables) {
    if (std::ranges::find(neighbours, file_number_of(path)) == neighbours.end()) continue;
    if (!table->user_collected_properties.contains(kIngestedProperty)) continue;
    return Status::Aborted("an import of these tables would read an older version of a key",
                           "call CompactRange with BottommostLevelCompaction::kForce for the column family first");
  }
  return {};
}

}  // namespace

Status FileLists::disable_file_deletions() {
  const Status status = main_.db().DisableFileDeletions();
  if (status.ok()) copying_.begin();
  return status;
}

Status FileLists::enable_file_deletions(bool force) {
  const Status copied = copying_.end(force);
  const Status enabled = spill::enable_file_deletions(main_.db(), force);
  return copied.ok() ? enabled : copied;
}

// Whether flush_all_families() flushes every family that RocksDB has.
bool FileLists::knows_every_family() const {
  bool result = !main_.is_handed_out();
  live_.families().for_each(
      [&](const ColumnFamily& family) { result &= family.handle != nullptr || family.is_dropped; });
  return result;
}

// Runs in the commit queue, so it must not wait for paused work. RocksDB's own flush would first wait for the end of a
// stall. Therefore `call` must not request one, unless some families are known only to RocksDB.
Status FileLists::with_flushing(bool may_flush, const std::function<Status(bool flushes)>& call) {
  if (!may_flush && main_.are_memtables_empty()) return call(false);
  if (!may_flush) {
    return Status::Aborted("background work is paused, and nothing can be flushed",
                           "call ContinueBackgroundWork first");
  }
  const bool flushes =
      !knows_every_family() || main_.user_options().database().allow_2pc;  // with allow_2pc RocksDB always flushes
  const Status flushed = flushes && main_.ingested_files().may_ingest() ? Status() : main_.flush_all_families();
  return flushed.ok() ? call(flushes) : flushed;
}

// Omits the logs whose contents are in tables, as RocksDB does after a flush of its own.
Status FileLists::list_without_logs(rocksdb::LiveFilesStorageInfoOptions options,
                                    std::vector<rocksdb::LiveFileStorageInfo>* files) {
  std::uint64_t oldest = 0;
  main_.db().GetIntProperty(rocksdb::DB::Properties::kMinLogNumberToKeep, &oldest);
  options.wal_size_for_flush = std::numeric_limits<std::uint64_t>::max();
  const Status status = main_.db().GetLiveFilesStorageInfo(options, files);
  std::erase_if(*files, [&](const rocksdb::LiveFileStorageInfo& one) {
    return one.file_type == rocksdb::kWalFile && one.file_number < oldest;
  });
  return status;
}

// A thread that does not copy files gets the current list, without RocksDB's memtables.
Status FileLists::list_whole(const std::function<Status()>& list) {
  if (!copying_.is_this_thread()) return list();
  const auto list_though_paused = [&] {  // nothing can be flushed during a pause, and RocksDB does not wait here
    copying_.note_failure(Status::Aborted("background work is paused, so the lists of files were not whole",
                                          "call ContinueBackgroundWork first"));
    return list();
  };
  if (rollbacks_.bring_back.pause().is_paused()) return list_though_paused();
  const Status status = rollbacks_.main_only.run([&](bool may_flush) {
    if (!may_flush) return list_though_paused();
    const Status flushed = main_.flush_all_families();
    return flushed.ok() ? list() : flushed;
  });
  if (!status.ok()) copying_.note_failure(status);
  return status;
}

void FileLists::list_files(const std::function<void()>& list) {
  (void)list_whole([&] {
    list();
    return Status();
  });
}

Status FileLists::get_live_files_checksum_info(rocksdb::FileChecksumList* files) {
  return list_whole([&] { return main_.db().GetLiveFilesChecksumInfo(files); });
}

void FileLists::get_live_files_meta_data(std::vector<rocksdb::LiveFileMetaData>* files) {
  (void)list_whole([&] {
    main_.db().GetLiveFilesMetaData(files);
    return Status();
  });
}

void FileLists::get_column_family_meta_data(ColumnFamilyHandle* family, rocksdb::ColumnFamilyMetaData* metadata) {
  (void)list_whole([&] {
    main_.db().GetColumnFamilyMetaData(family, metadata);
    if (!copying_.is_this_thread() || live_.families().of(family->GetID()).is_dropped) return Status();
    show_current(main_.db(), metadata);
    return check_can_be_imported(main_.db(), family, *metadata);
  });
}

void FileLists::get_all_column_family_meta_data(std::vector<rocksdb::ColumnFamilyMetaData>* metadata) {
  (void)list_whole([&] {
    main_.db().GetAllColumnFamilyMetaData(metadata);
    std::erase_if(*metadata, [](const rocksdb::ColumnFamilyMetaData& one) { return is_guard(one.name); });
    return Status();
  });
}

Status FileLists::get_live_files(std::vector<std::string>& files, std::uint64_t* manifest_bytes, bool flush_memtable) {
  return rollbacks_.main_only.run([&](bool may_flush) REQUIRES(rollbacks_.bring_back.mutex()) {
    // Generations that were put back are in memtables, even if the user flushed before.
    const bool flushes = flush_memtable || (rollbacks_.bring_back.has_put_back() && may_flush);
    const auto list = [&](bool by_rocksdb) {
      copying_.note_listed(main_.telemetry().counts.rollbacks_by_ingest.load());
      return main_.binding().without_guard([&] { return main_.db().GetLiveFiles(files, manifest_bytes, by_rocksdb); });
    };
    return flushes ? with_flushing(may_flush, list) : list(false);
  });
}

// The meaning of LiveFilesStorageInfoOptions::wal_size_for_flush in RocksDB, which ignores it with allow_2pc.
Status FileLists::have_logs_grown_to(std::uint64_t bytes, bool* result) {
  *result = bytes == 0 || main_.user_options().database().allow_2pc;
  if (*result || bytes == std::numeric_limits<std::uint64_t>::max()) return {};
  rocksdb::VectorLogPtr logs;
  const Status status = main_.db().GetSortedWalFiles(logs);
  std::uint64_t total = 0;
  for (const auto& log : logs) total += log->SizeFileBytes();
  *result = total >= bytes;
  return status;
}

Status FileLists::get_live_files_storage_info(const rocksdb::LiveFilesStorageInfoOptions& options,
                                              std::vector<rocksdb::LiveFileStorageInfo>* files) {
  const auto list = [&](bool by_rocksdb) {
    return main_.binding().without_guard([&] {
      return by_rocksdb ? main_.db().GetLiveFilesStorageInfo(options, files) : list_without_logs(options, files);
    });
  };
  return rollbacks_.main_only.run([&](bool may_flush) {
    bool flushes = false;
    const Status status = have_logs_grown_to(options.wal_size_for_flush, &flushes);
    if (!status.ok()) return status;
    if (flushes) return with_flushing(may_flush, list);
    return main_.binding().without_guard([&] { return main_.db().GetLiveFilesStorageInfo(options, files); });
  });
}

Status FileLists::get_sorted_wal_files(rocksdb::VectorLogPtr& files) {
  return rollbacks_.main_only.run([&](bool) {
    if (copying_.has_listed_before(main_.telemetry().counts.rollbacks_by_ingest.load())) {
      return Status::Aborted(
          "what was diverted has become tables since GetLiveFiles, which are neither in its list nor in a log",
          "call GetLiveFiles again");
    }
    return main_.db().GetSortedWalFiles(files);
  });
}

Status FileLists::get_current_wal_file(std::unique_ptr<rocksdb::LogFile>* file) {
  return rollbacks_.main_only.run([&](bool) { return main_.db().GetCurrentWalFile(file); });
}

}  // namespace spillway::spill
