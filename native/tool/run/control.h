// Commands to a run in progress: lines of standard input after the request (contract/README.md).
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <thread>

#include "base/result.h"
#include "tool/protocol/line_reader.h"

namespace spillway::tool {

// A thread reads the lines until the input ends or this object is destroyed.
class RunControl {
 public:
  // `phases`: number of phases of the run. REQUIRES: `lines` outlives this, and nothing else reads them.
  RunControl(LineReader& lines, std::size_t phases);
  ~RunControl();
  RunControl(const RunControl&) = delete;
  RunControl& operator=(const RunControl&) = delete;

  // Whether a command has requested the end of the phase with that index. A command for a phase that has ended has no
  // effect.
  bool should_end_phase(std::size_t index) const {
    return last_ended_.load(std::memory_order_acquire) == static_cast<std::int64_t>(index);
  }

  // bad_input after an invalid line. No line is read after it.
  Status status() const;
  bool has_failed() const { return has_failed_.load(std::memory_order_acquire); }

 private:
  void read(LineReader& lines);
  Status execute(const std::string& line, int number);

  const std::size_t phases_;
  std::atomic<bool> is_over_{false};
  std::atomic<std::int64_t> last_ended_{-1};
  std::atomic<bool> has_failed_{false};
  mutable std::mutex mutex_;
  Status status_;  // guarded by mutex_
  std::thread reader_;
};

}  // namespace spillway::tool
