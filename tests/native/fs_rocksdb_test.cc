// RocksDB itself on the adapter, over a drive model in virtual time.
#include <gtest/gtest.h>
#include <rocksdb/convenience.h>
#include <rocksdb/db.h>
#include <rocksdb/env.h>
#include <rocksdb/statistics.h>
#include <rocksdb/table.h>
#include <rocksdb/utilities/checkpoint.h>

#include <filesystem>
#include <random>

#include "base/async_reads.h"
#include "device/emulated/emulated.h"
#include "fs/rocksdb/counting_file_system.h"
#include "fs/rocksdb/file_causes.h"
#include "fs/rocksdb/file_system.h"
#include "fs/write_counts.h"
#include "fs_fake_device.h"
#include "spill/compat/db_out.h"
#include "temporary_directory.h"

namespace spillway::fs {
namespace {

constexpr std::uint64_t kMiB = 1 << 20;

ssd::SsdConfig small_drive(std::uint64_t capacity_bytes) {
  ssd::SsdConfig config;
  config.geometry.pages_per_block = 64;
  config.capacity.capacity_bytes = capacity_bytes;
  config.capacity.spare_factor = 0.2;
  return config;
}

struct Mode {
  bool direct = false;
  std::uint64_t page_cache_bytes = 0;
  bool discard = true;
};

class RocksdbTest : public ::testing::TestWithParam<Mode> {
 protected:
  void make_drive(std::uint64_t capacity_bytes) {
    const Mode mode = GetParam();
    env_.reset();
    volume_.reset();
    device_ = device::make_simulated(ssd::Ssd(small_drive(capacity_bytes), 1));
    volume_ = std::make_unique<Volume>(
        *device_, VolumeOptions{.discard = mode.discard, .page_cache_bytes = mode.page_cache_bytes});
    env_ = rocksdb::NewCompositeEnv(make_rocksdb_file_system(*volume_));
  }

  rocksdb::Options options() {
    rocksdb::Options options;
    options.create_if_missing = true;
    options.env = env_.get();
    options.write_buffer_size = 2 * kMiB;
    options.target_file_size_base = 2 * kMiB;
    options.max_bytes_for_level_base = 8 * kMiB;
    options.compression = rocksdb::kNoCompression;
    options.use_direct_reads = GetParam().direct;
    options.use_direct_io_for_flush_and_compaction = GetParam().direct;
    if (!statistics_) statistics_ = rocksdb::CreateDBStatistics();
    options.statistics = statistics_;
    return options;
  }

  rocksdb::Status open(const rocksdb::Options& options) {
    rocksdb::DB* db = nullptr;
    const rocksdb::Status status = rocksdb::DB::Open(options, directory_, spill::DbOut(&db));
    db_.reset(db);
    return status;
  }

  static std::string key_of(std::uint64_t number) {
    char text[24];
    std::snprintf(text, sizeof text, "%016llu", static_cast<unsigned long long>(number));
    return text;
  }
  static std::string value_of(std::uint64_t number) {
    return std::string(900, static_cast<char>('a' + number % 26)) + key_of(number);
  }

  rocksdb::Status load(std::uint64_t pairs, const rocksdb::WriteOptions& how = {}) {
    std::mt19937_64 random(3);
    for (std::uint64_t i = 0; i < pairs; ++i) {
      const std::uint64_t number = random() % pairs;
      const rocksdb::Status status = db_->Put(how, key_of(number), value_of(number));
      if (!status.ok()) return status;
    }
    return rocksdb::Status::OK();
  }

  // Waits until nothing is pending or running. Work that moves from one property to the other between two readings is
  // seen by the next pair, so two idle pairs in a row are needed.
  void rest() {
    for (int idle = 0; idle < 2;) {
      std::uint64_t busy = 0;
      for (const auto& name :
           {rocksdb::DB::Properties::kMemTableFlushPending, rocksdb::DB::Properties::kCompactionPending,
            rocksdb::DB::Properties::kNumRunningFlushes, rocksdb::DB::Properties::kNumRunningCompactions}) {
        std::uint64_t value = 0;
        db_->GetIntProperty(name, &value);
        busy += value;
      }
      idle = busy == 0 ? idle + 1 : 0;
    }
  }

  std::uint64_t written(Cause cause) {
    return device_->counters().host_bytes_written_by_cause[static_cast<std::size_t>(cause)];
  }
  std::uint64_t ticker(rocksdb::Tickers which) { return statistics_->getTickerCount(which); }

