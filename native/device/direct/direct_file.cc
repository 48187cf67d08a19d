#include "device/direct/direct_file.h"

#include <fcntl.h>
#include <linux/fs.h>
#include <linux/magic.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "device/direct/device_use.h"

namespace spillway::device {
namespace {

using Kind = DirectFileSpec::Kind;

constexpr std::uint64_t kTestFileBytes = std::uint64_t{1} << 30;
// Alignment of direct I/O if the kernel does not report it (before Linux 6.1). Safe for every common drive.
constexpr std::uint32_t kSafeAlignment = 4096;

std::string reason(int error) { return std::strerror(error); }

Status no_direct(const std::string& path) {
  return Status::bad_input(path +
                           ": its file system has no direct I/O (O_DIRECT), so memory would be measured; choose a "
                           "target on a file system of a drive, such as ext4 or XFS");
}

// A file in memory has no drive, although newer kernels open it with O_DIRECT.
bool is_in_memory(int fd) {
  struct statfs file_system {};
  if (fstatfs(fd, &file_system) != 0) return false;
  return file_system.f_type == TMPFS_MAGIC || file_system.f_type == RAMFS_MAGIC;
}

// Offsets and lengths must be multiples of this; 0: direct I/O is not possible.
std::uint32_t direct_alignment(int fd) {
#ifdef STATX_DIOALIGN
  struct statx status {};
  if (statx(fd, "", AT_EMPTY_PATH, STATX_DIOALIGN, &status) == 0 && (status.stx_mask & STATX_DIOALIGN) != 0) {
    return status.stx_dio_offset_align;
  }
#else
  static_cast<void>(fd);
#endif
  return kSafeAlignment;
}

std::uint64_t rounded_down(std::uint64_t bytes, std::uint64_t multiple) { return bytes / multiple * multiple; }

Status check_kind(const std::string& path, Kind kind, struct stat& status) {
  if (stat(path.c_str(), &status) != 0) {
    const char* const mend = kind == Kind::file
                                 ? "; give an existing file, or kind directory for a test file of its own"
                                 : "; give one that exists";
    return Status::bad_input(path + ": " + reason(errno) + mend);
  }
  if (kind == Kind::file && !S_ISREG(status.st_mode)) {
    return Status::bad_input(path + ": not a regular file; target.kind is " +
                             (S_ISDIR(status.st_mode)   ? "directory for a directory"
                              : S_ISBLK(status.st_mode) ? "device for a block device"
                                                        : "file, directory or device"));
  }
  if (kind == Kind::directory && !S_ISDIR(status.st_mode)) return Status::bad_input(path + ": not a directory");
  if (kind == Kind::device && !S_ISBLK(status.st_mode)) {
    return Status::bad_input(path + ": not a block device; target.kind is file for a file");
  }
  return {};
}

}  // namespace

Result<std::unique_ptr<DirectFile>> DirectFile::open(const DirectFileSpec& spec) {
  struct stat status {};
  if (Status checked = check_kind(spec.path, spec.kind, status); !checked) return checked;
  std::unique_ptr<DirectFile> file(new DirectFile(spec.path));
  Status opened;
  switch (spec.kind) {
    case Kind::file:
      opened = file->open_file(spec);
      break;
    case Kind::directory:
      opened = file->open_directory(spec);
      break;
    case Kind::device:
      opened = file->open_device(spec);
      break;
  }
  if (!opened) return opened;
  return file;
}

DirectFile::~DirectFile() {
  if (fd_ >= 0) close(fd_);
}

Status DirectFile::open_path(int flags) {
  fd_ = ::open(path_.c_str(), flags | O_DIRECT | O_CLOEXEC | (writable_ ? O_RDWR : O_RDONLY));
  if (fd_ >= 0) return {};
  if (errno == EINVAL) return no_direct(path_);
  if (errno == EBUSY) return Status::bad_input(path_ + ": in use by the system; give a device that nothing uses");
  if (writable_ && (errno == EACCES || errno == EROFS || errno == EPERM)) {
    return Status::bad_input(path_ + ": cannot be written (" + reason(errno) +
                             "); measure reads only, without target.destroy_data, or give a target that can be");
  }
  return Status::bad_input(path_ + ": cannot be opened: " + reason(errno));
}

Status DirectFile::check_direct() {
  lba_bytes_ = direct_alignment(fd_);
  return lba_bytes_ == 0 || is_in_memory(fd_) ? no_direct(path_) : Status::ok();
}

Status DirectFile::open_file(const DirectFileSpec& spec) {
  writable_ = spec.destroy_data;
  if (Status status = open_path(0); !status) return status;
  if (Status status = check_direct(); !status) return status;
  struct stat status {};
  fstat(fd_, &status);
  const auto size = static_cast<std::uint64_t>(status.st_size);
  if (spec.size_bytes && *spec.size_bytes > size) {
    return Status::bad_input(path_ + ": too small: it has " + std::to_string(size) +
                             " bytes and target.size_bytes is " + std::to_string(*spec.size_bytes) +
                             "; lower that or give a larger file");
  }
  size_bytes_ = rounded_down(spec.size_bytes.value_or(size), lba_bytes_);
  if (size_bytes_ == 0) {
    return Status::bad_input(path_ + ": too small: it has " + std::to_string(size) +
                             " bytes, less than one logical block of " + std::to_string(lba_bytes_));
  }
  return {};
}

// O_TMPFILE if the file system supports it; otherwise a file whose name is removed at once.
Status DirectFile::make_nameless() {
  constexpr int kFlags = O_RDWR | O_DIRECT | O_CLOEXEC;
  fd_ = ::open(path_.c_str(), kFlags | O_TMPFILE, S_IRUSR | S_IWUSR);
  if (fd_ < 0 && (errno == EOPNOTSUPP || errno == EISDIR)) {
    std::string name = path_ + "/spillway-probe-XXXXXX";
    fd_ = mkostemp(name.data(), O_DIRECT | O_CLOEXEC);
    if (fd_ >= 0) unlink(name.c_str());
  }
  if (fd_ >= 0) return {};
  if (errno == EINVAL) return no_direct(path_);
  return Status::bad_input(path_ + ": no test file can be made in it: " + reason(errno) +
                           "; give a directory that can be written");
}

Status DirectFile::open_directory(const DirectFileSpec& spec) {
  writable_ = true;
  if (Status status = make_nameless(); !status) return status;
  if (Status status = check_direct(); !status) return status;
  size_bytes_ = rounded_down(spec.size_bytes.value_or(kTestFileBytes), lba_bytes_);
  if (size_bytes_ == 0) {
    return Status::bad_input("target.size_bytes is less than one logical block of " + std::to_string(lba_bytes_) +
                             " bytes; raise it");
  }
  struct statfs room {};
  fstatfs(fd_, &room);
  const auto free_bytes = static_cast<std::uint64_t>(room.f_bavail) * static_cast<std::uint64_t>(room.f_bsize);
  // All space is allocated before anything is written, so that a drive without enough space is not filled first.
  const int error = free_bytes < size_bytes_ ? ENOSPC : posix_fallocate(fd_, 0, static_cast<off_t>(size_bytes_));
  if (error == ENOSPC || error == EFBIG || error == EDQUOT) {
    return Status::bad_input(path_ + ": too small: it has " + std::to_string(free_bytes) +
                             " bytes free and the test file takes " + std::to_string(size_bytes_) +
                             "; lower target.size_bytes");
  }
  if (error != 0) return Status::io_error(path_ + ": no room could be got for the test file: " + reason(error));
  return {};
}

Status DirectFile::open_device(const DirectFileSpec& spec) {
  writable_ = spec.destroy_data;
  is_device_ = true;
  struct stat status {};
  stat(path_.c_str(), &status);
  if (const auto use = use_of_device(major(status.st_rdev), minor(status.st_rdev))) {
    return Status::bad_input(path_ + " " + *use + "; give a device that nothing uses");
  }
  // With O_EXCL the kernel itself reports whether anything uses it, including other mount namespaces.
  if (Status opened = open_path(O_EXCL); !opened) return opened;
  int logical = 0;
  int read_only = 0;
  if (ioctl(fd_, BLKGETSIZE64, &size_bytes_) != 0 || ioctl(fd_, BLKSSZGET, &logical) != 0 ||
      ioctl(fd_, BLKROGET, &read_only) != 0) {
    return Status::bad_input(path_ + ": does not say how large it is: " + reason(errno));
  }
  lba_bytes_ = static_cast<std::uint32_t>(logical);
  if (read_only != 0 && writable_) {
    return Status::bad_input(path_ +
                             ": cannot be written (the device is set read-only); measure reads only, without "
                             "target.destroy_data, or give a target that can be");
  }
  size_bytes_ = rounded_down(size_bytes_, lba_bytes_);
  if (size_bytes_ == 0) return Status::bad_input(path_ + ": too small: the device has no medium, or one of 0 bytes");
  return {};
}

bool DirectFile::has_holes(std::uint64_t bytes) const {
  if (is_device_) return false;
  const off_t hole = lseek(fd_, 0, SEEK_HOLE);
  return hole >= 0 && static_cast<std::uint64_t>(hole) < bytes;
}

Status DirectFile::sync() const {
  if (fdatasync(fd_) == 0) return {};
  return Status::io_error(path_ + ": cannot be made durable: " + reason(errno));
}

}  // namespace spillway::device
