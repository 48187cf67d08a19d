// One set of virtual functions of a transaction for every version of RocksDB. What later versions have in addition is
// refused by name: it is of wide columns.
#pragma once

#include <rocksdb/utilities/transaction.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "spill/compat/rocksdb_version.h"
#include "spillway/transaction_db.h"

namespace spillway::spill {

class UniformTransaction : public rocksdb::Transaction {
 public:
  using Family = rocksdb::ColumnFamilyHandle;
  using Slice = rocksdb::Slice;
  using Status = rocksdb::Status;
  using ReadOptions = rocksdb::ReadOptions;

#if SPILLWAY_ROCKSDB_AT_LEAST(9, 3)
  Status GetEntity(const ReadOptions& options, Family* family, const Slice& key,
                   rocksdb::PinnableWideColumns* columns) final;
  void MultiGetEntity(const ReadOptions& options, Family* family, std::size_t count, const Slice* keys,
                      rocksdb::PinnableWideColumns* results, Status* statuses, bool sorted_input) final;
  Status PutEntity(Family* family, const Slice& key, const rocksdb::WideColumns& columns, bool assume_tracked) final;
  Status PutEntityUntracked(Family* family, const Slice& key, const rocksdb::WideColumns& columns) final;
  std::uint64_t GetNumPutEntities() const final { return 0; }
#endif
#if SPILLWAY_ROCKSDB_AT_LEAST(9, 4)
  Status GetEntityForUpdate(const ReadOptions& options, Family* family, const Slice& key,
                            rocksdb::PinnableWideColumns* columns, bool exclusive, bool do_validate) final;
#endif
#if SPILLWAY_ROCKSDB_AT_LEAST(9, 8)
  std::unique_ptr<rocksdb::AttributeGroupIterator> GetAttributeGroupIterator(
      const ReadOptions& options, const std::vector<Family*>& families) final;
#endif
#if SPILLWAY_ROCKSDB_AT_LEAST(9, 9)
  std::unique_ptr<rocksdb::Iterator> GetCoalescingIterator(const ReadOptions& options,
                                                           const std::vector<Family*>& families) final;
#endif
#if SPILLWAY_ROCKSDB_AT_LEAST(8, 7)
  Status CollapseKey(const ReadOptions& options, const Slice& key, Family* family) final;
#endif
#if SPILLWAY_ROCKSDB_AT_LEAST(10, 7)
  // The time before deadlocks are looked for. Here they are looked for at once, when a lock has to be waited for.
  void SetDeadlockTimeout(std::int64_t) final {}
#endif
};

// The database of optimistic transactions, which owns the one below. From 11.0 on RocksDB says so by a unique_ptr.
class UniformOptimisticDb : public spillway::OptimisticTransactionDB {
 protected:
#if SPILLWAY_ROCKSDB_AT_LEAST(11, 0)
  explicit UniformOptimisticDb(spillway::DB* db) : OptimisticTransactionDB(std::unique_ptr<rocksdb::DB>(db)) {}
#else
  explicit UniformOptimisticDb(spillway::DB* db) : OptimisticTransactionDB(db) {}
#endif
};

}  // namespace spillway::spill
