#include "fs/path_key.h"

#include <filesystem>

namespace spillway::fs {

std::string path_key(const std::string& path) {
  std::error_code ignored;
  const auto absolute = std::filesystem::absolute(path, ignored);
  return (ignored ? std::filesystem::path(path) : absolute).lexically_normal().string();
}

std::string base_name(const std::string& path) { return path.substr(path.rfind('/') + 1); }

}  // namespace spillway::fs
