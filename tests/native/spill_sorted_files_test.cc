// Sorted files of a generation, ingested into RocksDB, against an ordered map with the same operations.
#include <gtest/gtest.h>
#include <rocksdb/db.h>
#include <rocksdb/env.h>
#include <rocksdb/file_system.h>
#include <rocksdb/filter_policy.h>
#include <rocksdb/sst_file_reader.h>
#include <rocksdb/table.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "spill/compat/db_out.h"
#include "spill/live/sorted_size.h"
#include "spill/rollback/sorted_files.h"
#include "spill/store/checksum.h"
#include "temporary_directory.h"
#include "wrapped_files.h"

namespace spillway::spill {
namespace {

using rocksdb::Slice;
using rocksdb::Status;

// Records of one generation, in memory.
class MemoryStore final : public Store {
 public:
  Status recover(const Each& /*each*/) override { return Status::NotSupported(); }
  Status cut(GenerationId /*generation*/, std::uint64_t /*offset*/) override { return Status::NotSupported(); }
  Status begin(GenerationId /*generation*/) override { return Status::OK(); }
  Status append(std::span<const Slice> records, std::span<std::uint64_t> offsets) override {
    for (std::size_t i = 0; i < records.size(); ++i) {
      offsets[i] = 1000 + used_;
      used_ += records[i].size();
      records_[offsets[i]] = records[i].ToString();
    }
    return Status::OK();
  }
  Status sync() override { return Status::OK(); }
  std::vector<GenerationId> generations() const override { return {}; }
  Status read(GenerationId /*generation*/, std::uint64_t offset, std::uint64_t from, std::uint64_t length,
              std::string* bytes) const override {
    ++reads;
    *bytes = records_.at(offset).substr(from, length);
    return failure;
  }
  Status scan(GenerationId generation, const Each& each) const override {
    ++scans;
    for (const auto& [offset, record] : records_) {
      if (Status status = each({generation, offset, record}); !status.ok()) return status;
    }
    return failure;
  }
  Status drop(GenerationId /*generation*/) override { return Status::OK(); }
  void release(GenerationId /*generation*/) override {}
  Status read_binding(std::string* /*bytes*/) const override { return Status::NotSupported(); }
  Status write_binding(const std::string& /*bytes*/) override { return Status::NotSupported(); }
  std::uint64_t used_bytes() const override { return used_; }
  std::uint64_t capacity_bytes() const override { return ~std::uint64_t{0}; }

  std::unique_ptr<ReadsInFlight> begin_reads(std::span<ReadRequest> requests) const override {
    return std::make_unique<Reads>(*this, requests);
  }

  mutable int reads = 0;
  mutable int scans = 0;
  mutable std::size_t most_in_flight = 0;
  mutable std::size_t most_behind = 0;  // in flight behind those that were waited for
  Status failure;

 private:
  class Reads final : public ReadsInFlight {
   public:
    Reads(const MemoryStore& store, std::span<ReadRequest> requests) : store_(store), requests_(requests) {
      store_.in_flight_ += requests.size();
      store_.most_in_flight = std::max(store_.most_in_flight, store_.in_flight_);
    }
    void wait() override {
      store_.in_flight_ -= requests_.size();
      store_.most_behind = std::max(store_.most_behind, store_.in_flight_);
      store_.read_many(requests_);
    }

   private:
    const MemoryStore& store_;
    const std::span<ReadRequest> requests_;
  };

  mutable std::size_t in_flight_ = 0;
  std::map<std::uint64_t, std::string> records_;
  std::uint64_t used_ = 0;
};

// Changes the first byte of every append.
class GarblingFile final : public rocksdb::FSWritableFileOwnerWrapper {
 public:
  using FSWritableFileOwnerWrapper::FSWritableFileOwnerWrapper;
  rocksdb::IOStatus Append(const Slice& data, const rocksdb::IOOptions& options,
                           rocksdb::IODebugContext* dbg) override {
    std::string bytes = data.ToString();
    if (std::exchange(is_first_, false)) bytes[0] = static_cast<char>(bytes[0] ^ 1);
    return target()->Append(bytes, options, dbg);
  }

