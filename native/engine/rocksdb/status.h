// RocksDB's answers as ours.
#pragma once

#include <rocksdb/status.h>

#include <string>

#include "base/result.h"

namespace spillway::engine {

// `what`: the call, for the message. A full drive is `drive_full`, also if RocksDB mentions it only in the message of
// another status: a writer that waits for compactions gets `Incomplete` with the error that stops them (RocksDB 7.8.3,
// DBImpl::DelayWrite).
Status to_status(const rocksdb::Status& status, const std::string& what);

}  // namespace spillway::engine
