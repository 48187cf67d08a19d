// What the result parameter of rocksdb::DB::Open and its kin points to: up to RocksDB 10 a DB*, from 11.0 on a
// std::unique_ptr<DB>.
#pragma once

#include <rocksdb/db.h>

#include <memory>

#include "spill/compat/rocksdb_version.h"

namespace spillway::spill {

#if SPILLWAY_ROCKSDB_AT_LEAST(11, 0)
using OpenedDb = std::unique_ptr<rocksdb::DB>;
inline void set_opened(rocksdb::DB* db, OpenedDb* opened) { opened->reset(db); }
#else
using OpenedDb = rocksdb::DB*;
inline void set_opened(rocksdb::DB* db, OpenedDb* opened) { *opened = db; }
#endif

}  // namespace spillway::spill
