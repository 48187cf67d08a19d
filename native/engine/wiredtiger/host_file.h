// The contents of WiredTiger's files, on the host's file system.
//
// After a failed write WiredTiger 3.2.1 stops for good, or waits for ever in some calls, such as closing. Therefore
// failures are hidden from it. From the first failed call on, the host's files stay as a crash at that moment would
// leave them. Later writes of WiredTiger are kept in memory, where it reads them until it is closed. The engine checks
// failure(), and refuses its operations.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"

namespace spillway::engine {

// The first failure. Thread-safe.
class Failure {
 public:
  bool is_there() const { return there_.load(std::memory_order_acquire); }
  Status first() const {
    if (!is_there()) return Status::ok();
    const std::lock_guard lock(mutex_);
    return first_;
  }
  void note(const Status& status) {
    if (status) return;
    const std::lock_guard lock(mutex_);
    if (first_) first_ = status;
    there_.store(true, std::memory_order_release);
  }

 private:
  std::atomic<bool> there_ = false;
  mutable std::mutex mutex_;
  Status first_;  // guarded by mutex_
};

// Writes to one file after the failure, which are kept in memory only.
struct Overlay {
  std::mutex mutex;
  std::vector<std::pair<off_t, std::string>> writes;  // oldest first; guarded by mutex, like size
  std::optional<off_t> size;                          // none: as the host's file
};

// All files of a database. Thread-safe.
class HostFiles {
 public:
  const Failure& failure() const { return failure_; }
  // `error`: the errno of a call that changes `path`. Returns the result for WiredTiger.
  int result_of(int error, const std::string& path);
  std::shared_ptr<Overlay> overlay_of(const std::string& path);

 private:
  Failure failure_;
  std::mutex mutex_;
  std::map<std::string, std::shared_ptr<Overlay>> overlays_;  // guarded by mutex_
};

// An open file. Calls return an errno. A change that is kept in memory returns success. Thread-safe as pread(2) and
// pwrite(2) are.
class HostFile {
 public:
  // REQUIRES: files outlives it. Takes ownership of fd.
  HostFile(HostFiles& files, std::string path, int fd)
      : files_(files), path_(std::move(path)), fd_(fd), overlay_(files.overlay_of(path_)) {}
  ~HostFile();
  HostFile(const HostFile&) = delete;
  HostFile& operator=(const HostFile&) = delete;

  int write(const char* data, std::size_t length, off_t offset);
  int read(char* data, std::size_t length, off_t offset);
  int size(off_t* size) const;
  int resize(off_t size);
  // As resize() for a file that grows, with allocation of all its space if the file system can.
  int allocate(off_t size);
  int sync();
  // REQUIRES: it is not used afterwards.
  int close();
  int fd() const { return fd_; }

 private:
  int read_overlay(char* data, std::size_t length, off_t offset);

  HostFiles& files_;
  const std::string path_;
  int fd_;
  const std::shared_ptr<Overlay> overlay_;
};

}  // namespace spillway::engine
