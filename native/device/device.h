// The seam to a drive: emulated (paced), simulated (virtual time), file or block device, fault-injecting.
//
// Threads share a Device. Each thread opens its own queues, as with NVMe submission and completion queues.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "base/histogram.h"
#include "base/result.h"
#include "ssd/interface/command.h"
#include "ssd/interface/counters.h"

namespace spillway::device {

using ssd::Nanos;
using ssd::Opcode;

// Why the host reads or writes. Every Io carries it, and the drive counts bytes by it. `spill` is data of the spill
// store, from a diverted write to the end of its rollback. Files store these numbers, so new causes are added at the
// end.
enum class Cause : std::uint8_t { user, wal, flush, compaction, blob, manifest, checkpoint, other, spill };
const char* name_of(Cause cause);
inline constexpr std::size_t kCauses = 9;
static_assert(kCauses <= ssd::kHostCauses);

// The base of what an io carries beyond its own fields. Layers between the one that makes it and the device forward it.
struct IoExtension {};

struct Io {
  std::uint64_t tag = 0;
  Opcode op = Opcode::read;
  Cause cause = Cause::user;
  std::uint64_t offset_bytes = 0;  // multiple of DeviceInfo::lba_bytes
  std::uint64_t length_bytes = 0;  // multiple of DeviceInfo::lba_bytes; at most 1 GiB for reads and writes
  void* data = nullptr;            // ignored by drives that carry no data
  // Of a write: what a compressor leaves of its data, in 1/256 (share_of). Ignored by drives that do not compress.
  std::uint16_t compressed_share = ssd::kIncompressible;
  // Of a command that is no block command: its other fields, copied by submit(). Only the layer that makes such
  // commands and the device that does them know its type: KvIoExtension (device/emulated/emulated.h) of a key-value
  // command (is_kv(op)), which uses tag, op and cause above.
  const IoExtension* extension = nullptr;
};

// A compression ratio, compressed size / size in (0, 1], in 1/256, at least 1.
inline std::uint16_t share_of(double compression_ratio) {
  return static_cast<std::uint16_t>(
      std::clamp(std::lround(compression_ratio * ssd::kIncompressible), 1L, long{ssd::kIncompressible}));
}

struct Done {
  std::uint64_t tag = 0;
  Nanos submitted = 0;  // device time, which may be scaled or virtual
  Nanos completed = 0;
  Fault fault = Fault::none;
  ssd::Outcome outcome = ssd::Outcome::success;  // of an emulated drive; a real one reports only the fault
};

// One thread's queue pair to the drive. Not thread-safe.
class Queue {
 public:
  virtual ~Queue() = default;

  // Submits all ios without waiting for their completion. An error means that none was submitted.
  virtual Status submit(std::span<const Io> ios) = 0;

  // Waits until at least `at_least` (<= pending()) of this queue's ios are complete. Returns how many were written to
  // `done`. at_least = 0 polls. In virtual time, a poll that finds nothing advances time by one event.
  virtual std::size_t reap(std::span<Done> done, std::size_t at_least) = 0;

  virtual std::size_t pending() const = 0;
};

struct DeviceInfo {
  std::string name;  // the preset's, or the path
  std::uint64_t capacity_bytes = 0;
  std::uint32_t lba_bytes = 512;
  std::uint32_t mapping_unit_bytes = 4096;
  std::uint32_t dies = 0;      // 0: unknown
  std::uint32_t channels = 0;  // 0: unknown
  double host_link_mb_s = 0;   // 0: unknown
  double time_scale = 1;       // real seconds per model second; 0: virtual time
  bool carries_data = false;
};

// How late an emulated drive is, in real nanoseconds: for each io the time at which reap returned it, minus the time at
// which it should have. That is its modelled completion, or if later, that of the last of the `at_least` ios for which
// reap waited, or the time at which reap was called. (What a caller fetches late, or waits for together, is not late.)
struct PacingReport {
  Histogram error;
};

class Device {
 public:
  virtual ~Device() = default;
  virtual const DeviceInfo& info() const = 0;
  virtual std::unique_ptr<Queue> open_queue() = 0;
  virtual Nanos now() = 0;  // device time
  // The host's software, if it is part of the model. issue_ns() is how long a thread is busy to issue the io; submit()
  // does not include it. spend() keeps the calling thread busy for that long, in device time. If the software is real
  // and takes its own time, these return 0 and do nothing.
  virtual Nanos issue_ns(const Io& /*io*/) const { return 0; }
  virtual void spend(Nanos /*for_ns*/) {}
  virtual ssd::Counters counters() = 0;  // a consistent copy
  virtual PacingReport pacing() { return {}; }
  // Summary of the device's P/E cycles, if it has one: {mean, max}.
  struct Wear {
    double mean_pe_cycles = 0;
    std::uint32_t max_pe_cycles = 0;
    std::uint32_t rated_pe_cycles = 0;
  };
  virtual Wear wear() { return {}; }
};

// Submits one io, waits for it, and returns its completion.
// REQUIRES: queue.pending() == 0
Result<Done> run(Queue& queue, const Io& io);

}  // namespace spillway::device