 private:
  bool is_first_ = true;
};

using SortedModel = std::map<std::string, std::string>;

class SortedFilesTest : public ::testing::Test {
 public:
  SortedFilesTest(const SortedFilesTest&) = delete;
  SortedFilesTest& operator=(const SortedFilesTest&) = delete;

 protected:
  SortedFilesTest() {
    options_.create_if_missing = true;
    options_.create_missing_column_families = true;
    rocksdb::ColumnFamilyOptions backwards;
    backwards.comparator = rocksdb::ReverseBytewiseComparator();
    backwards.compression_per_level = {rocksdb::kSnappyCompression, rocksdb::kNoCompression};
    backwards.bottommost_compression = rocksdb::kNoCompression;
    rocksdb::DB* db = nullptr;
    const Status status = rocksdb::DB::Open(options_, temporary_.path("db"),
                                            {{rocksdb::kDefaultColumnFamilyName, {}}, {"backwards", backwards}},
                                            &handles_, spill::DbOut(&db));
    EXPECT_TRUE(status.ok()) << status.ToString();
    db_.reset(db);
    for (auto* handle : handles_) EXPECT_TRUE(families_.add(handle).ok());
    generation_ = std::make_shared<Generation>(3, families_, nullptr);
  }
  ~SortedFilesTest() override {
    for (auto* handle : handles_) EXPECT_TRUE(db_->DestroyColumnFamilyHandle(handle).ok());
  }

  static std::string key_of(std::uint64_t number) { return "key" + std::to_string(100000 + number); }

  void put(std::uint32_t family, const std::string& key, const std::string& value) {
    const std::string record = "before" + value + "behind";
    const Slice slice(record);
    std::uint64_t offset = 0;
    ASSERT_TRUE(store_.append({&slice, 1}, {&offset, 1}).ok());
    generation_->add(family, key, ++sequence_, Kind::put, {offset, 6, static_cast<std::uint32_t>(value.size())},
                     crc32c(value));
    models_[family][key] = value;
  }
  void remove(std::uint32_t family, const std::string& key) {
    generation_->add(family, key, ++sequence_, Kind::remove, {});
    models_[family].erase(key);
  }
  // `first` and `last` in the order of the family's comparator; `covered` in byte order.
  void remove_range(std::uint32_t family, const std::string& begin, const std::string& end) {
    generation_->add(RangeTombstone{family, begin, end, ++sequence_});
    const auto* comparator = families_.comparator(family);
    std::erase_if(models_[family], [&](const auto& pair) {
      return comparator->Compare(begin, pair.first) <= 0 && comparator->Compare(pair.first, end) < 0;
    });
  }
  void put_in_main(std::uint32_t family, const std::string& key) {
    ASSERT_TRUE(db_->Put({}, handles_[family], key, "main").ok());
    models_[family][key] = "main";
  }

  Status sort(const SortedProgress& progress = {}) {
    const MergedRun run({&generation_, 1}, generation_->last_sequence(), families_, is_superseded_);
    return write_sorted_files(run.next(run.bytes_left()), generation_->id(), families_, ValueReader(store_), store_,
                              db_->GetDBOptions(), temporary_.root().string(), stop_, &files_, progress);
  }
  void ingest() {
    for (const SortedFile& file : files_) {
      rocksdb::IngestExternalFileOptions how;
      how.move_files = true;
      const Status status = db_->IngestExternalFile(handles_[file.column_family], {file.path}, how);
      ASSERT_TRUE(status.ok()) << status.ToString();
    }
  }
  SortedModel in_db(std::uint32_t family) {
    SortedModel all;
    const std::unique_ptr<rocksdb::Iterator> pairs(db_->NewIterator({}, handles_[family]));
    for (pairs->SeekToFirst(); pairs->Valid(); pairs->Next()) {
      all[pairs->key().ToString()] = pairs->value().ToString();
    }
    EXPECT_TRUE(pairs->status().ok());
    return all;
  }

