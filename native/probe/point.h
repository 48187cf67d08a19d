// One point of a profile: which ios, how many at once, and for how long.
#pragma once

#include <cstdint>
#include <optional>

#include "base/result.h"
#include "device/device.h"

namespace spillway::probe {

using device::Nanos;

enum class Pattern : std::uint8_t {
  random,      // uniform, aligned to bs_bytes
  sequential,  // each job its own stream through its own part of the range
  staggered,   // M22: each job its share, at uniform offsets that keep the same distance from the other jobs'
};

enum class Engine : std::uint8_t { io_uring, sync };

inline constexpr std::uint64_t kMostBsBytes = std::uint64_t{1} << 30;  // device::Io's limit
inline constexpr std::uint32_t kMostJobs = 1024;                       // guess: eight times M22's most
inline constexpr std::uint32_t kMostIodepth = 16384;                   // half of io_uring's largest ring
inline constexpr std::uint64_t kMostInFlight = 65536;                  // an NVMe queue's largest size

struct Point {
  std::uint64_t id = 0;
  Pattern pattern = Pattern::random;
  Engine engine = Engine::io_uring;
  double read_share = 1;  // of the ios, drawn for each
  std::uint64_t bs_bytes = 4096;
  std::uint32_t numjobs = 1;
  std::uint32_t iodepth = 1;  // of each job
  std::optional<std::uint64_t> ios;
  std::optional<double> seconds;  // of the device's time
  double ramp_s = 0;
  std::uint64_t ramp_ios = 0;
  double range = 1;  // the first share of what is measured

  std::uint64_t in_flight() const { return std::uint64_t{numjobs} * iodepth; }
  bool writes() const { return read_share < 1; }
  bool reads() const { return read_share > 0; }
  bool mixed() const { return writes() && reads(); }
};

// What there is to measure on: the first range_bytes of a device.
struct Extent {
  std::uint64_t range_bytes = 0;
  std::uint32_t lba_bytes = 512;
  bool writable = true;
};

// Whether the point can be measured there; an error names the point, the key and the mend.
Status check(const Point& point, const Extent& extent);

// The bytes that the point's ios go to, from the device's start. REQUIRES: check() passed
std::uint64_t range_of(const Point& point, const Extent& extent);

}  // namespace spillway::probe
