// A directory for files of a test, removed when the test ends in any way.
#pragma once

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <iterator>
#include <stdexcept>
#include <string>
#include <system_error>

namespace spillway {

// The place where processes that a test starts create their directories. A killed process leaves its directory to the
// test.
inline constexpr const char* kPlaceOfClients = "SPILLWAY_TEST_CLIENTS_PLACE";

// While it exists, started processes use this place for their directories.
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

// A place for tests that create thousands of files: in memory, if the host has a file system there.
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
    std::error_code ignored;  // a destructor must not throw, and the next run has another directory
    std::filesystem::remove_all(path_, ignored);
  }
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;

  const std::filesystem::path& root() const { return path_; }
  std::string path(const std::string& name) const { return (path_ / name).string(); }

  // Number of entries. A partly written file under another name would count.
  std::ptrdiff_t entries() const {
    return std::distance(std::filesystem::directory_iterator(path_), std::filesystem::directory_iterator());
  }

 private:
  std::filesystem::path path_;
};

}  // namespace spillway
