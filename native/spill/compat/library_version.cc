#include "spill/compat/library_version.h"

#include <rocksdb/version.h>

namespace spillway::spill {

std::string built_for_rocksdb() { return std::to_string(ROCKSDB_MAJOR) + "." + std::to_string(ROCKSDB_MINOR); }

rocksdb::Status check_rocksdb(const std::string& built_for, const std::string& loaded) {
  if (built_for == loaded) return {};
  return rocksdb::Status::NotSupported("spillway was built for RocksDB " + built_for + " and cannot be used with " +
                                       loaded + ", which this program has loaded; build it again with that RocksDB");
}

rocksdb::Status check_loaded_rocksdb() {
  return check_rocksdb(built_for_rocksdb(), rocksdb::GetRocksVersionAsString(/*with_patch=*/false));
}

}  // namespace spillway::spill
