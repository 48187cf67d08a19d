// RocksDB below a spillway::DB, for tests that trigger what RocksDB does by itself. GetBaseDB would end diversion.
#pragma once

#include "spill/db/db_impl.h"

namespace spillway::clients {

inline rocksdb::DB& rocksdb_of(DB& db) { return static_cast<spill::DbImpl&>(db).base(); }

}  // namespace spillway::clients
