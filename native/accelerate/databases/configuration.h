// The variable SPILLWAY: how a program's databases are accelerated.
//
//   SPILLWAY='capacity=4GiB;rollback=adaptive'
#pragma once

#include <string>

#include "base/result.h"
#include "spillway/options.h"

namespace spillway::accelerate {

// Keys are those of a plan's [engine.spill], but for `store`. bad_input: an unknown key, with the nearest; a value that
// a key does not take. An empty text has the library's defaults.
Result<SpillOptions> parse_configuration(const std::string& text);

}  // namespace spillway::accelerate
