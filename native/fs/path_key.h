// The name under which a Volume keeps a file.
#pragma once

#include <string>

namespace spillway::fs {

// An absolute, normalized path. Engines join paths with doubled slashes, and some use relative directories.
std::string path_key(const std::string& path);

// The part after the last slash.
std::string base_name(const std::string& path);

}  // namespace spillway::fs
