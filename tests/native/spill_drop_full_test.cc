// Column families that are dropped where there is no space to bring back what was diverted of them: the drop succeeds
// as RocksDB's own does, the handle reads what it read, and no other family loses anything, whenever the process dies.
#include <gtest/gtest.h>
#include <rocksdb/db.h>
#include <rocksdb/env.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <functional>
#include <future>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "at_each_step.h"
#include "faults/file_system.h"
#include "spill_faults.h"
#include "spillway/db.h"
#include "temporary_directory.h"

namespace spillway::faults {
namespace {

using rocksdb::ColumnFamilyHandle;
using rocksdb::IOStatus;
using rocksdb::Status;

bool is_sorted_file_of_ours(const FileOperation& operation) {
  return operation.name.find("/spill/") != std::string::npos && operation.name.ends_with(".sst");
}

class SpillDropFull : public ::testing::Test {
 protected:
  using Model = std::map<std::string, std::string>;

  void SetUp() override {
    options_.create_if_missing = true;
    options_.create_missing_column_families = true;
    options_.write_buffer_size = 256 << 10;
    options_.target_file_size_base = 256 << 10;
    spill_.generation_bytes = 128 << 10;
    spill_.capacity_bytes = 2900 << 10;  // there is no room for more than a part of what comes back
    spill_.put_back_bytes = 0;
    spill_.rollback = RollbackPolicy::off;
    open({rocksdb::kDefaultColumnFamilyName, "other"});
  }
  ~SpillDropFull() override { close(); }

  void open(const std::vector<std::string>& names) {
    close();
    auto system = FaultyFileSystem::open(scratch_.path("root"));
    ASSERT_TRUE(system);
    system_ = *system;
    env_ = rocksdb::NewCompositeEnv(system_);
    options_.env = env_.get();
    std::vector<rocksdb::ColumnFamilyDescriptor> families;
    families.reserve(names.size());
    for (const std::string& name : names) families.emplace_back(name, options_);
    DB* db = nullptr;
    const Status status = DB::Open(options_, spill_, path(), families, &handles_, &db);
    ASSERT_TRUE(status.ok()) << status.ToString();
    db_.reset(db);
    default_ = handles_[0];
    other_ = handles_.size() > 1 ? handles_[1] : nullptr;
  }
  void close() {
    for (ColumnFamilyHandle* handle : handles_) (void)db_->DestroyColumnFamilyHandle(handle);
    handles_.clear();
    db_.reset();
  }
  void destroy_other() {
    ASSERT_TRUE(db_->DestroyColumnFamilyHandle(other_).ok());
    std::erase(handles_, other_);
    other_ = nullptr;
  }
  // As after a kill: what was written is there.
  void kill_and_open() {
    system_->set_fault_rule({});
    system_->cut_power();
    close();
    std::vector<std::string> there;
    ASSERT_TRUE(rocksdb::DB::ListColumnFamilies({}, path(), &there).ok());
    const bool has_other = std::ranges::find(there, "other") != there.end();
    std::vector<std::string> names{rocksdb::kDefaultColumnFamilyName};
    if (has_other) names.emplace_back("other");
    open(names);
  }
  std::string path() const { return scratch_.path("root") + "/db"; }

