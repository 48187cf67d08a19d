// Exports of a column family (Checkpoint::ExportColumnFamily) whose tables a rollback has ingested, and their import.
#include <gtest/gtest.h>
#include <rocksdb/utilities/checkpoint.h>

#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "spill/compat/db_out.h"
#include "spillway/db.h"
#include "temporary_directory.h"

namespace spillway::clients {
namespace {

using rocksdb::Status;

using Metadata = std::unique_ptr<rocksdb::ExportImportFilesMetaData>;

Status export_to(rocksdb::DB& db, const std::string& to, Metadata* metadata) {
  rocksdb::Checkpoint* made = nullptr;
  Status status = rocksdb::Checkpoint::Create(&db, &made);
  const std::unique_ptr<rocksdb::Checkpoint> checkpoint(made);
  rocksdb::ExportImportFilesMetaData* found = nullptr;
  if (status.ok()) status = checkpoint->ExportColumnFamily(db.DefaultColumnFamily(), to, &found);
  metadata->reset(found);
  return status;
}

class SpillExport : public ::testing::Test {
 protected:
  void SetUp() override {
    options_.create_if_missing = true;
    options_.level0_file_num_compaction_trigger = 2;
    SpillOptions spill;
    spill.rollback = RollbackPolicy::off;
    spill.put_back_bytes = 0;  // all by ingestion
    DB* db = nullptr;
    ASSERT_TRUE(DB::Open(options_, spill, directory_.path("db"), &db).ok());
    db_.reset(db);
  }
  // Older versions of the keys in a flushed table, newer ones in an ingested table, which then lie in one level.
  void write_both_ways(const std::vector<std::string>& keys) {
    db_->SetDiversion(Diversion::never);
    for (const std::string& key : keys) ASSERT_TRUE(db_->Put({}, key, "older").ok());
    ASSERT_TRUE(db_->Flush({}).ok());
    db_->SetDiversion(Diversion::always);
    for (const std::string& key : keys) ASSERT_TRUE(db_->Put({}, key, "newer").ok());
    ASSERT_TRUE(db_->Rollback().ok());
  }
  void wait_until_level0_is_empty() {
    std::string files;
    for (int i = 0; i < 1000 && files != "0"; ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
      ASSERT_TRUE(db_->GetProperty("rocksdb.num-files-at-level0", &files));
    }
    ASSERT_EQ(files, "0");
  }
  std::string imported(const rocksdb::ExportImportFilesMetaData& metadata, const std::string& key) {
    rocksdb::DB* opened = nullptr;
    EXPECT_TRUE(rocksdb::DB::Open(options_, directory_.path("importer"), spill::DbOut(&opened)).ok());
    const std::unique_ptr<rocksdb::DB> importer(opened);
    rocksdb::ColumnFamilyHandle* family = nullptr;
    Status status = importer->CreateColumnFamilyWithImport(options_, "imported", {}, metadata, &family);
    std::string value;
    if (status.ok()) status = importer->Get({}, family, key, &value);
    if (family != nullptr) importer->DestroyColumnFamilyHandle(family).PermitUncheckedError();
    return status.ok() ? value : status.ToString();
  }

  TemporaryDirectory directory_{memory_path()};
  rocksdb::Options options_;
  std::unique_ptr<DB> db_;
  Metadata metadata_;
};

TEST_F(SpillExport, AnImportHasTheNewestOfSeveralKeys) {
  write_both_ways({"a", "b"});
  wait_until_level0_is_empty();
  const Status status = export_to(*db_, directory_.path("exported"), &metadata_);
  ASSERT_TRUE(status.ok()) << status.ToString();
  EXPECT_EQ(imported(*metadata_, "b"), "newer");
}

// RocksDB moves tables of one and the same key into level 1 without merging them, and an import confuses their order.
TEST_F(SpillExport, TablesThatAnImportWouldConfuseAreRefused) {
  write_both_ways({"key"});
  wait_until_level0_is_empty();
  const Status refused = export_to(*db_, directory_.path("refused"), &metadata_);
  EXPECT_TRUE(refused.IsAborted()) << refused.ToString();
  EXPECT_NE(refused.ToString().find("CompactRange"), std::string::npos) << refused.ToString();
  std::string value;
  ASSERT_TRUE(db_->Get({}, "key", &value).ok());
  EXPECT_EQ(value, "newer");

  rocksdb::CompactRangeOptions all;
  all.bottommost_level_compaction = rocksdb::BottommostLevelCompaction::kForce;
  ASSERT_TRUE(db_->CompactRange(all, nullptr, nullptr).ok());
  const Status status = export_to(*db_, directory_.path("exported"), &metadata_);
  ASSERT_TRUE(status.ok()) << status.ToString();
  EXPECT_EQ(imported(*metadata_, "key"), "newer");
}

// The same tables without ingestion have their sequence numbers in them.
TEST_F(SpillExport, FlushedTablesOfOneKeyAreExported) {
  db_->SetDiversion(Diversion::never);
  for (const char* value : {"older", "newer"}) {
    ASSERT_TRUE(db_->Put({}, "key", value).ok());
    ASSERT_TRUE(db_->Flush({}).ok());
  }
  wait_until_level0_is_empty();
  const Status status = export_to(*db_, directory_.path("exported"), &metadata_);
  ASSERT_TRUE(status.ok()) << status.ToString();
  EXPECT_EQ(imported(*metadata_, "key"), "newer");
}

}  // namespace
}  // namespace spillway::clients
