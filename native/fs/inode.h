// The state of a file in a Volume: its place on the drive, and its dirty pages.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <mutex>

#include "base/result.h"
#include "device/device.h"
#include "fs/extents.h"
#include "fs/volume.h"

namespace spillway::fs {

inline std::uint64_t pages_for(std::uint64_t bytes) { return (bytes + kPageBytes - 1) / kPageBytes; }

// Dirty bytes of a file. They form one run, because files are written in order here.
struct DirtyRange {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;

  bool empty() const { return begin == end; }
  std::uint64_t bytes() const { return end - begin; }
  bool touches(std::uint64_t from, std::uint64_t to) const { return from <= end && to >= begin; }
  void join(std::uint64_t from, std::uint64_t to) {
    begin = empty() ? from : std::min(begin, from);
    end = std::max(end, to);
  }
};

// A file's writes that are in flight.
struct InFlight {
  std::unique_ptr<device::Queue> queue;  // null if nothing is in flight
  std::uint64_t bytes = 0;
  Status failed;  // the first failure that no call has returned yet
};

struct Inode {
  explicit Inode(std::uint64_t number, Cause why) : id(number), cause(why) {}

  const std::uint64_t id;

  // Guarded by the mutex of NameTable.
  unsigned links = 0;
  unsigned handles = 0;
  unsigned writers = 0;

  // Held during a sync, and by operations that must not overlap one. Taken before `write_mutex`.
  std::mutex sync_mutex;

  // Held during a write, including its waits. Taken before `mutex`.
  std::mutex write_mutex;
  InFlight in_flight;
  bool unflushed = false;   // something was submitted since the last flush command
  bool closed = false;      // by its last writer: a partial page will not grow any more
  bool in_backlog = false;  // it is on the volume's list of files with pending write-back

  // Never held during a wait.
  mutable std::mutex mutex;
  Cause cause;
  bool adopted = false;
  std::uint64_t size = 0;
  ExtentList extents;
  DirtyRange dirty;
  std::uint64_t written_pages = 0;  // pages [0, written_pages) may hold data on the drive
};

}  // namespace spillway::fs
