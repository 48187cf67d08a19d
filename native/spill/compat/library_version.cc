#include "spill/compat/library_version.h"

#include <rocksdb/version.h>

#include "spill/compat/version_misfit.h"

namespace spillway::spill {

std::string built_for_rocksdb() { return version_of_headers(); }

rocksdb::Status check_rocksdb(const std::string& built_for, const std::string& loaded) {
  const std::string misfit = version_misfit(built_for, loaded);
  return misfit.empty() ? rocksdb::Status() : rocksdb::Status::NotSupported(misfit);
}

rocksdb::Status check_loaded_rocksdb() {
  return check_rocksdb(built_for_rocksdb(), rocksdb::GetRocksVersionAsString(/*with_patch=*/false));
}

}  // namespace spillway::spill
