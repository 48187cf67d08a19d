#include "spill/main_db/temporary_tables.h"

#include <algorithm>
#include <memory>

namespace spillway::spill {
namespace {

constexpr std::string_view kExtension = ".sst";
constexpr std::string_view kExternal = "external-";

bool is_number(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
}

}  // namespace

std::string sorted_file_name(std::uint64_t generation, std::uint32_t column_family, int other) {
  std::string name = std::to_string(generation) + "-" + std::to_string(column_family);
  if (other > 0) name += "-" + std::to_string(other);
  return name.append(kExtension);
}

std::string external_copy_name(std::uint64_t number) {
  return std::string(kExternal).append(std::to_string(number)).append(kExtension);
}

bool is_temporary_table(std::string_view name) {
  if (!name.ends_with(kExtension)) return false;
  name.remove_suffix(kExtension.size());
  if (name.starts_with(kExternal)) return is_number(name.substr(kExternal.size()));
  // Two or three numbers. RocksDB's own tables have one.
  const auto dashes = std::ranges::count(name, '-');
  if (dashes != 1 && dashes != 2) return false;
  for (std::size_t end = 0; end != std::string_view::npos;) {
    end = name.find('-');
    if (!is_number(name.substr(0, end))) return false;
    if (end != std::string_view::npos) name.remove_prefix(end + 1);
  }
  return true;
}

bool may_be_reopened(rocksdb::FileSystem& files, const std::string& directory) {
  const std::string path = directory + "/" + external_copy_name(0);
  const auto size = [&] {
    std::uint64_t bytes = 0;
    return files.GetFileSize(path, {}, &bytes, nullptr).ok() ? bytes : 0;
  };
  std::unique_ptr<rocksdb::FSWritableFile> file;
  rocksdb::IOStatus status = files.NewWritableFile(path, {}, &file, nullptr);
  if (status.ok()) status = file->Append("table", {}, nullptr);
  if (status.ok()) status = file->Close({}, nullptr);
  const std::uint64_t before = size();
  if (status.ok()) status = files.ReopenWritableFile(path, {}, &file, nullptr);
  if (status.ok()) status = file->Close({}, nullptr);
  const bool is_changed = status.ok() && size() != before;
  (void)files.DeleteFile(path, {}, nullptr);
  return !is_changed;
}

}  // namespace spillway::spill
