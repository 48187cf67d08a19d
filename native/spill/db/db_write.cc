// Writes: each is a batch for the router.
#include "spill/db/db_impl.h"

namespace spillway::spill {

using rocksdb::ColumnFamilyHandle;
using rocksdb::Slice;
using rocksdb::Status;
using rocksdb::WriteBatch;
using rocksdb::WriteOptions;

Status DbImpl::Write(const WriteOptions& options, WriteBatch* batch) {
  if (batch == nullptr) return Status::InvalidArgument("Batch is nullptr!");
  if (closing_.is_closed()) return Status::ShutdownInProgress();
  return router_.write(options, batch);
}

// Inlined: a write passes few frames on its way to RocksDB (SPILLWAY_FRAME_FOR_TSAN).
[[gnu::always_inline]] inline Status DbImpl::write_one(const WriteOptions& options, WriteBatch* batch) {
  if (closing_.is_closed()) return Status::ShutdownInProgress();
  return router_.write_one(options, batch);
}

Status DbImpl::Put(const WriteOptions& options, ColumnFamilyHandle* family, const Slice& key, const Slice& value) {
  WriteBatch batch(key.size() + value.size() + 24);  // RocksDB's own overhead of a batch
  if (Status status = batch.Put(family, key, value); !status.ok()) return status;
  return write_one(options, &batch);
}

Status DbImpl::Delete(const WriteOptions& options, ColumnFamilyHandle* family, const Slice& key) {
  WriteBatch batch;
  if (Status status = batch.Delete(family, key); !status.ok()) return status;
  return write_one(options, &batch);
}

Status DbImpl::SingleDelete(const WriteOptions& options, ColumnFamilyHandle* family, const Slice& key) {
  return Delete(options, family, key);  // why not SingleDelete: commit/batch_copy.h
}

Status DbImpl::DeleteRange(const WriteOptions& options, ColumnFamilyHandle* family, const Slice& begin,
                           const Slice& end) {
  WriteBatch batch;
  const Status status = batch.DeleteRange(family, begin, end);
  return status.ok() ? Write(options, &batch) : status;
}

Status DbImpl::Merge(const WriteOptions& options, ColumnFamilyHandle* family, const Slice& key, const Slice& operand) {
  const bool is_ours = !main_.is_handed_out();  // otherwise only RocksDB knows the families
  if (is_ours && live_.families().of(family->GetID()).merge_operator == nullptr) {
    return Status::NotSupported("Provide a merge_operator when opening DB");
  }
  WriteBatch batch;
  if (Status status = batch.Merge(family, key, operand); !status.ok()) return status;
  return write_one(options, &batch);
}

}  // namespace spillway::spill
