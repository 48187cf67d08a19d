// The operations of a rocksdb::WriteBatch, in order: the accelerator's only WriteBatch::Handler.
#pragma once

#include <rocksdb/write_batch.h>

#include <cstdint>

#include "spill/compat/uniform_handler.h"

namespace spillway::spill {

enum class OperationKind : std::uint8_t {
  put,
  remove,         // Delete
  single_remove,  // SingleDelete
  merge,
  remove_range,
  put_entity,
  blob_index,
  timed_put,           // TimedPut, of RocksDB 9.1 and later
  log_data,            // PutLogData: for the write-ahead log alone
  transaction_marker,  // prepare, commit or rollback of a two-phase commit
  timestamped_commit,
};

struct BatchOperation {
  using Kind = OperationKind;

  OperationKind kind = OperationKind::put;
  std::uint32_t family = 0;
  rocksdb::Slice key;    // the begin of a range
  rocksdb::Slice value;  // of a merge: the operand; of a range: its end; of log data: all of it

  // One key is written, so that `family` and `key` say which.
  bool has_key() const {
    return kind == OperationKind::put || kind == OperationKind::remove || kind == OperationKind::single_remove ||
           kind == OperationKind::merge || kind == OperationKind::put_entity || kind == OperationKind::blob_index ||
           kind == OperationKind::timed_put;
  }
};

// For an operation that the caller does not handle: the code that RocksDB's own handler returns for it.
inline rocksdb::Status unknown_operation(const BatchOperation& operation) {
  if (operation.kind == OperationKind::put_entity) {
    return rocksdb::Status::NotSupported("a wide-column entity in a batch that may not have one");
  }
  if (operation.kind == OperationKind::timed_put) {
    return rocksdb::Status::NotSupported("a TimedPut in a batch that may not have one");
  }
  return rocksdb::Status::InvalidArgument("an operation that this batch may not have");
}

// Calls `visit(const BatchOperation&)` for each operation, until it returns a Status that is not OK.
template <typename Visit>
class BatchVisitor final : public UniformHandler {
  using Slice = rocksdb::Slice;
  using Status = rocksdb::Status;

 public:
  explicit BatchVisitor(const Visit& visit) : visit_(visit) {}
  Status PutCF(std::uint32_t family, const Slice& key, const Slice& value) override {
    return visit_(BatchOperation{OperationKind::put, family, key, value});
  }
  Status PutEntityCF(std::uint32_t family, const Slice& key, const Slice& entity) override {
    return visit_(BatchOperation{OperationKind::put_entity, family, key, entity});
  }
  Status PutBlobIndexCF(std::uint32_t family, const Slice& key, const Slice& index) override {
    return visit_(BatchOperation{OperationKind::blob_index, family, key, index});
  }
  Status timed_put(std::uint32_t family, const Slice& key, const Slice& value) override {
    return visit_(BatchOperation{OperationKind::timed_put, family, key, value});
  }
  Status DeleteCF(std::uint32_t family, const Slice& key) override {
    return visit_(BatchOperation{OperationKind::remove, family, key, {}});
  }
  Status SingleDeleteCF(std::uint32_t family, const Slice& key) override {
    return visit_(BatchOperation{OperationKind::single_remove, family, key, {}});
  }
  Status MergeCF(std::uint32_t family, const Slice& key, const Slice& operand) override {
    return visit_(BatchOperation{OperationKind::merge, family, key, operand});
  }
  Status DeleteRangeCF(std::uint32_t family, const Slice& begin, const Slice& end) override {
    return visit_(BatchOperation{OperationKind::remove_range, family, begin, end});
  }
  void LogData(const Slice& data) override {
    const Status status = visit_(BatchOperation{OperationKind::log_data, 0, {}, data});
    if (log_data_.ok()) log_data_ = status;
  }
  Status MarkBeginPrepare(bool) override {
    return visit_(BatchOperation{OperationKind::transaction_marker, 0, {}, {}});
  }
  Status MarkEndPrepare(const Slice&) override {
    return visit_(BatchOperation{OperationKind::transaction_marker, 0, {}, {}});
  }
  Status MarkNoop(bool) override { return {}; }
  Status MarkRollback(const Slice&) override {
    return visit_(BatchOperation{OperationKind::transaction_marker, 0, {}, {}});
  }
  Status MarkCommit(const Slice&) override {
    return visit_(BatchOperation{OperationKind::transaction_marker, 0, {}, {}});
  }
  Status MarkCommitWithTimestamp(const Slice&, const Slice&) override {
    return visit_(BatchOperation{OperationKind::timestamped_commit, 0, {}, {}});
  }
  bool Continue() override { return log_data_.ok(); }
  const Status& log_data() const { return log_data_; }

 private:
  const Visit& visit_;
  Status log_data_;  // LogData has no result of its own
};

// Calls `visit(const BatchOperation&)`, which returns a Status, for each operation. Ends at the first that is not OK,
// and returns it. Otherwise returns what RocksDB says of the batch: Corruption of one that is malformed.
template <typename Visit>
rocksdb::Status visit_batch(const rocksdb::WriteBatch& batch, const Visit& visit) {
  BatchVisitor<Visit> visitor(visit);
  rocksdb::Status status = batch.Iterate(&visitor);
  return status.ok() ? visitor.log_data() : status;
}

}  // namespace spillway::spill
