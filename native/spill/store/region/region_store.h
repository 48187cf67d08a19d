// The spill store as files in a directory of an ordinary drive, reached through a rocksdb::FileSystem, so that an
// emulated drive, a fault layer and a plain directory are the same to it.
//
// A generation is one log: NNNNNN.spill. Each record is framed with its length and a checksum that covers the
// generation's number too, so that what an older file left on the drive is never taken for a record. Dropped is a
// generation whose log was renamed to NNNNNN.dropped and the directory synced; released, removed.
// BINDING says which database the directory belongs to (binding_record.h).
#pragma once

#include <rocksdb/env.h>
#include <rocksdb/file_system.h>

#include <memory>
#include <string>

#include "spill/store/store.h"

namespace spillway::spill {

struct RegionOptions {
  std::shared_ptr<rocksdb::FileSystem> file_system;
  std::string directory;  // made when missing
  std::uint64_t capacity_bytes = 0;
};

// An error that says in one sentence why the directory cannot be used.
rocksdb::Status open_region_store(const RegionOptions& options, std::unique_ptr<Store>* store);

}  // namespace spillway::spill
