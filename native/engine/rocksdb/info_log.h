// RocksDB's info log (LOG), of which a line that cannot be written is lost and nothing else.
//
// RocksDB 7.8.3 writes its own by a WritableFileWriter, which must not be used again after an error: EnvLogger does,
// and a build with assertions (Debian's) ends the process when the file system under the database is full.
#pragma once

#include <rocksdb/file_system.h>

#include <memory>

namespace spillway::engine {

// `below`, but for the info log.
std::shared_ptr<rocksdb::FileSystem> with_own_info_log(std::shared_ptr<rocksdb::FileSystem> below);

}  // namespace spillway::engine
