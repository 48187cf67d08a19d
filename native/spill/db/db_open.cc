// spillway::DB::Open: refuses what is not supported, opens RocksDB without its slowdown, and the spill store.
#include <rocksdb/env.h>

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <filesystem>
#include <iterator>
#include <set>
#include <system_error>
#include <utility>

#include "spill/compat/db_out.h"
#include "spill/compat/library_version.h"
#include "spill/compat/rocksdb_calls.h"
#include "spill/db/db_impl.h"
#include "spill/db/recovery.h"
#include "spill/main_db/binding.h"
#include "spill/main_db/guarded_env.h"
#include "spill/main_db/main_logs.h"
#include "spill/store/region/region_store.h"

namespace spillway {

using rocksdb::Status;
using spill::Binding;
using spill::DbImpl;

namespace {

Status refuse(const rocksdb::DBOptions& options) {
  const auto no = [](const char* what) {
    return Status::NotSupported(std::string("spillway::DB does not support ") + what);
  };
  if (options.unordered_write) return no("unordered_write: what survives a crash would not be a prefix");
  if (options.two_write_queues) return no("two_write_queues: what survives a crash would not be a prefix");
  if (options.wal_filter != nullptr) return no("wal_filter: it has one of its own");
  if (options.allow_mmap_writes) return no("allow_mmap_writes: RocksDB's log could not be made durable on demand");
  if (options.allow_ingest_behind) return no("allow_ingest_behind: what is brought back is newer, not older");
  const std::string refused = spill::refused_option(options);
  return refused.empty() ? Status() : no(refused.c_str());
}

// RocksDB removes files that it does not know from its own directories.
Status check_directories(const rocksdb::DBOptions& options, const SpillOptions& spill, const std::string& name,
                         const std::vector<rocksdb::ColumnFamilyDescriptor>& families) {
  std::vector<std::string> of_rocksdb{options.wal_dir};
  for (const rocksdb::DbPath& one : options.db_paths) of_rocksdb.push_back(one.path);
  for (const auto& family : families) {
    for (const rocksdb::DbPath& one : family.options.cf_paths) of_rocksdb.push_back(one.path);
  }
  const auto plain = [](const std::string& path) {  // links are resolved in the part that exists
    std::error_code not_followed;
    const auto absolute = std::filesystem::absolute(path);
    const auto canonical = std::filesystem::weakly_canonical(absolute, not_followed);
    const std::string normal = (not_followed ? absolute : canonical).lexically_normal().string();
    return normal.ends_with('/') ? normal.substr(0, normal.size() - 1) : normal;
  };
  for (const std::string& ours : {spill::sorted_directory_of(name), spill.path}) {
    for (const std::string& theirs : of_rocksdb) {
      if (theirs.empty() || ours.empty() || plain(theirs) != plain(ours)) continue;
      return Status::InvalidArgument(theirs + " is Spillway's directory",
                                     "give RocksDB another one in wal_dir, db_paths and cf_paths");
    }
  }
  return {};
}

// The spill store that Open finds, and its contents.
class FoundStore {
 public:
  FoundStore(const rocksdb::DBOptions& options, const SpillOptions& spill, std::string name)
      : options_(options),
        spill_(spill),
        name_(std::move(name)),
        directory_(spill.path.empty() ? spill::sorted_directory_of(name_) : spill.path),
        was_there_(can_be_read()) {}
  // RocksDB did not open. Removes a directory that was created for the store, if it contains only the store's lock.
  void remove_created_directory() {
    binding.reset();
    store.reset();
    if (was_there_) return;
    (void)options_.env->DeleteFile(directory_ + "/LOCK");
    (void)options_.env->DeleteDir(directory_);
  }

  // If the database does not exist yet, the directory above the store's may not exist either.
  bool can_be_read() const { return spill_.store != nullptr || options_.env->FileExists(directory_).ok(); }
  bool is_read() const { return store != nullptr; }

