#include "engine/wiredtiger/host_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <system_error>

namespace spillway::engine {

namespace {

// System calls, repeated until everything is done. They return an errno.
int write_fully(int fd, const char* data, std::size_t length, off_t offset) {
  while (length > 0) {
    const ssize_t done = ::pwrite(fd, data, length, offset);
    if (done < 0 && errno == EINTR) continue;
    if (done < 0) return errno;
    data += done;
    length -= static_cast<std::size_t>(done);
    offset += done;
  }
  return 0;
}

// `read`: returns how many bytes there were.
int read_as_far_as_it_goes(int fd, char* data, std::size_t length, off_t offset, std::size_t& read) {
  read = 0;
  while (read < length) {
    const ssize_t done = ::pread(fd, data + read, length - read, offset + static_cast<off_t>(read));
    if (done < 0 && errno == EINTR) continue;
    if (done < 0) return errno;
    if (done == 0) return 0;
    read += static_cast<std::size_t>(done);
  }
  return 0;
}

}  // namespace

int HostFiles::result_of(int error, const std::string& path) {
  if (error == 0) return 0;
  const std::string message = path + ": " + std::generic_category().message(error);
  failure_.note(error == ENOSPC ? Status::error(Fault::drive_full, message) : Status::io_error(message));
  return 0;
}

std::shared_ptr<Overlay> HostFiles::overlay_of(const std::string& path) {
  const std::lock_guard lock(mutex_);
  std::shared_ptr<Overlay>& overlay = overlays_[path];
  if (!overlay) overlay = std::make_shared<Overlay>();
  return overlay;
}

HostFile::~HostFile() { (void)close(); }

int HostFile::close() {
  if (fd_ < 0) return 0;
  const int error = ::close(fd_) == 0 ? 0 : errno;
  fd_ = -1;
  return error;
}

int HostFile::write(const char* data, std::size_t length, off_t offset) {
  if (!files_.failure().is_there()) {
    const int error = write_fully(fd_, data, length, offset);
    if (error == 0) return 0;
    (void)files_.result_of(error, path_);
  }
  off_t end = 0;
  if (const int error = size(&end); error != 0) return error;
  const std::lock_guard lock(overlay_->mutex);
  overlay_->writes.emplace_back(offset, std::string(data, length));
  overlay_->size = std::max({overlay_->size.value_or(end), end, offset + static_cast<off_t>(length)});
  return 0;
}

int HostFile::read(char* data, std::size_t length, off_t offset) {
  if (files_.failure().is_there()) return read_overlay(data, length, offset);
  std::size_t there = 0;
  if (const int error = read_as_far_as_it_goes(fd_, data, length, offset, there); error != 0) return error;
  return there == length ? 0 : EIO;  // WiredTiger reads only what it has written
}

int HostFile::read_overlay(char* data, std::size_t length, off_t offset) {
  std::size_t there = 0;
  if (const int error = read_as_far_as_it_goes(fd_, data, length, offset, there); error != 0) return error;
  std::fill(data + there, data + length, '\0');
  const off_t end = offset + static_cast<off_t>(length);
  const std::lock_guard lock(overlay_->mutex);
  if (there < length && overlay_->size.value_or(0) < end) return EIO;
  for (const auto& [at, bytes] : overlay_->writes) {
    const off_t from = std::max(at, offset);
    const off_t to = std::min(at + static_cast<off_t>(bytes.size()), end);
    if (from < to) std::memcpy(data + (from - offset), bytes.data() + (from - at), static_cast<std::size_t>(to - from));
  }
  return 0;
}

int HostFile::size(off_t* size) const {
  struct stat seen {};
  if (::fstat(fd_, &seen) != 0) return errno;
  const std::lock_guard lock(overlay_->mutex);
  *size = overlay_->size.value_or(seen.st_size);
  return 0;
}

int HostFile::resize(off_t size) {
  if (!files_.failure().is_there()) {
    if (::ftruncate(fd_, size) == 0) return 0;
    (void)files_.result_of(errno, path_);
  }
  const std::lock_guard lock(overlay_->mutex);
  overlay_->size = size;
  return 0;
}

int HostFile::allocate(off_t size) {
  if (!files_.failure().is_there()) {
    if (::fallocate(fd_, 0, 0, size) == 0) return 0;
    if (errno == ENOSPC || errno == EIO) (void)files_.result_of(errno, path_);
  }
  return resize(size);
}

int HostFile::sync() {
  if (files_.failure().is_there() || ::fdatasync(fd_) == 0) return 0;
  return files_.result_of(errno, path_);
}

}  // namespace spillway::engine
