// How several pages go to the drive at once, and how whoever waits for them learns that all are there.
//
//   queue        one thread hands all of them over through one queue and waits for them (io_uring)
//   threads      each goes to a thread of its own that waits for work, and issues it and waits for it (pwrite)
//   new-threads  the same, with threads that are started for the batch and end with it
//
// `threads` is what PIO's sample application does. The paper says no more than "the software overhead of thread
// management"; its authors' code (github.com/BU-DiSC/parametric_io, Bufferpool/buff_runner.cc) gives each write-back to
// a pool of n_w threads and goes on when all of those are idle again, and a single page it writes itself.
//
// On real and paced drives the threads are there, and take what time they take. In virtual time a thread takes none, so
// what it costs to hand work to n of them is charged from a measured table (HandOff).
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

// As many as a probe has jobs at most. Source: guess; an operating system's own limit is often nearer.
inline constexpr std::uint32_t kMostWriterThreads = 1024;

// What handing n ios to n threads costs: from the beginning until the first thread issues its io, and the last, and
// from the last io's end until whoever waits goes on. In between, the ios of the first are on their way while the
// others are still handed over, so only what stands in front of the drive and behind it is added.
struct HandOff {
  std::uint32_t n = 1;
  device::Nanos first_ns = 0;
  device::Nanos last_ns = 0;
  device::Nanos told_ns = 0;
};
// By n, from the least on; what is between two is on the line between them, and what is beyond the last in proportion.
using HandOffTable = std::vector<HandOff>;
HandOff hand_off_of(const HandOffTable& table, std::uint32_t n);
// As `make bench` measured it with this code, on a machine of two processors: runs/bench/thread_handoff.json. Of a
// queue: none.
const HandOffTable& measured_hand_off(WritersKind kind);

// One thread's, like the queues it opens.
class Writers {
 public:
  virtual ~Writers() = default;
  // Issues all and waits for all; faults[i] is what became of ios[i].
  // REQUIRES: ios[i].tag == i; at most as many as it was made for; faults.size() == ios.size()
  virtual void transfer(std::span<const device::Io> ios, std::span<Fault> faults) = 0;
};

// Fault::io_error where the system has no threads left. REQUIRES: the device outlives it; at_once > 0, and for threads
// at most kMostWriterThreads
Result<std::unique_ptr<Writers>> make_writers(device::Device& device, WritersKind kind, std::uint32_t at_once,
                                              const HandOffTable& hand_off);

}  // namespace spillway::pool
