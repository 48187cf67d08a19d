// What lies in the directory of a spill store, read without its lock and without a change to it: also while a database
// uses it, or while it is damaged.
#pragma once

#include <rocksdb/file_system.h>
#include <rocksdb/status.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "spill/store/binding_record.h"
#include "spill/store/store.h"

namespace spillway::spill {

struct FamilyView {
  std::uint64_t operations = 0;
  std::uint64_t bytes = 0;  // keys and values
};

struct LogView {
  GenerationId generation = 0;
  std::string path;
  std::uint64_t file_bytes = 0;
  std::uint64_t records = 0;                     // that are whole, notes included
  std::map<std::uint32_t, FamilyView> families;  // by their ids
};

// Where a file is not whole.
struct BrokenAt {
  std::string path;
  std::uint64_t offset = 0;
};

struct RegionView {
  std::optional<BindingRecord> binding;
  std::vector<LogView> logs;     // oldest first, those that were not dropped
  std::vector<BrokenAt> damage;  // of what is known to have been durable: writes are lost
  // Where records end for a reason that need not be damage: a crash, a loss of power, or a write that is under way.
  // Nothing behind it counts.
  std::optional<BrokenAt> ends_at;
};

// An error where the directory or a file cannot be read, or is of another version.
rocksdb::Status view_region(rocksdb::FileSystem& files, const std::string& directory, RegionView* view);

}  // namespace spillway::spill
