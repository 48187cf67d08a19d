// Values of options that RocksDB takes without a complaint, and does not use as they were given.
//
// Its parser stops reading a number where the number ends ("1e6" is 1), wraps what is negative or too large, and passes
// over some objects of a name it does not know; opening a database clips other values in silence, or ends the process.
#pragma once

#include <optional>
#include <string>

namespace spillway::engine {

// What the option takes, where `value` is a number outside of that.
std::optional<std::string> out_of_bounds(const std::string& name, const std::string& value);

// Why `written`, which is what RocksDB writes for an option that was given as `value`, is not the same.
std::optional<std::string> misread(const std::string& value, const std::string& written);

}  // namespace spillway::engine
