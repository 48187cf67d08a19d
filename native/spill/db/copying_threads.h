// The threads that are copying RocksDB's files: those that have disabled file deletions (DB::DisableFileDeletions) and
// not enabled them again. RocksDB's Checkpoint::ExportColumnFamily works that way.
#pragma once

#include <rocksdb/status.h>

#include <cstdint>
#include <map>
#include <optional>
#include <thread>

#include "base/mutex.h"

namespace spillway::spill {

class CopyingThreads {
 public:
  void begin() {
    const MutexLock lock(mutex_);
    ++copies_[std::this_thread::get_id()].depth;
  }

  bool is_this_thread() const {
    const MutexLock lock(mutex_);
    const auto found = copies_.find(std::this_thread::get_id());
    return found != copies_.end() && found->second.depth > 0;
  }

  // This thread has listed tables when `ingested` generations had been ingested.
  void note_listed(std::uint64_t ingested) {
    const MutexLock lock(mutex_);
    const auto found = copies_.find(std::this_thread::get_id());
    if (found != copies_.end()) found->second.listed = ingested;
  }
  // Whether more generations have been ingested since. A copy of that list with today's logs would not be consistent.
  bool has_listed_before(std::uint64_t ingested) const {
    const MutexLock lock(mutex_);
    const auto found = copies_.find(std::this_thread::get_id());
    return found != copies_.end() && found->second.listed && *found->second.listed != ingested;
  }

  // Keeps the failure of a listing function that returns no status. end() returns it.
  void note_failure(const rocksdb::Status& status) {
    const MutexLock lock(mutex_);
    copies_[std::this_thread::get_id()].failure = status;
  }

  // Ends this thread's copy, and returns its failure, if any. `all`: file deletions were enabled for all threads.
  rocksdb::Status end(bool all) {
    const MutexLock lock(mutex_);
    rocksdb::Status failure;
    if (const auto mine = copies_.find(std::this_thread::get_id()); mine != copies_.end()) {
      failure = mine->second.failure;
      mine->second.failure = rocksdb::Status::OK();
      if (mine->second.depth > 0) --mine->second.depth;
    }
    if (all) {
      for (auto& [thread, copy] : copies_) copy.depth = 0;
    }
    std::erase_if(copies_, [](const auto& one) { return one.second.depth == 0 && one.second.failure.ok(); });
    return failure;
  }

 private:
  struct Copy {
    std::uint64_t depth = 0;
    std::optional<std::uint64_t> listed;
    rocksdb::Status failure;
  };
  mutable Mutex mutex_;
  std::map<std::thread::id, Copy> copies_ GUARDED_BY(mutex_);
};

}  // namespace spillway::spill
