// A file as the Volume sees it: where it lies on the drive, and which of its pages are still dirty.
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

// Dirty bytes of a file: one run, for files here are written in order.
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

// Writes of a file on their way to the drive.
struct InFlight {
  std::unique_ptr<device::Queue> queue;  // while there are any
  std::uint64_t bytes = 0;
  Status failed;  // of one that nobody waited for; told to the next who asks
};

struct Inode {
  explicit Inode(std::uint64_t number, Cause why) : id(number), cause(why) {}

  const std::uint64_t id;

  // Guarded by the name table's lock.
  unsigned links = 0;
  unsigned handles = 0;
  unsigned writers = 0;

  // Held for the length of a sync, or of what must not meet one. Taken before `write_mutex`.
  std::mutex sync_mutex;

  // Held for the length of a write, waiting included. Taken before `mutex`.
  std::mutex write_mutex;
  InFlight in_flight;
  bool unflushed = false;  // the drive was given something since its last flush command
  bool closed = false;     // by its last writer: a partial page will not grow any more
  bool put_off = false;    // it is on the volume's list of files whose write-back lags

  // Held for bookkeeping only.
  mutable std::mutex mutex;
  Cause cause;
  bool adopted = false;
  std::uint64_t size = 0;
  ExtentList extents;
  DirtyRange dirty;
  std::uint64_t written_pages = 0;  // pages [0, this) may hold data on the drive
};

}  // namespace spillway::fs
