#include "device/direct/device_use.h"

#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <system_error>
#include <utility>

namespace spillway::device {
namespace {

namespace filesystem = std::filesystem;

std::string number_of(unsigned major, unsigned minor) { return std::to_string(major) + ":" + std::to_string(minor); }

// MAJOR:MINOR of a block device's node; "" for any other file.
std::string number_of(const std::string& path) {
  struct stat status {};
  if (stat(path.c_str(), &status) != 0 || !S_ISBLK(status.st_mode)) return "";
  return number_of(major(status.st_rdev), minor(status.st_rdev));
}

std::string first_line(const filesystem::path& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

// The device and its partitions: MAJOR:MINOR → the beginning of a sentence about it.
std::map<std::string, std::string> with_partitions(const std::string& number, const SystemFiles& files) {
  std::map<std::string, std::string> found = {{number, ""}};
  std::error_code ignored;  // a device that sysfs does not list has no partitions
  for (const auto& entry : filesystem::directory_iterator(files.dev_block + "/" + number, ignored)) {
    if (!filesystem::exists(entry.path() / "partition", ignored)) continue;
    found[first_line(entry.path() / "dev")] = "has a partition, " + entry.path().filename().string() + ", that ";
  }
  return found;
}

// mountinfo: id parent MAJOR:MINOR root mount-point options [optional…] - type source …
// The source is checked too, because file systems over several devices (btrfs) have their own number.
std::optional<std::string> mounted(const std::map<std::string, std::string>& devices, const SystemFiles& files) {
  std::ifstream mounts(files.mountinfo);
  for (std::string line; std::getline(mounts, line);) {
    std::istringstream fields(line);
    std::string id;
    std::string parent;
    std::string number;
    std::string root;
    std::string point;
    fields >> id >> parent >> number >> root >> point;
    std::string source;
    for (std::string word; fields >> word;) {
      if (word != "-") continue;
      fields >> word >> source;
      break;
    }
    auto device = devices.find(number);
    if (device == devices.end() && source.starts_with('/')) device = devices.find(number_of(source));
    if (device != devices.end()) return device->second + "is mounted at " + point;
  }
  return std::nullopt;
}

std::optional<std::string> swapped_to(const std::map<std::string, std::string>& devices, const SystemFiles& files) {
  std::ifstream swaps(files.swaps);
  std::string line;
  std::getline(swaps, line);  // the column headings
  while (std::getline(swaps, line)) {
    const auto device = devices.find(number_of(line.substr(0, line.find_first_of(" \t"))));
    if (device != devices.end()) return device->second + "is swapped to";
  }
  return std::nullopt;
}

std::optional<std::string> held(const std::map<std::string, std::string>& devices, const SystemFiles& files) {
  for (const auto& [number, begins] : devices) {
    std::error_code ignored;
    const filesystem::path holders = filesystem::path(files.dev_block) / number / "holders";
    for (const auto& holder : filesystem::directory_iterator(holders, ignored)) {
      return begins + "is part of " + holder.path().filename().string();
    }
  }
  return std::nullopt;
}

}  // namespace

std::optional<std::string> use_of_device(unsigned major, unsigned minor, const SystemFiles& files) {
  const auto devices = with_partitions(number_of(major, minor), files);
  if (auto use = mounted(devices, files)) return use;
  if (auto use = swapped_to(devices, files)) return use;
  return held(devices, files);
}

}  // namespace spillway::device
