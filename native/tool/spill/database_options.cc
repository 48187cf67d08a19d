#include "tool/spill/database_options.h"

#include <rocksdb/comparator.h>
#include <rocksdb/env.h>
#include <rocksdb/merge_operator.h>
#include <rocksdb/utilities/options_util.h>

#include <sstream>
#include <utility>

#include "tool/spill/place.h"

namespace spillway::tool {
namespace {

// The objects that the section of one column family sets.
struct Objects {
  std::string comparator;
  std::string merge_operator;
};

// RocksDB silently drops an object that it cannot create. The text shows what was there.
std::vector<Objects> objects_of(const std::string& text) {
  std::vector<Objects> families;
  bool of_family = false;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    line.erase(0, line.find_first_not_of(' '));
    if (line.starts_with('[')) {
      of_family = line.starts_with("[CFOptions ");
      if (of_family) families.emplace_back();
    } else if (of_family && line.starts_with("comparator=")) {
      families.back().comparator = line.substr(line.find('=') + 1);
    } else if (of_family && line.starts_with("merge_operator=")) {
      families.back().merge_operator = line.substr(line.find('=') + 1);
    }
  }
  return families;
}

Status check_objects(const std::string& database, const std::vector<Objects>& asked,
                     const std::vector<rocksdb::ColumnFamilyDescriptor>& families) {
  const auto refused = [&](const std::string& family, const std::string& what) {
    return Status::error(Fault::not_supported, "column family " + family + " of " + database + " uses the " + what +
                                                   ", which only your program has; open the database there with " +
                                                   "spillway::DB and call Rollback(), or give up what lies in the " +
                                                   "spill store with DB::AbandonSpilled()");
  };
  for (std::size_t i = 0; i < families.size() && i < asked.size(); ++i) {
    const auto& options = families[i].options;
    if (!asked[i].comparator.empty() && asked[i].comparator.find(options.comparator->Name()) == std::string::npos) {
      return refused(families[i].name, "comparator " + asked[i].comparator);
    }
    const bool has_merge = !asked[i].merge_operator.empty() && asked[i].merge_operator != "nullptr";
    if (has_merge && options.merge_operator == nullptr) {
      return refused(families[i].name, "merge operator " + asked[i].merge_operator);
    }
  }
  return {};
}

}  // namespace

Result<DatabaseOptions> load_options(const std::string& database) {
  DatabaseOptions loaded;
  rocksdb::Env* const env = rocksdb::Env::Default();
  std::string file;
  std::string text;
  rocksdb::Status status = rocksdb::GetLatestOptionsFileName(database, env, &file);
  if (status.IsNotFound()) {
    return Status::bad_input(database + " has no OPTIONS file; open it with your program, and call Rollback() there");
  }
  if (status.ok()) status = rocksdb::ReadFileToString(env, database + "/" + file, &text);
  if (status.ok()) status = rocksdb::LoadLatestOptions({}, database, &loaded.database, &loaded.families);
  if (!status.ok()) return status_of(status);
  if (Status checked = check_objects(database, objects_of(text), loaded.families); !checked) return checked;
  loaded.database.env = env;
  loaded.database.create_if_missing = false;
  loaded.database.error_if_exists = false;
  loaded.database.best_efforts_recovery = false;  // it would ignore RocksDB's log
  return loaded;
}

}  // namespace spillway::tool
