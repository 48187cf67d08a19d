// Copies of files that a user ingests. They are made in a directory of the database, so that RocksDB only has to link
// them. The destructor removes them. Copies that a crash leaves are removed when the database is opened.
#pragma once

#include <rocksdb/file_system.h>

#include <memory>
#include <string>
#include <vector>

namespace spillway::spill {

class ExternalFiles {
 public:
  // REQUIRES: `directory` exists.
  ExternalFiles(std::shared_ptr<rocksdb::FileSystem> files, std::string directory);
  ~ExternalFiles();
  ExternalFiles(const ExternalFiles&) = delete;
  ExternalFiles& operator=(const ExternalFiles&) = delete;

  // One copy of each path, in the same order. `copies` may be `paths`.
  rocksdb::Status copy(const std::vector<std::string>& paths, std::vector<std::string>* copies);

 private:
  const std::shared_ptr<rocksdb::FileSystem> files_;
  const std::string directory_;
  std::vector<std::string> made_;
};

// Copies the first `bytes` of a file to a new file, durably.
rocksdb::IOStatus copy_file(rocksdb::FileSystem& files, const std::string& from, const std::string& to,
                            std::uint64_t bytes);

}  // namespace spillway::spill
