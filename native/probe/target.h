// The measured drive: a drive model in virtual or in real time, or a real drive behind a file, a directory or a device.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/result.h"
#include "device/device.h"
#include "device/direct/direct_file.h"
#include "device/emulated/emulated.h"
#include "device/preset/preset.h"
#include "probe/point.h"

namespace spillway::probe {

// Conditions under which a measurement was taken.
struct TargetInfo {
  std::string kind;
  std::string preset;  // name of the emulated drive's preset, else ""
  std::string path;    // path of the real target, else ""
  std::uint64_t size_bytes = 0;
  std::uint64_t range_bytes = 0;  // bytes that a point's range of 1 covers
  std::uint32_t lba_bytes = 0;
  bool direct = false;
  bool writable = true;
  bool has_io_uring = true;    // the sync interface is always available
  double time_scale = 0;       // 0: virtual time
  std::optional<double> fill;  // emulated drives: share of the capacity that holds data

  Extent extent() const { return {range_bytes, lba_bytes, writable}; }
};

struct Preparation {
  enum class Kind : std::uint8_t { sequential, random };
  Kind kind = Kind::sequential;
  double capacities = 1;          // > 0
  std::optional<double> seconds;  // real time
};

struct Written {
  std::uint64_t bytes = 0;
  bool complete = false;
};

// Called with the bytes written and the total. Returns false to end the work.
using WriteWatch = std::function<bool(std::uint64_t done, std::uint64_t total)>;

class Target {
 public:
  virtual ~Target() = default;
  virtual TargetInfo info() const = 0;

  // OK, or why a point that passed check() cannot be measured on this target.
  virtual Status admits(const Point& point) = 0;
  // The device on which to measure the point. Valid until the next call. It has no work left from before.
  // REQUIRES: admits(point)
  virtual device::Device& device_for(const Point& point) = 0;

  // Overwrites the whole target. Fault::bad_input, with nothing written, if writing is not allowed.
  virtual Result<Written> prepare(const Preparation& preparation, std::uint64_t seed, const WriteWatch& watch) = 0;
  // Starts with a new drive in the steady state at that fill. Fault::bad_input if the drive is a real one.
  virtual Result<Written> reset_to_steady(double share, const WriteWatch& watch) = 0;
  // Whether the drive has counters of flash operations.
  virtual bool is_emulated() const = 0;
};

// A target, and what was written to prepare it.
struct PreparedTarget {
  std::unique_ptr<Target> target;
  Written written;
};

struct EmulatedSpec {
  device::Drive drive;
  device::InitialState initial;
  std::optional<double> time_scale;  // of a paced drive; none: virtual time
  std::uint64_t seed = 1;
};

// Fault::stopped if `watch` ended the preparation of the drive.
Result<PreparedTarget> make_emulated(EmulatedSpec spec, const WriteWatch& watch);

// A test file is first written completely. Fault::stopped if `watch` ended that.
Result<PreparedTarget> make_direct(const device::DirectFileSpec& spec, std::uint64_t seed, const WriteWatch& watch);

}  // namespace spillway::probe
