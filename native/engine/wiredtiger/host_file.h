// What WiredTiger's files hold, on the host's file system.
//
// WiredTiger 3.2.1 that is told of a failed write stops for good, or waits for ever in some of its calls, closing among
// them. So it is not told: with the first call that fails the host's files stay as a crash at that moment would have
// left them, and what WiredTiger writes from then on is kept in memory, where it reads it until it is closed. Who uses
// it asks for failure(), and refuses its operations.
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

// Writes to one file after the failure, which are only in memory.
struct Overlay {
  std::mutex mutex;
  std::vector<std::pair<off_t, std::string>> writes;  // oldest first; guarded by mutex, as is size
  std::optional<off_t> size;                          // none: the host's
};

// All files of a database. Thread-safe.
class HostFiles {
 public:
  const Failure& failure() const { return failure_; }
  // `error`: the errno of a call that changes `path`. Returns the result to give to WiredTiger.
  int result_of(int error, const std::string& path);
  std::shared_ptr<Overlay> overlay_of(const std::string& path);

 private:
  Failure failure_;
  std::mutex mutex_;
  std::map<std::string, std::shared_ptr<Overlay>> overlays_;  // guarded by mutex_
};

// An open file. Calls return an errno; one whose changes are kept in memory has succeeded. Thread-safe as pread(2) and
// pwrite(2) are.
class HostFile {
 public:
  // REQUIRES: files outlives it. Takes fd over.
  HostFile(HostFiles& files, std::string path, int fd)
      : files_(files), path_(std::move(path)), fd_(fd), overlay_(files.overlay_of(path_)) {}
  ~HostFile();
  HostFile(const HostFile&) = delete;
  HostFile& operator=(const HostFile&) = delete;

  int write(const char* data, std::size_t length, off_t offset);
  int read(char* data, std::size_t length, off_t offset);
  int size(off_t* size) const;
  int resize(off_t size);
  // As resize(), of a file that grows, with space for all of it where the file system can.
  int allocate(off_t size);
  int sync();
  // REQUIRES: it is not used any more.
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
