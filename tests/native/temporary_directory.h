// A directory for what a test writes, gone when the test ends, however it ends.
#pragma once

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <iterator>
#include <stdexcept>
#include <string>
#include <system_error>

namespace spillway {

// Where the processes that a test starts make their directories: those that are killed leave them to that test.
inline constexpr const char* kPlaceOfClients = "SPILLWAY_TEST_CLIENTS_PLACE";

// While it lives, processes that are started have this place for their directories.
class ClientsPlace {
 public:
  explicit ClientsPlace(const std::filesystem::path& path) { ::setenv(kPlaceOfClients, path.c_str(), 1); }
  ~ClientsPlace() { ::unsetenv(kPlaceOfClients); }
  ClientsPlace(const ClientsPlace&) = delete;
  ClientsPlace& operator=(const ClientsPlace&) = delete;
};

inline std::filesystem::path temporary_path() {
  const char* const place = std::getenv(kPlaceOfClients);
  return place != nullptr ? std::filesystem::path(place) : std::filesystem::temp_directory_path();
}

// A place for tests that make thousands of files: the host's memory, where it has one for files.
inline std::filesystem::path memory_path() {
  if (std::getenv(kPlaceOfClients) != nullptr) return temporary_path();
  const std::filesystem::path memory = "/dev/shm";
  return access(memory.c_str(), W_OK) == 0 ? memory : std::filesystem::temp_directory_path();
}

class TemporaryDirectory {
 public:
  explicit TemporaryDirectory(const std::filesystem::path& in = temporary_path()) {
    std::string name = (in / "spillway-XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr) throw std::runtime_error("no temporary directory at " + name);
    path_ = name;
  }
  ~TemporaryDirectory() {
    std::error_code ignored;  // a destructor must not throw, and the next run has a directory of its own
    std::filesystem::remove_all(path_, ignored);
  }
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;

  const std::filesystem::path& root() const { return path_; }
  std::string path(const std::string& name) const { return (path_ / name).string(); }

  // How many entries it holds: a file half-written under another name would be one.
  std::ptrdiff_t entries() const {
    return std::distance(std::filesystem::directory_iterator(path_), std::filesystem::directory_iterator());
  }

 private:
  std::filesystem::path path_;
};

}  // namespace spillway
