#include "fs/volume_table.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>

namespace spillway::fs {

using nlohmann::json;

namespace {

constexpr const char* kFormat = "spillway-volume-1";

json to_json(const VolumeTable::File& file) {
  json extents = json::array();
  for (const Extent& extent : file.extents) extents.push_back({extent.first_page, extent.pages});
  return {{"names", file.names},           {"cause", static_cast<unsigned>(file.cause)}, {"adopted", file.adopted},
          {"size_bytes", file.size_bytes}, {"written_pages", file.written_pages},        {"extents", extents}};
}

VolumeTable::File file_of(const json& entry) {
  VolumeTable::File file;
  entry.at("names").get_to(file.names);
  const auto cause = entry.at("cause").get<unsigned>();
  file.cause = cause < device::kCauses ? static_cast<device::Cause>(cause) : device::Cause::other;
  entry.at("adopted").get_to(file.adopted);
  entry.at("size_bytes").get_to(file.size_bytes);
  entry.at("written_pages").get_to(file.written_pages);
  for (const json& extent : entry.at("extents")) {
    file.extents.push_back({extent.at(0).get<std::uint64_t>(), extent.at(1).get<std::uint64_t>()});
  }
  return file;
}

Status cannot(const std::string& what, const std::string& path) {
  return Status::io_error("cannot " + what + " " + path + ": " + std::strerror(errno));
}

}  // namespace

void rename_files(VolumeTable& table, const std::function<std::string(const std::string&)>& renamed) {
  for (VolumeTable::File& file : table.files) {
    for (std::string& name : file.names) name = renamed(name);
  }
}

Status write_table(const VolumeTable& table, const std::string& path) {
  json files = json::array();
  for (const VolumeTable::File& file : table.files) files.push_back(to_json(file));
  const json document = {{"format", kFormat},
                         {"capacity_bytes", table.capacity_bytes},
                         {"cursor_page", table.cursor_page},
                         {"files", files}};
  const std::string beside = path + ".new";
  std::ofstream out(beside, std::ios::binary | std::ios::trunc);
  out << document.dump() << '\n';
  out.close();
  if (!out) {
    const Status status = cannot("write", beside);
    std::remove(beside.c_str());
    return status;
  }
  if (std::rename(beside.c_str(), path.c_str()) != 0) return cannot("put in place", path);
  return Status::ok();
}

Result<VolumeTable> read_table(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) return cannot("read", path);
  try {
    const json document = json::parse(in);
    if (document.at("format") != kFormat) {
      return Status::bad_input(path + " is not a " + kFormat + " table: remove it to begin anew");
    }
    VolumeTable table;
    document.at("capacity_bytes").get_to(table.capacity_bytes);
    document.at("cursor_page").get_to(table.cursor_page);
    for (const json& entry : document.at("files")) table.files.push_back(file_of(entry));
    return table;
  } catch (const json::exception& problem) {
    return Status::bad_input(path + " is damaged (" + problem.what() +
                             "): remove it together with the drive's state to begin anew");
  }
}

}  // namespace spillway::fs
