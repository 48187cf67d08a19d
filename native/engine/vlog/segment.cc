#include "engine/vlog/segment.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "fs/path_key.h"

namespace spillway::engine::vlog {

using fs::Access;
using fs::Cause;

Segment::Segment(const SegmentPlace& place, std::uint32_t number, int fd, std::uint64_t bytes)
    : path_(place.directory + "/" + segment_name(number)),
      volume_(place.volume),
      host_sync_(place.host_sync || place.volume == nullptr),
      writes_(place.writes),
      number_(number),
      fd_(fd),
      file_bytes_(bytes),
      end_(bytes) {}

Segment::~Segment() {
  ::close(fd_);
  writer_.reset();
  reader_.reset();
  if (!remove_when_unused_) return;
  ::unlink(path_.c_str());
  // If the drive fails here, the next write returns the error.
  if (volume_ != nullptr) (void)volume_->remove(fs::path_key(path_));
}

Status Segment::host_problem(const char* what) const {
  const std::string message = std::string(what) + " " + path_ + ": " + std::strerror(errno);
  return errno == ENOSPC ? Status::error(Fault::drive_full, message) : Status::io_error(message);
}

Result<std::shared_ptr<Segment>> Segment::create(const SegmentPlace& place, std::uint32_t number) {
  const std::string path = place.directory + "/" + segment_name(number);
  const int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (fd < 0) return Status::io_error("cannot make " + path + ": " + std::strerror(errno));
  std::shared_ptr<Segment> segment(new Segment(place, number, fd, 0));
  if (place.volume != nullptr) {
    auto writer = place.volume->create(fs::path_key(path), Cause::blob);
    if (!writer) return writer.status();
    segment->writer_ = std::move(*writer);
    auto reader = place.volume->open(fs::path_key(path), 0, Cause::blob, /*writer=*/false);
    if (!reader) return reader.status();
    segment->reader_ = std::move(*reader);
  }
  return segment;
}

Result<std::shared_ptr<Segment>> Segment::open(const SegmentPlace& place, std::uint32_t number) {
  const std::string path = place.directory + "/" + segment_name(number);
  const int fd = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
  if (fd < 0) return Status::io_error("cannot open " + path + ": " + std::strerror(errno));
  struct stat facts {};
  const bool known = ::fstat(fd, &facts) == 0;
  std::shared_ptr<Segment> segment(new Segment(place, number, fd, static_cast<std::uint64_t>(facts.st_size)));
  if (!known) return segment->host_problem("cannot look at");
  if (place.volume != nullptr) {
    auto reader = place.volume->open(fs::path_key(path), segment->file_bytes_, Cause::blob, /*writer=*/false);
    if (!reader) return reader.status();
    segment->reader_ = std::move(*reader);
  }
  return segment;
}

// The drive is written first: if it has no space, the host's file must not grow.
Status Segment::append(std::string_view bytes) {
  const std::uint64_t offset = file_bytes_;
  if (writer_) {
    if (Status status = writer_->write(offset, bytes.size(), Access::buffered); !status) {
      // The error may be of an earlier write. Only drive_full proves that nothing was lost.
      damaged_ = status.fault() != Fault::drive_full;
      return status;
    }
  }
  std::size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t wrote = ::pwrite(fd_, bytes.data() + done, bytes.size() - done, static_cast<off_t>(offset + done));
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote <= 0) {
      Status status = host_problem("cannot write");
      if (::ftruncate(fd_, static_cast<off_t>(offset)) != 0) damaged_ = true;
      return status;
    }
    done += static_cast<std::size_t>(wrote);
  }
  if (writes_ != nullptr) writes_->add(Cause::blob, bytes.size());
  file_bytes_ = offset + bytes.size();
  end_ = offset + bytes.size();
  return Status::ok();
}

Status Segment::sync() {
  if (host_sync_ && ::fdatasync(fd_) != 0) return host_problem("cannot sync");
  return reader_ ? reader_->sync() : Status::ok();
}

Status Segment::seal() { return writer_ ? writer_->close() : Status::ok(); }

Result<std::unique_ptr<fs::ReadInFlight>> Segment::begin_read(const std::vector<Piece>& pieces, Cause cause) {
  std::unique_ptr<fs::ReadInFlight> flight;
  if (reader_) {
    std::vector<fs::File::Range> ranges;
    ranges.reserve(pieces.size());
    for (const Piece& piece : pieces) ranges.push_back({piece.offset, piece.length});
    auto begun = reader_->begin_read(ranges, Access::buffered, cause);
    if (!begun) return begun.status();
    flight = std::move(*begun);
  } else if (pieces.size() > 1) {
    // The kernel then reads them in parallel. It is a hint: if it is refused, the reads below work nevertheless.
    for (const Piece& piece : pieces) {
      (void)::posix_fadvise(fd_, static_cast<off_t>(piece.offset), static_cast<off_t>(piece.length),
                            POSIX_FADV_WILLNEED);
    }
  }
  for (const Piece& piece : pieces) {
    for (std::size_t done = 0; done < piece.length;) {
      const ssize_t got = ::pread(fd_, piece.into + done, piece.length - done, static_cast<off_t>(piece.offset + done));
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) return host_problem("cannot read");
      if (got == 0) {
        return Status::io_error(path_ + " ends at byte " + std::to_string(file_bytes_) +
                                ", before what the tree says is there");
      }
      done += static_cast<std::size_t>(got);
    }
  }
  return flight;
}

Status Segment::read(const std::vector<Piece>& pieces, Cause cause) {
  auto flight = begin_read(pieces, cause);
  if (!flight) return flight.status();
  return *flight ? (*flight)->wait() : Status::ok();
}

}  // namespace spillway::engine::vlog
