// Drives as data: presets/*.toml and overrides of their keys, resolved into an SsdConfig.
//
// Unknown keys are refused with the nearest known one; relations between values are checked by ssd::problem().
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/result.h"
#include "device/preset/drive_layers.h"
#include "ssd/interface/config.h"

namespace spillway::device {

// What a plan, a flag or a URI says about a drive.
struct DriveSpec {
  std::string preset;                    // a name; "" for the explicit default geometry
  std::string preset_file;               // a path; wins over preset
  std::vector<std::string> preset_dirs;  // where names are looked for, in this order
  // Dotted keys of the preset format and their values as TOML would spell them: {"capacity.spare_factor", "0.2"}.
  // "capacity.over_provisioning" is taken as input only and turned into a spare factor. Sizes take a number of bytes
  // or a string with a unit ("8GiB"). "host.stack" chooses among the preset's host stacks by name, or "none".
  std::map<std::string, std::string> set;
};

struct Drive {
  ssd::SsdConfig config;
  std::string summary;                         // the preset's one line about itself
  std::map<std::string, std::string> sources;  // dotted key → where the number is from

  Cap cap;
  Mechanics disk;                                // where the medium is a disk, config only says how large it is
  std::map<std::string, HostStack> host_stacks;  // by name: what the preset knows of hosts
  std::string host_stack;                        // the one in use; "" for the drive alone

  Layers layers() const;
};

Result<Drive> resolve(const DriveSpec& spec);

// Every name that preset_dirs offer, sorted.
std::vector<std::string> preset_names(const std::vector<std::string>& preset_dirs);

// The preset directories of this installation: $SPILLWAY_PRESETS (colon-separated) first, then the one installed.
std::vector<std::string> default_preset_dirs();

}  // namespace spillway::device
