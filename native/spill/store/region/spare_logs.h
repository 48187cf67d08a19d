// The files of the next logs, made before a writer needs them: it is the durable name that takes long, on a disk that
// compactions keep busy.
//
// They are empty until then. Recovery takes an empty log for none.
#pragma once

#include <rocksdb/file_system.h>

#include <map>
#include <memory>

#include "base/mutex.h"
#include "spill/store/region/region_directory.h"
#include "spill/store/store.h"

namespace spillway::spill {

// Thread-safe.
class SpareLogs {
 public:
  // Two: a generation may end right after it began, as when a rollback begins. Source: of the demo's 1.5 million writes
  // one waited 96 ms for the second's name
  static constexpr GenerationId kAhead = 2;

  // `directory` outlives it.
  explicit SpareLogs(const RegionDirectory& directory) : directory_(directory) {}
  ~SpareLogs();
  SpareLogs(const SpareLogs&) = delete;
  SpareLogs& operator=(const SpareLogs&) = delete;

  // Makes that generation's, unless it has begun. If it cannot be made, there is none. One call at a time.
  void make(GenerationId generation) EXCLUDES(mutex_);
  // That generation begins: its file, if there is one; null: make one. Waits for make() to end, if it makes this one.
  // Removes those of older generations.
  std::unique_ptr<rocksdb::FSWritableFile> take(GenerationId generation) EXCLUDES(mutex_);

 private:
  using File = std::unique_ptr<rocksdb::FSWritableFile>;

  std::string path_of(GenerationId generation) const;
  void remove(GenerationId generation, File file) const;

  const RegionDirectory& directory_;
  Mutex mutex_;
  CondVar made_;
  GenerationId begun_ GUARDED_BY(mutex_) = 0;   // its file has records: it must not be made again
  GenerationId making_ GUARDED_BY(mutex_) = 0;  // 0: none
  std::map<GenerationId, File> files_ GUARDED_BY(mutex_);
};

}  // namespace spillway::spill
