// spillway::DB as its user sees it. Random operations are tested in spill_metamorphic_test.cc, crashes in the crash
// tests.
#include <gtest/gtest.h>
#include <rocksdb/comparator.h>
#include <rocksdb/env.h>
#include <rocksdb/file_checksum.h>
#include <rocksdb/file_system.h>
#include <rocksdb/merge_operator.h>
#include <rocksdb/utilities/checkpoint.h>
#include <rocksdb/utilities/options_util.h>
#include <rocksdb/write_batch.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "at_each_step.h"
#include "spill/compat/db_out.h"
#include "spill/live/column_families.h"
#include "spill/stall/detector.h"
#include "spill_rocksdb_of.h"
#include "spillway/db.h"
#include "temporary_directory.h"
#include "wrapped_files.h"

namespace spillway::clients {
namespace {

using rocksdb::ReadOptions;
using rocksdb::WriteOptions;

class AppendOperator final : public rocksdb::AssociativeMergeOperator {
 public:
  bool Merge(const rocksdb::Slice&, const rocksdb::Slice* existing, const rocksdb::Slice& operand, std::string* result,
             rocksdb::Logger*) const override {
    *result = (existing != nullptr ? existing->ToString() + "," : "") + operand.ToString();
    return true;
  }
  const char* Name() const override { return "Append"; }
};

// Bytewise, with eight bytes of timestamp after the key.
class TimestampComparator final : public rocksdb::Comparator {
 public:
  TimestampComparator() : Comparator(8) {}
  using Comparator::Compare;
  int Compare(const rocksdb::Slice& a, const rocksdb::Slice& b) const override { return a.compare(b); }
  const char* Name() const override { return "Timestamp"; }
  void FindShortestSeparator(std::string*, const rocksdb::Slice&) const override {}
  void FindShortSuccessor(std::string*) const override {}
};

// Cannot be synced by one thread while another writes to it.
class OneThreadFile final : public rocksdb::FSWritableFileOwnerWrapper {
 public:
  using FSWritableFileOwnerWrapper::FSWritableFileOwnerWrapper;
  bool IsSyncThreadSafe() const override { return false; }
};

class Events final : public SpillListener {
 public:
  void on_spill_event(const SpillEvent& event) override {
    const std::lock_guard lock(mutex_);
    seen_.insert(name_of(event.kind));
  }
  bool saw(const std::string& name) const {
    const std::lock_guard lock(mutex_);
    return seen_.count(name) > 0;
  }
  // Waits for an event that another thread reports later.
  bool will_see(const std::string& name) const {
    for (int i = 0; i < 1000 && !saw(name); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(10));
    return saw(name);
  }

 private:
  mutable std::mutex mutex_;
  std::set<std::string> seen_;
};

class SpillDb : public ::testing::Test {
 protected:
  SpillDb() {
    options_.create_if_missing = true;
    options_.merge_operator = std::make_shared<AppendOperator>();
    spill_.rollback = RollbackPolicy::off;
    spill_.put_back_bytes = 0;  // so it ingests, unless a test sets another value
    spill_.poll_ms = 5;
    spill_.listeners = {events_};
  }

