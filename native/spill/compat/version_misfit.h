// Two versions of RocksDB, and whether they can be used together. Needs no RocksDB but its headers.
#pragma once

#include <rocksdb/version.h>

#include <string>

namespace spillway::spill {

// Of the headers, as "7.8".
inline std::string version_of_headers() { return std::to_string(ROCKSDB_MAJOR) + "." + std::to_string(ROCKSDB_MINOR); }

// Why a library that was built for one minor version cannot be used with the other; empty if it can. Classes are laid
// out differently, and functions are called by their places.
inline std::string version_misfit(const std::string& built_for, const std::string& loaded) {
  if (built_for == loaded) return {};
  return "spillway was built for RocksDB " + built_for + " and cannot be used with " + loaded +
         ", which this program has loaded; build it again with that RocksDB";
}

}  // namespace spillway::spill