  const TemporaryDirectory temporary_;
  rocksdb::DBOptions options_;
  std::unique_ptr<rocksdb::DB> db_;
  std::vector<rocksdb::ColumnFamilyHandle*> handles_;
  ColumnFamilies families_;
  MemoryStore store_;
  std::shared_ptr<Generation> generation_;
  Sequence sequence_ = 0;
  std::map<std::uint32_t, SortedModel> models_;
  std::atomic<bool> stop_{false};
  IsSuperseded is_superseded_ = [](const Entry&) { return false; };
  std::vector<SortedFile> files_;
};

TEST_F(SortedFilesTest, AnythingOnTwoFamiliesComesOutAsItWentIn) {
  std::mt19937_64 random(1);
  for (std::uint32_t family = 0; family < 2; ++family) {
    for (int i = 0; i < 500; ++i) put_in_main(family, key_of(random() % 1000));
  }
  for (int i = 0; i < 4000; ++i) {
    const auto family = static_cast<std::uint32_t>(random() % 2);
    const std::uint64_t number = random() % 1000;
    if (random() % 400 == 0) {
      const std::string low = key_of(number);
      const std::string high = key_of(number + random() % 100);
      family == 0 ? remove_range(family, low, high) : remove_range(family, high, low);
    } else if (random() % 4 == 0) {
      remove(family, key_of(number));
    } else {
      put(family, key_of(number), std::string(random() % 200, 'v') + std::to_string(i));
    }
    if (i == 2000) (void)generation_->sorted_runs(sequence_);  // so that there are several runs
  }
  ASSERT_TRUE(sort().ok());
  ASSERT_EQ(files_.size(), 2U);
  EXPECT_EQ(files_[0].path, temporary_.path("3-0.sst"));
  EXPECT_EQ(files_[0].bytes, std::filesystem::file_size(files_[0].path));
  EXPECT_GT(files_[0].entries, 0U);
  EXPECT_EQ(store_.reads, 0);  // values are small, so each file takes one scan
  EXPECT_EQ(store_.scans, 2);
  ingest();
  EXPECT_EQ(in_db(0), models_[0]);
  EXPECT_EQ(in_db(1), models_[1]);
}

TEST_F(SortedFilesTest, WhatIsMostlyOverwrittenIsReadByTheKey) {
  for (int round = 0; round < 10; ++round) {
    for (std::uint64_t i = 0; i < 300; ++i) put(0, key_of(i), std::string(4096, static_cast<char>('a' + round)));
  }
  remove(0, key_of(17));
  ASSERT_TRUE(sort().ok());
  EXPECT_EQ(store_.scans, 0);
  EXPECT_EQ(store_.reads, 299);
  ingest();
  EXPECT_EQ(in_db(0), models_[0]);
}

TEST_F(SortedFilesTest, WhoMayTakeTheDriveReadsWithoutAPause) {
  for (const bool may : {false, true}) {
    SCOPED_TRACE(may);
    store_.most_in_flight = store_.most_behind = 0;
    generation_ = std::make_shared<Generation>(may ? 5 : 4, families_, nullptr);
    for (int round = 0; round < 10; ++round) {
      for (std::uint64_t i = 0; i < 2000; ++i) put(0, key_of(i), std::string(1000, static_cast<char>('a' + round)));
    }
    for (std::uint64_t i = 0; i < 2000; i += 7) remove(0, key_of(i));
    store_.reads = 0;
    bool asked = false;
    ASSERT_TRUE(sort({.may_take_drive = [&] { return std::exchange(asked, true), may; }}).ok());
    EXPECT_TRUE(asked);
    EXPECT_EQ(store_.reads, 2000 - 286);
    EXPECT_LE(store_.most_in_flight, 256);
    EXPECT_GE(store_.most_in_flight, 200);
    EXPECT_EQ(store_.most_behind >= 128, may);
    if (!may) {
      EXPECT_EQ(store_.most_behind, 0);
    }
    ingest();
    EXPECT_EQ(in_db(0), models_[0]);
  }
}

TEST_F(SortedFilesTest, WhoMayTakeTheDriveNoMoreReadsWhatWasBegun) {
  for (int round = 0; round < 10; ++round) {
    for (std::uint64_t i = 0; i < 3000; ++i) put(0, key_of(i), std::string(1000, static_cast<char>('a' + round)));
  }
  int asked = 0;
  ASSERT_TRUE(sort({.may_take_drive = [&] { return ++asked / 3 % 2 == 0; }}).ok());
  EXPECT_EQ(store_.reads, 3000);
  EXPECT_LE(store_.most_in_flight, 448);
  ingest();
  EXPECT_EQ(in_db(0), models_[0]);
}

TEST_F(SortedFilesTest, MoreThanTheBufferHoldsTakesSeveralScans) {
  for (std::uint64_t i = 0; i < 70; ++i) put(0, key_of(i), std::string(1 << 20, static_cast<char>('a' + i % 26)));
  ASSERT_TRUE(sort().ok());
  EXPECT_EQ(store_.scans + store_.reads, 70);
  ingest();
  EXPECT_EQ(in_db(0), models_[0]);
}

TEST_F(SortedFilesTest, TellHowMuchIsWritten) {
  for (int i = 0; i < 100; ++i) put(i % 2, "key" + std::to_string(i), std::string(100'000, 'v'));
  std::vector<std::uint64_t> told;
  ASSERT_TRUE(sort({.on_written = [&](std::uint64_t bytes) { told.push_back(bytes); }}).ok());
  ASSERT_GE(told.size(), 7u) << "of 10 MB";
  EXPECT_TRUE(std::ranges::is_sorted(told));
  EXPECT_GT(told.front(), 1'000'000u);
  EXPECT_LE(told.back(), 10'001'000u) << "of both families";
  EXPECT_GT(told.back(), 8'500'000u);
}

TEST_F(SortedFilesTest, OnlyTombstonesMakeAFileToo) {
  put_in_main(0, "a");
  put_in_main(0, "m");
  remove_range(0, "b", "n");
  remove_range(0, "c", "c");
  remove_range(1, "a", "z");  // empty in that family's order
  ASSERT_TRUE(sort().ok());
  ASSERT_EQ(files_.size(), 1U);
  ingest();
  EXPECT_EQ(in_db(0), models_[0]);
  EXPECT_EQ(models_[0].size(), 1U);
}

TEST_F(SortedFilesTest, CompressedAsTheFirstLevelIs) {
  for (std::uint64_t i = 0; i < 100; ++i) put(1, key_of(i), std::string(1000, 'v'));
  ASSERT_TRUE(sort().ok());
  rocksdb::SstFileReader reader(db_->GetOptions(handles_[1]));
  ASSERT_TRUE(reader.Open(files_[0].path).ok());
  const std::string name = reader.GetTableProperties()->compression_name;
  EXPECT_TRUE(name == "Snappy" || name == "BuiltinV2;01;") << name;  // the second of format 7, RocksDB 11's
}

TEST_F(SortedFilesTest, AFamilyThatIsGoneIsLeftOut) {
  put(0, "a", "1");
  put(1, "b", "2");
  remove_range(1, "z", "y");
  families_.take_handle(1).wait();
  families_.drop(1);
  ASSERT_TRUE(sort().ok());
  ASSERT_EQ(files_.size(), 1U);
  EXPECT_EQ(files_[0].column_family, 0U);
}

// RocksDB would take it for a file without keys.
TEST_F(SortedFilesTest, AFileWhoseFirstKeyIsDamagedIsRefused) {
  put(0, "a", "1");
  const auto env = rocksdb::NewCompositeEnv(std::make_shared<WrappedFiles<GarblingFile>>());
  rocksdb::DBOptions options = db_->GetDBOptions();
  options.env = env.get();
  const auto before = temporary_.entries();
  const MergedRun run({&generation_, 1}, generation_->last_sequence(), families_, is_superseded_);
  const Status status =
      write_sorted_files(run.next(run.bytes_left()), generation_->id(), families_, ValueReader(store_), store_, options,
                         temporary_.root().string(), stop_, &files_);
  EXPECT_TRUE(status.IsCorruption()) << status.ToString();
  EXPECT_EQ(temporary_.entries(), before);
}

TEST_F(SortedFilesTest, StoppedOrFailedLeavesNoFiles) {
  put(0, "a", "1");
  put(1, "b", "2");
  const auto before = temporary_.entries();
  stop_ = true;
  EXPECT_TRUE(sort().IsAborted());
  EXPECT_TRUE(files_.empty());
  stop_ = false;
  store_.failure = Status::IOError("the drive");
  generation_->add(1, "d", ++sequence_, Kind::put, {7, 0, 1});  // in no record
  EXPECT_FALSE(sort().ok());
  EXPECT_TRUE(files_.empty());
  EXPECT_EQ(temporary_.entries(), before);
}

// For all kinds of keys, values and blocks.
TEST_F(SortedFilesTest, AreNoLargerThanIsKeptFreeForThem) {
  struct Shape {
    std::size_t key_bytes;
    std::size_t value_bytes;
    int entries;
    int range_tombstones;
  };
  const Shape shapes[] = {{8, 0, 20'000, 0},    {8, 100, 5000, 100},  {30, 400, 5000, 0}, {3000, 1, 300, 0},
                          {5000, 5000, 200, 3}, {16, 100'000, 50, 0}, {8, 0, 0, 5000},    {700, 0, 10, 2000}};
  for (const std::size_t block_bytes : {64, 512, 4096}) {
    rocksdb::BlockBasedTableOptions table;
    table.block_size = block_bytes;
    table.filter_policy.reset(rocksdb::NewBloomFilterPolicy(10));
    rocksdb::ColumnFamilyOptions family;
    family.compression = rocksdb::kNoCompression;
    family.table_factory.reset(rocksdb::NewBlockBasedTableFactory(table));
    rocksdb::ColumnFamilyHandle* handle = nullptr;
    ASSERT_TRUE(db_->CreateColumnFamily(family, "blocks of " + std::to_string(block_bytes), &handle).ok());
    handles_.push_back(handle);
    ASSERT_TRUE(families_.add(handle).ok());
    for (const Shape& shape : shapes) {
      SCOPED_TRACE(testing::Message() << block_bytes << ": " << shape.key_bytes << ", " << shape.value_bytes);
      generation_ = std::make_shared<Generation>(generation_->id() + 1, families_, nullptr);
      std::mt19937_64 random(1);
      const auto bytes = [&](std::size_t count) {
        std::string some(count, '\0');
        for (char& one : some) one = static_cast<char>(random());
        return some;
      };
      for (int i = 0; i < shape.entries; ++i) put(handle->GetID(), bytes(shape.key_bytes), bytes(shape.value_bytes));
      for (int i = 0; i < shape.range_tombstones; ++i) {
        std::string begin = bytes(shape.key_bytes);
        begin.back() = '\0';
        std::string end = begin;
        end.back() = '\1';
        generation_->add(RangeTombstone{handle->GetID(), begin, end, ++sequence_});
      }
      ASSERT_TRUE(sort().ok());
      ASSERT_EQ(files_.size(), 1U);
      EXPECT_LE(files_[0].bytes, most_sorted_bytes(*generation_));
    }
  }
}

TEST_F(SortedFilesTest, LeavesOutWhatANewerGenerationHas) {
  put(0, "here", "1");
  put(0, "elsewhere", "1");
  is_superseded_ = [](const Entry& entry) { return entry.key() == "elsewhere"; };
  ASSERT_TRUE(sort().ok());
  ASSERT_EQ(files_.size(), 1U);
  EXPECT_EQ(files_.front().entries, 1U);
  models_[0].erase("elsewhere");
  ingest();
  EXPECT_EQ(in_db(0), models_[0]);
}

}  // namespace
}  // namespace spillway::spill