  void open() {
    db_.reset();
    DB* db = nullptr;
    const rocksdb::Status status = DB::Open(options_, spill_, directory_.path("db"), &db);
    ASSERT_TRUE(status.ok()) << status.ToString();
    db_.reset(db);
  }
  std::string get(const std::string& key, const rocksdb::Snapshot* at = nullptr) {
    ReadOptions options;
    options.snapshot = at;
    std::string value;
    const rocksdb::Status status = db_->Get(options, key, &value);
    return status.ok() ? value : status.IsNotFound() ? "-" : status.ToString();
  }
  void put(const std::string& key, const std::string& value) {
    const rocksdb::Status status = db_->Put(WriteOptions(), key, value);
    ASSERT_TRUE(status.ok()) << status.ToString();
  }
  std::string all(const rocksdb::Snapshot* at = nullptr) {
    ReadOptions options;
    options.snapshot = at;
    const std::unique_ptr<rocksdb::Iterator> iterator(db_->NewIterator(options));
    std::string text;
    for (iterator->SeekToFirst(); iterator->Valid(); iterator->Next()) {
      text += iterator->key().ToString() + "=" + iterator->value().ToString() + " ";
    }
    return text + (iterator->status().ok() ? "" : iterator->status().ToString());
  }
  void roll_back() {
    const rocksdb::Status status = db_->Rollback();
    ASSERT_TRUE(status.ok()) << status.ToString();
  }
  // Each table file in `directory` has the checksum in its MANIFEST. Plain RocksDB checks, without mapped reads: with
  // them RocksDB 7.8.3 computes no checksum of a file.
  void expect_checksums_of(const std::string& directory, std::size_t files) {
    rocksdb::Options options = options_;
    options.allow_mmap_reads = false;
    options.disable_auto_compactions = true;
    rocksdb::DB* plain = nullptr;
    const rocksdb::Status opened = rocksdb::DB::Open(options, directory, spill::DbOut(&plain));
    ASSERT_TRUE(opened.ok()) << opened.ToString();
    const std::unique_ptr<rocksdb::DB> owned(plain);
    std::vector<rocksdb::LiveFileMetaData> metadata;
    plain->GetLiveFilesMetaData(&metadata);
    EXPECT_GE(metadata.size(), files);
    for (const auto& file : metadata) EXPECT_EQ(file.file_checksum_func_name, "FileChecksumCrc32c") << file.name;
    const rocksdb::Status status = plain->VerifyFileChecksums(ReadOptions());
    EXPECT_TRUE(status.ok()) << status.ToString();
  }
  std::uint64_t live_entries() { return db_->GetSpillStatistics().live_entries; }

