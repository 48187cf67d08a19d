#include "engine_host_calls.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>
#ifdef __SANITIZE_THREAD__
#include <sanitizer/common_interface_defs.h>
#endif

#include <array>
#include <atomic>
#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <string_view>
#include <utility>

namespace spillway::engine {
namespace {

using Kind = HostCall::Kind;

std::atomic<HostCalls*> asked{nullptr};
thread_local bool in_call = false;

// The path below the chosen directory; none if it is outside, or there is no HostCalls.
std::optional<std::string> below(std::string_view path) {
  const HostCalls* const calls = asked.load();
  if (calls == nullptr || in_call || !path.starts_with(calls->directory())) return std::nullopt;
  path.remove_prefix(calls->directory().size());
  if (path.empty()) return std::string();
  if (path.front() != '/') return std::nullopt;
  return std::filesystem::path(path.substr(1)).lexically_normal().string();
}

std::string path_of(int fd) {
  std::array<char, 4096> path{};
  const ssize_t length = ::readlink(("/proc/self/fd/" + std::to_string(fd)).c_str(), path.data(), path.size());
  return length < 0 ? std::string() : std::string(path.data(), static_cast<std::size_t>(length));
}

std::string path_at(int directory, const char* path) {
  return directory == AT_FDCWD || path[0] == '/' ? std::string(path) : path_of(directory) + "/" + path;
}

template <typename Make>
long ask(HostCall call, const Make& make) {
  const int before = errno;
  in_call = true;
  errno = before;
  HostCalls* const calls = asked.load();
  const long result = calls != nullptr ? calls->around(call, make) : make();
  const int error = errno;
  in_call = false;
  errno = error;
  return result;
}

// A call on an open file.
template <typename Make>
long on_file(HostCall call, const Make& make) {
  if (asked.load() == nullptr || in_call) return make();
  const auto path = below(path_of(call.fd));
  if (!path) return make();
  call.path = *path;
  return ask(std::move(call), make);
}

template <typename Make>
long on_name(HostCall call, const std::string& path, const Make& make) {
  const auto name = below(path);
  if (!name) return make();
  call.path = *name;
  return ask(std::move(call), make);
}

template <typename Make>
long on_names(HostCall call, const std::string& from, const std::string& to, const Make& make) {
  const auto name = below(from);
  const auto other = below(to);
  if (!name || !other) return make();
  call.path = *name;
  call.to = *other;
  return ask(std::move(call), make);
}

std::uint64_t bytes_of(const struct iovec* parts, int count) {
  std::uint64_t bytes = 0;
  for (int i = 0; i < count; ++i) bytes += parts[i].iov_len;
  return bytes;
}

// The offset at which write(2) writes.
std::uint64_t offset_of(int fd) {
  if (asked.load() == nullptr || in_call) return 0;
  if ((::fcntl(fd, F_GETFL) & O_APPEND) == 0) {
    const off_t at = ::lseek(fd, 0, SEEK_CUR);
    return at < 0 ? 0 : static_cast<std::uint64_t>(at);  // a pipe has none
  }
  struct stat seen {};
  return ::fstat(fd, &seen) == 0 ? static_cast<std::uint64_t>(seen.st_size) : 0;
}

long open_at(int directory, const char* path, int flags, mode_t mode) {
  return on_name({.kind = Kind::open, .flags = flags}, path_at(directory, path),
                 [=] { return ::syscall(SYS_openat, directory, path, flags, mode); });
}

long write_at(int fd, std::uint64_t offset, std::uint64_t bytes, const std::function<long()>& make) {
  return on_file({.kind = Kind::write, .fd = fd, .offset = offset, .bytes = bytes}, make);
}

long sync(int fd, long number) {
  struct stat seen {};
  const bool is_directory = ::fstat(fd, &seen) == 0 && S_ISDIR(seen.st_mode);
  return on_file({.kind = is_directory ? Kind::sync_directory : Kind::sync, .fd = fd},
                 [=] { return ::syscall(number, fd); });
}

// Allocated space that the file's size includes counts as a truncation that extends the file.
int allocate(int fd, int mode, off_t offset, off_t length) {
  const auto make = [=] { return ::syscall(SYS_fallocate, fd, mode, offset, length); };
  struct stat seen {};
  if (mode != 0 || ::fstat(fd, &seen) != 0 || seen.st_size >= offset + length) return static_cast<int>(make());
  return static_cast<int>(
      on_file({.kind = Kind::truncate, .fd = fd, .offset = static_cast<std::uint64_t>(offset + length)}, make));
}

void refuse_mapping(int fd, int protection, int flags) {
  if ((protection & PROT_WRITE) == 0 || (flags & MAP_SHARED) == 0) return;
  if (asked.load() == nullptr || in_call || !below(path_of(fd))) return;
  std::fprintf(stderr, "%s is mapped to be written, which HostCalls does not see\n", path_of(fd).c_str());
  std::abort();
}

}  // namespace

// The thread sanitizer opens files when it names a function for the first time. If that were a call here, what it finds
// in that call would wait for its own lock.
void HostCalls::start() {
#ifdef __SANITIZE_THREAD__
  std::array<char, 256> name{};
  __sanitizer_symbolize_pc(__builtin_return_address(0), "%f", name.data(), name.size());
#endif
  asked = this;
}
void HostCalls::stop() { asked = nullptr; }

}  // namespace spillway::engine

