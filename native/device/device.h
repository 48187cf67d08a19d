// The seam to a drive: emulated (paced), simulated (virtual time), file or block device, fault-injecting.
//
// A Device is shared by threads; each thread opens queues of its own, as with NVMe submission and completion queues.
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

namespace spillway::ssd {
struct KvCommand;
}

namespace spillway::device {

using ssd::Nanos;
using ssd::Opcode;

// Why the host reads or writes. Carried by every Io; the drive counts bytes by it.
// `spill` is what writes that go round RocksDB leave, until they are brought back. Kept in files: new ones come last.
enum class Cause : std::uint8_t { user, wal, flush, compaction, blob, manifest, checkpoint, other, spill };
const char* name_of(Cause cause);
inline constexpr std::size_t kCauses = 9;
static_assert(kCauses <= ssd::kHostCauses);

struct Io {
  std::uint64_t tag = 0;
  Opcode op = Opcode::read;
  Cause cause = Cause::user;
  std::uint64_t offset_bytes = 0;  // multiple of DeviceInfo::lba_bytes
  std::uint64_t length_bytes = 0;  // multiple of DeviceInfo::lba_bytes; at most 1 GiB for reads and writes
  void* data = nullptr;            // ignored by drives that carry no data
  // Of a write: what a compressor leaves of its data, in 1/256 (share_of). Only drives that compress take notice.
  std::uint16_t compressed_share = ssd::kIncompressible;
  // Of a key-value command (is_kv(op)), which uses tag, op and cause of the above: the rest of it, copied by submit().
  // Only KvQueue (device/kv/kv_namespace.h) sets it, and only a drive model reads it.
  const ssd::KvCommand* kv = nullptr;
};

// A compression ratio, compressed size / size in (0, 1], in 1/256, at least one of them.
inline std::uint16_t share_of(double compression_ratio) {
  return static_cast<std::uint16_t>(
      std::clamp(std::lround(compression_ratio * ssd::kIncompressible), 1L, long{ssd::kIncompressible}));
}

struct Done {
  std::uint64_t tag = 0;
  Nanos submitted = 0;  // in the device's time: dilated or virtual where the device is
  Nanos completed = 0;
  Fault fault = Fault::none;
  ssd::Outcome outcome = ssd::Outcome::success;  // of an emulated drive; a real one reports by the fault alone
};

// One thread's queue pair to the drive. Not thread-safe.
class Queue {
 public:
  virtual ~Queue() = default;

  // Hands over all ios; never waits for their completion. An error means that none of them was taken.
  virtual Status submit(std::span<const Io> ios) = 0;

  // Waits until at least `at_least` (<= pending()) of this queue's ios are done, and returns how many were written to
  // `done`. at_least = 0 polls; in virtual time, a poll that finds nothing lets one event pass.
  virtual std::size_t reap(std::span<Done> done, std::size_t at_least) = 0;

  virtual std::size_t pending() const = 0;
};

struct DeviceInfo {
  std::string name;  // the preset's, or the path
  std::uint64_t capacity_bytes = 0;
  std::uint32_t lba_bytes = 512;
  std::uint32_t mapping_unit_bytes = 4096;
  std::uint32_t dies = 0;      // 0: not known
  std::uint32_t channels = 0;  // 0: not known
  double host_link_mb_s = 0;   // 0: not known
  double time_scale = 1;       // model seconds last this many real seconds; 0: virtual time
  bool carries_data = false;
};

// How far an emulated drive's real completions lag behind the modelled ones, in real nanoseconds: the time at which
// reap handed an io out, less its modelled completion, or less the time at which reap was called where that was later
// (an io that its caller fetches when it suits it is not late).
struct PacingReport {
  Histogram error;
};

class Device {
 public:
  virtual ~Device() = default;
  virtual const DeviceInfo& info() const = 0;
  virtual std::unique_ptr<Queue> open_queue() = 0;
  virtual Nanos now() = 0;  // the device's time
  // The host's software, where it is part of the model. issue_ns() is how long issuing the io keeps a thread busy;
  // submit() does not wait for it. spend() lets the calling thread be busy for so long, in the device's time. Where the
  // software is real it takes its own time: 0, and nothing.
  virtual Nanos issue_ns(const Io& /*io*/) const { return 0; }
  virtual void spend(Nanos /*for_ns*/) {}
  virtual ssd::Counters counters() = 0;  // a consistent copy
  virtual PacingReport pacing() { return {}; }
  // The device-level P/E summary where the drive has one: {mean, max}.
  struct Wear {
    double mean_pe_cycles = 0;
    std::uint32_t max_pe_cycles = 0;
    std::uint32_t rated_pe_cycles = 0;
  };
  virtual Wear wear() { return {}; }
};

// One io, waited for. Returns what became of it.
// REQUIRES: queue.pending() == 0
Result<Done> run(Queue& queue, const Io& io);

}  // namespace spillway::device
