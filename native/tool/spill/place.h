// A database and its spill store, as a request names them.
#pragma once

#include <rocksdb/status.h>

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "spill/store/binding_record.h"
#include "tool/protocol/fields.h"

namespace spillway::tool {

struct SpillPlace {
  std::string database;  // empty: only the spill store is known
  std::string directory;
  bool has_directory = false;
  std::vector<std::string> families;  // in the database's MANIFEST, including guards
  std::optional<spill::Guard> guard;  // the newest
};

// Reads a request's `database` and `spill`. Without `spill`, uses the directory that the guard names, else "spill" in
// the database's directory. Refuses what is neither a database nor a spill store.
Result<SpillPlace> read_spill_place(Fields& fields);

// An error if the spill store does not consist of files: it is in a key-value namespace of a drive, or a Store of the
// program.
Status check_is_of_files(const SpillPlace& place);

// Whether another process holds that lock file of RocksDB.
bool is_locked(const std::string& lock_file);

// Converts a status of RocksDB. The message is RocksDB's.
Status status_of(const rocksdb::Status& status);

}  // namespace spillway::tool
