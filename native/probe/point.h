// One point of a profile: the kind of I/Os, how many in flight, and for how long.
#pragma once

#include <cstdint>
#include <optional>

#include "base/result.h"
#include "device/device.h"

namespace spillway::probe {

using device::Nanos;

enum class Pattern : std::uint8_t {
  random,      // uniform, aligned to bs_bytes
  sequential,  // each job reads or writes its own part of the range in order
  staggered,   // M22: each job has a share, at uniform offsets; the distance between the jobs' offsets is constant
};

enum class Engine : std::uint8_t { io_uring, sync };

inline constexpr std::uint64_t kMostBsBytes = std::uint64_t{1} << 30;  // limit of device::Io
inline constexpr std::uint32_t kMostJobs = 1024;                       // guess: eight times the most in M22
inline constexpr std::uint32_t kMostIodepth = 16384;                   // half of io_uring's largest ring
inline constexpr std::uint64_t kMostInFlight = 65536;                  // the largest size of an NVMe queue

struct Point {
  std::uint64_t id = 0;
  Pattern pattern = Pattern::random;
  Engine engine = Engine::io_uring;
  double read_share = 1;  // share of I/Os that read; drawn for each I/O
  std::uint64_t bs_bytes = 4096;
  std::uint32_t numjobs = 1;
  std::uint32_t iodepth = 1;  // per job
  std::optional<std::uint64_t> ios;
  std::optional<double> seconds;  // device time
  double ramp_s = 0;
  std::uint64_t ramp_ios = 0;
  double range = 1;  // I/Os go to this first share of the target

  std::uint64_t in_flight() const { return std::uint64_t{numjobs} * iodepth; }
  bool writes() const { return read_share < 1; }
  bool reads() const { return read_share > 0; }
  bool mixed() const { return writes() && reads(); }
};

// The part of a device that is measured: its first range_bytes.
struct Extent {
  std::uint64_t range_bytes = 0;
  std::uint32_t lba_bytes = 512;
  bool writable = true;
};

// Whether the point can be measured there. An error names the point, the key and a remedy.
Status check(const Point& point, const Extent& extent);

// The bytes that the point's I/Os may address, from the device's start. REQUIRES: check() passed
std::uint64_t range_of(const Point& point, const Extent& extent);

}  // namespace spillway::probe
