#include "tool/protocol/line_reader.h"

#include <poll.h>
#include <unistd.h>

#include <array>
#include <cerrno>

namespace spillway::tool {
namespace {

// Upper bound on the delay of a signal that arrives between the check of `stop` and the wait.
constexpr int kWaitMs = 100;

}  // namespace

std::optional<std::string> LineReader::next(const std::atomic<bool>& stop) {
  while (!stop) {
    if (auto line = take_line()) {
      ++number_;
      if (line->find_first_not_of(" \t\r") != std::string::npos) return line;
      continue;
    }
    if (ended_ || !read_more(stop)) break;
  }
  return std::nullopt;
}

std::optional<std::string> LineReader::take_line() {
  const std::size_t end = buffer_.find('\n', taken_);
  if (end == std::string::npos && (!ended_ || taken_ == buffer_.size())) return std::nullopt;
  std::string line = buffer_.substr(taken_, end == std::string::npos ? end : end - taken_);
  taken_ = end == std::string::npos ? buffer_.size() : end + 1;
  return line;
}

// Reads more of the input. False: `stop` was set first.
bool LineReader::read_more(const std::atomic<bool>& stop) {
  buffer_.erase(0, taken_);
  taken_ = 0;
  while (!stop) {
    pollfd input{.fd = fd_, .events = POLLIN, .revents = 0};
    if (poll(&input, 1, kWaitMs) <= 0) continue;
    std::array<char, 65536> bytes;
    const ssize_t count = read(fd_, bytes.data(), bytes.size());
    if (count < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (count <= 0) {
      ended_ = true;
      return true;
    }
    buffer_.append(bytes.data(), static_cast<std::size_t>(count));
    return true;
  }
  return false;
}

}  // namespace spillway::tool
