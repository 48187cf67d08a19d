// The table of files and extents as a JSON document, with which a drive and its files are saved and restored.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/result.h"
#include "device/device.h"
#include "fs/extents.h"

namespace spillway::fs {

struct VolumeTable {
  struct File {
    std::vector<std::string> names;  // more than one: hard links
    device::Cause cause = device::Cause::other;
    bool adopted = false;
    std::uint64_t size_bytes = 0;
    std::uint64_t written_pages = 0;
    std::vector<Extent> extents;
  };

  std::uint64_t capacity_bytes = 0;
  std::uint64_t cursor_page = 0;
  std::vector<File> files;
};

void rename_files(VolumeTable& table, const std::function<std::string(const std::string&)>& renamed);

// Written to a temporary name and renamed.
Status write_table(const VolumeTable& table, const std::string& path);
// An error has one sentence: the file is missing, truncated or not such a table.
Result<VolumeTable> read_table(const std::string& path);

}  // namespace spillway::fs
