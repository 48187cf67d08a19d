// A plain RocksDB and a spillway::DB with the same options and the same calls, for tests of what a user can observe.
// The metamorphic tests have their own pair (spill_two_databases.h), with the seeds that they need.
#pragma once

#include <gtest/gtest.h>
#include <rocksdb/db.h>

#include <array>
#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "spill/compat/db_out.h"
#include "spillway/db.h"
#include "temporary_directory.h"

namespace spillway::clients {

class SideBySide : public ::testing::Test {
 protected:
  using Handles = std::vector<rocksdb::ColumnFamilyHandle*>;
  struct Side {
    std::string name;
    std::unique_ptr<rocksdb::DB> db;
    Handles handles;  // in the order of `families_`
  };

  SideBySide() {
    sides_[0].name = "plain";
    sides_[1].name = "spill";
    options_.create_if_missing = true;
    options_.create_missing_column_families = true;
    spill_options_.rollback = RollbackPolicy::off;
    spill_options_.put_back_bytes = 0;
    spill_options_.poll_ms = 5;
    families_.emplace_back(rocksdb::kDefaultColumnFamilyName, rocksdb::ColumnFamilyOptions());
  }
  ~SideBySide() override { close(); }

  std::array<Side, 2>& sides() { return sides_; }
  Side& plain() { return sides_[0]; }
  Side& spill() { return sides_[1]; }
  DB& spill_db() { return static_cast<DB&>(*sides_[1].db); }
  std::string path(const Side& side) const { return directory_.path(side.name); }

  rocksdb::Status try_open(Side& side) {
    rocksdb::DB* db = nullptr;
    DB* spill_db = nullptr;
    const bool is_plain = &side == sides_.data();
    const rocksdb::Status status =
        is_plain ? rocksdb::DB::Open(options_, path(side), families_, &side.handles, spill::DbOut(&db))
                 : DB::Open(options_, spill_options_, path(side), families_, &side.handles, &spill_db);
    side.db.reset(is_plain ? db : spill_db);
    return status;
  }
  void open() {
    close();
    for (Side& side : sides_) {
      const rocksdb::Status status = try_open(side);
      ASSERT_TRUE(status.ok()) << side.name << ": " << status.ToString();
    }
  }
  static void close(Side& side) {
    for (rocksdb::ColumnFamilyHandle* handle : side.handles) {
      EXPECT_TRUE(side.db->DestroyColumnFamilyHandle(handle).ok());
    }
    side.handles.clear();
    side.db.reset();
  }
  void close() {
    for (Side& side : sides_) close(side);
  }

  // The answer of both, which must be the same.
  template <class Call>
  std::string same(const Call& call) {
    const std::string expected = text_of(call(plain()));
    EXPECT_EQ(text_of(call(spill())), expected);
    return expected;
  }

  static std::string text_of(const std::string& text) { return text; }
  static std::string text_of(const rocksdb::Status& status) { return status.ToString(); }

  const TemporaryDirectory directory_;
  rocksdb::DBOptions options_;
  SpillOptions spill_options_;
  std::vector<rocksdb::ColumnFamilyDescriptor> families_;

 private:
  std::array<Side, 2> sides_;
};

}  // namespace spillway::clients
