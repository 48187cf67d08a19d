// Reads while a write or a rollback comes between the read of one store and that of the other.
#include <gtest/gtest.h>
#include <rocksdb/cache.h>
#include <rocksdb/comparator.h>
#include <rocksdb/env.h>
#include <rocksdb/file_system.h>
#include <rocksdb/table.h>

#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "at_each_step.h"
#include "spillway/db.h"
#include "temporary_directory.h"

namespace spillway::clients {
namespace {

using rocksdb::Slice;
using rocksdb::Status;

// RocksDB reads the time when it creates a snapshot, before it holds a lock.
class WatchedClock final : public rocksdb::EnvWrapper {
 public:
  explicit WatchedClock(std::function<void()>& asked) : EnvWrapper(rocksdb::Env::Default()), asked_(asked) {}
  Status GetCurrentTime(int64_t* now) override {
    if (std::this_thread::get_id() == watched_) {
      if (const auto once = std::exchange(asked_, nullptr)) once();
    }
    return EnvWrapper::GetCurrentTime(now);
  }

 private:
  std::function<void()>& asked_;
  const std::thread::id watched_ = std::this_thread::get_id();
};

// Counts the comparisons of one thread, and runs a function at one of them.
class WatchedOrder final : public rocksdb::Comparator {
 public:
  const char* Name() const override { return "spillway.test.WatchedOrder"; }
  bool CanKeysWithDifferentByteContentsBeEqual() const override { return false; }
  int Compare(const Slice& a, const Slice& b) const override {
    if (std::this_thread::get_id() == watched_ && ++compared_ == at_) what_();
    return rocksdb::BytewiseComparator()->Compare(a, b);
  }
  void FindShortestSeparator(std::string*, const Slice&) const override {}
  void FindShortSuccessor(std::string*) const override {}

  int compared() const { return compared_; }
  void at(int comparison, std::function<void()> what) {
    at_ = comparison;
    compared_ = 0;
    what_ = std::move(what);
  }

 private:
  mutable int compared_ = 0;
  int at_ = -1;
  std::function<void()> what_;
  const std::thread::id watched_ = std::this_thread::get_id();
};

class SpillReadStateTest : public ::testing::Test {
 protected:
  SpillReadStateTest() {
    rocksdb::Options options;
    options.create_if_missing = true;
    options.env = &clock_;
    options.comparator = &order_;
    SpillOptions spill;
    spill.rollback = RollbackPolicy::off;
    spill.put_back_bytes = 0;  // so it ingests
    DB* db = nullptr;
    const Status status = DB::Open(options, spill, directory_.path("db"), &db);
    EXPECT_TRUE(status.ok()) << status.ToString();
    db_.reset(db);
  }
  ~SpillReadStateTest() override { db_.reset(); }

  void put(Diversion diversion, const std::string& key, const std::string& value) {
    db_->SetDiversion(diversion);
    const Status status = db_->Put({}, key, value);
    EXPECT_TRUE(status.ok()) << status.ToString();
  }
  void put_main(const std::string& key, const std::string& value) { put(Diversion::never, key, value); }
  void divert(const std::string& key, const std::string& value) { put(Diversion::always, key, value); }
  std::string get(const std::string& key, const rocksdb::Snapshot* snapshot = nullptr) {
    rocksdb::ReadOptions options;
    options.snapshot = snapshot;
    std::string value;
    const Status status = db_->Get(options, key, &value);
    return status.ok() ? value : status.ToString();
  }
  void roll_back() {
    const Status status = db_->Rollback();
    EXPECT_TRUE(status.ok()) << status.ToString();
  }

  const TemporaryDirectory directory_{memory_path()};
  std::function<void()> when_asked_;
  WatchedClock clock_{when_asked_};
  WatchedOrder order_;
  std::unique_ptr<DB> db_;
};

// RocksDB sorts the keys before it takes its read state.
TEST_F(SpillReadStateTest, ManyKeysAreReadInOneStateThoughNothingWasDivertedAtFirst) {
  put_main("main", "1");
  order_.at(1, [&] {
    divert("spilled", "2");
    put_main("main", "2");
  });
  std::vector<std::string> values;
  const std::vector<Status> statuses = db_->MultiGet({}, {"main", "spilled"}, &values);
  ASSERT_EQ(db_->GetSpillStatistics().live_entries, 1U);
  EXPECT_TRUE(values[0] == "1" || statuses[1].ok()) << values[0] << ", " << statuses[1].ToString();
}

TEST_F(SpillReadStateTest, ASnapshotHasNoWriteToRocksdbWithoutTheDivertedOneBeforeIt) {
  put_main("main", "1");
  divert("spilled", "1");
  when_asked_ = [&] {
    divert("spilled", "2");
    put_main("main", "2");
  };
  rocksdb::ManagedSnapshot snapshot(db_.get());
  ASSERT_EQ(when_asked_, nullptr);
  EXPECT_TRUE(get("main", snapshot.snapshot()) == "1" || get("spilled", snapshot.snapshot()) == "2");
}

TEST_F(SpillReadStateTest, ASnapshotShowsTheReplacementOfADivertedVersionBeforeLaterWrites) {
  put_main("later", "1");
  divert("k", "1");
  when_asked_ = [&] {
    std::thread([&] { roll_back(); }).join();
    put_main("k", "2");
    put_main("later", "2");
  };
  rocksdb::ManagedSnapshot snapshot(db_.get());
  ASSERT_EQ(when_asked_, nullptr);
  EXPECT_TRUE(get("later", snapshot.snapshot()) == "1" || get("k", snapshot.snapshot()) == "2");
}

TEST_F(SpillReadStateTest, GetUnderARangeDeletionFindsWhatIsBroughtBackMeanwhile) {
  divert("a", "1");
  ASSERT_TRUE(db_->DeleteRange({}, db_->DefaultColumnFamily(), "a", "z").ok());
  divert("k", "1");
  order_.at(-1, {});
  ASSERT_EQ(get("k"), "1");
  const int comparisons = order_.compared();
  ASSERT_GT(comparisons, 0);
  bool is_back = false;
  // The last comparison is in the search for tombstones. The version in the index must be newer than those.
  order_.at(comparisons, [&] {
    std::thread([&] { roll_back(); }).join();
    is_back = true;
  });
  EXPECT_EQ(get("k"), "1");
  EXPECT_TRUE(is_back);
}

// Runs a function at a thread's first read of a table.
class WatchedTables final : public rocksdb::FileSystemWrapper {
 public:
  WatchedTables() : FileSystemWrapper(FileSystem::Default()) {}
  const char* Name() const override { return "spillway.test.WatchedTables"; }
  rocksdb::IOStatus NewRandomAccessFile(const std::string& path, const rocksdb::FileOptions& options,
                                        std::unique_ptr<rocksdb::FSRandomAccessFile>* file,
                                        rocksdb::IODebugContext* dbg) override {
    rocksdb::IOStatus status = target()->NewRandomAccessFile(path, options, file, dbg);
    if (status.ok()) *file = std::make_unique<File>(std::move(*file), *this);
    return status;
  }
  void at_first_read(std::function<void()> what) {
    reader_ = std::this_thread::get_id();
    what_ = std::move(what);
  }

