// The RocksDB that this library was compiled with, and the one that the program has loaded.
#pragma once

#include <rocksdb/status.h>

#include <string>

namespace spillway::spill {

// Of the headers, as "7.8".
std::string built_for_rocksdb();
// NotSupported if the two are of different minor versions: classes are laid out differently, and functions are called
// by their places.
rocksdb::Status check_rocksdb(const std::string& built_for, const std::string& loaded);
// As check_rocksdb(), of this process.
rocksdb::Status check_loaded_rocksdb();

}  // namespace spillway::spill
