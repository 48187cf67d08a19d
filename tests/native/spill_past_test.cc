// Uses of RocksDB that bypass spillway::DB: RocksDB itself, its utilities, its lists of files, its estimates.
#include <gtest/gtest.h>
#include <rocksdb/convenience.h>
#include <rocksdb/merge_operator.h>
#include <rocksdb/metadata.h>
#include <rocksdb/stats_history.h>
#include <rocksdb/transaction_log.h>
#include <rocksdb/utilities/backup_engine.h>
#include <rocksdb/utilities/checkpoint.h>
#include <rocksdb/utilities/debug.h>
#include <rocksdb/utilities/transaction.h>
#include <rocksdb/utilities/transaction_db.h>
#include <rocksdb/utilities/write_batch_with_index.h>

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "at_each_step.h"
#include "base/steps.h"
#include "spill/compat/db_out.h"
#include "spill/compat/rocksdb_calls.h"
#include "spill/compat/rocksdb_version.h"
#include "spillway/db.h"
#include "temporary_directory.h"

namespace spillway::clients {
namespace {

using rocksdb::ReadOptions;
using rocksdb::Slice;
using rocksdb::Status;
using rocksdb::WriteOptions;

class Kinds final : public SpillListener {
 public:
  void on_spill_event(const SpillEvent& event) override {
    const std::lock_guard lock(mutex_);
    ++seen_[event.kind];
  }
  int count(SpillEvent::Kind kind) {
    const std::lock_guard lock(mutex_);
    return seen_[kind];
  }

 private:
  std::mutex mutex_;
  std::map<SpillEvent::Kind, int> seen_;
};

class SpillPast : public ::testing::Test {
 protected:
  SpillPast() {
    options_.create_if_missing = true;
    spill_.rollback = RollbackPolicy::off;
    spill_.poll_ms = 5;
    spill_.listeners = {kinds_};
    open();
    db_->SetDiversion(Diversion::always);
  }
  void open() {
    db_.reset();
    DB* db = nullptr;
    const Status status = DB::Open(options_, spill_, directory_.path("db"), &db);
    ASSERT_TRUE(status.ok()) << status.ToString();
    db_.reset(db);
  }
  void put(const std::string& key, const std::string& value) {
    const Status status = db_->Put(WriteOptions(), key, value);
    ASSERT_TRUE(status.ok()) << status.ToString();
  }
  static std::string get(rocksdb::DB& db, const std::string& key) {
    std::string value;
    const Status status = db.Get(ReadOptions(), key, &value);
    return status.ok() ? value : status.IsNotFound() ? "-" : status.ToString();
  }
  static std::string all(rocksdb::DB& db, rocksdb::ColumnFamilyHandle* family = nullptr) {
    const std::unique_ptr<rocksdb::Iterator> iterator(
        db.NewIterator(ReadOptions(), family != nullptr ? family : db.DefaultColumnFamily()));
    std::string text;
    for (iterator->SeekToFirst(); iterator->Valid(); iterator->Next()) {
      text += iterator->key().ToString() + "=" + iterator->value().ToString() + " ";
    }
    return text + (iterator->status().ok() ? "" : iterator->status().ToString());
  }
  std::uint64_t number(const std::string& property) {
    std::uint64_t value = 0;
    EXPECT_TRUE(db_->GetIntProperty(property, &value)) << property;
    return value;
  }
  std::unique_ptr<rocksdb::Checkpoint> checkpoint() {
    rocksdb::Checkpoint* made = nullptr;
    EXPECT_TRUE(rocksdb::Checkpoint::Create(db_.get(), &made).ok());
    return std::unique_ptr<rocksdb::Checkpoint>(made);
  }

