// Names of the tables that this library makes in its own directory before RocksDB takes them. A file of another name in
// that directory is not its own.
#pragma once

#include <rocksdb/file_system.h>

#include <cstdint>
#include <string>
#include <string_view>

namespace spillway::spill {

// Of one generation and column family; `other` counts from 1 where the name before is in use.
std::string sorted_file_name(std::uint64_t generation, std::uint32_t column_family, int other = 0);
// Of a copy of a file that a user ingests.
std::string external_copy_name(std::uint64_t number);
// Whether one of the two makes such a name.
bool is_temporary_table(std::string_view name);

// Whether a file stays as it is when it is reopened for writing. RocksDB does that to files that it moves in, to sync
// them; its encrypted file system (7.8.3) then appends a header, and the table can no longer be opened. Tried with a
// file in `directory`. True if that cannot be made: then nothing is ingested either.
bool may_be_reopened(rocksdb::FileSystem& files, const std::string& directory);

}  // namespace spillway::spill