 private:
  class File final : public rocksdb::FSRandomAccessFileOwnerWrapper {
   public:
    File(std::unique_ptr<rocksdb::FSRandomAccessFile> file, WatchedTables& tables)
        : FSRandomAccessFileOwnerWrapper(std::move(file)), tables_(tables) {}
    rocksdb::IOStatus Read(std::uint64_t offset, std::size_t bytes, const rocksdb::IOOptions& options, Slice* result,
                           char* scratch, rocksdb::IODebugContext* dbg) const override {
      if (std::this_thread::get_id() == tables_.reader_) {
        if (const auto once = std::exchange(tables_.what_, nullptr)) once();
      }
      return target()->Read(offset, bytes, options, result, scratch, dbg);
    }

   private:
    WatchedTables& tables_;
  };

  std::thread::id reader_;
  std::function<void()> what_;
};

// RocksDB takes the read state of all iterators before it reads the families, one after the other.
TEST(SpillReadState, IteratorsOfSeveralFamiliesMissNoKeyThatIsOverwrittenMeanwhile) {
  const TemporaryDirectory directory{memory_path()};
  const auto tables = std::make_shared<WatchedTables>();
  const auto env = rocksdb::NewCompositeEnv(tables);
  rocksdb::DBOptions options;
  options.env = env.get();
  options.create_if_missing = options.create_missing_column_families = true;
  rocksdb::BlockBasedTableOptions table;
  table.block_cache = rocksdb::NewLRUCache(0);
  table.cache_index_and_filter_blocks = true;  // each iterator reads the index
  rocksdb::ColumnFamilyOptions family;
  family.table_factory.reset(rocksdb::NewBlockBasedTableFactory(table));
  std::vector<rocksdb::ColumnFamilyHandle*> handles;
  DB* opened = nullptr;
  ASSERT_TRUE(DB::Open(options, SpillOptions(), directory.path("db"), {{"default", family}, {"second", family}},
                       &handles, &opened)
                  .ok());
  const std::unique_ptr<DB> db(opened);
  ASSERT_TRUE(db->Put({}, handles[0], "first", "1").ok());
  ASSERT_TRUE(db->Flush({}, handles[0]).ok());
  ASSERT_TRUE(db->Put({}, handles[1], "second", "1").ok());
  bool was_read = false;
  tables->at_first_read([&] {
    std::thread([&] {
      EXPECT_TRUE(db->Put({}, handles[1], "second", "2").ok());
      EXPECT_TRUE(db->Flush({}, handles[1]).ok());
    }).join();
    was_read = true;
  });
  std::vector<rocksdb::Iterator*> made;
  ASSERT_TRUE(db->NewIterators({}, handles, &made).ok());
  const std::unique_ptr<rocksdb::Iterator> first(made[0]);
  const std::unique_ptr<rocksdb::Iterator> second(made[1]);
  first->SeekToFirst();  // RocksDB 11 does not read before
  ASSERT_TRUE(was_read);
  second->SeekToFirst();
  EXPECT_TRUE(second->Valid());
  for (auto* handle : handles) ASSERT_TRUE(db->DestroyColumnFamilyHandle(handle).ok());
}

// What was brought back is found in the index until it is removed from there.
TEST_F(SpillReadStateTest, GetFindsTheWriteToRocksdbThatReplacedWhatWasBroughtBack) {
  divert("k", "1");
  std::string found;
  {
    const AtStep forgotten("spill.rollback.forgotten", [&] {
      put_main("k", "2");
      divert("other", "1");
      found = get("k");
    });
    roll_back();
    ASSERT_TRUE(forgotten.was_reached());
  }
  EXPECT_EQ(found, "2");
  EXPECT_EQ(get("k"), "2");
  EXPECT_EQ(get("other"), "1");
}

}  // namespace
}  // namespace spillway::clients
