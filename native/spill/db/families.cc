#include "spill/db/families.h"

#include <algorithm>
#include <functional>
#include <string>
#include <utility>

#include "spill/main_db/external_files.h"

namespace spillway::spill {

using rocksdb::Status;

namespace {

// Most rollbacks before a family is dropped to which other threads still write. Source: guess.
constexpr int kMostRollbacks = 10;

}  // namespace

Status check_supported(const rocksdb::ColumnFamilyDescriptor& family) {
  const rocksdb::Comparator* const order = family.options.comparator;
  const auto no = [&](const char* what) {
    return Status::NotSupported("spillway::DB does not support " + std::string(what) + " (column family " +
                                family.name + ")");
  };
  if (order->timestamp_size() > 0) return no("user-defined timestamps");
  if (order->CanKeysWithDifferentByteContentsBeEqual()) {
    return no("a comparator under which different bytes can be equal");
  }
  // With it a put may modify a value in place, and RocksDB has no snapshots.
  if (family.options.inplace_update_support) return no("inplace_update_support");
  const std::string refused = refused_option(family.options);
  return refused.empty() ? Status() : no(refused.c_str());
}

Status Families::add(const std::vector<Handle*>& handles) {
  if (Status status = live_.families().add(main_.db().DefaultColumnFamily()); !status.ok()) return status;
  for (Handle* handle : handles) {
    if (Status status = live_.families().add(handle); !status.ok()) return status;
  }
  return {};
}

void Families::start(const std::vector<Handle*>& handles, const std::vector<Handle*>& users) {
  for (const Handle* handle : handles) count_handle(handle, 1);
  for (const Handle* handle : users) count_handle(handle, 1);
  watcher_->start([this](Handle* handle) { on_handle_deletion(handle); });
  const MutexLock lock(mutex_);
  kept_ = handles;
}

void Families::stop() {
  watcher_->stop();
  const MutexLock lock(mutex_);
  is_stopped_ = true;
  for (Handle* handle : kept_) (void)main_.db().DestroyColumnFamilyHandle(handle);
  kept_.clear();
}

Status Families::create_by(const rocksdb::ColumnFamilyDescriptor& family, Handle** handle,
                           const std::function<Status(const rocksdb::ColumnFamilyOptions&)>& create) {
  if (Status status = check_supported(family); !status.ok()) return status;
  if (is_guard(family.name)) {
    return Status::InvalidArgument("column families whose names begin as \"" + family.name +
                                   "\" are Spillway's own; give it another name");
  }
  UserOptions::Change change(main_.user_options(), family.name);
  change.set(slowdown_of(family.options));
  Status status = create(without_slowdown(family.options));
  if (!status.ok()) return status;
  change.keep();
  count_handle(*handle, 1);
  return live_.families().add(*handle);
}

// A family that was dropped is read through any of its handles.
void Families::count_handle(const Handle* handle, int change) {
  const std::uint32_t id = handle->GetID();
  bool is_last = false;
  {
    const MutexLock lock(counts_mutex_);
    const auto count = counts_.try_emplace(id, 0).first;
    count->second += change;
    is_last = count->second <= 0;
    if (is_last) counts_.erase(count);
  }
  if (is_last) live_.dropped().release(id);
}

Status Families::create(const rocksdb::ColumnFamilyDescriptor& family, Handle** handle) {
  return create_by(family, handle, [&](const rocksdb::ColumnFamilyOptions& raised) {
    return main_.db().CreateColumnFamily(raised, family.name, handle);
  });
}

Status Families::create_with_import(const rocksdb::ColumnFamilyDescriptor& family,
                                    const rocksdb::ImportColumnFamilyOptions& options, const ImportedFiles& exported,
                                    Handle** handle) {
  const std::string& directory = rollbacks_.bring_back.sorted_directory();
  return create_by(family, handle, [&](const rocksdb::ColumnFamilyOptions& raised) {
    ExternalFiles files(main_.db().GetEnv()->GetFileSystem(), directory);
    std::vector<rocksdb::ExportImportFilesMetaData> linked;
    for (const auto* one : exported) linked.push_back(*one);
    auto with_links = options;
    const bool may_move = main_.ingested_files().may_move();
    if (options.move_files && !may_move) return cannot_move();
    if (!options.move_files && may_move) {
      for (auto& one : linked) {
        for (auto& file : one.files) {
          std::vector<std::string> copies;
          if (Status status = files.copy({file.db_path + "/" + file.name}, &copies); !status.ok()) return status;
          file.db_path = directory;
          file.name = copies.front().substr(directory.size());
        }
      }
      with_links.move_files = true;  // of the copies
    }
    ImportedFiles to_import;
    for (const auto& one : linked) to_import.push_back(&one);
    return rollbacks_.main_only.run_raising_sequence([&] {
      return create_column_family_with_import(main_.db(), {family.name, raised}, with_links, to_import, handle);
    });
  });
}

Status Families::with_nothing_of(std::uint32_t family, const std::function<Status()>& action) {
  Status status;
  bool is_done = false;
  const auto try_action = [&] {
    const MutexLock no_change(main_.user_options().one_at_a_time());  // RocksDB may write the OPTIONS file
    // An ingestion of a rollback may block changes of families until RocksDB has flushed. That flush needs the commit
    // queue.
    commits_.notes.hold_commits([&]() REQUIRES(in_commit_queue) {
      const auto generations = live_.generations();
      is_done = std::none_of(generations->begin(), generations->end(),
                             [&](const auto& generation)
                                 REQUIRES(in_commit_queue) { return generation->has_any_of(family); });
      if (is_done) status = action();
    });
  };
  for (int round = 0; round < kMostRollbacks; ++round) {  // without the lock, so that other threads can take it
    try_action();
    if (is_done) return status;
    if (rollbacks_.bring_back.pause().is_paused()) break;  // rollbacks do not run
    if (Status brought_back = rollbacks_.thread.bring_back_all(); !brought_back.ok()) return brought_back;
  }
  const MutexLock no_change(main_.user_options().one_at_a_time());
  return rollbacks_.main_only.run([&](bool) { return action(); });
}

// Rollbacks are held too, so that none ingests anything of a family that is being dropped.
Status Families::drop_unreturned(std::uint32_t family, const std::function<Status()>& drop) {
  const MutexLock no_change(main_.user_options().one_at_a_time());
  const BringBack::Wait wait(rollbacks_.bring_back);
  const MutexLock no_rollback(rollbacks_.bring_back.mutex());
  Status status;
  commits_.notes.hold_commits([&] {
    View left = live_.view();
    status = drop();
    if (status.ok()) live_.dropped().keep(family, std::move(left));
  });
  return status;
}

// A dropped family stays readable through its handle, so its diverted writes are brought back first. Where that fails,
// on a full drive for example, they stay in the spill store for as long as there is a handle.
Status Families::drop(Handle* family) {
  const std::uint32_t id = family->GetID();
  if (id == main_.db().DefaultColumnFamily()->GetID() || live_.families().of(id).is_dropped) {
    return main_.db().DropColumnFamily(family);  // which returns the reason
  }
  std::shared_future<void> is_free;
  bool was_tried = false;
  const auto drop_now = [&] {
    was_tried = true;
    const Status dropped = main_.db().DropColumnFamily(family);
    if (!dropped.ok()) return dropped;
    is_free = live_.families().take_handle(id);
    live_.families().drop(id);
    return dropped;
  };
  Status status = with_nothing_of(id, drop_now);
  if (!status.ok() && !was_tried && !status.IsShutdownInProgress()) status = drop_unreturned(id, drop_now);
  if (!status.ok()) return status;
  is_free.wait();
  detector_.poll_now();  // the family's stalls are over
  const MutexLock lock(mutex_);
  const auto is_of_it = [&](Handle* kept) { return kept->GetID() == id; };
  const auto rest = std::stable_partition(kept_.begin(), kept_.end(), std::not_fn(is_of_it));
  std::for_each(rest, kept_.end(), [&](Handle* kept) { (void)main_.db().DestroyColumnFamilyHandle(kept); });
  kept_.erase(rest, kept_.end());
  return status;
}

// Rollbacks still need a handle, and a family created at run time has no other.
Status Families::destroy_handle(Handle* family) {
  const MutexLock lock(mutex_);
  const bool is_ours = family != nullptr && family != main_.db().DefaultColumnFamily() && !is_stopped_ &&
                       live_.families().of(family->GetID()).handle == family;
  if (!is_ours) return main_.db().DestroyColumnFamilyHandle(family);
  kept_.push_back(family);
  return {};
}

// If the family's diverted writes cannot be brought back now, they stay in the spill store until the database is opened
// again.
void Families::on_handle_deletion(Handle* handle) {
  const std::uint32_t id = handle->GetID();
  count_handle(handle, -1);
  if (live_.families().of(id).handle != handle) return;
  const rocksdb::ColumnFamilyOptions options = options_of(handle);
  std::shared_future<void> is_free;
  const auto take = [&] {
    live_.families().keep_options(id, {handle->GetName(), options});
    is_free = live_.families().take_handle(id);
    return Status();
  };
  if (!with_nothing_of(id, take).ok()) (void)take();
  is_free.wait();
}

// --- Options

Status Families::set_options(Handle* family, const std::unordered_map<std::string, std::string>& options) {
  UserOptions::Change change(main_.user_options(), family->GetName());
  const Status status = main_.db().SetOptions(family, change.set(options_of(family), options));
  // IOError: only the OPTIONS file could not be written. RocksDB runs with the new options.
  if (status.ok() || status.IsIOError()) {
    change.keep();
    refresh_limits(family);
  }
  return status;
}

void Families::refresh_limits(Handle* family) {
  live_.families().refresh(family->GetID());
  detector_.poll_now();
}

rocksdb::Options Families::options_of(Handle* family) const {
  rocksdb::Options options = main_.db().GetOptions(family);
  main_.user_options().restore(&options);
  main_.user_options().restore(family->GetName(), &options);
  return options;
}

rocksdb::DBOptions Families::database_options() const {
  rocksdb::DBOptions options = main_.db().GetDBOptions();
  main_.user_options().restore(&options);
  return options;
}

}  // namespace spillway::spill
