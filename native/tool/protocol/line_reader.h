// The lines of a conversation, as they come.
#pragma once

#include <atomic>
#include <optional>
#include <string>

namespace spillway::tool {

class LineReader {
 public:
  // Reads the file descriptor; does not close it.
  explicit LineReader(int fd) : fd_(fd) {}

  // The next line that is not blank, without its end. Nothing at the end of the input, or once `stop` is set: a wait
  // for a line is ended by a signal within a tenth of a second.
  std::optional<std::string> next(const std::atomic<bool>& stop);

  // Of the line that was given last, from 1.
  int number() const { return number_; }

 private:
  std::optional<std::string> take_line();
  bool fill(const std::atomic<bool>& stop);

  int fd_;
  int number_ = 0;
  std::string buffer_;
  std::size_t taken_ = 0;  // of the buffer
  bool ended_ = false;
};

}  // namespace spillway::tool
