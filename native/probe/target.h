// What is measured: a drive model in virtual or in real time, or a real drive behind a file, a directory or a device.
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

// What a reader of a measurement must know about where it was taken.
struct TargetInfo {
  std::string kind;
  std::string preset;  // an emulated drive's name, else ""
  std::string path;    // a real target's, else ""
  std::uint64_t size_bytes = 0;
  std::uint64_t range_bytes = 0;  // what a point's range of 1 is
  std::uint32_t lba_bytes = 0;
  bool direct = false;
  bool writable = true;
  bool has_io_uring = true;    // sync is always there
  double time_scale = 0;       // 0: virtual time
  std::optional<double> fill;  // emulated drives: share of the capacity that holds data

  Extent extent() const { return {range_bytes, lba_bytes, writable}; }
};

struct Preparation {
  enum class Kind : std::uint8_t { sequential, random };
  Kind kind = Kind::sequential;
  double capacities = 1;          // > 0
  std::optional<double> seconds;  // of real time
};

struct Written {
  std::uint64_t bytes = 0;
  bool complete = false;
};

// Told how many of how many bytes are written; false ends the work.
using WriteWatch = std::function<bool(std::uint64_t done, std::uint64_t total)>;

class Target {
 public:
  virtual ~Target() = default;
  virtual TargetInfo info() const = 0;

  // Why a point that passed check() cannot be measured here all the same, or nothing.
  virtual Status admits(const Point& point) = 0;
  // The device to measure the point on, good until the next call; nothing it did before goes on in it.
  // REQUIRES: admits(point)
  virtual device::Device& device_for(const Point& point) = 0;

  // Writes the target all over. Fault::bad_input, and nothing is written, where it may not be.
  virtual Result<Written> prepare(const Preparation& preparation, std::uint64_t seed, const WriteWatch& watch) = 0;
  // A new drive in the steady state of that fill. Fault::bad_input where the drive is a real one.
  virtual Result<Written> reset_to_steady(double share, const WriteWatch& watch) = 0;
  // Whether there are counters of what the flash did.
  virtual bool is_emulated() const = 0;
};

// A target, and what was written to bring it to where the work starts.
struct PreparedTarget {
  std::unique_ptr<Target> target;
  Written written;
};

struct EmulatedSpec {
  device::Drive drive;
  device::InitialState initial;
  std::optional<double> time_scale;  // of a paced drive; nothing: virtual time
  std::uint64_t seed = 1;
};

// Fault::stopped when `watch` ended the drive's preparation.
Result<PreparedTarget> make_emulated(EmulatedSpec spec, const WriteWatch& watch);

// A test file is written once, whole. Fault::stopped when `watch` ended that.
Result<PreparedTarget> make_direct(const device::DirectFileSpec& spec, std::uint64_t seed, const WriteWatch& watch);

}  // namespace spillway::probe
