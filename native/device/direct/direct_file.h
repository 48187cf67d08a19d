// A file or a block device, opened so that reads and writes bypass the page cache (O_DIRECT). Refused if that would be
// unsafe, or would not measure the drive.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "base/result.h"

namespace spillway::device {

struct DirectFileSpec {
  enum class Kind : std::uint8_t {
    file,       // an existing regular file
    directory,  // a nameless test file in it, which disappears when it is closed, however the process ends
    device,     // a block device that is not in use
  };
  Kind kind = Kind::file;
  std::string path;
  // file: at most that much of it (default: all); directory: that much (default: 1 GiB); device: unused, all is
  // measured.
  std::optional<std::uint64_t> size_bytes;
  bool destroy_data = false;  // file, device: if false they are opened for reading only
};

class DirectFile {
 public:
  // Fault::bad_input, with nothing changed, if the target cannot be opened that way. A test file is allocated but not
  // yet written.
  static Result<std::unique_ptr<DirectFile>> open(const DirectFileSpec& spec);
  ~DirectFile();
  DirectFile(const DirectFile&) = delete;
  DirectFile& operator=(const DirectFile&) = delete;

  int fd() const { return fd_; }
  const std::string& path() const { return path_; }
  std::uint64_t size_bytes() const { return size_bytes_; }
  std::uint32_t lba_bytes() const { return lba_bytes_; }
  bool writable() const { return writable_; }

  // Whether parts of the file's first `bytes` were never written. They read as zeros without the drive.
  bool has_holes(std::uint64_t bytes) const;
  // Makes what was written durable, in the file system and the drive.
  Status sync() const;

 private:
  explicit DirectFile(std::string path) : path_(std::move(path)) {}

  Status open_file(const DirectFileSpec& spec);
  Status open_directory(const DirectFileSpec& spec);
  Status open_device(const DirectFileSpec& spec);
  Status open_path(int flags);
  Status make_nameless();
  Status check_direct();

  std::string path_;
  int fd_ = -1;
  std::uint64_t size_bytes_ = 0;
  std::uint32_t lba_bytes_ = 0;
  bool writable_ = false;
  bool is_device_ = false;
};

}  // namespace spillway::device
