#include "spill/commit/batch_copy.h"

#include <rocksdb/rate_limiter.h>

#include "spill/store/batch_visitor.h"

namespace spillway::spill {
namespace {

using rocksdb::Status;
using rocksdb::WriteBatch;

Status copy_operation(const BatchOperation& operation, rocksdb::ColumnFamilyHandle* family, WriteBatch* copy) {
  switch (operation.kind) {
    case OperationKind::put:
      return copy->Put(family, operation.key, operation.value);
    case OperationKind::remove:
    case OperationKind::single_remove:
      return copy->Delete(family, operation.key);
    case OperationKind::remove_range:
      return copy->DeleteRange(family, operation.key, operation.value);
    case OperationKind::merge:
      return copy->Merge(family, operation.key, operation.value);
    default:
      return unknown_operation(operation);
  }
}

bool is_copied(OperationKind kind) {
  return kind == OperationKind::put || kind == OperationKind::remove || kind == OperationKind::single_remove ||
         kind == OperationKind::remove_range || kind == OperationKind::merge;
}

}  // namespace

Status copy_batch(const WriteBatch& batch, const ColumnFamilies& families, bool skip_missing, WriteBatch* copy,
                  bool* is_whole) {
  *is_whole = true;
  return visit_batch(batch, [&](const BatchOperation& operation) {
    if (operation.kind == OperationKind::log_data) return copy->PutLogData(operation.value);
    if (!is_copied(operation.kind)) return unknown_operation(operation);  // such as a prepared transaction
    const UsedColumnFamily used = families.use(operation.family);
    if (used.handle != nullptr) return copy_operation(operation, used.handle, copy);
    if (!skip_missing) return Status::InvalidArgument("Invalid column family specified in write batch");
    *is_whole = false;
    return Status();
  });
}

void charge(const rocksdb::DBOptions& options, rocksdb::Env::IOPriority priority, std::size_t bytes) {
  rocksdb::RateLimiter* const limiter = options.rate_limiter.get();
  if (limiter == nullptr || priority == rocksdb::Env::IO_TOTAL) return;
  while (bytes > 0) {
    bytes -= limiter->RequestToken(bytes, 0, priority, options.statistics.get(), rocksdb::RateLimiter::OpType::kWrite);
  }
}

}  // namespace spillway::spill
