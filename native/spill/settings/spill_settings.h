// Reads SpillOptions from settings: those of a plan's [engine.spill], those of the variable SPILLWAY, and those that
// spillway_open() of the C interface is given.
#pragma once

#include <string>

#include "base/result.h"
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

enum class PathKey : bool { refused, taken };
// Of a text such as "capacity=4GiB;rollback=adaptive", with the keys of a plan's [engine.spill] but for `store`, and
// with `path` where that is taken. bad_input, whose message begins with `shown`: an unknown key, with the nearest; a
// value that a key does not take; a key that is given twice. An empty text has the library's defaults.
Result<SpillOptions> parse_spill_options(const std::string& text, const std::string& shown, PathKey path);

}  // namespace spillway::spill
