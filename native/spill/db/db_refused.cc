// The calls of a rocksdb::DB that cannot be correct with a spill store. Those of some versions of RocksDB alone are in
// compat/uniform_db.cc.
#include <rocksdb/trace_reader_writer.h>
#include <rocksdb/utilities/replayer.h>

#include <string>

#include "spill/compat/refusals.h"
#include "spill/db/db_impl.h"

namespace spillway::spill {
namespace {

using rocksdb::ColumnFamilyHandle;
using rocksdb::PinnableSlice;
using rocksdb::ReadOptions;
using rocksdb::Slice;
using rocksdb::Status;
using rocksdb::WriteOptions;

constexpr const char* kNotInTheLog =
    "diverted writes are not in RocksDB's log; use Rollback, Flush or CreateCheckpoint";
constexpr const char* kNotInATrace = "a trace of RocksDB would miss diverted writes";

}  // namespace

// --- User-defined timestamps

Status DbImpl::Put(const WriteOptions&, ColumnFamilyHandle*, const Slice&, const Slice&, const Slice&) {
  return refuse("Put with a timestamp", kNoTimestamps);
}

Status DbImpl::Delete(const WriteOptions&, ColumnFamilyHandle*, const Slice&, const Slice&) {
  return refuse("Delete with a timestamp", kNoTimestamps);
}

Status DbImpl::SingleDelete(const WriteOptions&, ColumnFamilyHandle*, const Slice&, const Slice&) {
  return refuse("SingleDelete with a timestamp", kNoTimestamps);
}

Status DbImpl::DeleteRange(const WriteOptions&, ColumnFamilyHandle*, const Slice&, const Slice&, const Slice&) {
  return refuse("DeleteRange with a timestamp", kNoTimestamps);
}

Status DbImpl::Merge(const WriteOptions&, ColumnFamilyHandle*, const Slice&, const Slice&, const Slice&) {
  return refuse("Merge with a timestamp", kNoTimestamps);
}

Status DbImpl::IncreaseFullHistoryTsLow(ColumnFamilyHandle*, std::string) {
  return refuse("IncreaseFullHistoryTsLow", kNoTimestamps);
}

Status DbImpl::GetFullHistoryTsLow(ColumnFamilyHandle*, std::string*) {
  return refuse("GetFullHistoryTsLow", kNoTimestamps);
}

// --- Kinds of values that the spill store does not keep

Status DbImpl::PutEntity(const WriteOptions&, ColumnFamilyHandle*, const Slice&, const rocksdb::WideColumns&) {
  return refuse("PutEntity", kNoWideColumns);
}

Status DbImpl::GetEntity(const ReadOptions&, ColumnFamilyHandle*, const Slice&, rocksdb::PinnableWideColumns*) {
  return refuse("GetEntity", kNoWideColumns);
}

Status DbImpl::GetMergeOperands(const ReadOptions&, ColumnFamilyHandle*, const Slice&, PinnableSlice*,
                                rocksdb::GetMergeOperandsOptions*, int*) {
  return refuse("GetMergeOperands", "the spill store keeps the result of a merge, not its operands");
}

// --- RocksDB's log, and traces of calls

Status DbImpl::GetUpdatesSince(rocksdb::SequenceNumber, std::unique_ptr<rocksdb::TransactionLogIterator>*,
                               const rocksdb::TransactionLogIterator::ReadOptions&) {
  return refuse("GetUpdatesSince", kNotInTheLog);
}

Status DbImpl::LockWAL() { return refuse("LockWAL", kNotInTheLog); }

Status DbImpl::UnlockWAL() { return refuse("UnlockWAL", kNotInTheLog); }

Status DbImpl::StartTrace(const rocksdb::TraceOptions&, std::unique_ptr<rocksdb::TraceWriter>&&) {
  return refuse("StartTrace", kNotInATrace);
}

Status DbImpl::EndTrace() { return refuse("EndTrace", kNotInATrace); }

Status DbImpl::NewDefaultReplayer(const std::vector<ColumnFamilyHandle*>&, std::unique_ptr<rocksdb::TraceReader>&&,
                                  std::unique_ptr<rocksdb::Replayer>*) {
  return refuse("NewDefaultReplayer", "it would write to RocksDB past the spill store");
}

// --- The rest

Status DbImpl::TryCatchUpWithPrimary() {
  return refuse("TryCatchUpWithPrimary", "it is for a secondary instance, which a spillway::DB cannot be");
}

}  // namespace spillway::spill
