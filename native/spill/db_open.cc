// spillway::DB::Open: what is refused, RocksDB without its slowdown, the store.
#include <rocksdb/env.h>

#include <utility>

#include "spill/db_impl.h"
#include "spill/guarded_env.h"
#include "spill/region_store.h"

namespace spillway {

using rocksdb::Status;
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
  return {};
}

Status open_store(const rocksdb::DBOptions& options, const SpillOptions& spill, const std::string& name,
                  std::shared_ptr<spill::Store>* store) {
  if (spill.store != nullptr) {
    *store = spill.store;
    return {};
  }
  spill::RegionOptions region;
  region.file_system = options.env->GetFileSystem();
  region.directory = spill.path.empty() ? name + "/spill" : spill.path;
  region.capacity_bytes = spill.capacity_bytes;
  std::unique_ptr<spill::Store> made;
  Status status = open_region_store(region, &made);
  *store = std::move(made);
  return status;
}

// A database has it from its first moment on.
std::string rocksdb_current(const std::string& name) { return name + "/CURRENT"; }

// A sync write that is diverted first makes what RocksDB's log holds durable (T26), and it must not be then that a file
// system turns out to have no way to.
Status check_log(rocksdb::DB& base) {
  const Status status = base.FlushWAL(true);
  if (!status.IsNotSupported()) return status;
  return Status::NotSupported(
      "spillway::DB does not support a file system whose files cannot be synced while they are written to: "
      "RocksDB's log could not be made durable on demand (FSWritableFile::IsSyncThreadSafe)");
}

Status check(const SpillOptions& options) {
  if (options.generation_bytes == 0) return Status::InvalidArgument("SpillOptions::generation_bytes must not be 0");
  if (options.store == nullptr && options.capacity_bytes < options.generation_bytes) {
    return Status::InvalidArgument("SpillOptions::capacity_bytes must be at least generation_bytes");
  }
  if (options.poll_interval.count() <= 0)
    return Status::InvalidArgument("SpillOptions::poll_interval must be positive");
  return {};
}

}  // namespace

Status DB::Open(const rocksdb::Options& options, const SpillOptions& spill, const std::string& name, DB** db) {
  std::vector<rocksdb::ColumnFamilyHandle*> handles;
  const std::vector<rocksdb::ColumnFamilyDescriptor> families{
      {rocksdb::kDefaultColumnFamilyName, rocksdb::ColumnFamilyOptions(options)}};
  Status status = Open(rocksdb::DBOptions(options), spill, name, families, &handles, db);
  if (status.ok()) delete handles.front();  // NOLINT: RocksDB keeps one of its own
  return status;
}

Status DB::Open(const rocksdb::DBOptions& options, const SpillOptions& spill, const std::string& name,
                const std::vector<rocksdb::ColumnFamilyDescriptor>& column_families,
                std::vector<rocksdb::ColumnFamilyHandle*>* handles, DB** db) {
  *db = nullptr;
  if (Status status = check(spill); !status.ok()) return status;
  if (Status status = refuse(options); !status.ok()) return status;
  rocksdb::DBOptions user = options;
  if (user.env == nullptr) user.env = rocksdb::Env::Default();
  const auto user_options = std::make_shared<spill::UserOptions>(user);
  auto families = column_families;
  for (auto& family : families) {
    if (Status status = spill::check_supported(family); !status.ok()) return status;
    user_options->add(family.name, family.options);
    family.options = spill::without_slowdown(family.options);
  }
  const auto detector = std::make_shared<spill::Detector>(spill.divert, spill.poll_interval);
  rocksdb::DBOptions with_detector = user;
  with_detector.listeners.push_back(detector);
  const auto main_order = std::make_shared<spill::MainOrder>();
  with_detector.listeners.push_back(main_order);
  const std::shared_ptr<rocksdb::Env> env =
      spill::guard_env(user.env, name, spill::sorted_directory_of(name), user_options);
  with_detector.env = env.get();
  // What recovery leaves out of RocksDB's log must not be replayed by the next.
  with_detector.avoid_flush_during_recovery = false;

  std::shared_ptr<spill::Store> store;
  spill::Remains remains;
  const auto read_store = [&] {
    Status status = open_store(user, spill, name, &store);
    return status.ok() ? read_remains(*store, &remains) : status;
  };
  // RocksDB makes the directory in which the store may be; a database that is there has a log to filter.
  if (user.env->FileExists(rocksdb_current(name)).ok()) {
    if (Status status = read_store(); !status.ok()) return status;
    with_detector.wal_filter = main_order->filter(remains.survivors);
  }
  rocksdb::DB* opened = nullptr;
  Status status = rocksdb::DB::Open(with_detector, name, families, handles, &opened);
  if (!status.ok()) return status;
  const std::shared_ptr<rocksdb::DB> base(opened, [env](const rocksdb::DB* one) { delete one; });  // before its Env
  status = check_log(*base);
  if (status.ok() && store == nullptr) status = read_store();
  std::unique_ptr<DbImpl> made;
  if (status.ok()) {
    made = std::make_unique<DbImpl>(base, spill, std::move(store), detector, main_order, user_options);
    status = made->start(*handles, remains);
  }
  if (!status.ok()) {
    main_order->let_compactions_run();
    for (rocksdb::ColumnFamilyHandle* handle : *handles) delete handle;  // NOLINT: RocksDB gave them away
    handles->clear();
    return status;
  }
  *db = made.release();
  return {};
}

}  // namespace spillway