  // Refuses a store that does not belong to the database whose MANIFEST has these families.
  Status read(const std::vector<std::string>& families) {
    const std::string location = spill_.store == nullptr ? directory_ : spill::kOwnStore;
    if (const auto guard = spill::newest_guard(families); guard && !can_be_read()) {
      // A missing store is not created here.
      spill::Pairing pairing;
      pairing.database = name_;
      pairing.location = location;
      pairing.guard = guard;
      return spill::check_pairing(pairing);
    }
    Status status = open();
    if (!status.ok()) return status;
    binding = std::make_shared<Binding>(store, name_, location);
    status = binding->check_guard(families, spill::identity_of(*options_.env, name_));
    if (status.ok()) status = read_contents(*store, &contents);
    if (status.ok()) status = binding->check_writes(contents.has_writes);
    if (status.ok() && contents.has_writes && options_.best_efforts_recovery) {
      status = Status::NotSupported(
          "spillway::DB does not support best_efforts_recovery: something is in its spill store, and RocksDB's logs "
          "would be left out, so what survives would not be a prefix; open it without, and call Rollback() and "
          "Flush()");
    }
    return status;
  }

  std::shared_ptr<spill::Store> store;
  std::shared_ptr<Binding> binding;
  spill::StoreContents contents;

 private:
  Status open() {
    store = spill_.store;
    if (store != nullptr) return {};
    spill::RegionOptions region;
    region.file_system = options_.env->GetFileSystem();
    region.directory = directory_;
    region.capacity_bytes = spill_.capacity_bytes;
    std::unique_ptr<spill::Store> made;
    Status status = open_region_store(region, &made);
    store = std::move(made);
    return status;
  }

  const rocksdb::DBOptions& options_;
  const SpillOptions& spill_;
  const std::string name_;
  const std::string directory_;
  const bool was_there_;
};

// The families to open: the user's, then the guards that the user did not name.
Status add_guards(const std::vector<std::string>& known, std::vector<rocksdb::ColumnFamilyDescriptor>* families) {
  std::vector<std::string> guards;
  std::copy_if(known.begin(), known.end(), std::back_inserter(guards), spill::is_guard);
  for (auto& family : *families) {
    if (!spill::is_guard(family.name)) continue;
    if (std::erase(guards, family.name) == 0) {
      return Status::InvalidArgument("column family \"" + family.name +
                                     "\" was Spillway's own and is gone; leave it out of those to open");
    }
    family.options = spill::guard_options();
  }
  for (std::string& guard : guards) families->emplace_back(std::move(guard), spill::guard_options());
  return {};
}

// Rollbacks and the detector need their own handles, because the user may delete a handle at any time. RocksDB returns
// one handle for each time that a family is listed. RocksDB itself keeps a handle of the default family.
void add_own(std::vector<rocksdb::ColumnFamilyDescriptor>* families) {
  std::set<std::string> seen{rocksdb::kDefaultColumnFamilyName};
  const std::vector<rocksdb::ColumnFamilyDescriptor> listed = *families;
  for (const auto& family : listed) {
    if (!spill::is_guard(family.name) && seen.insert(family.name).second) families->push_back(family);
  }
}

// A sync write that is diverted first makes RocksDB's log durable (T26). A file system that cannot sync it must be
// refused now, not at that write.
Status check_log(rocksdb::DB& base) {
  const Status status = base.FlushWAL(true);
  if (!status.IsNotSupported()) return status;
  return Status::NotSupported(
      "spillway::DB does not support a file system whose files cannot be synced while they are written to: "
      "RocksDB's log could not be made durable on demand (FSWritableFile::IsSyncThreadSafe)");
}

// RocksDB 7.8.3 keeps a log of which it has replayed nothing. After a loss of power the first record of such a log may
// be torn. RocksDB would then refuse every list of its logs, and so every checkpoint and backup, until hours after its
// next flush. Later versions delete the log when they open. Not done where RocksDB may need the log: it may have
// prepared transactions in it, or look for it because the MANIFEST names it.
void remove_unreadable_logs(rocksdb::DB& base, const rocksdb::DBOptions& options, const spill::MainLogs& logs,
                            const std::string& directory) {
  if (options.allow_2pc || options.track_and_verify_wals_in_manifest) return;
  rocksdb::VectorLogPtr readable;
  std::unique_ptr<rocksdb::LogFile> current;
  std::vector<std::string> names;
  if (!base.GetSortedWalFiles(readable).IsCorruption() || !base.GetCurrentWalFile(&current).ok() ||
      !options.env->GetChildren(directory, &names).ok()) {
    return;
  }
  for (const std::string& name : names) {  // what RocksDB has replayed of older logs is in tables
    const std::string path = directory + "/" + name;
    if (!logs.is_log(path) || std::strtoull(name.c_str(), nullptr, 10) >= current->LogNumber()) continue;
    options.env->DeleteFile(path).PermitUncheckedError();
  }
}

// Keeps of the handles the first `wanted`, which are the user's.
Status begin_opening(Binding& binding, const std::shared_ptr<rocksdb::DB>& base, std::size_t wanted,
                     std::vector<rocksdb::ColumnFamilyHandle*>* handles) {
  std::vector<rocksdb::ColumnFamilyHandle*> guards;
  std::copy_if(handles->begin(), handles->end(), std::back_inserter(guards),
               [](const auto* handle) { return spill::is_guard(handle->GetName()); });
  Status status = binding.install(base, guards);
  for (; handles->size() > wanted; handles->pop_back()) (void)base->DestroyColumnFamilyHandle(handles->back());
  return status;
}

// REQUIRES: RocksDB gave the handles to the caller.
void delete_all(const std::vector<rocksdb::ColumnFamilyHandle*>& handles) {
  for (rocksdb::ColumnFamilyHandle* handle : handles) delete handle;  // NOLINT
}

// Registers the user's options of each family. RocksDB gets them with the slowdown switched off.
Status take_options(spill::UserOptions& user_options, std::vector<rocksdb::ColumnFamilyDescriptor>* families) {
  for (auto& family : *families) {
    if (Status status = spill::check_supported(family); !status.ok()) return status;
    user_options.add(family.name, family.options);
    family.options = spill::without_slowdown(family.options);
  }
  return {};
}

Status check(const SpillOptions& options) {
  if (options.generation_bytes == 0) return Status::InvalidArgument("SpillOptions::generation_bytes must not be 0");
  if (options.store == nullptr && options.capacity_bytes < options.generation_bytes) {
    return Status::InvalidArgument("SpillOptions::capacity_bytes must be at least generation_bytes");
  }
  if (options.store != nullptr && options.store->capacity_bytes() == 0) {
    return Status::InvalidArgument("SpillOptions::store has a capacity of 0");
  }
  if (options.index_bytes == 0) return Status::InvalidArgument("SpillOptions::index_bytes must not be 0");
  if (options.poll_ms == 0) return Status::InvalidArgument("SpillOptions::poll_ms must be positive");
  return {};
}

// One call of Open. Parts that observe RocksDB from its start are created before RocksDB opens, the others after.
class Opening {
 public:
  using Handles = std::vector<rocksdb::ColumnFamilyHandle*>;