  TemporaryDirectory directory_;
  rocksdb::Options options_;
  SpillOptions spill_;
  const std::shared_ptr<Events> events_ = std::make_shared<Events>();
  std::unique_ptr<DB> db_;
};

TEST_F(SpillDb, WhatIsDivertedIsFoundAndComesBack) {
  for (const std::uint64_t put_back_bytes : {std::uint64_t{0}, std::uint64_t{1} << 20}) {
    SCOPED_TRACE(put_back_bytes);
    spill_.put_back_bytes = put_back_bytes;
    open();
    put("a", "main");
    put("b", "main");
    put("c", "main");
    db_->SetDiversion(Diversion::always);
    put("b", "spilled");
    put("d", "spilled");
    ASSERT_TRUE(db_->Delete(WriteOptions(), "c").ok());
    EXPECT_EQ(live_entries(), 3U);
    EXPECT_EQ(all(), "a=main b=spilled d=spilled ");
    EXPECT_EQ(get("b") + get("c") + get("d"), "spilled-spilled");
    roll_back();
    EXPECT_EQ(live_entries(), 0U);
    EXPECT_EQ(all(), "a=main b=spilled d=spilled ");
    const SpillStatistics s = db_->GetSpillStatistics();
    EXPECT_EQ(s.rolled_back_entries, 3U);
    EXPECT_EQ(put_back_bytes == 0 ? s.rollbacks_by_ingest : s.rollbacks_by_put, 1U);
    db_.reset();
    rocksdb::Options plain;
    ASSERT_TRUE(rocksdb::DestroyDB(directory_.path("db"), plain).ok());
  }
}

TEST_F(SpillDb, TheNewestVersionWinsInEitherStore) {
  open();
  db_->SetDiversion(Diversion::always);
  put("k", "1");
  db_->SetDiversion(Diversion::automatic);
  put("k", "2");  // must be diverted too, or rollback would bring 1 back over it
  put("m", "main");
  EXPECT_EQ(get("k"), "2");
  EXPECT_EQ(live_entries(), 2U);
  roll_back();
  put("k", "3");
  EXPECT_EQ(live_entries(), 0U);
  EXPECT_EQ(all(), "k=3 m=main ");
  open();
  EXPECT_EQ(all(), "k=3 m=main ");
}

TEST_F(SpillDb, ABatchIsDivertedWholeAndSurvivesReopening) {
  open();
  db_->SetDiversion(Diversion::always);
  put("k", "1");
  db_->SetDiversion(Diversion::automatic);
  rocksdb::WriteBatch batch;
  ASSERT_TRUE(batch.Put("x", "1").ok());
  ASSERT_TRUE(batch.Delete("k").ok());
  ASSERT_TRUE(batch.Put("y", "1").ok());
  ASSERT_TRUE(db_->Write(WriteOptions(), &batch).ok());
  EXPECT_EQ(live_entries(), 4U);
  open();
  EXPECT_EQ(all(), "x=1 y=1 ");
  EXPECT_EQ(live_entries(), 4U);
  roll_back();
  EXPECT_EQ(all(), "x=1 y=1 ");
}

TEST_F(SpillDb, SnapshotsSeeTheirStateBeforeAndAfterARollback) {
  open();
  put("a", "1");
  db_->SetDiversion(Diversion::always);
  put("a", "2");
  const rocksdb::Snapshot* const two = db_->GetSnapshot();
  put("a", "3");
  put("b", "3");
  const rocksdb::Snapshot* const three = db_->GetSnapshot();
  roll_back();
  put("a", "4");
  EXPECT_EQ(get("a", two) + get("b", two), "2-");
  EXPECT_EQ(get("a", three) + get("b", three), "33");
  EXPECT_EQ(all(two), "a=2 ");
  EXPECT_EQ(all(three), "a=3 b=3 ");
  EXPECT_EQ(all(), "a=4 b=3 ");
  db_->ReleaseSnapshot(two);
  db_->ReleaseSnapshot(three);
}

TEST_F(SpillDb, MergesAreEvaluatedInTheStoreOfTheirBase) {
  open();
  put("a", "1");
  db_->SetDiversion(Diversion::always);
  put("b", "1");
  ASSERT_TRUE(db_->Merge(WriteOptions(), "b", "2").ok());  // its base is in the spill store
  ASSERT_TRUE(db_->Merge(WriteOptions(), "a", "2").ok());  // its base is in RocksDB: the merge goes there
  rocksdb::WriteBatch batch;
  ASSERT_TRUE(batch.Merge("a", "3").ok());
  ASSERT_TRUE(batch.Merge("b", "3").ok());  // the whole batch goes to the spill store
  ASSERT_TRUE(batch.Merge("b", "4").ok());
  ASSERT_TRUE(db_->Write(WriteOptions(), &batch).ok());
  EXPECT_EQ(all(), "a=1,2,3 b=1,2,3,4 ");
  roll_back();
  EXPECT_EQ(all(), "a=1,2,3 b=1,2,3,4 ");
}

TEST_F(SpillDb, RangeDeletionsHideWhatIsOlderInBothStores) {
  for (const std::uint64_t put_back_bytes : {std::uint64_t{0}, std::uint64_t{1} << 20}) {
    spill_.put_back_bytes = put_back_bytes;
    open();
    for (const char* key : {"a", "b", "c", "d"}) put(key, "main");
    db_->SetDiversion(Diversion::always);
    put("b", "old");
    ASSERT_TRUE(db_->DeleteRange(WriteOptions(), db_->DefaultColumnFamily(), "b", "d").ok());
    EXPECT_EQ(all(), "a=main d=main ");
    EXPECT_EQ(get("b") + get("c") + get("d"), "--main");
    db_->SetDiversion(Diversion::automatic);
    put("c", "new");  // covered by a diverted range deletion
    EXPECT_EQ(all(), "a=main c=new d=main ");
    EXPECT_EQ(get("b") + get("c") + get("d"), "-newmain");
    roll_back();
    EXPECT_EQ(all(), "a=main c=new d=main ");
    ASSERT_TRUE(db_->DeleteRange(WriteOptions(), db_->DefaultColumnFamily(), "a", "z").ok());
  }
}

// Of a key that was put, deleted and put again, the last version is brought back. A SingleDelete of it must not let the
// first one return.
TEST_F(SpillDb, WhatWasDeletedSinglyStaysDeleted) {
  open();
  put("a", "first");
  ASSERT_TRUE(db_->Flush(rocksdb::FlushOptions()).ok());
  db_->SetDiversion(Diversion::always);
  ASSERT_TRUE(db_->SingleDelete(WriteOptions(), "a").ok());
  put("a", "second");
  roll_back();
  db_->SetDiversion(Diversion::never);
  rocksdb::WriteBatch batch;
  ASSERT_TRUE(batch.SingleDelete("a").ok());
  ASSERT_TRUE(batch.Put("b", "kept").ok());
  ASSERT_TRUE(db_->Write(WriteOptions(), &batch).ok());
  ASSERT_TRUE(db_->Flush(rocksdb::FlushOptions()).ok());
  ASSERT_TRUE(db_->CompactRange(rocksdb::CompactRangeOptions(), nullptr, nullptr).ok());
  EXPECT_EQ(all(), "b=kept ");
}

TEST_F(SpillDb, ASyncWriteWithoutALogIsRefusedInEitherStore) {
  open();
  WriteOptions options;
  options.sync = true;
  options.disableWAL = true;
  for (const Diversion diversion : {Diversion::never, Diversion::always}) {
    db_->SetDiversion(diversion);
    EXPECT_TRUE(db_->Put(options, "a", "1").IsInvalidArgument());
  }
}

TEST_F(SpillDb, ColumnFamiliesAreKeptApartAndMayBeDropped) {
  open();
  rocksdb::ColumnFamilyHandle* other = nullptr;
  ASSERT_TRUE(db_->CreateColumnFamily(rocksdb::ColumnFamilyOptions(), "other", &other).ok());
  db_->SetDiversion(Diversion::always);
  put("k", "default");
  ASSERT_TRUE(db_->Put(WriteOptions(), other, "k", "other").ok());
  std::string value;
  ASSERT_TRUE(db_->Get(ReadOptions(), other, "k", &value).ok());
  EXPECT_EQ(value, "other");
  roll_back();
  ASSERT_TRUE(db_->Get(ReadOptions(), other, "k", &value).ok());
  EXPECT_EQ(value, "other");
  ASSERT_TRUE(db_->Put(WriteOptions(), other, "l", "other").ok());
  ASSERT_TRUE(db_->DropColumnFamily(other).ok());
  EXPECT_TRUE(db_->Put(WriteOptions(), other, "m", "other").IsInvalidArgument());
  ASSERT_TRUE(db_->DestroyColumnFamilyHandle(other).ok());
  roll_back();
  EXPECT_EQ(live_entries(), 0U);
  EXPECT_EQ(all(), "k=default ");
}

TEST_F(SpillDb, ACheckpointsDirectoryIsNamedAsRocksdbHasIt) {
  open();
  db_->SetDiversion(Diversion::always);
  put("a", "spilled");
  ASSERT_TRUE(db_->CreateCheckpoint(directory_.path("copy") + "//").ok());
  EXPECT_TRUE(std::filesystem::exists(directory_.path("copy") + "/CURRENT"));
  for (const std::string& name : {std::string(), std::string("//"), directory_.path("copy") + "/"}) {
    EXPECT_TRUE(db_->CreateCheckpoint(name).IsInvalidArgument()) << name;
  }
}

TEST_F(SpillDb, ACheckpointIsAPlainDatabase) {
  open();
  put("a", "main");
  db_->SetDiversion(Diversion::always);
  put("b", "spilled");
  ASSERT_TRUE(db_->CreateCheckpoint(directory_.path("by_us")).ok());
  put("c", "spilled");
  rocksdb::Checkpoint* made = nullptr;
  ASSERT_TRUE(rocksdb::Checkpoint::Create(db_.get(), &made).ok());
  const std::unique_ptr<rocksdb::Checkpoint> checkpoint(made);
  ASSERT_TRUE(checkpoint->CreateCheckpoint(directory_.path("by_rocksdb")).ok());
  for (const auto& [name, pairs] : {std::pair{"by_us", 2}, std::pair{"by_rocksdb", 3}}) {
    rocksdb::DB* plain = nullptr;
    ASSERT_TRUE(rocksdb::DB::Open(options_, directory_.path(name), spill::DbOut(&plain)).ok());
    const std::unique_ptr<rocksdb::DB> owned(plain);
    const std::unique_ptr<rocksdb::Iterator> iterator(plain->NewIterator(ReadOptions()));
    int count = 0;
    for (iterator->SeekToFirst(); iterator->Valid(); iterator->Next()) ++count;
    EXPECT_EQ(count, pairs) << name;
  }
}

// RocksDB 7.8.3 cannot compute the checksum of a file that it ingests when its reads are mapped.
TEST_F(SpillDb, FilesHaveTheirChecksumsWhateverTheReads) {
  options_.disable_auto_compactions = true;
  options_.file_checksum_gen_factory = rocksdb::GetFileChecksumGenCrc32cFactory();
  spill_.generation_bytes = 16 << 10;
  for (const bool mapped : {false, true}) {
    SCOPED_TRACE(mapped ? "mapped reads" : "plain reads");
    options_.allow_mmap_reads = mapped;
    open();
    db_->SetDiversion(Diversion::always);
    for (int i = 0; i < 64; ++i) put("key" + std::to_string(i), std::string(1000, mapped ? 'm' : 'p'));
    const std::uint64_t generations = db_->GetSpillStatistics().live_generations;
    EXPECT_GT(generations, 2U);
    const std::string before = all();
    const std::string copy = directory_.path(mapped ? "mapped" : "plain");
    const rocksdb::Status copied = db_->CreateCheckpoint(copy);
    EXPECT_TRUE(copied.ok()) << copied.ToString();
    roll_back();
    EXPECT_EQ(live_entries(), 0U);
    EXPECT_EQ(all(), before);
    db_.reset();
    expect_checksums_of(copy, generations);
    expect_checksums_of(directory_.path("db"), 1);  // that came back
  }
}

TEST_F(SpillDb, AStallDivertsAtOnceAndNoWriteWaits) {
  // Two L0 files that are never compacted, so RocksDB stops for ever.
  options_.write_buffer_size = 64 << 10;
  options_.max_write_buffer_number = 2;
  options_.max_background_jobs = 1;
  options_.disable_auto_compactions = true;
  options_.level0_file_num_compaction_trigger = 1;
  options_.level0_stop_writes_trigger = 2;
  open();
  const std::string value(1024, 'v');
  for (int i = 0; i < 2000; ++i) put("key" + std::to_string(i), value);
  const SpillStatistics s = db_->GetSpillStatistics();
  EXPECT_GT(s.diverted_writes, 0U);
  EXPECT_GT(s.main_writes, 0U);
  // A commit counts as a wait by the clock alone: where the processor is busy, its thread may not get its turn for
  // long.
  EXPECT_EQ(s.waits - s.waits_commits, 0U);
  EXPECT_TRUE(events_->will_see("divert_begin"));
  for (int i = 0; i < 2000; i += 37) EXPECT_EQ(get("key" + std::to_string(i)), value);
}

// Each family has its own triggers: one L0 file of many is further from a stall than one memtable of three.
TEST_F(SpillDb, TheWorstColumnFamilyIsTheOneNearestToAStall) {
  open();
  rocksdb::ColumnFamilyHandle* few = nullptr;
  rocksdb::ColumnFamilyOptions few_memtables;
  few_memtables.write_buffer_size = 64 << 10;
  few_memtables.max_write_buffer_number = 3;
  ASSERT_TRUE(db_->CreateColumnFamily(few_memtables, "few", &few).ok());
  put("a", "1");
  ASSERT_TRUE(db_->Flush({}, db_->DefaultColumnFamily()).ok());
  spill::ColumnFamilies families;
  ASSERT_TRUE(families.add(db_->DefaultColumnFamily()).ok());
  ASSERT_TRUE(families.add(few).ok());
  rocksdb::DB& base = rocksdb_of(*db_);
  EXPECT_EQ(signals_of(base, families, {}, spill::Route::main).l0_files, 1);
  ASSERT_TRUE(base.PauseBackgroundWork().ok());  // no flush: the memtable stays
  const std::string value(10'000, 'v');
  for (int i = 0; i < 10; ++i) ASSERT_TRUE(base.Put(WriteOptions(), few, std::to_string(i), value).ok());
  EXPECT_EQ(signals_of(base, families, {}, spill::Route::main).immutable_memtables, 1);
  ASSERT_TRUE(base.ContinueBackgroundWork().ok());
  ASSERT_TRUE(db_->DestroyColumnFamilyHandle(few).ok());
}

TEST_F(SpillDb, AFullStoreFallsBackToRocksdbAndReportsIt) {
  spill_.capacity_bytes = 1 << 20;
  spill_.generation_bytes = 256 << 10;
  open();
  db_->SetDiversion(Diversion::always);
  const std::string value(16 << 10, 'v');
  for (int i = 0; i < 200; ++i) put("key" + std::to_string(i), value);
  EXPECT_TRUE(events_->saw("spill_full"));
  EXPECT_GT(db_->GetSpillStatistics().main_writes, 0U);
  EXPECT_LE(db_->GetSpillStatistics().store_used_bytes, spill_.capacity_bytes);
  for (int i = 0; i < 200; ++i) ASSERT_EQ(get("key" + std::to_string(i)), value);
  // The reserve is for keys in the spill store. When it is used up, a rollback makes room although the policy is off.
  for (int i = 0; i < 200; ++i) put("key0", value + std::to_string(i));
  EXPECT_EQ(get("key0"), value + "199");
}

TEST_F(SpillDb, PropertiesReportTheState) {
  open();
  db_->SetDiversion(Diversion::always);
  put("k", "v");
  std::uint64_t number = 0;
  ASSERT_TRUE(db_->GetIntProperty("spillway.live-entries", &number));
  EXPECT_EQ(number, 1U);
  std::string text;
  ASSERT_TRUE(db_->GetProperty("spillway.stats", &text));
  EXPECT_NE(text.find("diverted-writes: 1\n"), std::string::npos);
  EXPECT_FALSE(db_->GetProperty("spillway.nothing", &text));
  EXPECT_TRUE(db_->GetProperty("rocksdb.stats", &text));
}

TEST_F(SpillDb, WhatIsNotSupportedIsRefusedByName) {
  DB* db = nullptr;
  rocksdb::Options options = options_;
  options.unordered_write = true;
  options.allow_concurrent_memtable_write = true;
  EXPECT_NE(DB::Open(options, spill_, directory_.path("no"), &db).ToString().find("unordered_write"),
            std::string::npos);
  options = options_;
  const TimestampComparator timestamps;
  options.comparator = &timestamps;
  EXPECT_NE(DB::Open(options, spill_, directory_.path("no"), &db).ToString().find("timestamps"), std::string::npos);
  options = options_;
  options.allow_mmap_writes = true;
  EXPECT_NE(DB::Open(options, spill_, directory_.path("no"), &db).ToString().find("allow_mmap_writes"),
            std::string::npos);
  const auto env = rocksdb::NewCompositeEnv(std::make_shared<WrappedFiles<OneThreadFile>>());
  options = options_;
  options.env = env.get();
  const rocksdb::Status no_sync = DB::Open(options, spill_, directory_.path("no"), &db);
  EXPECT_TRUE(no_sync.IsNotSupported());
  EXPECT_NE(no_sync.ToString().find("IsSyncThreadSafe"), std::string::npos);
  EXPECT_EQ(db, nullptr);
  open();
  EXPECT_TRUE(db_->PutEntity(WriteOptions(), db_->DefaultColumnFamily(), "k", {}).IsNotSupported());
  ReadOptions tailing;
  tailing.tailing = true;
  const std::unique_ptr<rocksdb::Iterator> iterator(db_->NewIterator(tailing));
  EXPECT_TRUE(iterator->status().IsNotSupported());
}

// The OPTIONS file contains the names of the library's listeners and log filter, which RocksDB's tools need not know.
TEST_F(SpillDb, RocksdbCanStillReadItsOptionsFile) {
  open();
  rocksdb::DBOptions options;
  std::vector<rocksdb::ColumnFamilyDescriptor> families;
  open();  // the second time there is a log to filter
  rocksdb::Status status = rocksdb::LoadLatestOptions({}, db_->GetName(), &options, &families);
  EXPECT_TRUE(status.ok()) << status.ToString();
  EXPECT_EQ(families.size(), 1U) << "the guard is not among them";
  db_.reset();
  status = rocksdb::LoadLatestOptions({}, directory_.path("db"), &options, &families);
  EXPECT_TRUE(status.ok()) << status.ToString();
  EXPECT_EQ(families.size(), 1U);
}

// A snapshot taken after a key of a batch was read must see the whole batch.
TEST_F(SpillDb, ABatchIsReadWhenAllOfItCanBeSeen) {
  open();
  db_->SetDiversion(Diversion::always);
  put("other", "1");
  std::thread reader;
  std::atomic<bool> is_over{false};
  bool was_over = false;
  std::string read;
  std::string later;
  {
    const AtStep added("spill.commit.added", [&] {
      reader = std::thread([&] {
        read = get("k");
        const rocksdb::Snapshot* const snapshot = db_->GetSnapshot();
        later = get("k", snapshot);
        db_->ReleaseSnapshot(snapshot);
        is_over = true;
      });
      for (int i = 0; i < 200 && !is_over; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(1));
      was_over = is_over;
    });
    put("k", "new");
  }
  reader.join();
  EXPECT_TRUE(read == "-" || later == "new")
      << read << " and then " << later << (was_over ? ", before it was over" : "");
}

}  // namespace
}  // namespace spillway::clients
