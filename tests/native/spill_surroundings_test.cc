// What surrounds the library: other files in its directory, RocksDB's encrypted file system, other databases of the
// process, and plain RocksDB afterwards.
#include <gtest/gtest.h>
#include <rocksdb/convenience.h>
#include <rocksdb/env_encryption.h>
#include <rocksdb/file_system.h>
#include <rocksdb/listener.h>
#include <rocksdb/sst_file_writer.h>
#include <rocksdb/write_buffer_manager.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <functional>
#include <future>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

#include "base/steps.h"
#include "spill/compat/db_out.h"
#include "spill/compat/rocksdb_version.h"
#include "spill/main_db/temporary_tables.h"
#include "spillway/db.h"
#include "temporary_directory.h"

namespace spillway::clients {
namespace {

using rocksdb::Status;

constexpr int kLargeKeys = 30;
constexpr std::size_t kLargeValue = 100'000;  // as many as are ingested, not put back

class SpillSurroundings : public ::testing::Test {
 protected:
  SpillSurroundings() { options_.create_if_missing = true; }

  Status try_open() {
    db_.reset();
    DB* db = nullptr;
    const Status status = DB::Open(options_, spill_, path_, &db);
    db_.reset(db);
    return status;
  }
  void open() {
    const Status status = try_open();
    ASSERT_TRUE(status.ok()) << status.ToString();
  }
  Status try_open_again() {
    DB* db = nullptr;
    const Status status = DB::Open(options_, spill_, path_, &db);
    delete db;
    return status;
  }
  void open_plain(std::unique_ptr<rocksdb::DB>* plain, const std::string& path) {
    rocksdb::DB* db = nullptr;
    const Status status = rocksdb::DB::Open(options_, path, spill::DbOut(&db));
    plain->reset(db);
    ASSERT_TRUE(status.ok()) << status.ToString();
  }
  void divert_much() {
    db_->SetDiversion(Diversion::always);
    for (int i = 0; i < kLargeKeys; ++i) {
      ASSERT_TRUE(db_->Put({}, "large" + std::to_string(i), std::string(kLargeValue, 'v')).ok());
    }
    db_->SetDiversion(Diversion::never);
  }
  static void expect_much(rocksdb::DB& db) {
    for (int i = 0; i < kLargeKeys; ++i) {
      std::string value;
      const Status status = db.Get({}, "large" + std::to_string(i), &value);
      EXPECT_TRUE(status.ok()) << status.ToString();
      EXPECT_EQ(value.size(), kLargeValue);
    }
  }
  std::uint64_t property(const std::string& name) {
    std::uint64_t value = 0;
    EXPECT_TRUE(db_->GetIntProperty("spillway." + name, &value)) << name;
    return value;
  }
  void close() {
    const Status status = db_->Close();
    ASSERT_TRUE(status.ok()) << status.ToString();
  }

