// The result parameter of rocksdb::DB::Open and its kin. Up to RocksDB 10 they take a DB**, from 11.0 on a
// std::unique_ptr<DB>*.
#pragma once

#include <rocksdb/db.h>

#include <memory>

#include "spill/compat/rocksdb_version.h"

namespace spillway::spill {

// A temporary in the call, which passes the opened database on at the end of the full expression:
//
//   std::unique_ptr<rocksdb::DB> db;
//   const rocksdb::Status status = rocksdb::DB::Open(options, path, DbOut(&db));
class DbOut {
 public:
  explicit DbOut(std::unique_ptr<rocksdb::DB>* owner) : owner_(owner) {}
  // `db` owns the database, as with RocksDB up to 10.
  explicit DbOut(rocksdb::DB** db) : raw_(db) {}
  DbOut(const DbOut&) = delete;
  DbOut& operator=(const DbOut&) = delete;

#if SPILLWAY_ROCKSDB_AT_LEAST(11, 0)
  operator std::unique_ptr<rocksdb::DB>*() { return &opened_; }  // NOLINT(google-explicit-constructor)
  ~DbOut() { pass_on(opened_.release()); }
#else
  operator rocksdb::DB**() { return &opened_; }  // NOLINT(google-explicit-constructor)
  ~DbOut() { pass_on(opened_); }
#endif

 private:
  void pass_on(rocksdb::DB* db) {
    if (owner_ != nullptr) owner_->reset(db);
    if (raw_ != nullptr) *raw_ = db;
  }

  std::unique_ptr<rocksdb::DB>* owner_ = nullptr;
  rocksdb::DB** raw_ = nullptr;
#if SPILLWAY_ROCKSDB_AT_LEAST(11, 0)
  std::unique_ptr<rocksdb::DB> opened_;
#else
  rocksdb::DB* opened_ = nullptr;
#endif
};

}  // namespace spillway::spill