  Opening(rocksdb::DBOptions options, const SpillOptions& spill, const std::string& name)
      : user_(std::move(options)), spill_(spill), name_(name) {
    if (user_.env == nullptr) user_.env = rocksdb::Env::Default();
    main_.user_options = std::make_shared<spill::UserOptions>(user_);
  }

  // `handles`: returns those of the user's families, in the order of `column_families`.
  Status run(const std::vector<rocksdb::ColumnFamilyDescriptor>& column_families, Handles* handles, DB** db) {
    auto families = column_families;
    if (Status status = take_options(*main_.user_options, &families); !status.ok()) return status;
    add_own(&families);
    const std::size_t with_own = families.size();
    std::vector<std::string> known;
    if (Status status = spill::list_families(user_, name_, &known); !status.ok()) return status;
    if (Status status = add_guards(known, &families); !status.ok()) return status;

    // RocksDB creates the directory that may contain the store. Only an existing database has a log to filter.
    FoundStore found(user_, spill_, name_);
    Status status = !known.empty() || found.can_be_read() ? found.read(known) : Status();
    std::shared_ptr<rocksdb::DB> base;
    if (status.ok()) status = open_rocksdb(!known.empty(), found.contents.survivors, families, handles, &base);
    if (!status.ok()) {
      found.remove_created_directory();
      return status;
    }
    const auto own_begin = handles->begin() + static_cast<std::ptrdiff_t>(column_families.size());
    const auto own_end = handles->begin() + static_cast<std::ptrdiff_t>(with_own);
    const Handles own(own_begin, own_end);
    handles->erase(own_begin, own_end);
    status = check_log(*base);
    if (status.ok() && !found.is_read()) status = found.read(known);
    if (status.ok()) status = begin_opening(*found.binding, base, column_families.size(), handles);
    std::unique_ptr<DbImpl> made;  // destroyed after the handles, which RocksDB must no longer have when it closes
    if (status.ok()) status = start(base, found, own, *handles, &made);
    if (status.ok()) {
      *db = made.release();
      return status;
    }
    main_.order->let_compactions_run();
    delete_all(own);
    delete_all(*handles);
    handles->clear();
    return status;
  }

