#include "fs/rocksdb/file_causes.h"

#include "fs/path_key.h"

namespace spillway::fs {

using rocksdb::Env;

bool is_table(const std::string& path) { return path.ends_with(".sst") || path.ends_with(".ldb"); }

Cause cause_of_name(const std::string& path) {
  const std::string name = base_name(path);
  if (name.ends_with(".log")) return Cause::wal;
  if (name.ends_with(".blob")) return Cause::blob;
  if (name.ends_with(".spill")) return Cause::spill;
  if (name.starts_with("MANIFEST")) return Cause::manifest;
  return Cause::other;
}

Cause cause_of_table(Env::IOPriority priority, bool preallocates) {
  if (priority == Env::IO_LOW || preallocates) return Cause::compaction;
  if (priority == Env::IO_HIGH || priority == Env::IO_USER) return Cause::flush;
  return Cause::other;
}

}  // namespace spillway::fs
