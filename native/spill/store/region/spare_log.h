// The file of the next log, made before a writer needs it: it is the durable name that takes long, on a disk that
// compactions keep busy.
//
// It is empty until then. Recovery takes an empty log for none.
#pragma once

#include <rocksdb/file_system.h>

#include <memory>
#include <string>

#include "base/mutex.h"
#include "spill/store/region/region_directory.h"
#include "spill/store/store.h"

namespace spillway::spill {

// Thread-safe.
class SpareLog {
 public:
  // `directory` outlives it.
  explicit SpareLog(const RegionDirectory& directory) : directory_(directory) {}
  ~SpareLog() { remove(); }
  SpareLog(const SpareLog&) = delete;
  SpareLog& operator=(const SpareLog&) = delete;

  // Makes that generation's, unless it has begun. If it cannot be made, there is none.
  void make(GenerationId generation) EXCLUDES(mutex_);
  // That generation begins: its file, if there is one; null: make one. Waits for make() to end. Removes that of another
  // generation.
  std::unique_ptr<rocksdb::FSWritableFile> take(GenerationId generation) EXCLUDES(mutex_);

 private:
  void remove() EXCLUDES(mutex_);
  void remove_file() REQUIRES(mutex_);

  const RegionDirectory& directory_;
  Mutex mutex_;
  GenerationId begun_ GUARDED_BY(mutex_) = 0;  // its file has records: it must not be made again
  GenerationId generation_ GUARDED_BY(mutex_) = 0;
  std::string path_ GUARDED_BY(mutex_);
  std::unique_ptr<rocksdb::FSWritableFile> file_ GUARDED_BY(mutex_);
};

}  // namespace spillway::spill
