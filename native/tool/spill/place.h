// A database and its spill store, found by what a request names of them.
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
  std::vector<std::string> families;  // of the database's MANIFEST, guards included
  std::optional<spill::Guard> guard;  // the newest
};

// Of a request's `database` and `spill`. Without `spill`, the directory that the guard names, or else "spill" in the
// database's. Refuses what is neither a database nor a spill store.
Result<SpillPlace> read_spill_place(Fields& fields);

// Not OK of one whose spill store is none of files: it is in a drive's key-value namespace, or its program's own.
Status check_is_of_files(const SpillPlace& place);

// Whether a process other than this one holds a lock file of RocksDB's.
bool is_locked(const std::string& lock_file);

// RocksDB's status as a command's; its message stands for itself.
Status status_of(const rocksdb::Status& status);

}  // namespace spillway::tool