  void write(Diversion where, ColumnFamilyHandle* family, Model& model, int count) {
    db_->SetDiversion(where);
    for (int i = 0; i < count; ++i) {
      const std::string key = "key" + std::to_string(1000 + random_() % 4000);
      if (random_() % 8 == 0) {
        ASSERT_TRUE(db_->Delete({}, family, key).ok());
        model.erase(key);
      } else {
        const std::string value = std::to_string(++written_) + std::string(random_() % 900, 'v');
        ASSERT_TRUE(db_->Put({}, family, key, value).ok());
        model[key] = value;
      }
    }
  }
  void delete_some(ColumnFamilyHandle* family, Model& model) {
    ASSERT_TRUE(db_->DeleteRange({}, family, "key3000", "key3200").ok());
    model.erase(model.lower_bound("key3000"), model.lower_bound("key3200"));
  }
  void write_both() {
    for (const Diversion where : {Diversion::never, Diversion::always}) {
      for (int i = 0; i < 4; ++i) {
        write(where, default_, in_default_, 600);
        write(where, other_, in_other_, 600);
      }
      delete_some(other_, in_other_);
    }
  }
  // There is no space for any of the sorted files from that one on, counted from 1.
  void refuse_sorted_files(int first) {
    created_ = 0;
    system_->set_fault_rule([this, first](const FileOperation& operation) {
      if (!is_sorted_file_of_ours(operation) || operation.action != Action::create) return FileFault();
      return ++created_ >= first ? FileFault{.status = IOStatus::NoSpace("no (injected)")} : FileFault();
    });
  }
  void expect(ColumnFamilyHandle* family, const Model& model, const rocksdb::Snapshot* snapshot = nullptr) {
    rocksdb::ReadOptions options;
    options.snapshot = snapshot;
    Model found;
    Model backwards;
    const std::unique_ptr<rocksdb::Iterator> pairs(db_->NewIterator(options, family));
    for (pairs->SeekToFirst(); pairs->Valid(); pairs->Next())
      found[pairs->key().ToString()] = pairs->value().ToString();
    EXPECT_TRUE(pairs->status().ok()) << pairs->status().ToString();
    EXPECT_TRUE(found == model) << found.size() << " keys instead of " << model.size();
    for (pairs->SeekToLast(); pairs->Valid(); pairs->Prev())
      backwards[pairs->key().ToString()] = pairs->value().ToString();
    EXPECT_TRUE(backwards == model) << backwards.size() << " keys instead of " << model.size();
    for (int i = 1000; i < 5000; i += 7) {
      const std::string key = "key" + std::to_string(i);
      std::string value;
      const Status got = db_->Get(options, family, key, &value);
      const auto known = model.find(key);
      EXPECT_EQ(got.ok() ? value : got.ToString(),
                known == model.end() ? Status::NotFound().ToString() : known->second);
      std::vector<std::string> values;
      const auto statuses = db_->MultiGet(options, {family, default_}, {key, key}, &values);
      EXPECT_EQ(statuses[0].ok() ? values[0] : statuses[0].ToString(), got.ok() ? value : got.ToString());
      if (got.ok()) {
        EXPECT_TRUE(db_->KeyMayExist(options, family, key, &value));
      }
    }
  }
  // Of the other family, from that key on.
  void expect_some(const rocksdb::ReadOptions& options, const Model& model, const std::string& key) {
    const auto known = model.find(key);
    const std::string wanted = known == model.end() ? Status::NotFound().ToString() : known->second;
    std::string value;
    const Status got = db_->Get(options, other_, key, &value);
    EXPECT_EQ(got.ok() ? value : got.ToString(), wanted);
    std::vector<std::string> values;
    const auto statuses = db_->MultiGet(options, {other_, default_}, {key, key}, &values);
    EXPECT_EQ(statuses[0].ok() ? values[0] : statuses[0].ToString(), wanted);
    const std::unique_ptr<rocksdb::Iterator> pairs(db_->NewIterator(options, other_));
    auto next = model.lower_bound(key);
    pairs->Seek(key);
    for (int i = 0; i < 20 && next != model.end(); ++i, ++next, pairs->Next()) {
      ASSERT_TRUE(pairs->Valid()) << "behind " << key;
      EXPECT_EQ(pairs->key().ToString(), next->first);
      EXPECT_EQ(pairs->value().ToString(), next->second);
    }
  }
  void expect_both() {
    expect(default_, in_default_);
    if (other_ != nullptr) expect(other_, in_other_);
  }

