// Resolves the merges of a diverted batch. The spill store keeps no merge operands: each merge becomes a put of its
// result.
#pragma once

#include <rocksdb/status.h>
#include <rocksdb/write_batch.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "spill/live/column_families.h"

namespace spillway::spill {

// The newest value of a key outside the batch; none if the key does not exist.
using ValueBefore =
    std::function<rocksdb::Status(std::uint32_t family, const rocksdb::Slice& key, std::optional<std::string>* value)>;

// Copies `batch` into `resolved` and replaces each merge by a put. Earlier operations of the same batch are seen.
// Busy: the merge operator refuses an operand, so only RocksDB can take the batch (it accepts it, and reads of the key
// fail). InvalidArgument: the family has no merge operator. Otherwise the error of `value_before`.
rocksdb::Status resolve_merges(const rocksdb::WriteBatch& batch, const ColumnFamilies& families,
                               const ValueBefore& value_before, rocksdb::WriteBatch* resolved);

}  // namespace spillway::spill
