// The input lines of a command, as they arrive.
#pragma once

#include <atomic>
#include <optional>
#include <string>

namespace spillway::tool {

class LineReader {
 public:
  // Reads the file descriptor; does not close it.
  explicit LineReader(int fd) : fd_(fd) {}

  // The next non-blank line, without its newline. None at the end of the input, or once `stop` is set. A signal ends
  // the wait for a line within a tenth of a second.
  std::optional<std::string> next(const std::atomic<bool>& stop);

  // The number of the last returned line, from 1.
  int number() const { return number_; }

 private:
  std::optional<std::string> take_line();
  bool read_more(const std::atomic<bool>& stop);

  int fd_;
  int number_ = 0;
  std::string buffer_;
  std::size_t taken_ = 0;  // consumed bytes of the buffer
  bool ended_ = false;
};

}  // namespace spillway::tool
