// What a call returns that cannot be correct with a spill store: NotSupported, its name, and the reason.
#pragma once

#include <rocksdb/status.h>

#include <string>

namespace spillway::spill {

inline constexpr const char* kNoTimestamps = "user-defined timestamps are not supported";
inline constexpr const char* kNoWideColumns = "the spill store keeps no wide columns";

inline rocksdb::Status refuse(const char* call, const char* why) {
  return rocksdb::Status::NotSupported("spillway::DB does not support " + std::string(call) + ": " + why);
}

inline rocksdb::Status refuse_in_transaction(const char* call, const char* why) {
  return rocksdb::Status::NotSupported("a transaction of spillway does not support " + std::string(call) + ": " + why);
}

}  // namespace spillway::spill
