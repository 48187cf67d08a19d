// RocksDB's options by RocksDB's own names and in its own spelling.
#pragma once

#include <rocksdb/options.h>

#include <map>
#include <string>
#include <vector>

#include "base/result.h"

namespace spillway::engine {

struct RocksdbOptions {
  rocksdb::DBOptions db;
  rocksdb::ColumnFamilyOptions column_family;
  rocksdb::WriteOptions write;
  rocksdb::ReadOptions read;
};

// Names are looked for in WriteOptions (sync, disableWAL, no_slowdown, low_pri), ReadOptions, DBOptions,
// ColumnFamilyOptions and BlockBasedTableOptions (plain, or after "block_based_table_factory."). Everything not named
// keeps RocksDB's default, except create_if_missing, which is true.
// bad_input: an unknown name, with the nearest known; a value that RocksDB does not take.
Result<RocksdbOptions> parse_rocksdb_options(const std::map<std::string, std::string>& options);

// Every name that parse_rocksdb_options knows of, sorted.
std::vector<std::string> rocksdb_option_names();

}  // namespace spillway::engine
