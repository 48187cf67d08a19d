// Observes a volume's files. For tests that simulate a loss of power.
#pragma once

#include <cstdint>
#include <string>

namespace spillway::fs {

// Files are identified by a number that a rename does not change. The thread that does an operation calls, after it;
// for two writes to one file in their order. Must be thread-safe and must not call the volume.
class VolumeObserver {
 public:
  virtual ~VolumeObserver() = default;

  virtual void named(std::uint64_t file, const std::string& path) = 0;  // created, renamed to, linked
  virtual void unnamed(const std::string& path) = 0;                    // removed, renamed from
  virtual void wrote(std::uint64_t file, std::uint64_t offset, std::uint64_t length) = 0;
  virtual void truncated(std::uint64_t file, std::uint64_t size) = 0;
  // A sync begins, and has succeeded: what was written before its beginning is on the drive.
  virtual void sync_begins(std::uint64_t file) = 0;
  virtual void synced(std::uint64_t file) = 0;
};

}  // namespace spillway::fs