  const TemporaryDirectory directory_;
  const std::string path_ = directory_.path("db");
  rocksdb::Options options_;
  SpillOptions spill_;
  std::unique_ptr<DB> db_;
};

// --- Other files in <db>/spill

TEST(TemporaryTables, KnowTheirOwnNamesAndNoOther) {
  for (const std::string& own : {spill::sorted_file_name(12, 0), spill::sorted_file_name(1, 70000, 3),
                                 spill::external_copy_name(0), spill::external_copy_name(17)}) {
    EXPECT_TRUE(spill::is_temporary_table(own)) << own;
  }
  for (const char* other : {"000012.sst", "12.sst", "-1.sst", "1-.sst", "1--2.sst", "1-2-3-4.sst", "a-1.sst", "1-b.sst",
                            "external-.sst", "external-x.sst", "my-1.sst", "1-2.ldb", "1-2", ".sst", ""}) {
    EXPECT_FALSE(spill::is_temporary_table(other)) << other;
  }
}

TEST_F(SpillSurroundings, OpeningRemovesOnlyItsOwnTables) {
  open();
  close();
  db_.reset();
  const auto create = [&](const std::string& name) { std::ofstream(path_ + "/spill/" + name) << "of somebody"; };
  for (const char* name : {"mine.sst", "000007.sst", "1-0.sst", "external-3.sst"}) create(name);
  open();
  EXPECT_TRUE(std::filesystem::exists(path_ + "/spill/mine.sst"));
  EXPECT_TRUE(std::filesystem::exists(path_ + "/spill/000007.sst"));
  EXPECT_FALSE(std::filesystem::exists(path_ + "/spill/1-0.sst"));
  EXPECT_FALSE(std::filesystem::exists(path_ + "/spill/external-3.sst"));
}

TEST_F(SpillSurroundings, RocksdbsDirectoriesAreNotSpillways) {
  spill_.path = directory_.path("store");
  const std::string relative = std::filesystem::relative(path_ + "/spill").string();
  const std::string link = directory_.path("link");
  std::filesystem::create_directories(path_ + "/spill");
  std::filesystem::create_directory_symlink(path_ + "/spill", link);
  for (const std::string& ours : {path_ + "/spill", path_ + "/./spill/", relative, link, link + "/", spill_.path}) {
    options_.db_paths = {{ours, 1 << 30}};
    EXPECT_TRUE(try_open().IsInvalidArgument()) << "db_paths " << ours;
    options_.db_paths.clear();
    options_.cf_paths = {{ours, 1 << 30}};
    EXPECT_TRUE(try_open().IsInvalidArgument()) << "cf_paths " << ours;
    options_.cf_paths.clear();
    options_.wal_dir = ours;
    EXPECT_TRUE(try_open().IsInvalidArgument()) << "wal_dir " << ours;
    options_.wal_dir.clear();
  }
  options_.db_paths = {{path_ + "/spilled", 1 << 30}};
  EXPECT_TRUE(try_open().ok());
}

// --- RocksDB's encrypted file system appends a header to a file that is reopened.

class SpillEncrypted : public SpillSurroundings {
 protected:
  SpillEncrypted() {
    std::shared_ptr<rocksdb::BlockCipher> cipher;
    EXPECT_TRUE(rocksdb::BlockCipher::CreateFromString(rocksdb::ConfigOptions(), "ROT13", &cipher).ok());
    const auto provider = rocksdb::EncryptionProvider::NewCTRProvider(cipher);
    env_ = rocksdb::NewCompositeEnv(rocksdb::NewEncryptedFS(rocksdb::FileSystem::Default(), provider));
    options_.env = env_.get();
  }
  ~SpillEncrypted() override { db_.reset(); }
  void write_table(const std::string& path) {
    rocksdb::SstFileWriter writer(rocksdb::EnvOptions(), options_);
    ASSERT_TRUE(writer.Open(path).ok());
    ASSERT_TRUE(writer.Put("external", "value").ok());
    ASSERT_TRUE(writer.Finish().ok());
  }

