#include "accelerate/preload/process_start.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <memory>

#include "accelerate/databases/write_line.h"
#include "accelerate/preload/rocksdb_library.h"

namespace spillway::accelerate {
namespace {

struct FileIdentity {
  bool is_open = false;
  struct stat status {};

  bool operator==(const FileIdentity& other) const {
    return is_open && other.is_open && status.st_dev == other.status.st_dev && status.st_ino == other.status.st_ino;
  }
};

FileIdentity identity_of(int file) {
  FileIdentity identity;
  identity.is_open = ::fstat(file, &identity.status) == 0;
  return identity;
}

// `path` is empty for the working directory.
std::string absolute(const std::string& path) {
  const std::unique_ptr<char, void (*)(void*)> text(::realpath(path.empty() ? "." : path.c_str(), nullptr), std::free);
  return text == nullptr ? path : std::string(text.get());
}

struct ProcessStart {
  FileIdentity standard_error = identity_of(STDERR_FILENO);
  std::string directory = absolute("");
  std::string library = absolute(file_of(reinterpret_cast<const void*>(&absolute)));
};

// Never destroyed, because destructors of the program may still open databases.
const ProcessStart& process_start() {
  static const ProcessStart* const start = std::make_unique<ProcessStart>().release();
  return *start;
}

__attribute__((constructor)) void note_start() { (void)process_start(); }

bool is_standard_error() {
  const FileIdentity now = identity_of(STDERR_FILENO);
  if (!now.is_open) return false;
  if (now == process_start().standard_error || S_ISCHR(now.status.st_mode)) return true;
  const int inherited = ::fcntl(STDERR_FILENO, F_GETFD);
  if (inherited < 0 || (inherited & FD_CLOEXEC) != 0) return false;
  const int flags = ::fcntl(STDERR_FILENO, F_GETFL);
  return (flags >= 0 && (flags & O_APPEND) != 0) || now == identity_of(STDOUT_FILENO);
}

}  // namespace

const std::string& first_directory() { return process_start().directory; }

const std::string& library_directory() {
  static const std::string* const directory = [] {
    const std::string& file = process_start().library;
    return std::make_unique<std::string>(file.substr(0, file.rfind('/') + 1)).release();
  }();
  return *directory;
}

void write_to_standard_error(const std::string& line) {
  if (is_standard_error()) (void)write_line(STDERR_FILENO, line);
}

}  // namespace spillway::accelerate
