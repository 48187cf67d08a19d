#include <rocksdb/db.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <system_error>

#include "spill/main_db/binding.h"
#include "spill/store/region/region_view.h"
#include "spillway/db.h"
#include "tool/spill/commands.h"
#include "tool/spill/database_options.h"
#include "tool/spill/place.h"

namespace spillway::tool {
namespace {

namespace filesystem = std::filesystem;
using Handles = std::vector<rocksdb::ColumnFamilyHandle*>;

struct Drained {
  std::uint64_t operations = 0;
  std::uint64_t bytes = 0;
  std::string moved_to;  // the spill store that was moved away
};

Status bring_back(const SpillPlace& place, const DatabaseOptions& options, Drained* drained) {
  SpillOptions spill;
  if (place.directory != place.database + "/spill") spill.path = place.directory;
  spill.rollback = RollbackPolicy::off;
  std::error_code error;
  for (const auto& entry : filesystem::directory_iterator(place.directory, error)) {
    spill.capacity_bytes += 2 * entry.file_size(error);  // all of its contents have room
  }
  DB* opened = nullptr;
  Handles handles;
  rocksdb::Status status = DB::Open(options.database, spill, place.database, options.families, &handles, &opened);
  if (!status.ok()) return status_of(status);
  const std::unique_ptr<DB> db(opened);
  status = db->Rollback();
  for (auto* handle : handles) (void)db->DestroyColumnFamilyHandle(handle);
  const rocksdb::Status closed = db->Close();
  // Read after Close(), because Rollback() returns before the rollback is counted.
  const SpillStatistics statistics = db->GetSpillStatistics();
  drained->operations = statistics.rolled_back_entries;
  drained->bytes = statistics.rolled_back_bytes;
  return status_of(status.ok() ? closed : status);
}

// Renames the spill store's directory if it belongs to the database. Another database's is not changed.
Status move_away(const SpillPlace& place, Drained* drained) {
  if (!place.has_directory) return {};
  std::string record;
  (void)rocksdb::ReadFileToString(rocksdb::Env::Default(), place.directory + "/" + spill::kBindingFile, &record);
  const auto binding = spill::decode_binding(record);
  if (record.empty() || (binding && binding->id != place.guard->id)) return {};
  const std::string to = place.directory + ".abandoned-" + std::to_string(place.guard->opening.number);
  std::error_code error;
  filesystem::rename(place.directory, to, error);
  if (error) return Status::io_error("cannot rename " + place.directory + " to " + to + ": " + error.message());
  drained->moved_to = to;
  return {};
}

Status abandon_spilled(const SpillPlace& place, const DatabaseOptions& options, Drained* drained) {
  if (!place.guard) {
    return Status::bad_input(place.database + " has nothing in a spill store that could be given up; open it as it is");
  }
  const auto status = DB::AbandonSpilled(options.database, place.database, options.families);
  return !status.ok() ? status_of(status) : move_away(place, drained);
}

}  // namespace

Status spill_drain(const Json& request, Events& events, const std::atomic<bool>& /*stop*/) {
  Fields fields(request, "");
  const bool abandon = fields.flag("abandon", false);
  const auto place = read_spill_place(fields);
  if (!place) return place.status();
  if (Status status = abandon ? Status() : check_is_of_files(place.value()); !status) return status;
  const std::string& database = place.value().database;
  if (database.empty()) {
    return Status::bad_input("what lies in " + place.value().directory + " goes to its database; name that too");
  }
  for (const std::string& directory : {database, place.value().directory}) {
    if (is_locked(directory + "/LOCK")) {
      return Status::bad_input(directory + " is in use; close the database, or call Rollback() in the program that " +
                               "has opened it");
    }
  }
  events.started("spill-drain", nullptr);
  Drained drained;
  if (abandon || place.value().guard || place.value().has_directory) {
    const auto options = load_options(database);
    if (!options) return options.status();
    Status status = abandon ? abandon_spilled(place.value(), options.value(), &drained)
                            : bring_back(place.value(), options.value(), &drained);
    if (!status) return status;
  }
  events.result({{"database", database},
                 {"spill", place.value().directory},
                 {"operations", drained.operations},
                 {"bytes", drained.bytes},
                 {"abandoned", abandon},
                 {"moved_to", drained.moved_to.empty() ? Json(nullptr) : Json(drained.moved_to)}},
                true);
  return {};
}

}  // namespace spillway::tool
