// The system's calls that change, read or sync files, as this program and the libraries of its engines make them: for
// files below a directory that a test has chosen, a HostCalls decides what becomes of each. It stands beneath every
// engine's own file system, so it sees what really is asked of the host.
//
// Not seen: what the C library does inside of itself (stdio), and writes into a mapping; a mapping that is shared and
// writable ends the process.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

namespace spillway::engine {

struct HostCall {
  enum class Kind : std::uint8_t { open, read, write, truncate, sync, sync_directory, rename, unlink, link };
  Kind kind = Kind::read;
  int fd = -1;               // of the file; not of open, rename, unlink and link
  std::string path{};        // relative to the directory; empty for itself
  std::string to{};          // of rename and link: likewise
  int flags = 0;             // of open
  std::uint64_t offset = 0;  // of write; of truncate the file's new size
  std::uint64_t bytes = 0;   // of read and write
};

// One at a time is asked, from its making to its end. REQUIRES: threads that make calls below its directory have ended
// before it does.
class HostCalls {
 public:
  explicit HostCalls(std::string directory);
  virtual ~HostCalls();
  HostCalls(const HostCalls&) = delete;
  HostCalls& operator=(const HostCalls&) = delete;

  const std::string& directory() const { return directory_; }

  // Makes the call, or does not; returns what the caller gets, with errno where that is -1. By the thread that calls;
  // calls that it makes itself meanwhile are not seen.
  virtual long around(const HostCall& call, const std::function<long()>& make) = 0;

 private:
  const std::string directory_;
};

}  // namespace spillway::engine
