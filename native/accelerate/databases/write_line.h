// Writes a line to a file descriptor, for both libraries.
#pragma once

#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <ctime>
#include <string>

namespace spillway::accelerate {

// One call, so that lines of several processes do not mix. Returns whether all of it was written. A pipe that nobody
// reads any more is an error and no SIGPIPE, which would end a program that writes nothing there itself.
inline bool write_line(int file, const std::string& line) {
  const std::string text = line + "\n";
  sigset_t pipe;
  sigset_t before;
  sigset_t pending;
  ::sigemptyset(&pipe);
  ::sigaddset(&pipe, SIGPIPE);
  ::sigpending(&pending);
  if (::pthread_sigmask(SIG_BLOCK, &pipe, &before) != 0) return false;
  const ssize_t written = ::write(file, text.data(), text.size());
  if (written < 0 && errno == EPIPE && ::sigismember(&pending, SIGPIPE) == 0) {
    const timespec at_once{};
    while (::sigtimedwait(&pipe, nullptr, &at_once) < 0 && errno == EINTR) {
    }
  }
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return written == static_cast<ssize_t>(text.size());
}

}  // namespace spillway::accelerate