// NOLINTBEGIN: names and signatures are the system's
#define SPILLWAY_CALL __attribute__((visibility("default")))

extern "C" {
using spillway::engine::HostCall;

static mode_t mode_of(int flags, va_list more) {
  return (flags & O_CREAT) != 0 || (flags & O_TMPFILE) == O_TMPFILE ? va_arg(more, mode_t) : 0;
}
#define SPILLWAY_OPEN(name, parameters, directory)                                    \
  SPILLWAY_CALL int name parameters {                                                 \
    va_list more;                                                                     \
    va_start(more, flags);                                                            \
    const mode_t mode = mode_of(flags, more);                                         \
    va_end(more);                                                                     \
    return static_cast<int>(spillway::engine::open_at(directory, path, flags, mode)); \
  }
SPILLWAY_OPEN(open, (const char* path, int flags, ...), AT_FDCWD)
SPILLWAY_OPEN(open64, (const char* path, int flags, ...), AT_FDCWD)
SPILLWAY_OPEN(openat, (int directory, const char* path, int flags, ...), directory)
SPILLWAY_OPEN(openat64, (int directory, const char* path, int flags, ...), directory)
SPILLWAY_CALL int creat(const char* path, mode_t mode) {
  return static_cast<int>(spillway::engine::open_at(AT_FDCWD, path, O_CREAT | O_WRONLY | O_TRUNC, mode));
}

SPILLWAY_CALL ssize_t write(int fd, const void* bytes, size_t count) {
  return spillway::engine::write_at(fd, spillway::engine::offset_of(fd), count,
                                    [=] { return ::syscall(SYS_write, fd, bytes, count); });
}
SPILLWAY_CALL ssize_t pwrite64(int fd, const void* bytes, size_t count, off64_t at) {
  return spillway::engine::write_at(fd, static_cast<std::uint64_t>(at), count,
                                    [=] { return ::syscall(SYS_pwrite64, fd, bytes, count, at); });
}
SPILLWAY_CALL ssize_t pwrite(int fd, const void* bytes, size_t count, off_t at) {
  return pwrite64(fd, bytes, count, at);
}
SPILLWAY_CALL ssize_t writev(int fd, const struct iovec* parts, int count) {
  return spillway::engine::write_at(fd, spillway::engine::offset_of(fd), spillway::engine::bytes_of(parts, count),
                                    [=] { return ::syscall(SYS_writev, fd, parts, count); });
}
SPILLWAY_CALL ssize_t pwritev64(int fd, const struct iovec* parts, int count, off64_t at) {
  return spillway::engine::write_at(fd, static_cast<std::uint64_t>(at), spillway::engine::bytes_of(parts, count),
                                    [=] { return ::syscall(SYS_pwritev, fd, parts, count, at, 0); });
}
SPILLWAY_CALL ssize_t pwritev(int fd, const struct iovec* parts, int count, off_t at) {
  return pwritev64(fd, parts, count, at);
}
SPILLWAY_CALL ssize_t pread64(int fd, void* bytes, size_t count, off64_t at) {
  return spillway::engine::on_file({.kind = HostCall::Kind::read, .fd = fd, .bytes = count},
                                   [=] { return ::syscall(SYS_pread64, fd, bytes, count, at); });
}
SPILLWAY_CALL ssize_t pread(int fd, void* bytes, size_t count, off_t at) { return pread64(fd, bytes, count, at); }

SPILLWAY_CALL int fdatasync(int fd) { return static_cast<int>(spillway::engine::sync(fd, SYS_fdatasync)); }
SPILLWAY_CALL int fsync(int fd) { return static_cast<int>(spillway::engine::sync(fd, SYS_fsync)); }

SPILLWAY_CALL int ftruncate64(int fd, off64_t size) noexcept {
  return static_cast<int>(spillway::engine::on_file(
      {.kind = HostCall::Kind::truncate, .fd = fd, .offset = static_cast<std::uint64_t>(size)},
      [=] { return ::syscall(SYS_ftruncate, fd, size); }));
}
SPILLWAY_CALL int ftruncate(int fd, off_t size) noexcept { return ftruncate64(fd, size); }
SPILLWAY_CALL int truncate64(const char* path, off64_t size) noexcept {
  const int fd = ::open(path, O_WRONLY | O_CLOEXEC);
  if (fd < 0) return -1;
  const int result = ftruncate64(fd, size);
  const int error = errno;
  ::close(fd);
  errno = error;
  return result;
}
SPILLWAY_CALL int truncate(const char* path, off_t size) noexcept { return truncate64(path, size); }
SPILLWAY_CALL int fallocate64(int fd, int mode, off64_t offset, off64_t length) {
  return spillway::engine::allocate(fd, mode, offset, length);
}
SPILLWAY_CALL int fallocate(int fd, int mode, off_t offset, off_t length) {
  return spillway::engine::allocate(fd, mode, offset, length);
}
SPILLWAY_CALL int posix_fallocate64(int fd, off64_t offset, off64_t length) {
  return spillway::engine::allocate(fd, 0, offset, length) == 0 ? 0 : errno;
}
SPILLWAY_CALL int posix_fallocate(int fd, off_t offset, off_t length) { return posix_fallocate64(fd, offset, length); }

// The thread sanitizer maps memory before it is initialized, so this must not be instrumented.
SPILLWAY_CALL __attribute__((no_sanitize("thread"))) void* mmap64(void* at, size_t length, int protection, int flags,
                                                                  int fd, off64_t offset) noexcept {
  if (fd >= 0) spillway::engine::refuse_mapping(fd, protection, flags);
  return reinterpret_cast<void*>(::syscall(SYS_mmap, at, length, protection, flags, fd, offset));
}
SPILLWAY_CALL __attribute__((no_sanitize("thread"))) void* mmap(void* at, size_t length, int protection, int flags,
                                                                int fd, off_t offset) noexcept {
  return mmap64(at, length, protection, flags, fd, offset);
}

SPILLWAY_CALL int renameat(int from_in, const char* from, int to_in, const char* to) noexcept {
  return static_cast<int>(spillway::engine::on_names(
      {.kind = HostCall::Kind::rename}, spillway::engine::path_at(from_in, from), spillway::engine::path_at(to_in, to),
      [=] { return ::syscall(SYS_renameat, from_in, from, to_in, to); }));
}
SPILLWAY_CALL int rename(const char* from, const char* to) noexcept { return renameat(AT_FDCWD, from, AT_FDCWD, to); }
SPILLWAY_CALL int linkat(int from_in, const char* from, int to_in, const char* to, int flags) noexcept {
  return static_cast<int>(spillway::engine::on_names(
      {.kind = HostCall::Kind::link}, spillway::engine::path_at(from_in, from), spillway::engine::path_at(to_in, to),
      [=] { return ::syscall(SYS_linkat, from_in, from, to_in, to, flags); }));
}
SPILLWAY_CALL int link(const char* from, const char* to) noexcept { return linkat(AT_FDCWD, from, AT_FDCWD, to, 0); }
SPILLWAY_CALL int unlinkat(int directory, const char* path, int flags) noexcept {
  const auto make = [=] { return ::syscall(SYS_unlinkat, directory, path, flags); };
  if ((flags & AT_REMOVEDIR) != 0) return static_cast<int>(make());
  return static_cast<int>(
      spillway::engine::on_name({.kind = HostCall::Kind::unlink}, spillway::engine::path_at(directory, path), make));
}
SPILLWAY_CALL int unlink(const char* path) noexcept { return unlinkat(AT_FDCWD, path, 0); }
SPILLWAY_CALL int remove(const char* path) noexcept {
  const int result = unlink(path);
  return result != 0 && (errno == EISDIR || errno == EPERM) ? unlinkat(AT_FDCWD, path, AT_REMOVEDIR) : result;
}
}
// NOLINTEND
