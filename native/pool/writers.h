// How several pages go to the drive together, and how the caller learns that all are complete.
//
//   queue        one thread submits all of them through one queue and waits for them (io_uring)
//   threads      each goes to a waiting thread, which issues it and waits for it (pwrite)
//   new-threads  the same, with threads that are started for the batch and end with it
//
// `threads` is what PIO's sample application does. The paper mentions only "the software overhead of thread
// management". Its authors' code (github.com/BU-DiSC/parametric_io, Bufferpool/buff_runner.cc) gives each write-back to
// a pool of n_w threads and continues when all of those are idle again. It writes a single page in the calling thread.
//
// On real and paced drives the threads exist, and take the time that they take. In virtual time a thread takes no time,
// so the cost of handing work to n threads is charged from a measured table (HandOff).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "device/device.h"

namespace spillway::pool {

enum class WritersKind : std::uint8_t { queue, threads, new_threads };
const char* name_of(WritersKind kind);
std::optional<WritersKind> writers_named(const std::string& name);

// The same limit as a probe's jobs. Source: guess; an operating system's limit is often lower.
inline constexpr std::uint32_t kMostWriterThreads = 1024;

// The cost of handing n I/Os to n threads: from the beginning until the first thread issues its I/O, until the last
// thread does, and from the end of the last I/O until the caller continues. While the other threads get their work, the
// first I/Os are already in flight. Therefore only the time before the first I/O and after the last one is added.
struct HandOff {
  std::uint32_t n = 1;
  device::Nanos first_ns = 0;
  device::Nanos last_ns = 0;
  device::Nanos told_ns = 0;
};
// Sorted by n. Interpolated linearly between two entries, and extrapolated in proportion beyond the last.
using HandOffTable = std::vector<HandOff>;
HandOff hand_off_of(const HandOffTable& table, std::uint32_t n);
// Measured with this code by `make bench` on a machine with two processors: runs/bench/thread_handoff.json. Empty for a
// queue.
const HandOffTable& measured_hand_off(WritersKind kind);

// Belongs to one thread, like the queues it opens.
class Writers {
 public:
  virtual ~Writers() = default;
  // Issues all and waits for all. faults[i] is the outcome of ios[i].
  // REQUIRES: ios[i].tag == i; at most as many as it was made for; faults.size() == ios.size()
  virtual void transfer(std::span<const device::Io> ios, std::span<Fault> faults) = 0;
};

// Fault::io_error if the system has no threads left. REQUIRES: the device outlives it; at_once > 0, and for threads
// at most kMostWriterThreads
Result<std::unique_ptr<Writers>> make_writers(device::Device& device, WritersKind kind, std::uint32_t at_once,
                                              const HandOffTable& hand_off);

}  // namespace spillway::pool
