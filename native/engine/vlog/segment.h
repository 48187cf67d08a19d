// A file of a value log: its contents in an ordinary directory, its time and wear on the Volume's drive.
//
// Thread-safe, except for append(), which one thread calls at a time. A segment to be removed is deleted when its last
// user is done, so a scan can read what it found when it began.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "engine/vlog/record.h"
#include "fs/volume.h"
#include "fs/write_counts.h"

namespace spillway::engine::vlog {

struct SegmentPlace {
  std::string directory;
  fs::Volume* volume = nullptr;       // null: no drive. REQUIRES: outlives the segments
  bool host_sync = true;              // also sync the host's files
  fs::WriteCounts* writes = nullptr;  // of the host's files; may be null. REQUIRES: as of volume
};

class Segment {
 public:
  // Creates an empty file.
  static Result<std::shared_ptr<Segment>> create(const SegmentPlace& place, std::uint32_t number);
  static Result<std::shared_ptr<Segment>> open(const SegmentPlace& place, std::uint32_t number);
  ~Segment();
  Segment(const Segment&) = delete;
  Segment& operator=(const Segment&) = delete;

  // Appends all bytes or none. After an error, if damaged(), nothing more can be appended.
  Status append(std::string_view bytes);
  bool damaged() const { return damaged_; }
  // Makes durable what was appended before.
  Status sync();
  // Closes it for appends.
  Status seal();

  struct Piece {
    std::uint64_t offset = 0;
    std::size_t length = 0;
    char* into = nullptr;
  };
  // Requests the pieces from the drive without waiting. The bytes are available at once, but count as read only when
  // the returned wait() has returned. Null: nothing to wait for. A piece beyond the end of the file is an error.
  Result<std::unique_ptr<fs::ReadInFlight>> begin_read(const std::vector<Piece>& pieces, fs::Cause cause);
  Status read(const std::vector<Piece>& pieces, fs::Cause cause);

  // The file is deleted when its last user is done.
  void remove_when_unused() { remove_when_unused_ = true; }

  std::uint32_t number() const { return number_; }
  // The end of its records. After it there may be part of a write that did not survive a crash.
  std::uint64_t end() const { return end_; }
  void set_end(std::uint64_t end) { end_ = end; }
  std::uint64_t file_bytes() const { return file_bytes_; }

 private:
  Segment(const SegmentPlace& place, std::uint32_t number, int fd, std::uint64_t bytes);
  Status host_problem(const char* what) const;

  const std::string path_;
  fs::Volume* const volume_;
  const bool host_sync_;
  fs::WriteCounts* const writes_;
  const std::uint32_t number_;
  const int fd_;
  std::unique_ptr<fs::File> reader_;  // null: no drive
  std::unique_ptr<fs::File> writer_;  // of a segment that was created here and is not sealed
  std::atomic<std::uint64_t> file_bytes_;
  std::atomic<std::uint64_t> end_;
  std::atomic<bool> damaged_{false};
  std::atomic<bool> remove_when_unused_{false};
};

}  // namespace spillway::engine::vlog
