// Keeps out of RocksDB a sorted file that RocksDB could not read.
//
// RocksDB 7.8.3 takes a file of which it cannot read the first key for one without keys, and says nothing. It would
// never find them there, and could never be rid of the file: scans and compactions would meet its keys outside of the
// range that RocksDB believes it to have. But it reads all files first and then links them into its directory. So that
// of a file of which a read has failed fails too, and nothing is taken in.
#pragma once

#include <rocksdb/env.h>

#include <memory>
#include <string>

namespace spillway::spill {

// `env`, guarded so where files of `directory` are concerned; all else goes to it as it comes. `env` outlives it.
std::unique_ptr<rocksdb::Env> guard_ingestion(rocksdb::Env* env, const std::string& directory);

}  // namespace spillway::spill
