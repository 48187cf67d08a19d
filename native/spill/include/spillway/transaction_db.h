// Transactions that do not stall: RocksDB's own interfaces (rocksdb::OptimisticTransactionDB, rocksdb::TransactionDB)
// over a spillway::DB. Commits are diverted like every other write.
//
//   spillway::TransactionDB* db = nullptr;
//   rocksdb::Status status =
//       spillway::TransactionDB::Open(options, rocksdb::TransactionDBOptions(), spillway::SpillOptions(), path, &db);
//   rocksdb::Transaction* transaction = db->BeginTransaction(rocksdb::WriteOptions());
//
// NotSupported, by name: two-phase commit (Prepare, SetName, a commit-time batch), write policies other than
// WRITE_COMMITTED, range locks, a mutex factory of one's own, user-defined timestamps and timestamped snapshots. What
// RocksDB's documentation says of the rest holds, with one exception: a write to a key since it was read is detected by
// the hash of the key, so that a commit may rarely be refused (Busy) for a write to another key.
#pragma once

#include <rocksdb/utilities/optimistic_transaction_db.h>
#include <rocksdb/utilities/transaction.h>
#include <rocksdb/utilities/transaction_db.h>

#include <string>
#include <vector>

#include "spillway/db.h"

namespace spillway {

// NOLINTBEGIN(readability-identifier-naming): named as the rest of a rocksdb::DB is

// A transaction with a conflict returns Busy from its commit.
class OptimisticTransactionDB : public rocksdb::OptimisticTransactionDB {
 public:
  static rocksdb::Status Open(const rocksdb::Options& options, const SpillOptions& spill, const std::string& name,
                              OptimisticTransactionDB** db);
  static rocksdb::Status Open(const rocksdb::DBOptions& options, const SpillOptions& spill, const std::string& name,
                              const std::vector<rocksdb::ColumnFamilyDescriptor>& column_families,
                              std::vector<rocksdb::ColumnFamilyHandle*>* handles, OptimisticTransactionDB** db);

  // The database below, for Rollback, CreateCheckpoint, SetDiversion. Writes to it take part in the detection of
  // conflicts.
  virtual spillway::DB* GetSpillwayDB() = 0;

 protected:
  using rocksdb::OptimisticTransactionDB::OptimisticTransactionDB;
};

// A transaction locks the keys that it writes or reads for update. Writes outside a transaction lock their keys as
// well.
class TransactionDB : public rocksdb::TransactionDB {
 public:
  static rocksdb::Status Open(const rocksdb::Options& options, const rocksdb::TransactionDBOptions& transactions,
                              const SpillOptions& spill, const std::string& name, TransactionDB** db);
  static rocksdb::Status Open(const rocksdb::DBOptions& options, const rocksdb::TransactionDBOptions& transactions,
                              const SpillOptions& spill, const std::string& name,
                              const std::vector<rocksdb::ColumnFamilyDescriptor>& column_families,
                              std::vector<rocksdb::ColumnFamilyHandle*>* handles, TransactionDB** db);

  // The database below, for Rollback, CreateCheckpoint, SetDiversion. Keys must not be written to it: it takes no
  // locks.
  virtual spillway::DB* GetSpillwayDB() = 0;

 protected:
  using rocksdb::TransactionDB::TransactionDB;
};

// NOLINTEND(readability-identifier-naming)

}  // namespace spillway
