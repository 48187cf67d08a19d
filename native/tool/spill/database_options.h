// Loads the options of a database from its OPTIONS file, to open it without the program that created it.
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

// Refuses a database with comparators or merge operators that only its program has.
Result<DatabaseOptions> load_options(const std::string& database);

}  // namespace spillway::tool
