// One diverted write as the spill store keeps it: what orders it, and the batch.
//
//   first_sequence u64 | main_sequence u64 | main_durable u64 | flags u8 | rocksdb::WriteBatch as it serialises itself
//                                                                                                       (little-endian)
//
// *Spill sequence*: each operation of each diverted batch has the next number, which orders the spill store's writes.
// *Main sequence*: RocksDB's latest sequence number when the record was made. Every write to RocksDB up to it was
// acknowledged, or in progress, before this one. With it recovery keeps the survivors a prefix (T26). Writes up to
// *main durable* were known to be durable. Recovery cannot ask RocksDB, whose latest sequence number may be that of a
// write that a loss of power took (a flush records it, although a log is not synced).
//
// A *note* is a record with an empty batch. A sync record, too: everything before it is kept.
#pragma once

#include <rocksdb/slice.h>

#include <cstdint>
#include <optional>
#include <string>

#include "spill/store/store.h"

namespace spillway::spill {

using Sequence = std::uint64_t;

// A diverted write, as a mark in RocksDB's log names it (main_db/main_order.h).
struct Mark {
  GenerationId generation = 0;
  Sequence sequence = 0;
};

inline constexpr std::uint64_t kRecordHeaderBytes = 25;

struct RecordHeader {
  Sequence first_sequence = 0;
  std::uint64_t main_sequence = 0;
  std::uint64_t main_durable = 0;
  bool sync = false;  // was durable, and so was everything before it in both stores, when it was acknowledged
};

// The 25 bytes before the batch.
std::string encode(const RecordHeader& header);
// Nothing if the record is shorter than a header, or has a flag that this version does not know.
std::optional<RecordHeader> decode_header(const rocksdb::Slice& record);
inline rocksdb::Slice batch_of(const rocksdb::Slice& record) {
  return {record.data() + kRecordHeaderBytes, record.size() - kRecordHeaderBytes};
}

}  // namespace spillway::spill
