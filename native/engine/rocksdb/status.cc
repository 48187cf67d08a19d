#include "engine/rocksdb/status.h"

#include <string_view>

namespace spillway::engine {
namespace {

bool tells_of_full_drive(const rocksdb::Status& status) {
  if (status.IsNoSpace() || status.subcode() == rocksdb::Status::kSpaceLimit) return true;
  static const std::string no_space = rocksdb::Status::NoSpace().ToString();
  return status.getState() != nullptr && std::string_view(status.getState()).find(no_space) != std::string_view::npos;
}

}  // namespace

Status to_status(const rocksdb::Status& status, const std::string& what) {
  if (status.ok()) return Status::ok();
  const std::string message = what + ": " + status.ToString();
  if (tells_of_full_drive(status)) return Status::error(Fault::drive_full, message);
  if (status.IsInvalidArgument()) return Status::bad_input(message);
  if (status.IsNotSupported()) return Status::error(Fault::not_supported, message);
  if (status.IsIncomplete() || status.IsAborted() || status.IsShutdownInProgress()) {
    return Status::error(Fault::stopped, message);
  }
  return Status::io_error(message);
}

}  // namespace spillway::engine