  std::unique_ptr<rocksdb::Env> env_;
};

TEST_F(SpillEncrypted, WhatComesBackIsThereAfterReopening) {
  open();
  divert_much();
  ASSERT_TRUE(db_->Rollback().ok());
  EXPECT_EQ(property("rollbacks-by-ingest"), 1U);
  close();
  open();
  expect_much(*db_);
}

TEST_F(SpillEncrypted, ACheckpointOfDivertedWritesCanBeOpened) {
  open();
  divert_much();
  const std::string copy = directory_.path("copy");
  ASSERT_TRUE(db_->CreateCheckpoint(copy).ok());
  std::unique_ptr<rocksdb::DB> plain;
  open_plain(&plain, copy);
  expect_much(*plain);
}

TEST_F(SpillEncrypted, AUsersFileIsCopiedOrRefused) {
  open();
  const std::string file = path_ + "/external.table";
  write_table(file);
  rocksdb::IngestExternalFileOptions moves;
  moves.move_files = true;
  Status status = db_->IngestExternalFile({file}, moves);
  EXPECT_TRUE(status.IsNotSupported() || SPILLWAY_ROCKSDB_AT_LEAST(9, 11))
      << "RocksDB reopens it and makes it unreadable";
  if (status.IsNotSupported()) status = db_->IngestExternalFile({file}, {});
  EXPECT_TRUE(status.ok()) << status.ToString();
  close();
  open();
  std::string value;
  EXPECT_TRUE(db_->Get({}, "external", &value).ok());
  EXPECT_EQ(value, "value");
}

// --- Afterwards

TEST_F(SpillSurroundings, PlainRocksdbOpensWhatWasBroughtBackByIngestion) {
  for (const RollbackPolicy policy :
       {RollbackPolicy::off, RollbackPolicy::lazy, RollbackPolicy::eager, RollbackPolicy::adaptive}) {
    spill_.rollback = policy;
    open();
    ASSERT_TRUE(db_->Put({}, "main", "value").ok());  // so that a note orders what is ingested behind it
    divert_much();
    ASSERT_TRUE(db_->Rollback().ok());
    EXPECT_EQ(property("live-generations"), 0U);
    close();
    db_.reset();
    std::unique_ptr<rocksdb::DB> plain;
    open_plain(&plain, path_);
    if (plain != nullptr) expect_much(*plain);
  }
}

TEST_F(SpillSurroundings, AClosedDatabaseCanBeOpenedBeforeItIsDeleted) {
  open();
  divert_much();
  close();
  std::unique_ptr<DB> closed = std::move(db_);
  open();
  expect_much(*db_);
  ASSERT_TRUE(db_->Rollback().ok());
  divert_much();  // a generation of the new opening, whose number the old one may have had
  closed.reset();
  expect_much(*db_);
  EXPECT_TRUE(try_open_again().IsIOError()) << "the lock is the new opening's";
  close();
  open();
  expect_much(*db_);
}

// --- Beside others

// Another database keeps the shared memory full, so writes through RocksDB's log wait, and nothing shows it.
TEST_F(SpillSurroundings, ARollbackEndsWhileAnotherDatabaseFillsTheWriteBufferManager) {
  options_.write_buffer_manager = std::make_shared<rocksdb::WriteBufferManager>(4 << 20, nullptr, true);
  options_.write_buffer_size = 64 << 20;
  std::unique_ptr<rocksdb::DB> other;
  open_plain(&other, directory_.path("other"));
  open();
  ASSERT_TRUE(db_->Put({}, "a", "main").ok());
  ASSERT_TRUE(other->PauseBackgroundWork().ok());
  rocksdb::WriteOptions at_once;
  at_once.no_slowdown = true;
  int writes = 0;
  while (other->Put(at_once, std::to_string(writes), std::string(10'000, 'x')).ok() && writes < 10'000) ++writes;
  ASSERT_LT(writes, 10'000) << "it is not full";
  ASSERT_TRUE(db_->Put({}, "a", "diverted").ok());
  EXPECT_EQ(property("live-entries"), 1U);
  std::future<Status> rollback = std::async(std::launch::async, [&] { return db_->Rollback(); });
  EXPECT_EQ(rollback.wait_for(std::chrono::seconds(30)), std::future_status::ready);
  EXPECT_TRUE(other->ContinueBackgroundWork().ok());
  EXPECT_TRUE(rollback.get().ok());
  std::string value;
  EXPECT_TRUE(db_->Get({}, "a", &value).ok());
  EXPECT_EQ(value, "diverted");
}

class OnManualCompaction final : public rocksdb::EventListener {
 public:
  void OnCompactionBegin(rocksdb::DB*, const rocksdb::CompactionJobInfo& info) override {
    if (info.compaction_reason != rocksdb::CompactionReason::kManualCompaction) return;
    if (const auto once = std::exchange(action, nullptr)) once();
  }
  std::function<void()> action;
};

class CompactsOnceTheGateIsClosed final : public steps::Watcher {
 public:
  explicit CompactsOnceTheGateIsClosed(DB& db) : db_(db) {}
  void reached(std::string_view step) override {
    if (step != "spill.rollback.gate_closed" || was_requested_.exchange(true)) return;
    EXPECT_TRUE(db_.SetOptions({{"level0_file_num_compaction_trigger", "1"}}).ok());
    std::this_thread::sleep_for(std::chrono::milliseconds(300));  // for it to begin and be held
  }
  bool was_requested() const { return was_requested_; }

 private:
  DB& db_;
  std::atomic<bool> was_requested_{false};
};

// RocksDB would move a file to the target level by what it knew before an ingestion that ends meanwhile.
TEST_F(SpillSurroundings, NothingIsBroughtBackWhileACompactionChangesALevel) {
  const auto listener = std::make_shared<OnManualCompaction>();
  options_.listeners.push_back(listener);
  spill_.rollback = RollbackPolicy::off;
  open();
  for (const char* value : {"oldest", "old"}) {
    ASSERT_TRUE(db_->Put({}, "large1", value).ok());
    ASSERT_TRUE(db_->Put({}, "z", value).ok());
    ASSERT_TRUE(db_->Flush({}).ok());
  }
  std::future<Status> rollback;
  std::atomic<bool> has_ended_before{false};
  listener->action = [&] {
    divert_much();
    rollback = std::async(std::launch::async, [&] { return db_->Rollback(); });
    has_ended_before = rollback.wait_for(std::chrono::milliseconds(500)) == std::future_status::ready;
  };
  rocksdb::CompactRangeOptions to_level;
  to_level.change_level = true;
  to_level.target_level = 1;
  const Status status = db_->CompactRange(to_level, nullptr, nullptr);
  EXPECT_TRUE(status.ok()) << status.ToString();
  ASSERT_TRUE(rollback.valid()) << "no compaction was run";
  EXPECT_FALSE(has_ended_before);
  EXPECT_TRUE(rollback.get().ok());
  expect_much(*db_);
}

// Without threads of high priority RocksDB flushes where it compacts, and a compaction is held for the ingestion that
// waits for the flush.
TEST_F(SpillSurroundings, ARollbackEndsWhereRocksdbFlushesInThePoolOfCompactions) {
  rocksdb::Env* const env = options_.env;
  options_.max_background_jobs = 1;
  spill_.rollback = RollbackPolicy::off;
  spill_.put_back_bytes = 0;
  open();
  const auto of_high_priority = env->GetBackgroundThreads(rocksdb::Env::HIGH);
  const auto of_low_priority = env->GetBackgroundThreads(rocksdb::Env::LOW);
  env->SetBackgroundThreads(0, rocksdb::Env::HIGH);
  env->SetBackgroundThreads(1, rocksdb::Env::LOW);
  ASSERT_TRUE(db_->Put({}, "a", "oldest").ok());
  ASSERT_TRUE(db_->Flush({}).ok());
  ASSERT_TRUE(db_->Put({}, "a", "old").ok());
  db_->SetDiversion(Diversion::always);
  ASSERT_TRUE(db_->Put({}, "a", "diverted").ok());
  db_->SetDiversion(Diversion::never);
  CompactsOnceTheGateIsClosed compaction(*db_);
  steps::watch(&compaction);
  std::future<Status> rollback = std::async(std::launch::async, [&] { return db_->Rollback(); });
  EXPECT_EQ(rollback.wait_for(std::chrono::seconds(30)), std::future_status::ready);
  EXPECT_TRUE(rollback.get().ok());
  steps::watch(nullptr);
  EXPECT_TRUE(compaction.was_requested());
  std::string value;
  EXPECT_TRUE(db_->Get({}, "a", &value).ok());
  EXPECT_EQ(value, "diverted");
  env->SetBackgroundThreads(of_high_priority, rocksdb::Env::HIGH);
  env->SetBackgroundThreads(of_low_priority, rocksdb::Env::LOW);
}

}  // namespace
}  // namespace spillway::clients
