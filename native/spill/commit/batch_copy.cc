#include "spill/commit/batch_copy.h"

#include <rocksdb/rate_limiter.h>

namespace spillway::spill {
namespace {

using rocksdb::Slice;
using rocksdb::Status;
using rocksdb::WriteBatch;

class Copier final : public WriteBatch::Handler {
 public:
  Copier(const ColumnFamilies& families, bool skip_missing, WriteBatch& out)
      : families_(families), skips_missing_(skip_missing), out_(out) {}

  Status PutCF(std::uint32_t family, const Slice& key, const Slice& value) override {
    return add(family, [&](auto* handle) { return out_.Put(handle, key, value); });
  }
  Status DeleteCF(std::uint32_t family, const Slice& key) override {
    return add(family, [&](auto* handle) { return out_.Delete(handle, key); });
  }
  Status SingleDeleteCF(std::uint32_t family, const Slice& key) override { return DeleteCF(family, key); }
  Status DeleteRangeCF(std::uint32_t family, const Slice& begin, const Slice& end) override {
    return add(family, [&](auto* handle) { return out_.DeleteRange(handle, begin, end); });
  }
  Status MergeCF(std::uint32_t family, const Slice& key, const Slice& operand) override {
    return add(family, [&](auto* handle) { return out_.Merge(handle, key, operand); });
  }
  void LogData(const Slice& blob) override { (void)out_.PutLogData(blob); }
  Status MarkNoop(bool) override { return {}; }
  // Anything else, such as a prepared transaction: RocksDB's handler says that it cannot be.

  bool is_whole() const { return is_whole_; }

 private:
  template <class Operation>
  Status add(std::uint32_t family, const Operation& operation) {
    const UsedColumnFamily used = families_.use(family);
    if (used.handle != nullptr) return operation(used.handle);
    if (!skips_missing_) return Status::InvalidArgument("Invalid column family specified in write batch");
    is_whole_ = false;
    return {};
  }

  const ColumnFamilies& families_;
  const bool skips_missing_;
  WriteBatch& out_;
  bool is_whole_ = true;
};

}  // namespace

Status copy_batch(const WriteBatch& batch, const ColumnFamilies& families, bool skip_missing, WriteBatch* copy,
                  bool* is_whole) {
  Copier copier(families, skip_missing, *copy);
  const Status status = batch.Iterate(&copier);
  *is_whole = copier.is_whole();
  return status;
}

void charge(const rocksdb::DBOptions& options, rocksdb::Env::IOPriority priority, std::size_t bytes) {
  rocksdb::RateLimiter* const limiter = options.rate_limiter.get();
  if (limiter == nullptr || priority == rocksdb::Env::IO_TOTAL) return;
  while (bytes > 0) {
    bytes -= limiter->RequestToken(bytes, 0, priority, options.statistics.get(), rocksdb::RateLimiter::OpType::kWrite);
  }
}

}  // namespace spillway::spill
