// The options of a database from its OPTIONS file, for a command that opens it without the program that made it.
#pragma once

#include <rocksdb/db.h>

#include <string>
#include <vector>

#include "base/result.h"

namespace spillway::tool {

struct DatabaseOptions {
  rocksdb::DBOptions database;
  std::vector<rocksdb::ColumnFamilyDescriptor> families;
};

// Refuses a database whose comparators or merge operators only its program has.
Result<DatabaseOptions> load_options(const std::string& database);

}  // namespace spillway::tool
