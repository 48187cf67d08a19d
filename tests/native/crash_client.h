// What a client does apart from reads and writes, as Stirs of crash tests. Each returns what is wrong, or "".
#pragma once

#include <string>

#include "crash_harness.h"

namespace spillway::crash {

// Uses spillway::DB::CreateCheckpoint. The checkpoint is judged as a copy.
std::string take_checkpoint(Scene& scene);

// Imports a column family from another database whose sequence numbers are larger, so that this database's are raised
// without its log. Afterwards it may compact; it may export an imported family to a third database and check it there;
// and it may drop the family.
std::string import_family(Scene& scene);
// Checks that every imported family is complete.
std::string check_imported(Opened& store);

// Opens the database in ways that are not supported. Each is refused, or finds all that was promised and changes
// nothing.
std::string open_as_plain_rocksdb(const std::string& root, rocksdb::Env* env, const Judge& judge);
std::string open_with_another_path(const std::string& root, rocksdb::Env* env, const Judge& judge);
std::string open_another_database_with_the_path(const std::string& root, rocksdb::Env* env, const Judge& judge);

}  // namespace spillway::crash