 private:
  Status open_rocksdb(bool is_there, const spill::Survivors& survivors,
                      const std::vector<rocksdb::ColumnFamilyDescriptor>& families, Handles* handles,
                      std::shared_ptr<rocksdb::DB>* base) {
    const std::string& logs = user_.wal_dir.empty() ? name_ : user_.wal_dir;
    main_.logs = std::make_shared<spill::MainLogs>(user_.env->GetFileSystem(), logs, user_.use_fsync);
    main_.order = std::make_shared<spill::MainOrder>();
    main_.ingested_files = std::make_shared<spill::IngestedFiles>();
    rocksdb::DBOptions options = user_;
    options.listeners.insert(options.listeners.end(), {detector_, handle_watcher_, main_.order, main_.ingested_files});
    const std::shared_ptr<rocksdb::Env> env =
        spill::guard_env(user_.env, name_, spill::sorted_directory_of(name_), main_.user_options, main_.logs);
    options.env = env.get();
    // The next recovery must not replay what this one leaves out of RocksDB's log.
    options.avoid_flush_during_recovery = false;
    if (is_there) options.wal_filter = main_.order->filter(survivors);
    rocksdb::DB* opened = nullptr;
    const Status status = rocksdb::DB::Open(options, name_, families, handles, spill::DbOut(&opened));
    if (!status.ok()) return status;
    base->reset(opened, [env](const rocksdb::DB* one) { delete one; });  // destroyed before its Env
    if (is_there) remove_unreadable_logs(*opened, options, *main_.logs, logs);
    return status;
  }

  Status start(const std::shared_ptr<rocksdb::DB>& base, const FoundStore& found, const Handles& own,
               const Handles& users, std::unique_ptr<DbImpl>* made) {
    main_.binding = found.binding;
    const spill::OpenedParts parts{found.store, main_, detector_, handle_watcher_};
    *made = std::make_unique<DbImpl>(base, spill_, parts);
    return (*made)->start(own, users, found.contents);
  }

  rocksdb::DBOptions user_;
  const SpillOptions& spill_;
  const std::string& name_;
  spill::MainParts main_;
  const std::shared_ptr<spill::Detector> detector_ =
      std::make_shared<spill::Detector>(spill_.divert, std::chrono::milliseconds(spill_.poll_ms));
  const std::shared_ptr<spill::HandleWatcher> handle_watcher_ = std::make_shared<spill::HandleWatcher>();
};

}  // namespace

Status DB::Open(const rocksdb::Options& options, const SpillOptions& spill, const std::string& name, DB** db) {
  std::vector<rocksdb::ColumnFamilyHandle*> handles;
  const std::vector<rocksdb::ColumnFamilyDescriptor> families{
      {rocksdb::kDefaultColumnFamilyName, rocksdb::ColumnFamilyOptions(options)}};
  Status status = Open(rocksdb::DBOptions(options), spill, name, families, &handles, db);
  if (status.ok()) delete handles.front();  // RocksDB keeps one of its own
  return status;
}

Status DB::Open(const rocksdb::DBOptions& options, const SpillOptions& spill, const std::string& name,
                const std::vector<rocksdb::ColumnFamilyDescriptor>& column_families,
                std::vector<rocksdb::ColumnFamilyHandle*>* handles, DB** db) {
  *db = nullptr;
  if (Status status = spill::check_loaded_rocksdb(); !status.ok()) return status;
  if (Status status = check(spill); !status.ok()) return status;
  if (Status status = refuse(options); !status.ok()) return status;
  if (Status status = check_directories(options, spill, name, column_families); !status.ok()) return status;
  return Opening(options, spill, name).run(column_families, handles, db);
}

}  // namespace spillway
