// The name by which a Volume knows a file.
#pragma once

#include <string>

namespace spillway::fs {

// Absolute and without detours: engines join paths with doubled slashes, and some name their directory relatively.
std::string path_key(const std::string& path);

// What follows the last slash.
std::string base_name(const std::string& path);

}  // namespace spillway::fs