  const TemporaryDirectory scratch_{memory_path()};
  rocksdb::Options options_;
  SpillOptions spill_;
  std::shared_ptr<FaultyFileSystem> system_;
  std::unique_ptr<rocksdb::Env> env_;
  std::unique_ptr<DB> db_;
  std::vector<ColumnFamilyHandle*> handles_;
  ColumnFamilyHandle* default_ = nullptr;
  ColumnFamilyHandle* other_ = nullptr;
  std::atomic<int> created_{0};  // sorted files
  std::mt19937_64 random_{1};
  int written_ = 0;
  Model in_default_;
  Model in_other_;
};

// Some parts are in RocksDB when there is no space for the next, or none is.
TEST_F(SpillDropFull, AFamilyIsDroppedThoughThereIsNoSpaceToBringItBack) {
  for (const int first : {1, 5}) {
    SCOPED_TRACE(first);
    write_both();
    const rocksdb::Snapshot* const before = db_->GetSnapshot();
    const Model then = in_other_;
    write(Diversion::always, other_, in_other_, 100);
    refuse_sorted_files(first);
    EXPECT_TRUE(db_->Rollback().IsNoSpace());
    const Status dropped = db_->DropColumnFamily(other_);
    ASSERT_TRUE(dropped.ok()) << dropped.ToString();
    EXPECT_TRUE(db_->DropColumnFamily(other_).IsInvalidArgument()) << "it is dropped";
    expect_both();
    const rocksdb::Snapshot* const after = db_->GetSnapshot();
    write(Diversion::always, default_, in_default_, 100);
    system_->set_fault_rule({});
    const Status brought_back = db_->Rollback();
    ASSERT_TRUE(brought_back.ok()) << brought_back.ToString();
    EXPECT_EQ(db_->GetSpillStatistics().live_entries, 0U);
    expect_both();
    expect(other_, then, before);
    expect(other_, in_other_, after);
    db_->ReleaseSnapshot(before);
    db_->ReleaseSnapshot(after);
    write(Diversion::always, default_, in_default_, 200);
    ASSERT_TRUE(db_->Flush({}).ok());
    expect_both();
    ASSERT_TRUE(db_->Rollback().ok());
    EXPECT_GT(db_->GetSpillStatistics().held_bytes, 0U);
    destroy_other();
    EXPECT_TRUE(comes_true([&] { return db_->GetSpillStatistics().held_bytes == 0; })) << "no handle reads it any more";
    expect_both();
    ASSERT_TRUE(db_->CreateColumnFamily(options_, "other", &other_).ok());
    handles_.push_back(other_);
    in_other_.clear();
    expect_both();
    open({rocksdb::kDefaultColumnFamilyName, "other"});
    expect_both();
  }
}

// The snapshot's view is of the same sequence as that of the drop, and has generations that are in RocksDB since.
TEST_F(SpillDropFull, ASnapshotReadsWhatCameBackBetweenItAndTheDrop) {
  for (int i = 0; i < 3; ++i) {  // more than a generation of each in turn
    write(Diversion::always, other_, in_other_, 400);
    write(Diversion::always, default_, in_default_, 400);
  }
  const rocksdb::Snapshot* const before = db_->GetSnapshot();
  const Model then = in_other_;
  const Model in_default_then = in_default_;
  {
    const AtStep dropped("spill.rollback.dropped", [&] {
      system_->set_fault_rule([](const FileOperation& operation) {
        const bool is_read = operation.action == Action::read;
        return is_read ? FileFault() : FileFault{.status = IOStatus::NoSpace("no (injected)")};
      });
    });
    EXPECT_FALSE(db_->Rollback().ok());
    ASSERT_TRUE(dropped.was_reached());
  }
  refuse_sorted_files(1);
  ASSERT_GT(db_->GetSpillStatistics().live_entries, 0U);
  ASSERT_GT(db_->GetSpillStatistics().held_bytes, 0U) << "the snapshot alone has what came back";
  ASSERT_TRUE(db_->DropColumnFamily(other_).ok());
  expect_both();
  expect(other_, then, before);
  expect(default_, in_default_then, before);
  const rocksdb::Snapshot* const after = db_->GetSnapshot();
  system_->set_fault_rule({});
  ASSERT_TRUE(db_->Rollback().ok());
  expect_both();
  expect(other_, then, before);
  expect(other_, then, after);
  db_->ReleaseSnapshot(before);
  db_->ReleaseSnapshot(after);
}

// Reads of every kind see the family as it was at the drop, at each moment of it and of what comes back after it.
TEST_F(SpillDropFull, ReadersThatGoOnNoticeNothing) {
  write_both();
  refuse_sorted_files(3);
  const Model model = in_other_;
  std::atomic<bool> is_over{false};
  std::atomic<int> rounds{0};
  const auto read = [&](std::uint64_t seed) {
    std::mt19937_64 random(seed);
    for (; !is_over && !::testing::Test::HasFailure(); ++rounds) {
      rocksdb::ReadOptions options;
      const rocksdb::Snapshot* const snapshot = random() % 2 == 0 ? db_->GetSnapshot() : nullptr;
      options.snapshot = snapshot;
      expect_some(options, model, "key" + std::to_string(1000 + random() % 4000));
      if (snapshot != nullptr) db_->ReleaseSnapshot(snapshot);
    }
  };
  std::vector<std::future<void>> readers;
  for (std::uint64_t i = 0; i < 3; ++i) readers.push_back(std::async(std::launch::async, read, i));
  const auto go_on = [&] {
    const int before = rounds;
    while (rounds < before + 30 && !::testing::Test::HasFailure()) std::this_thread::yield();
  };
  go_on();
  EXPECT_TRUE(db_->Rollback().IsNoSpace());
  go_on();
  EXPECT_TRUE(db_->DropColumnFamily(other_).ok());
  go_on();
  write(Diversion::always, default_, in_default_, 300);
  system_->set_fault_rule({});
  EXPECT_TRUE(db_->Rollback().ok());
  go_on();
  write(Diversion::always, default_, in_default_, 300);
  go_on();
  is_over = true;
  for (auto& one : readers) one.get();
  expect_both();
}

// A handle of a family that was created at run time is the only one.
TEST_F(SpillDropFull, AFamilyThatWasMadeIsDroppedAsOneThatWasOpened) {
  ASSERT_TRUE(db_->DropColumnFamily(other_).ok());
  destroy_other();
  ASSERT_TRUE(db_->CreateColumnFamily(options_, "other", &other_).ok());
  handles_.push_back(other_);
  write_both();
  refuse_sorted_files(3);
  EXPECT_TRUE(db_->Rollback().IsNoSpace());
  ASSERT_TRUE(db_->DropColumnFamily(other_).ok());
  expect_both();
  system_->set_fault_rule({});
  ASSERT_TRUE(db_->Rollback().ok());
  expect_both();
  destroy_other();
  open({rocksdb::kDefaultColumnFamilyName});
  expect_both();
}

// One handle is destroyed, and the other reads on.
TEST_F(SpillDropFull, AFamilyThatIsListedTwiceIsReadThroughItsLastHandle) {
  open({rocksdb::kDefaultColumnFamilyName, "other", "other"});
  write_both();
  refuse_sorted_files(1);
  ASSERT_TRUE(db_->DropColumnFamily(other_).ok());
  destroy_other();
  other_ = handles_[1];
  system_->set_fault_rule({});
  ASSERT_TRUE(db_->Rollback().ok());
  expect_both();
  EXPECT_GT(db_->GetSpillStatistics().held_bytes, 0U);
  destroy_other();
  EXPECT_TRUE(comes_true([&] { return db_->GetSpillStatistics().held_bytes == 0; }));
}

// Killed at any step of what comes back after the drop, before it, or between.
TEST_F(SpillDropFull, AKillLosesNothingOfTheFamiliesThatAreLeft) {
  enum class When { after_refusal, after_drop, in_rollback, after_rollback };
  for (const When when : {When::after_refusal, When::after_drop, When::in_rollback, When::after_rollback}) {
    SCOPED_TRACE(static_cast<int>(when));
    write_both();
    refuse_sorted_files(4);
    EXPECT_TRUE(db_->Rollback().IsNoSpace());
    write(Diversion::always, default_, in_default_, 50);
    if (when != When::after_refusal) {
      ASSERT_TRUE(db_->DropColumnFamily(other_).ok());
      write(Diversion::always, default_, in_default_, 50);
      write(Diversion::never, default_, in_default_, 50);
    }
    if (when == When::in_rollback) {
      std::atomic<int> ingested{0};
      const AtEach then("spill.rollback.ingested", [&] {
        if (++ingested == 2) system_->cut_power();
      });
      system_->set_fault_rule({});
      EXPECT_FALSE(db_->Rollback().ok());
    } else if (when == When::after_rollback) {
      system_->set_fault_rule({});
      ASSERT_TRUE(db_->Rollback().ok());
    }
    kill_and_open();
    EXPECT_EQ(other_ == nullptr, when != When::after_refusal);
    expect_both();
    ASSERT_TRUE(db_->Rollback().ok());
    expect_both();
    ASSERT_TRUE(db_->CompactRange({}, nullptr, nullptr).ok());
    expect_both();
    open({rocksdb::kDefaultColumnFamilyName, "other"});
    if (when != When::after_refusal) in_other_.clear();
    expect_both();
  }
}

// The next parts have nothing but what is left of the dropped family.
TEST_F(SpillDropFull, ARunOfNothingButADroppedFamilyEnds) {
  write(Diversion::always, other_, in_other_, 4000);
  refuse_sorted_files(2);
  EXPECT_TRUE(db_->Rollback().IsNoSpace());
  ASSERT_TRUE(db_->DropColumnFamily(other_).ok());
  expect_both();
  EXPECT_TRUE(db_->Rollback().ok()) << "nothing of it needs space";
  EXPECT_EQ(db_->GetSpillStatistics().live_entries, 0U);
  expect_both();
  kill_and_open();
  expect_both();
}

// RocksDB itself cannot drop it: then it is there, and takes what is written.
TEST_F(SpillDropFull, AFamilyThatRocksdbCannotDropLosesNothing) {
  write_both();
  system_->set_fault_rule([](const FileOperation& operation) {
    return operation.action == Action::create || operation.action == Action::write
               ? FileFault{.status = IOStatus::NoSpace("no (injected)")}
               : FileFault();
  });
  const Status dropped = db_->DropColumnFamily(other_);
  EXPECT_TRUE(dropped.IsNoSpace()) << dropped.ToString();
  expect_both();
  system_->set_fault_rule({});
  write(Diversion::always, other_, in_other_, 100);
  write(Diversion::always, default_, in_default_, 100);
  expect_both();
  kill_and_open();
  ASSERT_NE(other_, nullptr);
  expect_both();
  ASSERT_TRUE(db_->Rollback().ok());
  expect_both();
  ASSERT_TRUE(db_->DropColumnFamily(other_).ok());
  expect_both();
}

// A copy has what is left, of before the drop as of after it.
TEST_F(SpillDropFull, ACheckpointHasTheFamiliesThatAreLeft) {
  write_both();
  refuse_sorted_files(3);
  EXPECT_TRUE(db_->Rollback().IsNoSpace());
  ASSERT_TRUE(db_->DropColumnFamily(other_).ok());
  system_->set_fault_rule({});
  const std::string copy = scratch_.path("root") + "/copy";
  const Status copied = db_->CreateCheckpoint(copy);
  ASSERT_TRUE(copied.ok()) << copied.ToString();
  std::vector<std::string> there;
  ASSERT_TRUE(rocksdb::DB::ListColumnFamilies({}, copy, &there).ok());
  EXPECT_EQ(there, std::vector<std::string>{rocksdb::kDefaultColumnFamilyName});
  expect_both();
}

}  // namespace
}  // namespace spillway::faults
