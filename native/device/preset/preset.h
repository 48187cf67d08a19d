// Drives as data: presets/*.toml and overrides of their keys, resolved into an SsdConfig.
//
// Unknown keys are refused with the nearest known one. ssd::problem() checks the relations between values.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/result.h"
#include "device/preset/drive_layers.h"
#include "ssd/interface/config.h"

namespace spillway::device {

// A drive as a plan, a flag or a URI specifies it.
struct DriveSpec {
  std::string preset;                    // a name; "" for the explicit default geometry
  std::string preset_file;               // a path; replaces preset
  std::vector<std::string> preset_dirs;  // searched for names, in this order
  // Dotted keys of the preset format and their values in TOML's spelling: {"capacity.spare_factor", "0.2"}.
  // "capacity.over_provisioning" is accepted as input only and converted to a spare factor. Sizes are a number of bytes
  // or a string with a unit ("8GiB"). "host.stack" chooses among the preset's host stacks by name, or "none".
  std::map<std::string, std::string> set;
};

struct Drive {
  ssd::SsdConfig config;
  std::string summary;                         // the preset's one-line description
  std::map<std::string, std::string> sources;  // dotted key → the source of its number

  Cap cap;
  Mechanics disk;                                // if the medium is a disk, config only has its size
  std::map<std::string, HostStack> host_stacks;  // by name: the host stacks of the preset
  std::string host_stack;                        // the one in use; "": none

  Layers layers() const;
};

Result<Drive> resolve(const DriveSpec& spec);

// All preset names in preset_dirs, sorted.
std::vector<std::string> preset_names(const std::vector<std::string>& preset_dirs);

// The preset directories of this installation: $SPILLWAY_PRESETS (colon-separated) first, then the installed one.
std::vector<std::string> default_preset_dirs();

}  // namespace spillway::device
