// The versions of RocksDB that this library fits, and the test for a version. Differences between versions belong into
// this directory (docs/decisions/0036).
#pragma once

#include <rocksdb/version.h>

// Whether RocksDB's headers are of version `major`.`minor` or a later one.
#define SPILLWAY_ROCKSDB_AT_LEAST(major, minor) \
  (ROCKSDB_MAJOR > (major) || (ROCKSDB_MAJOR == (major) && ROCKSDB_MINOR >= (minor)))

#if !SPILLWAY_ROCKSDB_AT_LEAST(7, 7)
#error "spillway needs RocksDB 7.7 or later: these headers are of an older version"
#elif SPILLWAY_ROCKSDB_AT_LEAST(12, 0)
#error "spillway fits RocksDB 7.7 to 11: these headers are of a newer version, whose functions it does not know"
#endif
