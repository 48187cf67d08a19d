// The directory of a spill store in files: locked against other processes, and synced where names in it change.
#pragma once

#include <rocksdb/file_system.h>
#include <rocksdb/status.h>

#include <atomic>
#include <memory>
#include <string>

#include "spill/store/store.h"

namespace spillway::spill {

// Suffixes of a log that was dropped, and of the copy that is about to take a failed log's place.
inline constexpr char kDropped[] = ".dropped";
inline constexpr char kCopy[] = ".copy";

class RegionDirectory {
 public:
  // Made when missing. IOError: it cannot be used, or another process uses it.
  static rocksdb::Status open(std::shared_ptr<rocksdb::FileSystem> files, std::string path,
                              std::unique_ptr<RegionDirectory>* directory);
  ~RegionDirectory();
  RegionDirectory(const RegionDirectory&) = delete;
  RegionDirectory& operator=(const RegionDirectory&) = delete;

  rocksdb::FileSystem& files() const { return *files_; }
  rocksdb::FSDirectory& handle() const { return *handle_; }
  std::string path_of(const std::string& name) const { return path_ + "/" + name; }
  // The path of a generation's log, without a suffix.
  std::string log_base(GenerationId generation) const;
  rocksdb::Status names(std::vector<std::string>* names) const;
  // Names that were added or removed before are durable when this returns.
  rocksdb::Status sync(const rocksdb::DirFsyncOptions& why) const;
  // From now on another may open it.
  void unlock();
  bool is_locked() const { return lock_.load(std::memory_order_acquire) != nullptr; }

 private:
  RegionDirectory(std::shared_ptr<rocksdb::FileSystem> files, std::string path);

  const std::shared_ptr<rocksdb::FileSystem> files_;
  const std::string path_;
  std::unique_ptr<rocksdb::FSDirectory> handle_;
  std::atomic<rocksdb::FileLock*> lock_{nullptr};
};

}  // namespace spillway::spill