  const TemporaryDirectory temporary_;
  const std::string directory_ = temporary_.root();
  std::shared_ptr<rocksdb::Statistics> statistics_;
  std::unique_ptr<device::EmulatedDevice> device_;
  std::unique_ptr<Volume> volume_;
  std::unique_ptr<rocksdb::Env> env_;
  std::unique_ptr<rocksdb::DB> db_;
};

#define EXPECT_NEAR_SHARE(value, expected, share) \
  EXPECT_NEAR(static_cast<double>(value), static_cast<double>(expected), (share) * static_cast<double>(expected))

TEST_P(RocksdbTest, WhatIsPutIsThereAfterReopening) {
  make_drive(512 * kMiB);
  ASSERT_TRUE(open(options()).ok());
  ASSERT_TRUE(load(20000).ok());
  std::vector<std::string> before;
  std::unique_ptr<rocksdb::Iterator> all(db_->NewIterator({}));
  for (all->SeekToFirst(); all->Valid(); all->Next()) before.push_back(all->key().ToString());
  all.reset();
  db_.reset();
  ASSERT_TRUE(open(options()).ok());
  std::size_t at = 0;
  all.reset(db_->NewIterator({}));
  for (all->SeekToFirst(); all->Valid(); all->Next(), ++at) {
    ASSERT_LT(at, before.size());
    ASSERT_EQ(all->key().ToString(), before[at]);
    ASSERT_EQ(all->value().ToString(), value_of(std::stoull(before[at])));
  }
  EXPECT_EQ(at, before.size());
  EXPECT_TRUE(all->status().ok());
  all.reset();
  db_.reset();  // its background threads use the drive, and an audit must not run concurrently
  EXPECT_FALSE(device_->model().audit().has_value());
}

TEST_P(RocksdbTest, CausesAddUpToHostBytesAndTablesToTheTickers) {
  make_drive(512 * kMiB);
  auto how = options();
  how.level0_slowdown_writes_trigger = 6;  // so that writers are delayed, and priorities become IO_USER
  how.level0_stop_writes_trigger = 8;
  ASSERT_TRUE(open(how).ok());
  ASSERT_TRUE(load(60000).ok());
  ASSERT_TRUE(db_->Flush({}).ok());
  rest();
  db_.reset();
  const ssd::Counters counters = device_->counters();
  std::uint64_t sum = 0;
  for (const std::uint64_t bytes : counters.host_bytes_written_by_cause) sum += bytes;
  EXPECT_EQ(sum, counters.host_bytes_written);
  EXPECT_GT(ticker(rocksdb::COMPACT_WRITE_BYTES), ticker(rocksdb::FLUSH_WRITE_BYTES));
  EXPECT_NEAR_SHARE(written(Cause::flush), ticker(rocksdb::FLUSH_WRITE_BYTES), 0.01);
  EXPECT_NEAR_SHARE(written(Cause::compaction), ticker(rocksdb::COMPACT_WRITE_BYTES), 0.01);
  EXPECT_NEAR_SHARE(written(Cause::wal), ticker(rocksdb::WAL_FILE_BYTES), 0.02);
  EXPECT_NEAR_SHARE(
      counters.host_bytes_written,
      ticker(rocksdb::FLUSH_WRITE_BYTES) + ticker(rocksdb::COMPACT_WRITE_BYTES) + ticker(rocksdb::WAL_FILE_BYTES),
      0.01);
}

// Without a page cache, which hides reads.
class UncachedRocksdbTest : public RocksdbTest {};

TEST_P(UncachedRocksdbTest, CompactionsReadsAreTheirs) {
  make_drive(512 * kMiB);
  ASSERT_TRUE(open(options()).ok());
  ASSERT_TRUE(load(40000).ok());
  rest();
  const auto read = device_->counters().host_bytes_read_by_cause;
  const auto compaction = read[static_cast<std::size_t>(Cause::compaction)];
  EXPECT_GT(compaction, 0.9 * static_cast<double>(ticker(rocksdb::COMPACT_READ_BYTES)));
  std::string value;
  for (std::uint64_t i = 0; i < 1000; ++i) (void)db_->Get({}, key_of(i * 37), &value).ok();
  const auto after = device_->counters().host_bytes_read_by_cause;
  EXPECT_EQ(after[static_cast<std::size_t>(Cause::compaction)], compaction);
  EXPECT_GT(after[static_cast<std::size_t>(Cause::user)], read[static_cast<std::size_t>(Cause::user)]);
}

TEST_P(RocksdbTest, EverySyncedPutReachesTheDrive) {
  make_drive(512 * kMiB);
  ASSERT_TRUE(open(options()).ok());
  const auto before = device_->counters();
  rocksdb::WriteOptions synced;
  synced.sync = true;
  for (std::uint64_t i = 0; i < 50; ++i) ASSERT_TRUE(db_->Put(synced, key_of(i), "small").ok());
  const auto after = device_->counters();
  EXPECT_EQ(after.host_flushes - before.host_flushes, 50U);
  EXPECT_GE(after.host_bytes_written - before.host_bytes_written, 50 * 4096U);
}

TEST_P(RocksdbTest, SpaceFollowsTheDirectory) {
  make_drive(512 * kMiB);
  ASSERT_TRUE(open(options()).ok());
  ASSERT_TRUE(load(30000).ok());
  ASSERT_TRUE(db_->Flush({}).ok());
  rest();
  db_.reset();
  std::uint64_t directory_bytes = 0;
  for (const auto& entry : std::filesystem::directory_iterator(directory_)) {
    if (entry.path().filename().string().starts_with("LOG")) continue;
    directory_bytes += (entry.file_size() + 4095) / 4096 * 4096;
  }
  EXPECT_EQ(volume_->space().held_bytes, directory_bytes);
  ASSERT_TRUE(rocksdb::DestroyDB(directory_, options()).ok());
  EXPECT_EQ(volume_->space().held_bytes, 0U);
  if (GetParam().discard) {
    EXPECT_EQ(device_->model().mapped_units(), 0U);
  } else {
    EXPECT_GT(device_->model().mapped_units(), 0U);
  }
}

TEST_P(RocksdbTest, ADatabaseThatWasThereIsAdopted) {
  make_drive(512 * kMiB);
  ASSERT_TRUE(open(options()).ok());
  ASSERT_TRUE(load(20000).ok());
  rest();  // an interrupted compaction leaves files that the next open deletes instead of adopting
  db_.reset();
  const auto held = volume_->space().held_bytes;
  make_drive(512 * kMiB);  // another, empty drive
  ASSERT_TRUE(open(options()).ok());
  EXPECT_NEAR_SHARE(volume_->space().adopted_bytes, held, 0.15);  // recovery flushes the log and deletes files
  std::string value;
  std::unique_ptr<rocksdb::Iterator> all(db_->NewIterator({}));
  std::size_t pairs = 0;
  for (all->SeekToFirst(); all->Valid(); all->Next()) ++pairs;
  EXPECT_GT(pairs, 10000U);
  EXPECT_GT(device_->counters().unmapped_reads, 0U);
}

TEST_P(RocksdbTest, AFullDriveComesBackAsNoSpace) {
  make_drive(24 * kMiB);
  ASSERT_TRUE(open(options()).ok());
  const rocksdb::Status status = load(60000);
  // NoSpace, or the status of a writer during RocksDB's recovery: Incomplete, with the cause.
  EXPECT_TRUE(status.IsNoSpace() || status.IsIncomplete()) << status.ToString();
  EXPECT_NE(status.ToString().find("no space on the drive"), std::string::npos) << status.ToString();
}

TEST_P(RocksdbTest, CheckpointsShareTheirTables) {
  make_drive(512 * kMiB);
  ASSERT_TRUE(open(options()).ok());
  ASSERT_TRUE(load(20000).ok());
  ASSERT_TRUE(db_->Flush({}).ok());
  rest();
  const auto before = volume_->space().held_bytes;
  rocksdb::Checkpoint* made = nullptr;
  ASSERT_TRUE(rocksdb::Checkpoint::Create(db_.get(), &made).ok());
  const std::unique_ptr<rocksdb::Checkpoint> checkpoint(made);
  ASSERT_TRUE(checkpoint->CreateCheckpoint(directory_ + "/kept").ok());
  EXPECT_LT(volume_->space().held_bytes, before + kMiB);
  db_.reset();
  rocksdb::DB* db = nullptr;
  ASSERT_TRUE(rocksdb::DB::Open(options(), directory_ + "/kept", spill::DbOut(&db)).ok());
  const std::unique_ptr<rocksdb::DB> kept(db);
  EXPECT_EQ(volume_->space().adopted_bytes, 0U);
}

std::string name_of_mode(const ::testing::TestParamInfo<Mode>& test) {
  const Mode& mode = test.param;
  return std::string(mode.direct ? "direct" : "buffered") + (mode.page_cache_bytes > 0 ? "_cached" : "") +
         (mode.discard ? "" : "_without_discard");
}

INSTANTIATE_TEST_SUITE_P(Uncached, UncachedRocksdbTest,
                         ::testing::Values(Mode{.direct = true}, Mode{.direct = false},
                                           Mode{.direct = true, .discard = false}),
                         name_of_mode);
INSTANTIATE_TEST_SUITE_P(Modes, RocksdbTest,
                         ::testing::Values(Mode{.direct = true}, Mode{.direct = false},
                                           Mode{.direct = false, .page_cache_bytes = 32 * kMiB},
                                           Mode{.direct = true, .discard = false}),
                         name_of_mode);

TEST(MultiRead, SubmitsItsReadsTogether) {
  const TemporaryDirectory temporary;
  FakeDevice device(64 * kMiB);
  Volume volume(device, {});
  const auto file_system = make_rocksdb_file_system(volume);
  std::unique_ptr<rocksdb::FSWritableFile> writer;
  const rocksdb::FileOptions direct = [] {
    rocksdb::FileOptions options;
    options.use_direct_reads = true;
    return options;
  }();
  ASSERT_TRUE(file_system->NewWritableFile(temporary.path("1.sst"), direct, &writer, nullptr).ok());
  ASSERT_TRUE(writer->Append(std::string(kMiB, 'x'), {}, nullptr).ok());
  ASSERT_TRUE(writer->Sync({}, nullptr).ok());
  ASSERT_TRUE(writer->Close({}, nullptr).ok());
  std::unique_ptr<rocksdb::FSRandomAccessFile> reader;
  ASSERT_TRUE(file_system->NewRandomAccessFile(temporary.path("1.sst"), direct, &reader, nullptr).ok());

  std::vector<std::string> buffers(8, std::string(kPageBytes, ' '));
  std::vector<rocksdb::FSReadRequest> requests(buffers.size());
  for (std::size_t i = 0; i < requests.size(); ++i) {
    requests[i].offset = i * 10 * kPageBytes;
    requests[i].len = kPageBytes;
    requests[i].scratch = buffers[i].data();
  }
  device.forget();
  ASSERT_TRUE(reader->MultiRead(requests.data(), requests.size(), {}, nullptr).ok());
  EXPECT_EQ(device.most_in_flight(), requests.size() * kPageBytes);
  for (const rocksdb::FSReadRequest& request : requests) {
    EXPECT_TRUE(request.status.ok());
    EXPECT_EQ(request.result, std::string(kPageBytes, 'x'));
  }
}

TEST(RangeSync, WaitsForItsBytesWhereRocksdbIsStrict) {
  for (const bool strict : {false, true}) {
    const TemporaryDirectory temporary;
    FakeDevice device(64 * kMiB);
    device.slow = true;
    Volume volume(device, {.writeback_bytes = 16 * kMiB, .outstanding_bytes = 16 * kMiB});
    const auto file_system = make_rocksdb_file_system(volume);
    rocksdb::FileOptions options;
    options.strict_bytes_per_sync = strict;
    std::unique_ptr<rocksdb::FSWritableFile> writer;
    ASSERT_TRUE(file_system->NewWritableFile(temporary.path("1.sst"), options, &writer, nullptr).ok());
    ASSERT_TRUE(writer->Append(std::string(kMiB + 5, 'x'), {}, nullptr).ok());
    ASSERT_EQ(device.bytes(device::Opcode::write), 0U);
    ASSERT_TRUE(writer->RangeSync(0, kMiB, {}, nullptr).ok());
    EXPECT_EQ(device.bytes(device::Opcode::write), kMiB);  // whole pages
    EXPECT_EQ(device.in_flight() == 0, strict);
    EXPECT_EQ(device.bytes(device::Opcode::flush), 0U);
    ASSERT_TRUE(writer->Close({}, nullptr).ok());
  }
}

// The accelerator's log is read where it was just written, and renamed and removed while it is read.
TEST(FileThatGrows, IsReadAsFarAsItWasWritten) {
  const TemporaryDirectory temporary;
  FakeDevice device(64 * kMiB);
  Volume volume(device, {});
  const auto file_system = make_rocksdb_file_system(volume);
  const std::string path = temporary.path("000001.spill");
  const std::string renamed = temporary.path("000001.dropped");
  std::unique_ptr<rocksdb::FSWritableFile> writer;
  std::unique_ptr<rocksdb::FSRandomAccessFile> reader;
  ASSERT_TRUE(file_system->NewWritableFile(path, {}, &writer, nullptr).ok());
  ASSERT_TRUE(file_system->NewRandomAccessFile(path, {}, &reader, nullptr).ok());

  std::string scratch(2 * kPageBytes, ' ');
  const auto read = [&](std::uint64_t offset) {
    rocksdb::Slice result;
    EXPECT_TRUE(reader->Read(offset, scratch.size(), {}, &result, scratch.data(), nullptr).ok());
    return result.ToString();
  };
  const auto drive_read = [&] { return device.bytes(device::Opcode::read); };
  EXPECT_EQ(read(0), "");
  ASSERT_TRUE(writer->Append(std::string(kPageBytes, 'a'), {}, nullptr).ok());
  EXPECT_EQ(read(0), std::string(kPageBytes, 'a'));
  ASSERT_TRUE(writer->Append(std::string(kPageBytes, 'b'), {}, nullptr).ok());
  EXPECT_EQ(read(kPageBytes), std::string(kPageBytes, 'b'));
  EXPECT_EQ(drive_read(), 0U);  // the page is dirty, so it is in memory
  ASSERT_TRUE(writer->Sync({}, nullptr).ok());
  ASSERT_TRUE(writer->Append("end", {}, nullptr).ok());
  EXPECT_EQ(read(kPageBytes), std::string(kPageBytes, 'b') + "end");
  EXPECT_EQ(drive_read(), kPageBytes);

  ASSERT_TRUE(writer->Close({}, nullptr).ok());
  ASSERT_TRUE(file_system->RenameFile(path, renamed, {}, nullptr).ok());
  EXPECT_EQ(read(0).front(), 'a');
  ASSERT_TRUE(file_system->DeleteFile(renamed, {}, nullptr).ok());
  EXPECT_EQ(read(0).front(), 'a');
  reader.reset();
  EXPECT_EQ(volume.space().held_bytes, 0U);
}

// RocksDB serialises and compares file systems by their registered options. The property must not become one.
TEST(AsyncReads, ArePromisedThroughWrappersAndAreNoSetting) {
  FakeDevice device(64 * kMiB);
  Volume volume(device, {});
  const std::shared_ptr<rocksdb::FileSystem> files = make_rocksdb_file_system(volume);
  WriteCounts counts;
  const auto counting = make_counting_file_system(counts, files);
  for (const rocksdb::FileSystem* one : {files.get(), counting.get()}) {
    const auto* const promise = one->GetOptions<AsyncReads>();
    ASSERT_NE(promise, nullptr) << one->Name();
    EXPECT_TRUE(promise->any_thread_may_wait) << one->Name();
  }
  EXPECT_EQ(rocksdb::FileSystem::Default()->GetOptions<AsyncReads>(), nullptr);
  std::string text;
  ASSERT_TRUE(files->GetOptionString(rocksdb::ConfigOptions(), &text).ok());
  EXPECT_EQ(text.find("AsyncReads"), std::string::npos) << text;
  std::string mismatch;
  EXPECT_TRUE(files->AreEquivalent(rocksdb::ConfigOptions(), files.get(), &mismatch)) << mismatch;
}

TEST(CauseOfTable, LearntFromWhatTheWriterAnnounces) {
  using rocksdb::Env;
  EXPECT_EQ(cause_of_table(Env::IO_HIGH, false), Cause::flush);
  EXPECT_EQ(cause_of_table(Env::IO_USER, false), Cause::flush);
  EXPECT_EQ(cause_of_table(Env::IO_LOW, true), Cause::compaction);
  EXPECT_EQ(cause_of_table(Env::IO_USER, true), Cause::compaction);
  EXPECT_EQ(cause_of_table(Env::IO_TOTAL, false), Cause::other);  // a program's own SstFileWriter
}

TEST(CauseOfName, LearntFromRocksdbsNames) {
  EXPECT_EQ(cause_of_name("/db/000012.log"), Cause::wal);
  EXPECT_EQ(cause_of_name("/db/000012.blob"), Cause::blob);
  EXPECT_EQ(cause_of_name("/db/MANIFEST-000004"), Cause::manifest);
  EXPECT_EQ(cause_of_name("/db/spill/000012.spill"), Cause::spill);
  EXPECT_EQ(cause_of_name("/db/OPTIONS-000007"), Cause::other);
  EXPECT_EQ(cause_of_name("/db/000012.sst"), Cause::other);
}

}  // namespace
}  // namespace spillway::fs
