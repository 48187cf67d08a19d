// LevelDB's options by LevelDB's own names (leveldb/options.h); sizes with or without a unit.
#pragma once

#include <leveldb/cache.h>
#include <leveldb/filter_policy.h>
#include <leveldb/options.h>

#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "engine/engine_kind.h"

namespace spillway::engine {

struct LevelDbOptions {
  leveldb::Options db;
  leveldb::ReadOptions read;
  leveldb::WriteOptions write;
  // What `db` points to.
  std::shared_ptr<leveldb::Cache> block_cache;
  std::shared_ptr<const leveldb::FilterPolicy> filter_policy;
};

// Options, ReadOptions (verify_checksums, fill_cache) and WriteOptions (sync); `block_cache` is the size of an LRU
// cache, `filter_policy` the bits per key of a Bloom filter. What is not named keeps LevelDB's default, except
// create_if_missing, which is true.
// bad_input: an unknown name, with the nearest known; a value that it does not take.
Result<LevelDbOptions> parse_leveldb_options(const StringMap& options);

// Every name that parse_leveldb_options knows of, sorted.
std::vector<std::string> leveldb_option_names();

}  // namespace spillway::engine
