#include "spill/compat/rocksdb_calls.h"

namespace spillway::spill {

std::string refused_option([[maybe_unused]] const rocksdb::DBOptions& options) {
#if SPILLWAY_ROCKSDB_AT_LEAST(9, 7)
  if (!options.write_identity_file) {
    return "write_identity_file = false: the spill store knows its database by the file IDENTITY";
  }
#endif
#if SPILLWAY_ROCKSDB_AT_LEAST(11, 3)
  if (options.async_wal_precreate) {
    return "async_wal_precreate: the newest log would not be the one that RocksDB writes to";
  }
#endif
  return {};
}

std::string refused_option([[maybe_unused]] const rocksdb::ColumnFamilyOptions& options) {
#if SPILLWAY_ROCKSDB_AT_LEAST(10, 0)
  if (options.disallow_memtable_writes) {
    return "disallow_memtable_writes: small generations come back through RocksDB's memtables";
  }
#endif
#if SPILLWAY_ROCKSDB_AT_LEAST(10, 6)
  if (options.cf_allow_ingest_behind) {
    return "cf_allow_ingest_behind: what is brought back is newer, not older";
  }
#endif
#if SPILLWAY_ROCKSDB_AT_LEAST(11, 2)
  if (options.enable_blob_direct_write) {
    return "enable_blob_direct_write: RocksDB's log would name blob files that a sync of the log does not sync";
  }
#endif
  return {};
}

std::string refused_option([[maybe_unused]] const rocksdb::TransactionDBOptions& options) {
#if SPILLWAY_ROCKSDB_AT_LEAST(9, 10)
  if (!options.secondary_indices.empty()) return "secondary_indices: they would miss diverted writes";
#endif
  return {};
}

}  // namespace spillway::spill
