// Reads all bytes of a file at once. Stream iterators take some hundred times as long.
#pragma once

#include <filesystem>
#include <fstream>
#include <ios>
#include <string>

namespace spillway {

// False if the file cannot be opened, or not be read to the end that it had when it was opened.
inline bool read_file_bytes(const std::filesystem::path& path, std::string* bytes) {
  bytes->clear();
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  if (!file) return false;
  bytes->resize(static_cast<std::size_t>(file.tellg()));
  file.seekg(0);
  file.read(bytes->data(), static_cast<std::streamsize>(bytes->size()));
  return static_cast<std::size_t>(file.gcount()) == bytes->size();
}

// Empty if the file does not exist.
inline std::string file_bytes(const std::filesystem::path& path) {
  std::string bytes;
  (void)read_file_bytes(path, &bytes);
  return bytes;
}

}  // namespace spillway
