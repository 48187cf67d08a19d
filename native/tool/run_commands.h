// What a caller may ask of a run while it goes on: lines of standard input behind the request (contract/README.md).
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <thread>

#include "base/result.h"
#include "tool/line_reader.h"

namespace spillway::tool {

// Reads the lines in a thread of its own, until they end or this is destroyed.
class RunCommands {
 public:
  // `phases`: how many the run has. REQUIRES: `lines` outlives this, and nobody else reads them.
  RunCommands(LineReader& lines, std::size_t phases);
  ~RunCommands();
  RunCommands(const RunCommands&) = delete;
  RunCommands& operator=(const RunCommands&) = delete;

  // Whether the phase with that index was asked to end. One that had ended before it was asked stays as it is.
  bool ends_phase(std::size_t index) const {
    return last_ended_.load(std::memory_order_acquire) == static_cast<std::int64_t>(index);
  }

  // A line that is no command ends the reading, and then this says so.
  Status status() const;
  bool has_failed() const { return has_failed_.load(std::memory_order_acquire); }

 private:
  void read(LineReader& lines);
  Status obey(const std::string& line, int number);

  const std::size_t phases_;
  std::atomic<bool> is_over_{false};
  std::atomic<std::int64_t> last_ended_{-1};
  std::atomic<bool> has_failed_{false};
  mutable std::mutex mutex_;
  Status status_;  // guarded by mutex_
  std::thread reader_;
};

}  // namespace spillway::tool
