// What a client does beside reading and writing, for the stirs of crash tests. Each says what went wrong, or nothing.
#pragma once

#include <string>

#include "crash_harness.h"

namespace spillway::crash {

// By spillway::DB::CreateCheckpoint; judged as a copy.
std::string take_checkpoint(Scene& scene);

// Imports a column family from another database that is further in its sequence numbers, so that this one's are raised
// outside of its log. Afterwards there may be a compaction, one of those that were imported may be exported to a third
// database and looked at there, and the family may go again.
std::string import_family(Scene& scene);
// Whether every imported family is whole.
std::string check_imported(Opened& store);

// Openings by whoever must not: each is refused, or finds all that was promised, and changes nothing.
std::string open_as_plain_rocksdb(const std::string& root, rocksdb::Env* env, const Judge& judge);
std::string open_with_another_path(const std::string& root, rocksdb::Env* env, const Judge& judge);
std::string open_another_database_with_the_path(const std::string& root, rocksdb::Env* env, const Judge& judge);

}  // namespace spillway::crash
