// Merges of a batch on its way into the spill store, which keeps no merge operands: each becomes a put of its outcome.
#pragma once

#include <rocksdb/status.h>
#include <rocksdb/write_batch.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "spill/live/column_families.h"

namespace spillway::spill {

// The newest value of a key outside of the batch; none where there is none.
using ValueBefore =
    std::function<rocksdb::Status(std::uint32_t family, const rocksdb::Slice& key, std::optional<std::string>* value)>;

// Copies `batch` into `resolved` with a put in the place of each merge. What the batch itself did before counts.
// Busy: the merge operator refuses an operand, so that only RocksDB can take the batch (which takes it, and says so to
// whoever reads the key). InvalidArgument: the family has no merge operator. Else the error of `value_before`.
rocksdb::Status resolve_merges(const rocksdb::WriteBatch& batch, const ColumnFamilies& families,
                               const ValueBefore& value_before, rocksdb::WriteBatch* resolved);

}  // namespace spillway::spill
