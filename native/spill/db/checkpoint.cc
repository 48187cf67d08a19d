#include "spill/db/checkpoint.h"

#include <rocksdb/file_system.h>

#include <limits>
#include <map>
#include <set>
#include <utility>

#include "base/steps.h"
#include "spill/compat/db_out.h"
#include "spill/compat/rocksdb_calls.h"
#include "spill/main_db/external_files.h"
#include "spill/main_db/ingested_files.h"

namespace spillway::spill {
namespace {

using rocksdb::ColumnFamilyDescriptor;
using rocksdb::ColumnFamilyHandle;
using rocksdb::FileSystem;
using rocksdb::IOStatus;
using rocksdb::Status;

std::string path_of(const rocksdb::LiveFileStorageInfo& file) { return file.directory + "/" + file.relative_filename; }

// Tables and blob files never change, so a link serves as a copy where the file system can make one.
IOStatus link_or_copy(FileSystem& files, const rocksdb::LiveFileStorageInfo& file, const std::string& to) {
  if (!file.replacement_contents.empty()) {
    return rocksdb::WriteStringToFile(&files, file.replacement_contents, to, /*should_sync=*/true);
  }
  const bool never_changes = file.file_type == rocksdb::kTableFile || file.file_type == rocksdb::kBlobFile;
  if (never_changes) {
    const IOStatus status = files.LinkFile(path_of(file), to, {}, nullptr);
    if (!status.IsNotSupported()) return status;
  }
  return copy_file(files, path_of(file), to, file.size);
}

IOStatus sync_directory(FileSystem& files, const std::string& path) {
  std::unique_ptr<rocksdb::FSDirectory> directory;
  IOStatus status = files.NewDirectory(path, {}, &directory, nullptr);
  return status.ok() ? directory->Fsync({}, nullptr) : status;
}

// Also removes its subdirectories, which have no subdirectories of their own.
void remove_directory(FileSystem& files, const std::string& path) {
  std::vector<std::string> names;
  if (!files.GetChildren(path, {}, &names, nullptr).ok()) return;
  for (const std::string& name : names) {
    if (name == "." || name == "..") continue;
    const std::string one = path + "/" + name;
    if (!files.DeleteFile(one, {}, nullptr).ok()) remove_directory(files, one);
  }
  files.DeleteDir(path, {}, nullptr).PermitUncheckedError();
}

// Options to open the copy in place, without the user's listeners and other shared objects.
rocksdb::DBOptions options_of_copy(rocksdb::DBOptions options) {
  options.create_if_missing = false;
  options.error_if_exists = false;
  options.listeners.clear();
  options.info_log = nullptr;
  options.statistics = nullptr;
  options.sst_file_manager = nullptr;
  options.write_buffer_manager = nullptr;
  options.wal_filter = nullptr;
  options.best_efforts_recovery = false;  // it would ignore the logs
  // A log that is copied while writes go on may end in the middle of a record.
  if (options.wal_recovery_mode == rocksdb::WALRecoveryMode::kAbsoluteConsistency) {
    options.wal_recovery_mode = rocksdb::WALRecoveryMode::kPointInTimeRecovery;
  }
  options.db_paths.clear();
  options.wal_dir.clear();
  options.db_log_dir.clear();
  return options;
}

Status drop_guards(rocksdb::DB& copy, const std::vector<ColumnFamilyHandle*>& handles) {
  for (ColumnFamilyHandle* handle : handles) {
    if (!is_guard(handle->GetName())) continue;
    if (Status status = copy.DropColumnFamily(handle); !status.ok()) return status;
  }
  return {};
}

}  // namespace

// The copy has every diverted write that was acknowledged before a write in the copied log of RocksDB.
Status CheckpointMaker::capture(Captured* captured) {
  if (!rollbacks_.bring_back.pause().is_paused()) {
    if (Status status = main_.flush_large_memtables(); !status.ok()) return status;
  }
  Status status;
  {
    const MutexLock no_change(main_.user_options().one_at_a_time());  // no family is being created
    commits_.notes.hold_commits([&] {
      captured->view = live_.view();
      captured->families = options_of_families();
      rocksdb::LiveFilesStorageInfoOptions options;
      // Writes without a log must be in a table. Otherwise the log is copied, because a flush would take longer.
      const bool flushes = main_.has_unlogged() || main_.user_options().database().allow_2pc;
      options.wal_size_for_flush = flushes ? 0 : std::numeric_limits<std::uint64_t>::max();
      if (!flushes) {
        status = main_.db().GetLiveFilesStorageInfo(options, &captured->files);
        return;
      }
      const RollbackPause::Pass pass(rollbacks_.bring_back.pause());
      status = file_lists_.with_flushing(static_cast<bool>(pass), [&](bool by_rocksdb) {
        return by_rocksdb ? main_.db().GetLiveFilesStorageInfo(options, &captured->files)
                          : file_lists_.list_without_logs(options, &captured->files);
      });
    });
  }
  steps::reached("spill.checkpoint.captured");
  return status;
}

Status CheckpointMaker::copy_files(const std::string& directory, Captured* captured) {
  FileSystem& files = *main_.db().GetEnv()->GetFileSystem();
  Status status = main_.db().DisableFileDeletions();
  if (!status.ok()) return status;
  status = capture(captured);
  for (const auto& file : captured->files) {
    if (status.ok()) status = link_or_copy(files, file, directory + "/" + file.relative_filename);
  }
  const Status enabled = enable_file_deletions(main_.db(), /*force=*/false);
  return status.ok() ? enabled : status;
}

// By name. Families for which this library has no handle are included.
CheckpointMaker::FamilyOptions CheckpointMaker::options_of_families() const {
  std::vector<ColumnFamily> all;
  live_.families().for_each([&](const ColumnFamily& family) { all.push_back(family); });
  FamilyOptions result;
  for (const ColumnFamily& one : all) {
    if (one.is_dropped) continue;
    if (one.options_without_handle != nullptr) {
      result.emplace(one.options_without_handle->name, one.options_without_handle->options);
      continue;
    }
    const UsedColumnFamily family = live_.families().use(one.id);
    if (family.handle != nullptr) result.emplace(family.handle->GetName(), families_.options_of(family.handle));
  }
  return result;
}

// The families are those of the copy, because a family of the view may have been dropped since.
Status CheckpointMaker::ingest_view(const View& view, rocksdb::DB& copy, IngestedFiles& ingested_files,
                                    const Handles& handles, const std::string& directory) {
  ColumnFamilies families;
  live_.families().for_each([&](const ColumnFamily& family) {  // only for the order of its keys
    ColumnFamily not_there = family;
    not_there.handle = nullptr;
    not_there.is_dropped = true;
    families.add(std::move(not_there));
  });
  for (ColumnFamilyHandle* handle : handles) {
    if (Status status = families.add(handle); !status.ok()) return status;
  }
  const auto is_superseded = [&](const Entry& entry) {
    const Entry* const newest = view.find(entry.column_family, entry.key());
    return newest != nullptr && newest->sequence > entry.sequence;
  };
  std::map<std::uint32_t, rocksdb::IngestExternalFileArg> arguments;
  for (const auto& generation : *view.generations) {
    std::vector<SortedFile> files;
    const MergedRun run({&generation, 1}, view.up_to, families, is_superseded);
    const Status status =
        write_sorted_files(run.next(run.bytes_left()), generation->id(), families, values_, live_.store(),
                           main_.db().GetDBOptions(), directory, main_.stopping(), &files);
    if (!status.ok()) return status;
    for (const SortedFile& file : files) {
      add_to(&arguments[file.column_family], file, main_.ingested_files().may_move());
    }
  }
  std::vector<rocksdb::IngestExternalFileArg> of_families;
  for (ColumnFamilyHandle* handle : handles) {
    const auto found = arguments.find(handle->GetID());
    if (found == arguments.end()) continue;
    found->second.column_family = handle;
    of_families.push_back(found->second);
  }
  if (of_families.empty()) return {};
  bool lies_above_older = false;
  FileIngestion ingestion(copy, of_families);
  Status status = ingestion.prepare();
  if (status.ok()) status = ingest_and_check_levels(ingestion, ingested_files, &lies_above_older);
  return status.ok() && !lies_above_older ? Status::TryAgain() : status;  // of RocksDB's own: a flush was ending
}

Status CheckpointMaker::open_copy(const std::string& directory, const FamilyOptions& known,
                                  const std::function<Status(rocksdb::DB&, IngestedFiles&, const Handles&)>& use) {
  const auto ingested_files = std::make_shared<IngestedFiles>();
  rocksdb::DBOptions options = options_of_copy(families_.database_options());
  options.listeners = {ingested_files};
  std::vector<std::string> names;
  if (Status status = rocksdb::DB::ListColumnFamilies(options, directory, &names); !status.ok()) return status;
  std::vector<ColumnFamilyDescriptor> descriptors;
  std::set<std::string> compacting;
  for (const std::string& name : names) {
    const auto found = known.find(name);
    rocksdb::ColumnFamilyOptions family = is_guard(name) ? guard_options() : rocksdb::ColumnFamilyOptions();
    if (found != known.end()) family = found->second;
    family.cf_paths.clear();
    if (!family.disable_auto_compactions) compacting.insert(name);
    // A compaction could move the ingested files before their levels are checked.
    family.disable_auto_compactions = true;
    descriptors.emplace_back(name, std::move(family));
  }
  std::unique_ptr<rocksdb::DB> copy;
  Handles handles;
  Status status = rocksdb::DB::Open(options, directory, descriptors, &handles, DbOut(&copy));
  if (!status.ok()) return status;
  status = use(*copy, *ingested_files, handles);
  for (ColumnFamilyHandle* handle : handles) {  // the OPTIONS file of the copy gets the user's value
    if (!status.ok() || !compacting.contains(handle->GetName()) || is_guard(handle->GetName())) continue;
    status = copy->SetOptions(handle, {{"disable_auto_compactions", "false"}});
  }
  for (ColumnFamilyHandle* handle : handles) (void)copy->DestroyColumnFamilyHandle(handle);
  const Status closed = copy->Close();
  return status.ok() ? closed : status;
}

Status CheckpointMaker::make(const std::string& name) {
  const std::string directory = name.substr(0, name.find_last_not_of('/') + 1);
  if (directory.empty()) return Status::InvalidArgument("invalid checkpoint directory name");
  rocksdb::Env& env = *main_.db().GetEnv();
  FileSystem& files = *env.GetFileSystem();
  const Status exists = env.FileExists(directory);
  if (exists.ok()) return Status::InvalidArgument("Directory exists");
  if (!exists.IsNotFound()) return exists;
  const std::string made = directory + ".tmp";
  const std::string sorted = made + "/spill";
  remove_directory(files, made);  // left by a checkpoint that a crash interrupted
  Status status = files.CreateDir(made, {}, nullptr);
  if (status.ok()) status = files.CreateDir(sorted, {}, nullptr);
  if (!status.ok()) return status;

  Captured captured;
  status = copy_files(made, &captured);
  if (status.ok()) {
    status = open_copy(made, captured.families,
                       [&](rocksdb::DB& copy, IngestedFiles& ingested_files, const Handles& handles) {
                         Status ingested = Status::TryAgain();
                         for (int tries = kMostIngestions; ingested.IsTryAgain() && tries > 0; --tries) {
                           ingested = ingest_view(captured.view, copy, ingested_files, handles, sorted);
                         }
                         return ingested.ok() ? drop_guards(copy, handles) : ingested;  // a plain RocksDB database
                       });
  }
  if (status.ok()) {
    remove_directory(files, sorted);
    status = sync_directory(files, made);
  }
  if (status.ok()) status = files.RenameFile(made, directory, {}, nullptr);
  if (status.ok()) status = sync_directory(files, directory);
  if (!status.ok()) remove_directory(files, made);
  return status;
}

}  // namespace spillway::spill
