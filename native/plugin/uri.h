// spillway://KEY=VALUE;KEY=VALUE…: an emulated drive in one word, for programs that know only --fs_uri. RocksDB reads a
// "=" in an option's value in its own way, so in option strings: spillway://KEY:VALUE,KEY:VALUE…
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"
#include "device/emulated/emulated.h"
#include "device/preset/preset.h"
#include "fs/volume.h"

namespace spillway::plugin {

inline constexpr const char* kScheme = "spillway";

// Keys: preset, preset_file, capacity, spare_factor, set.<dotted preset key>; initial, fill, warmup (the drive's
// initial state); state (a directory that keeps the drive between processes), report (where counters are written on
// exit),
// seed; pacing (real, off), time_scale; and what an operating system does above the drive (fs::VolumeOptions): discard,
// placement (next_fit, first_fit), page_cache, readahead, writeback, outstanding, dirty.
struct DriveUri {
  device::DriveSpec drive;
  device::InitialState initial;
  std::string initial_name = "trimmed";
  std::string state;   // "": the drive ends with the process
  std::string report;  // never empty
  std::uint64_t seed = 1;
  bool paced = true;
  double time_scale = 1;
  fs::VolumeOptions volume;
};

// The URI with "=" and ";", however it was spelt: two spellings of one URI name one drive.
std::string usual_spelling(const std::string& uri);

// bad_input: an unknown key, with the nearest known; a value that a key does not take; no drive named.
Result<DriveUri> parse_uri(const std::string& uri);

}  // namespace spillway::plugin
