// The common part of the tests of transactions.
#pragma once

#include <rocksdb/merge_operator.h>
#include <rocksdb/utilities/transaction.h>

#include <chrono>
#include <memory>
#include <string>

#include "spillway/transaction_db.h"

namespace spillway::clients {

using rocksdb::ReadOptions;
using rocksdb::Slice;
using rocksdb::Status;
using rocksdb::Transaction;
using rocksdb::WriteOptions;

class Joined final : public rocksdb::AssociativeMergeOperator {
 public:
  bool Merge(const Slice&, const Slice* existing, const Slice& operand, std::string* result,
             rocksdb::Logger*) const override {
    *result = (existing != nullptr ? existing->ToString() + "," : "") + operand.ToString();
    return true;
  }
  const char* Name() const override { return "Joined"; }
};

inline rocksdb::Options rocksdb_options() {
  rocksdb::Options options;
  options.create_if_missing = true;
  options.merge_operator = std::make_shared<Joined>();
  return options;
}

inline SpillOptions spill_options() {
  SpillOptions spill;
  spill.rollback = RollbackPolicy::off;
  spill.poll_ms = 5;
  spill.capacity_bytes = 64 << 20;
  spill.generation_bytes = 4 << 20;
  return spill;
}

inline std::string value_in(Transaction& transaction, const std::string& key) {
  std::string value;
  const Status status = transaction.Get(ReadOptions(), key, &value);
  return status.ok() ? value : status.IsNotFound() ? "-" : status.ToString();
}

inline std::string value_in(rocksdb::DB& db, const std::string& key) {
  std::string value;
  const Status status = db.Get(ReadOptions(), key, &value);
  return status.ok() ? value : status.IsNotFound() ? "-" : status.ToString();
}

}  // namespace spillway::clients
