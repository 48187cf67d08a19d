// How much the spill store holds, for addition to RocksDB's own estimates.
#pragma once

#include <rocksdb/slice.h>

#include <cstdint>
#include <string_view>

#include "spill/live/generation.h"

namespace spillway::spill {

// Whether RocksDB's property is an estimate of the data, to which what is spilled belongs.
bool includes_spilled(const rocksdb::Slice& property);

struct RangeEstimate {
  std::uint64_t entries = 0;
  std::uint64_t bytes = 0;  // of keys and values
};
// Estimates the entries with a key in [begin, end). Every version of a key counts, as in RocksDB's memtables. Entries
// are counted; their bytes are taken from a sample if there are many.
RangeEstimate estimate_range(const Generations& generations, const ColumnFamilies& families,
                             std::uint32_t column_family, std::string_view begin, std::string_view end);

}  // namespace spillway::spill
