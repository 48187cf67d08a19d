// RocksDB's files on a Drive. Each operation applies the drive's fault rule, and each change is recorded in its
// journal.
#pragma once

#include <rocksdb/file_system.h>

#include <cstdint>
#include <memory>
#include <string>

#include "faults/drive.h"

namespace spillway::faults {

std::unique_ptr<rocksdb::FSWritableFile> make_writable_file(std::unique_ptr<rocksdb::FSWritableFile> host,
                                                            std::shared_ptr<Drive> drive, std::string name, FileId id,
                                                            std::uint64_t offset);
std::unique_ptr<rocksdb::FSRandomRWFile> make_random_rw_file(std::unique_ptr<rocksdb::FSRandomRWFile> host,
                                                             std::shared_ptr<Drive> drive, std::string name, FileId id);
std::unique_ptr<rocksdb::FSRandomAccessFile> make_random_access_file(std::unique_ptr<rocksdb::FSRandomAccessFile> host,
                                                                     std::shared_ptr<Drive> drive, std::string name);
std::unique_ptr<rocksdb::FSSequentialFile> make_sequential_file(std::unique_ptr<rocksdb::FSSequentialFile> host,
                                                                std::shared_ptr<Drive> drive, std::string name);
std::unique_ptr<rocksdb::FSDirectory> make_directory(std::unique_ptr<rocksdb::FSDirectory> host,
                                                     std::shared_ptr<Drive> drive, std::string name);

}  // namespace spillway::faults
