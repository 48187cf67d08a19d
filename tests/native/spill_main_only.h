// A database for calls that need everything to be in RocksDB, and the copies that can be made of it.
#pragma once

#include <gtest/gtest.h>
#include <rocksdb/sst_file_writer.h>
#include <rocksdb/utilities/backup_engine.h>
#include <rocksdb/utilities/checkpoint.h>

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "spill/compat/db_out.h"
#include "spillway/db.h"
#include "temporary_directory.h"

namespace spillway::clients {

class MainOnly : public ::testing::Test {
 protected:
  void SetUp() override { open(); }
  void open() {
    db_.reset();
    rocksdb::Options options;
    options.create_if_missing = true;
    options.write_buffer_size = 256 << 10;
    SpillOptions spill;
    spill.rollback = RollbackPolicy::off;
    spill.put_back_bytes = 16 << 10;
    spill.generation_bytes = 64 << 10;
    DB* db = nullptr;
    const rocksdb::Status status = DB::Open(options, spill, directory_.path("db"), &db);
    ASSERT_TRUE(status.ok()) << status.ToString();
    db_.reset(db);
  }
  rocksdb::Status put(const std::string& key, const std::string& value) { return db_->Put({}, key, value); }
  static std::string get(rocksdb::DB& db, const std::string& key) {
    std::string value;
    const rocksdb::Status status = db.Get({}, key, &value);
    return status.ok() ? value : status.IsNotFound() ? "-" : status.ToString();
  }
  std::unique_ptr<rocksdb::DB> open_plain(const std::string& name) {
    rocksdb::DB* db = nullptr;
    const rocksdb::Status status = rocksdb::DB::Open({}, directory_.path(name), spill::DbOut(&db));
    EXPECT_TRUE(status.ok()) << status.ToString();
    return std::unique_ptr<rocksdb::DB>(db);
  }
  std::string sorted_file(const std::string& name, const std::string& key, const std::string& value) {
    rocksdb::SstFileWriter writer({}, {});
    const std::string path = directory_.path(name);
    EXPECT_TRUE(writer.Open(path).ok());
    EXPECT_TRUE(writer.Put(key, value).ok());
    EXPECT_TRUE(writer.Finish().ok());
    return path;
  }

  TemporaryDirectory directory_{memory_path()};
  std::unique_ptr<DB> db_;
  rocksdb::DB* copied_ = nullptr;
};

// A copy of the database at `name`, made in one of several ways, opened as plain RocksDB.
using Copy = std::function<rocksdb::Status(DB& db, const std::string& to)>;

inline rocksdb::Status checkpoint_by_us(DB& db, const std::string& to) { return db.CreateCheckpoint(to); }
inline rocksdb::Status checkpoint_by_rocksdb(DB& db, const std::string& to) {
  rocksdb::Checkpoint* made = nullptr;
  rocksdb::Status status = rocksdb::Checkpoint::Create(&db, &made);
  const std::unique_ptr<rocksdb::Checkpoint> checkpoint(made);
  return status.ok() ? checkpoint->CreateCheckpoint(to) : status;
}
inline rocksdb::Status backup(DB& db, const std::string& to) {
  rocksdb::BackupEngine* made = nullptr;
  rocksdb::Status status =
      rocksdb::BackupEngine::Open(rocksdb::Env::Default(), rocksdb::BackupEngineOptions(to + "-b"), &made);
  const std::unique_ptr<rocksdb::BackupEngine> engine(made);
  if (status.ok()) status = engine->CreateNewBackup(&db);
  return status.ok() ? engine->RestoreDBFromLatestBackup(to, to) : status;
}
inline const std::vector<std::pair<std::string, Copy>>& copies() {
  static const std::vector<std::pair<std::string, Copy>> all{
      {"checkpoint_by_us", checkpoint_by_us}, {"checkpoint_by_rocksdb", checkpoint_by_rocksdb}, {"backup", backup}};
  return all;
}

}  // namespace spillway::clients
