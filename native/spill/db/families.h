// Column families that are created and dropped while the database is open, their handles, and their options.
//
// Rollbacks, commits and the detector call RocksDB with handles, and the user may delete a handle at any time. A family
// that was opened has a second handle, which belongs to the library. A family that was created at run time has only the
// user's handle: RocksDB notifies its listeners before it destroys the handle (main_db/handle_watcher.h), and the
// destroying thread waits until the handle is not in use.
#pragma once

#include <rocksdb/db.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/mutex.h"
#include "spill/commit/commits.h"
#include "spill/compat/rocksdb_calls.h"
#include "spill/live/live_set.h"
#include "spill/main_db/handle_watcher.h"
#include "spill/main_db/main_db.h"
#include "spill/rollback/rollbacks.h"
#include "spill/stall/detector.h"

namespace spillway::spill {

// NotSupported, with the option's name, if the column family has an option that is not supported.
rocksdb::Status check_supported(const rocksdb::ColumnFamilyDescriptor& family);

// Thread-safe. The methods are those of rocksdb::DB, with its contracts.
class Families {
 public:
  using Handle = rocksdb::ColumnFamilyHandle;

  Families(std::shared_ptr<HandleWatcher> watcher, MainDb& main, LiveSet& live, Commits& commits, Rollbacks& rollbacks,
           Detector& detector)
      : watcher_(std::move(watcher)),
        main_(main),
        live_(live),
        commits_(commits),
        rollbacks_(rollbacks),
        detector_(detector) {}

  // Takes ownership of the `handles` of families other than the default.
  rocksdb::Status add(const std::vector<Handle*>& handles);
  // From now on, a handle that is about to be destroyed is first withdrawn from rollbacks. `users`: the user's handles,
  // of which a family has several if it was listed several times.
  void start(const std::vector<Handle*>& handles, const std::vector<Handle*>& users);
  void stop();  // REQUIRES: no handle is being destroyed

  rocksdb::Status create(const rocksdb::ColumnFamilyDescriptor& family, Handle** handle);
  rocksdb::Status create_with_import(const rocksdb::ColumnFamilyDescriptor& family,
                                     const rocksdb::ImportColumnFamilyOptions& options, const ImportedFiles& exported,
                                     Handle** handle);
  rocksdb::Status drop(Handle* family);
  rocksdb::Status destroy_handle(Handle* family);

  // The options with the user's slowdown triggers.
  rocksdb::Options options_of(Handle* family) const;
  rocksdb::DBOptions database_options() const;
  rocksdb::Status set_options(Handle* family, const std::unordered_map<std::string, std::string>& options);
  void refresh_limits(Handle* family);  // after its options have changed

 private:
  // Creates a column family by `create`, which is passed the family's options with the slowdown switched off.
  rocksdb::Status create_by(const rocksdb::ColumnFamilyDescriptor& family, Handle** handle,
                            const std::function<rocksdb::Status(const rocksdb::ColumnFamilyOptions&)>& create);
  // Drops a family of which the spill store has writes that cannot be brought back now. Its handles read them there.
  rocksdb::Status drop_unreturned(std::uint32_t family, const std::function<rocksdb::Status()>& drop);
  void count_handle(const Handle* handle, int change);
  // Runs `action` while commits are held and the spill store has nothing of the family.
  rocksdb::Status with_nothing_of(std::uint32_t family, const std::function<rocksdb::Status()>& action);
  void on_handle_deletion(Handle* handle);

  const std::shared_ptr<HandleWatcher> watcher_;
  MainDb& main_;
  LiveSet& live_;
  Commits& commits_;
  Rollbacks& rollbacks_;
  Detector& detector_;
  Mutex mutex_;
  std::vector<Handle*> kept_ GUARDED_BY(mutex_);  // owned until the database closes
  bool is_stopped_ GUARDED_BY(mutex_) = false;
  Mutex counts_mutex_;
  // Handles of each family that are not destroyed, the library's own among them.
  std::unordered_map<std::uint32_t, int> counts_ GUARDED_BY(counts_mutex_);
};

}  // namespace spillway::spill
