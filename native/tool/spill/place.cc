#include "tool/spill/place.h"

#include <fcntl.h>
#include <rocksdb/env.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <system_error>

#include "spill/main_db/binding.h"

namespace spillway::tool {
namespace {

namespace filesystem = std::filesystem;

bool exists(const std::string& path) {
  std::error_code error;
  return filesystem::exists(path, error);
}

bool has_logs(const std::string& directory) {
  std::error_code error;
  const filesystem::directory_iterator entries(directory, error);
  return !error && std::any_of(begin(entries), end(entries),
                               [](const auto& entry) { return entry.path().extension() == ".spill"; });
}

std::optional<spill::BindingRecord> binding_of(const std::string& directory) {
  std::string bytes;
  (void)rocksdb::ReadFileToString(rocksdb::Env::Default(), directory + "/" + spill::kBindingFile, &bytes);
  return spill::decode_binding(bytes);
}

bool is_bound(const std::string& directory, const spill::Guard& guard) {
  const auto binding = binding_of(directory);
  return binding && binding->id == guard.id &&
         (binding->confirmed == guard.opening || binding->pending == guard.opening);
}

// Searches where the guard says. If a copy of the database has no spill store, the original's must not be used.
void find_elsewhere(SpillPlace& place) {
  const std::string& location = place.guard->location;
  if (!exists(location)) return;
  const auto binding = binding_of(location);
  std::error_code error;
  const bool is_of_other = binding && exists(binding->database + "/CURRENT") &&
                           !filesystem::equivalent(binding->database, place.database, error) && !error;
  if (!is_of_other) place.directory = location;
}

Status find_database(SpillPlace& place) {
  if (!exists(place.database + "/CURRENT")) {
    return Status::bad_input(place.database +
                             " is no RocksDB database: it has no CURRENT; name a database's directory");
  }
  rocksdb::DBOptions options;
  if (const auto status = spill::list_families(options, place.database, &place.families); !status.ok()) {
    return status_of(status);
  }
  place.guard = spill::newest_guard(place.families);
  if (!place.directory.empty()) return {};
  place.directory = place.database + "/spill";
  if (place.guard && !is_bound(place.directory, *place.guard)) find_elsewhere(place);
  return {};
}

}  // namespace

Result<SpillPlace> read_spill_place(Fields& fields) {
  SpillPlace place;
  place.database = fields.text("database", "");
  place.directory = fields.text("spill", "");
  if (Status status = fields.finish(); !status) return status;
  if (place.database.empty() && place.directory.empty()) {
    return Status::bad_input("the request names neither a database nor a spill store; name one of them");
  }
  const bool is_named = !place.directory.empty();
  if (!place.database.empty()) {
    if (Status status = find_database(place); !status) return status;
  }
  place.has_directory = exists(place.directory);
  if (!is_named) return place;
  if (!exists(place.directory + "/" + spill::kBindingFile) && !has_logs(place.directory)) {
    return Status::bad_input(place.directory + " is neither a RocksDB database nor a spill store; name the directory " +
                             "of one of them");
  }
  return place;
}

Status check_is_of_files(const SpillPlace& place) {
  if (!place.guard || place.guard->location != spill::kOwnStore) return {};
  return Status::bad_input("the spill store of " + place.database +
                           " is in a drive's key-value namespace, or another " +
                           "one of its program's own, which cannot be read here; open the database in its program");
}

bool is_locked(const std::string& lock_file) {
  const int file = open(lock_file.c_str(), O_RDWR | O_CLOEXEC);
  if (file < 0) return false;
  struct flock lock {};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  const bool is_held = fcntl(file, F_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
  close(file);
  return is_held;
}

Status status_of(const rocksdb::Status& status) {
  if (status.ok()) return {};
  const std::string message = status.getState() != nullptr ? status.getState() : status.ToString();
  if (status.IsInvalidArgument() || status.IsNotFound()) return Status::bad_input(message);
  if (status.IsNotSupported()) return Status::error(Fault::not_supported, message);
  return Status::io_error(status.ToString());
}

}  // namespace spillway::tool
