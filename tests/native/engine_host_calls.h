// Intercepts the system calls of this program and of its engines' libraries that change, read or sync files. For files
// below a directory that a test has chosen, a HostCalls decides what each call does. It is below every engine's own
// file system, so it observes what is really requested from the host.
//
// Not observed: calls inside of the C library (stdio), and writes to a mapping. A shared, writable mapping ends the
// process.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <utility>

namespace spillway::engine {

struct HostCall {
  enum class Kind : std::uint8_t { open, read, write, truncate, sync, sync_directory, rename, unlink, link };
  Kind kind = Kind::read;
  int fd = -1;               // of the file; unused for open, rename, unlink and link
  std::string path{};        // relative to the directory; empty for the directory itself
  std::string to{};          // for rename and link; relative too
  int flags = 0;             // for open
  std::uint64_t offset = 0;  // for write; for truncate the file's new size
  std::uint64_t bytes = 0;   // for read and write
};

// Only one exists at a time. A derived class calls start() when it is whole, at the end of its constructor, and stop()
// at the begin of its destructor. REQUIRES: threads with calls below its directory end before it does.
class HostCalls {
 public:
  explicit HostCalls(std::string directory) : directory_(std::move(directory)) {}
  virtual ~HostCalls() = default;
  HostCalls(const HostCalls&) = delete;
  HostCalls& operator=(const HostCalls&) = delete;

  const std::string& directory() const { return directory_; }

  // Makes the call or not. Returns the caller's result, with errno if that is -1. Runs in the calling thread; calls
  // that it makes itself are not intercepted.
  virtual long around(const HostCall& call, const std::function<long()>& make) = 0;

 protected:
  void start();
  static void stop();

 private:
  const std::string directory_;
};

}  // namespace spillway::engine
