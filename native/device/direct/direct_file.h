// A file or a block device, opened so that reads and writes go round the page cache (O_DIRECT); refused where that
// would be unsafe, or would measure something else than the drive.
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
    directory,  // a test file in it that has no name: gone when it is closed, however the process ends
    device,     // a block device that nothing uses
  };
  Kind kind = Kind::file;
  std::string path;
  // file: at most so much of it (all); directory: so much (1 GiB); device: not used, it is measured as it is.
  std::optional<std::uint64_t> size_bytes;
  bool destroy_data = false;  // file, device: without it they are opened for reading only
};

class DirectFile {
 public:
  // Fault::bad_input, and nothing is changed, where the target cannot be had as it must be. A test file is allocated
  // but not yet written.
  static Result<std::unique_ptr<DirectFile>> open(const DirectFileSpec& spec);
  ~DirectFile();
  DirectFile(const DirectFile&) = delete;
  DirectFile& operator=(const DirectFile&) = delete;

  int fd() const { return fd_; }
  const std::string& path() const { return path_; }
  std::uint64_t size_bytes() const { return size_bytes_; }
  std::uint32_t lba_bytes() const { return lba_bytes_; }
  bool writable() const { return writable_; }

  // Whether a file has parts within its first `bytes` that were never written: they read as zeros without the drive.
  bool has_holes(std::uint64_t bytes) const;
  // Has the file system and the drive make durable what was written.
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
