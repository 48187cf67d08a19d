// Reads SpillOptions from settings: those of a plan's [engine.spill], and those of the variable SPILLWAY.
#pragma once

#include <string>

#include "base/settings.h"
#include "spillway/options.h"

namespace spillway::spill {

// How the settings are called.
struct SpillKeys {
  std::string prefix;       // before each key: "spill." in an engine's settings
  std::string size_suffix;  // behind each size: "_bytes" in an engine's settings
  std::string shown;        // what messages say before each key: "engine."
};

// With the library's defaults. What is wrong is kept in `settings`, which the caller asks for by finish().
SpillOptions read_spill_options(Settings& settings, const SpillKeys& keys);

}  // namespace spillway::spill