  TemporaryDirectory directory_;
  rocksdb::Options options_;
  SpillOptions spill_;
  const std::shared_ptr<Kinds> kinds_ = std::make_shared<Kinds>();
  std::unique_ptr<DB> db_;
};

// --- RocksDB itself

// A transaction of a wrapped database takes its snapshot from RocksDB and reads through spillway::DB.
TEST_F(SpillPast, RocksdbsSnapshotsAreReadThroughSpillwayDb) {
  put("k", "old");
  const rocksdb::Snapshot* const before = db_->GetSnapshot();
  put("k", "older");
  rocksdb::DB* const root = db_->GetRootDB();
  const rocksdb::Snapshot* const of_root = root->GetSnapshot();
  put("k", "new");
  const auto expect = [&](const rocksdb::Snapshot* snapshot, const std::string& value) {
    ReadOptions options;
    options.snapshot = snapshot;
    std::string found;
    EXPECT_TRUE(db_->Get(options, "k", &found).ok());
    EXPECT_EQ(found, value);
    EXPECT_TRUE(db_->MultiGet(options, {"k"}, std::make_unique<std::vector<std::string>>().get())[0].ok());
    const std::unique_ptr<rocksdb::Iterator> iterator(db_->NewIterator(options));
    iterator->SeekToFirst();
    ASSERT_TRUE(iterator->Valid());
    EXPECT_EQ(iterator->value().ToString(), value);
  };
  expect(of_root, "older");
  expect(before, "old");
  db_->ReleaseSnapshot(before);
  db_->ReleaseSnapshot(of_root);
  EXPECT_EQ(number("rocksdb.num-snapshots"), 0U);
  EXPECT_TRUE(db_->Close().ok());
}

TEST_F(SpillPast, FamiliesThatWereMadePastUsAreWrittenTo) {
  rocksdb::DB* const root = db_->GetRootDB();
  rocksdb::ColumnFamilyOptions merges;
  ASSERT_TRUE(rocksdb::MergeOperator::CreateFromString({}, "uint64add", &merges.merge_operator).ok());
  rocksdb::ColumnFamilyHandle* made = nullptr;
  ASSERT_TRUE(root->CreateColumnFamily(merges, "made", &made).ok());
  const std::string one("\1\0\0\0\0\0\0\0", 8);
  EXPECT_TRUE(db_->Merge({}, made, "count", one).ok());
  for (const bool ignores : {false, true}) {
    WriteOptions options;
    options.ignore_missing_column_families = ignores;
    ASSERT_TRUE(db_->Put(options, made, "single", "1").ok());
    rocksdb::WriteBatch batch;
    ASSERT_TRUE(batch.SingleDelete(made, "single").ok());
    ASSERT_TRUE(batch.Put(made, "k", "1").ok());
    EXPECT_TRUE(db_->Write(options, &batch).ok());
    std::string value;
    EXPECT_TRUE(db_->Get({}, made, "single", &value).IsNotFound());
    EXPECT_TRUE(db_->Get({}, made, "k", &value).ok());
    ASSERT_TRUE(db_->Delete({}, made, "k").ok());
  }
  ASSERT_TRUE(root->DestroyColumnFamilyHandle(made).ok());
}

// A checkpoint consists of tables and logs, so it must flush writes that are in neither.
TEST_F(SpillPast, ACheckpointHasWritesToRocksdbWithoutALog) {
  rocksdb::DB* const root = db_->GetRootDB();
  WriteOptions unlogged;
  unlogged.disableWAL = true;
  ASSERT_TRUE(root->Put(unlogged, "k", "1").ok());
  ASSERT_TRUE(db_->CreateCheckpoint(directory_.path("copy")).ok());
  rocksdb::DB* copy = nullptr;
  ASSERT_TRUE(rocksdb::DB::Open({}, directory_.path("copy"), spill::DbOut(&copy)).ok());
  const std::unique_ptr<rocksdb::DB> copied(copy);
  EXPECT_EQ(get(*copied, "k"), "1");
}

TEST_F(SpillPast, RocksdbItselfHasEverythingAndKeepsIt) {
  for (const bool root : {true, false}) {
    open();
    db_->SetDiversion(Diversion::always);
    put("a", "spilled");
    EXPECT_EQ(number("spillway.root-handed-out"), 0U);
    rocksdb::DB* const rocks = root ? db_->GetRootDB() : db_->GetBaseDB();
    ASSERT_NE(rocks, nullptr);
    EXPECT_NE(rocks, db_.get());
    EXPECT_EQ(get(*rocks, "a"), "spilled");
    put("b", "later");
    db_->SetDiversion(Diversion::always);
    put("c", "later");
    EXPECT_EQ(get(*rocks, "b") + get(*rocks, "c"), "laterlater");
    ASSERT_TRUE(rocks->Put(WriteOptions(), "a", "past").ok());
    EXPECT_EQ(get(*db_, "a"), "past");
    EXPECT_EQ(number("spillway.root-handed-out"), 1U);
    EXPECT_EQ(number("spillway.live-entries"), 0U);
    EXPECT_EQ(db_->GetRootDB(), rocks);
  }
  EXPECT_EQ(kinds_->count(SpillEvent::Kind::root_handed_out), 2);
  open();  // the next opening diverts again
  db_->SetDiversion(Diversion::always);
  put("d", "spilled");
  EXPECT_EQ(number("spillway.live-entries"), 1U);
}

TEST_F(SpillPast, RocksdbsInfoLogRecordsThatItWasHandedOut) {
  ASSERT_NE(db_->GetRootDB(), nullptr);
  db_.reset();
  std::string log;
  ASSERT_TRUE(rocksdb::ReadFileToString(rocksdb::Env::Default(), directory_.path("db") + "/LOG", &log).ok());
  EXPECT_NE(log.find("spillway: RocksDB itself was asked for"), std::string::npos);
}

TEST_F(SpillPast, ACopyOfRocksdbItselfIsAPlainDatabase) {
  put("a", "spilled");
  rocksdb::Checkpoint* made = nullptr;
  ASSERT_TRUE(rocksdb::Checkpoint::Create(db_->GetRootDB(), &made).ok());
  const std::unique_ptr<rocksdb::Checkpoint> owned_checkpoint(made);
  ASSERT_TRUE(owned_checkpoint->CreateCheckpoint(directory_.path("copy")).ok());
  rocksdb::DB* plain = nullptr;
  const Status status = rocksdb::DB::Open(options_, directory_.path("copy"), spill::DbOut(&plain));
  ASSERT_TRUE(status.ok()) << status.ToString();
  const std::unique_ptr<rocksdb::DB> owned(plain);
  EXPECT_EQ(all(*plain), "a=spilled ");
}

TEST_F(SpillPast, ABackupAfterRocksdbWasHandedOutLeavesAPlainDatabase) {
  put("a", "spilled");
  rocksdb::DB* const root = db_->GetRootDB();
  rocksdb::BackupEngine* engine = nullptr;
  ASSERT_TRUE(rocksdb::BackupEngine::Open(rocksdb::Env::Default(),
                                          rocksdb::BackupEngineOptions(directory_.path("backups")), &engine)
                  .ok());
  const std::unique_ptr<rocksdb::BackupEngine> owned_engine(engine);
  ASSERT_TRUE(engine->CreateNewBackup(db_.get()).ok());
  rocksdb::Checkpoint* made = nullptr;
  ASSERT_TRUE(rocksdb::Checkpoint::Create(root, &made).ok());
  const std::unique_ptr<rocksdb::Checkpoint> owned_checkpoint(made);
  ASSERT_TRUE(made->CreateCheckpoint(directory_.path("copy")).ok());
  rocksdb::DB* plain = nullptr;
  const Status status = rocksdb::DB::Open(options_, directory_.path("copy"), spill::DbOut(&plain));
  ASSERT_TRUE(status.ok()) << status.ToString();
  const std::unique_ptr<rocksdb::DB> owned(plain);
  EXPECT_EQ(all(*plain), "a=spilled ");
}

TEST_F(SpillPast, AWriteThatWasAboutToBeDivertedIsNot) {
  rocksdb::DB* rocks = nullptr;
  {
    const AtStep handing_out("spill.write.before_divert", [&] { rocks = db_->GetRootDB(); });
    put("a", "late");
  }
  ASSERT_NE(rocks, nullptr);
  EXPECT_EQ(number("spillway.live-entries"), 0U);
  EXPECT_EQ(get(*rocks, "a"), "late");
}

TEST_F(SpillPast, NoWriteIsDivertedWhileTheUserHoldsRocksdb) {
  std::atomic<bool> ends{false};
  std::vector<std::thread> writers;
  std::atomic<int> written{0};
  for (int t = 0; t < 3; ++t) {
    writers.emplace_back([&, t] {
      for (int i = 0; !ends; ++i) {
        ASSERT_TRUE(db_->Put(WriteOptions(), std::to_string(t) + "." + std::to_string(i % 50), std::to_string(i)).ok());
        ++written;
      }
    });
  }
  while (written < 100) std::this_thread::yield();
  rocksdb::DB* const rocks = db_->GetRootDB();
  ASSERT_NE(rocks, nullptr);
  const int before = written;
  while (written < before + 300) std::this_thread::yield();
  ends = true;
  for (std::thread& writer : writers) writer.join();
  EXPECT_EQ(number("spillway.live-entries"), 0U);
  EXPECT_EQ(all(*rocks), all(*db_));
}

TEST_F(SpillPast, SnapshotsAreRocksdbsOwnAfterwards) {
  put("a", "1");
  const rocksdb::Snapshot* const before = db_->GetSnapshot();
  put("a", "2");
  rocksdb::DB* const rocks = db_->GetRootDB();
  const rocksdb::Snapshot* const after = db_->GetSnapshot();
  put("a", "3");
  ReadOptions at;
  std::string value;
  at.snapshot = after;
  for (rocksdb::DB* one : {rocks, static_cast<rocksdb::DB*>(db_.get())}) {
    ASSERT_TRUE(one->Get(at, "a", &value).ok());
    EXPECT_EQ(value, "2");
  }
  at.snapshot = before;
  ASSERT_TRUE(db_->Get(at, "a", &value).ok());
  EXPECT_EQ(value, "1");
  db_->ReleaseSnapshot(before);
  db_->ReleaseSnapshot(after);
}

TEST_F(SpillPast, AWrappedTransactionDatabaseSeesAndKeepsEverything) {
  options_.write_buffer_size = 64 << 20;
  open();
  db_->SetDiversion(Diversion::always);
  put("a", "spilled");
  rocksdb::TransactionDBOptions transactions;
  rocksdb::TransactionDB* wrapped = nullptr;
  rocksdb::Options of_transactions = options_;
  DB* const raw = db_.get();
  const Status status =
      rocksdb::TransactionDB::WrapStackableDB(db_.get(), transactions, {}, {raw->DefaultColumnFamily()}, &wrapped);
  ASSERT_TRUE(status.ok()) << status.ToString();
  (void)db_.release();
  const std::unique_ptr<rocksdb::TransactionDB> owned(wrapped);
  const std::unique_ptr<rocksdb::Transaction> one(wrapped->BeginTransaction(WriteOptions()));
  std::string value;
  ASSERT_TRUE(one->GetForUpdate(ReadOptions(), "a", &value).ok());
  EXPECT_EQ(value, "spilled");
  ASSERT_TRUE(one->Put("a", "committed").ok());
  ASSERT_TRUE(one->Commit().ok());
  EXPECT_EQ(get(*wrapped, "a"), "committed");
  ASSERT_TRUE(wrapped->Put(WriteOptions(), "a", "later").ok());
  EXPECT_EQ(get(*raw, "a"), "later");
  EXPECT_EQ(raw->GetSpillStatistics().live_entries, 0U);
}

TEST_F(SpillPast, ABatchWithAnIndexReadsManyKeys) {
  put("a", "spilled");
  rocksdb::WriteBatchWithIndex batch;
  ASSERT_TRUE(batch.Put("b", "batch").ok());
  const std::vector<Slice> keys{"a", "b", "c"};
  std::vector<rocksdb::PinnableSlice> values(3);
  std::vector<Status> statuses(3);
  batch.MultiGetFromBatchAndDB(db_.get(), ReadOptions(), db_->DefaultColumnFamily(), 3, keys.data(), values.data(),
                               statuses.data(), false);
  ASSERT_TRUE(statuses[0].ok()) << statuses[0].ToString();
  EXPECT_EQ(values[0].ToString() + values[1].ToString(), "spilledbatch");
  EXPECT_TRUE(statuses[2].IsNotFound());
}

// Reading one key does not hand out RocksDB up to version 8.5. Later versions read RocksDB itself.
TEST_F(SpillPast, ABatchWithAnIndexReadsOneKeyAndIterates) {
  put("a", "spilled");
  put("c", "spilled");
  rocksdb::WriteBatchWithIndex batch;
  ASSERT_TRUE(batch.Put("b", "batch").ok());
  std::string value;
  ASSERT_TRUE(batch.GetFromBatchAndDB(db_.get(), ReadOptions(), "a", &value).ok());
  EXPECT_EQ(value, "spilled");
  const std::unique_ptr<rocksdb::Iterator> iterator(batch.NewIteratorWithBase(db_->NewIterator(ReadOptions())));
  std::string text;
  for (iterator->SeekToFirst(); iterator->Valid(); iterator->Next()) text += iterator->key().ToString();
  EXPECT_EQ(text, "abc");
  EXPECT_EQ(number("spillway.root-handed-out"), SPILLWAY_ROCKSDB_AT_LEAST(8, 6) ? 1U : 0U);
}

TEST_F(SpillPast, FunctionsThatTakeADatabaseSeeEverything) {
  put("a", "spilled");
  put("b", "spilled");
  std::vector<rocksdb::KeyVersion> versions;
  ASSERT_TRUE(rocksdb::GetAllKeyVersions(db_.get(), {}, {}, 100, &versions).ok());
  ASSERT_EQ(versions.size(), 2U);
  EXPECT_EQ(versions[0].value + versions[1].value, "spilledspilled");
  ASSERT_TRUE(db_->Flush(rocksdb::FlushOptions()).ok());
  ASSERT_TRUE(db_->CompactRange(rocksdb::CompactRangeOptions(), nullptr, nullptr).ok());
  const Slice begin("a");
  const Slice end("c");
  ASSERT_TRUE(rocksdb::DeleteFilesInRange(db_.get(), db_->DefaultColumnFamily(), &begin, &end).ok());
  EXPECT_EQ(all(*db_), "");
  rocksdb::CancelAllBackgroundWork(db_.get(), true);
}

// --- Lists of files

TEST_F(SpillPast, AnExportedColumnFamilyHoldsWhatWasAcknowledgedBefore) {
  for (const std::uint64_t put_back_bytes : {std::uint64_t{0}, std::uint64_t{1} << 20}) {
    const std::string round = std::to_string(put_back_bytes);
    spill_.put_back_bytes = put_back_bytes;
    open();
    put("main" + round, "1");
    db_->SetDiversion(Diversion::always);
    put("spilled" + round, "2");
    const std::string expected = all(*db_);
    rocksdb::ExportImportFilesMetaData* made = nullptr;
    const Status exported =
        checkpoint()->ExportColumnFamily(db_->DefaultColumnFamily(), directory_.path("export" + round), &made);
    ASSERT_TRUE(exported.ok()) << exported.ToString();
    const std::unique_ptr<rocksdb::ExportImportFilesMetaData> metadata(made);
    put("after" + round, "3");
    rocksdb::ColumnFamilyHandle* imported = nullptr;
    const Status status = db_->CreateColumnFamilyWithImport(options_, "imported" + round,
                                                            rocksdb::ImportColumnFamilyOptions(), *metadata, &imported);
    ASSERT_TRUE(status.ok()) << status.ToString();
    EXPECT_EQ(all(*db_, imported), expected);
    ASSERT_TRUE(db_->DropColumnFamily(imported).ok());
    ASSERT_TRUE(db_->DestroyColumnFamilyHandle(imported).ok());
  }
}

TEST_F(SpillPast, ListsOfFilesAreCompleteForAThreadThatCopiesThem) {
  const auto listed = [&] {
    std::vector<rocksdb::LiveFileMetaData> files;
    db_->GetLiveFilesMetaData(&files);
    return files.size();
  };
  put("a", "1");
  EXPECT_EQ(listed(), 0U);
  EXPECT_EQ(number("spillway.live-entries"), 1U);  // a call that only reads costs nothing
  ASSERT_TRUE(db_->DisableFileDeletions().ok());
  std::thread([&] { EXPECT_EQ(listed(), 0U); }).join();
  EXPECT_EQ(listed(), 1U);
  put("b", "2");
  std::vector<rocksdb::ColumnFamilyMetaData> families;
  db_->GetAllColumnFamilyMetaData(&families);
  ASSERT_EQ(families.size(), 1U);
  EXPECT_EQ(families.front().file_count, 2U);
  ASSERT_TRUE(spill::enable_file_deletions(*db_, true).ok());
  put("c", "3");
  EXPECT_EQ(listed(), 2U);
  EXPECT_EQ(number("spillway.live-entries"), 1U);
}

// Tables and MANIFEST are copied and the logs are not, so flushed writes must be in tables.
TEST_F(SpillPast, ListsOfFilesHaveWhatWasFlushedInTables) {
  for (const bool is_back : {false, true}) {
    SCOPED_TRACE(is_back);
    put("k", is_back ? "2" : "1");
    ASSERT_TRUE(db_->Flush({}).ok());
    if (is_back) {
      ASSERT_TRUE(db_->Rollback().ok());
    }
    std::vector<std::string> files;
    std::uint64_t manifest_bytes = 0;
    ASSERT_TRUE(db_->GetLiveFiles(files, &manifest_bytes, /*flush_memtable=*/false).ok());
    std::uint64_t in_memtables = 0;
    ASSERT_TRUE(db_->GetIntProperty("rocksdb.num-entries-active-mem-table", &in_memtables));
    EXPECT_EQ(in_memtables, 0U);
  }
}

// db.h promises a lossless backup from listed tables and from logs that are listed after them.
TEST_F(SpillPast, ListsOfTablesAndOfLogsAreOfOneHistory) {
  ASSERT_TRUE(db_->DisableFileDeletions().ok());
  std::vector<std::string> files;
  std::uint64_t manifest_bytes = 0;
  rocksdb::VectorLogPtr logs;
  ASSERT_TRUE(db_->GetLiveFiles(files, &manifest_bytes).ok());
  put("small", "1");
  EXPECT_TRUE(db_->GetSortedWalFiles(logs).ok()) << "it is put back, and in a log";
  put("large", std::string(2 << 20, 'v'));
  EXPECT_TRUE(db_->GetSortedWalFiles(logs).IsAborted()) << "it is a table that was not listed";
  ASSERT_TRUE(db_->GetLiveFiles(files, &manifest_bytes).ok());
  EXPECT_TRUE(db_->GetSortedWalFiles(logs).ok());
  ASSERT_TRUE(spill::enable_file_deletions(*db_, /*force=*/false).ok());
}

TEST_F(SpillPast, RocksdbsLogsHoldWhatWasAcknowledgedBeforeTheyAreListed) {
  spill_.put_back_bytes = 1 << 20;
  open();
  db_->SetDiversion(Diversion::always);
  put("a", "1");
  rocksdb::VectorLogPtr logs;
  ASSERT_TRUE(db_->GetSortedWalFiles(logs).ok());
  EXPECT_EQ(number("spillway.live-entries"), 0U);
  put("b", "2");
  std::unique_ptr<rocksdb::LogFile> current;
  ASSERT_TRUE(db_->GetCurrentWalFile(&current).ok());
  EXPECT_EQ(number("spillway.live-entries"), 0U);
}

TEST_F(SpillPast, ABackupRestoresWhatWasDiverted) {
  put("a", "spilled");
  rocksdb::BackupEngine* made = nullptr;
  ASSERT_TRUE(rocksdb::BackupEngine::Open(rocksdb::Env::Default(),
                                          rocksdb::BackupEngineOptions(directory_.path("backup")), &made)
                  .ok());
  const std::unique_ptr<rocksdb::BackupEngine> engine(made);
  for (const bool flush : {false, true}) {
    put(flush ? "flushed" : "logged", "spilled");
    const std::string expected = all(*db_);
    const Status status = engine->CreateNewBackup(db_.get(), flush);
    ASSERT_TRUE(status.ok()) << status.ToString();
    put("a", "later");
    const std::string restored = directory_.path(flush ? "restored_flushed" : "restored");
    ASSERT_TRUE(engine->RestoreDBFromLatestBackup(restored, restored).ok());
    rocksdb::DB* plain = nullptr;
    ASSERT_TRUE(rocksdb::DB::Open(options_, restored, spill::DbOut(&plain)).ok());
    const std::unique_ptr<rocksdb::DB> owned(plain);
    EXPECT_EQ(all(*plain), expected);
  }
  EXPECT_EQ(number("spillway.root-handed-out"), 0U);
}

// It may remove sequence numbers from tables, as every compaction may, and RocksDB does not report its beginning.
TEST_F(SpillPast, CompactFilesWaitsForTheEndOfARollback) {
  spill_.put_back_bytes = 0;
  open();
  db_->SetDiversion(Diversion::always);
  put("a", "1");
  ASSERT_TRUE(db_->Rollback().ok());
  put("b", "2");
  std::vector<rocksdb::LiveFileMetaData> files;
  db_->GetLiveFilesMetaData(&files);
  ASSERT_EQ(files.size(), 1U);
  std::atomic<bool> is_compacted{false};
  bool was_compacted_beside = false;
  std::thread compacting;
  const AtStep beside("spill.rollback.ingested", [&] {
    compacting = std::thread([&] {
      const Status status = db_->CompactFiles(rocksdb::CompactionOptions(), {files.front().name}, files.front().level);
      EXPECT_TRUE(status.ok()) << status.ToString();
      is_compacted = true;
    });
    // Long enough for it to end, unless it is held.
    for (int i = 0; i < 100 && !is_compacted; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(10));
    was_compacted_beside = is_compacted;
  });
  ASSERT_TRUE(db_->Rollback().ok());
  compacting.join();
  EXPECT_FALSE(was_compacted_beside);
  EXPECT_EQ(all(*db_), "a=1 b=2 ");
  db_.reset();  // no thread reaches a step any more
}

// --- Numbers

TEST_F(SpillPast, SequenceNumbersGrowWithEveryWriteToEitherStore) {
  rocksdb::SequenceNumber last = db_->GetLatestSequenceNumber();
  for (int i = 0; i < 40; ++i) {
    db_->SetDiversion(i % 4 < 2 ? Diversion::always : Diversion::never);
    put(std::to_string(i), "v");
    const rocksdb::Snapshot* const snapshot = db_->GetSnapshot();
    EXPECT_GT(snapshot->GetSequenceNumber(), last) << i;
    last = db_->GetLatestSequenceNumber();
    EXPECT_EQ(snapshot->GetSequenceNumber(), last) << i;
    db_->ReleaseSnapshot(snapshot);
    if (i % 10 == 9) {
      ASSERT_TRUE(db_->Rollback().ok());
      EXPECT_GE(db_->GetLatestSequenceNumber(), last);
      last = db_->GetLatestSequenceNumber();
    }
  }
}

TEST_F(SpillPast, EstimatesIncludeWhatIsSpilled) {
  const std::string value(1000, 'v');
  db_->SetDiversion(Diversion::never);
  for (int i = 0; i < 100; ++i) put("m" + std::to_string(1000 + i), value);
  rocksdb::ColumnFamilyHandle* other = nullptr;
  ASSERT_TRUE(db_->CreateColumnFamily(options_, "other", &other).ok());
  const std::uint64_t data_before = number("rocksdb.estimate-live-data-size");
  db_->SetDiversion(Diversion::always);
  for (int i = 0; i < 3000; ++i) put("s" + std::to_string(10'000 + i), value);
  for (int i = 0; i < 10; ++i) ASSERT_TRUE(db_->Delete(WriteOptions(), "m" + std::to_string(1000 + i)).ok());
  for (int i = 0; i < 7; ++i) ASSERT_TRUE(db_->Put(WriteOptions(), other, std::to_string(i), "v").ok());

  EXPECT_EQ(number("rocksdb.estimate-num-keys"), 100U + 3000U - 10U);
  std::string text;
  ASSERT_TRUE(db_->GetProperty("rocksdb.estimate-num-keys", &text));
  EXPECT_EQ(text, "3090");
  std::uint64_t count = 0;
  ASSERT_TRUE(db_->GetIntProperty(other, "rocksdb.estimate-num-keys", &count));
  EXPECT_EQ(count, 7U);
  ASSERT_TRUE(db_->GetAggregatedIntProperty("rocksdb.estimate-num-keys", &count));
  EXPECT_EQ(count, 3097U);
  ASSERT_TRUE(db_->GetAggregatedIntProperty("spillway.live-entries", &count));
  EXPECT_EQ(count, 3017U);
  EXPECT_EQ(number("rocksdb.estimate-live-data-size"), data_before + 3000U * 1006U);

  const rocksdb::Range half("s10000", "s11500");
  std::uint64_t size = 0;
  ASSERT_TRUE(db_->GetApproximateSizes(db_->DefaultColumnFamily(), &half, 1, &size).ok());
  EXPECT_EQ(size, 1500U * 1006U);
  db_->GetApproximateMemTableStats(half, &count, &size);
  EXPECT_EQ(count, 1500U);
  EXPECT_EQ(size, 1500U * 1006U);
  const rocksdb::Range nothing("t", "s");  // reversed
  db_->GetApproximateMemTableStats(db_->DefaultColumnFamily(), nothing, &count, &size);
  EXPECT_EQ(count, 0U);
  ASSERT_TRUE(db_->DropColumnFamily(other).ok());
  ASSERT_TRUE(db_->DestroyColumnFamilyHandle(other).ok());
}

// --- Calls that a StackableDB does not forward

TEST_F(SpillPast, CallsThatAStackableDbDoesNotForwardReachRocksdb) {
  put("a", "1");
  EXPECT_TRUE(db_->Resume().ok());
  std::unique_ptr<rocksdb::StatsHistoryIterator> history;
  const Status status = db_->GetStatsHistory(0, ~std::uint64_t{0}, &history);
  EXPECT_FALSE(status.IsNotSupported()) << status.ToString();
  std::vector<rocksdb::ColumnFamilyMetaData> families;
  db_->GetAllColumnFamilyMetaData(&families);
  EXPECT_EQ(families.size(), 1U);
}

}  // namespace
}  // namespace spillway::clients
