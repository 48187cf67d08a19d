// The spill store in files: reads in flight, full drives and failures. spill_store_test.cc tests what every store
// promises.
#include "spill_region_store.h"

#include <gtest/gtest.h>
#include <rocksdb/file_system.h>

#include <chrono>
#include <filesystem>
#include <iterator>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/async_reads.h"
#include "base/file_bytes.h"
#include "device/emulated/emulated.h"
#include "device/preset/preset.h"
#include "fs/rocksdb/file_system.h"
#include "fs/volume.h"

namespace spillway::spill {
namespace {

using rocksdb::IODebugContext;
using rocksdb::IOOptions;
using rocksdb::IOStatus;
using rocksdb::Slice;
using rocksdb::Status;

// On the file system of an emulated drive.
TEST_F(RegionStoreTest, BegunReadsAreWaitedForOrAbandoned) {
  device::DriveSpec spec;
  spec.preset = "cosmos-plus";
  spec.preset_dirs = device::default_preset_dirs();
  spec.set = {{"capacity.capacity_bytes", "1GiB"}};
  const auto resolved = device::resolve(spec);
  ASSERT_TRUE(resolved) << resolved.status().message();
  const auto drive = device::make_simulated(device::DriveModel(resolved.value(), 1));
  fs::Volume volume(*drive, {});
  const RegionOptions options{fs::make_rocksdb_file_system(volume), directory_, 1 << 30};
  std::unique_ptr<Store> store;
  ASSERT_TRUE(open_region_store(options, &store).ok());
  recover(*store);
  std::vector<ReadRequest> requests;
  for (GenerationId generation = 1; generation <= 3; ++generation) {
    ASSERT_TRUE(store->begin(generation).ok());
    requests.push_back(
        {generation, append(*store, std::string(9000, 'r') + std::to_string(generation)), 8999, 2, {}, {}});
  }
  requests.push_back({3, requests[2].offset, 8999, 3, {}, {}});  // longer than the record
  requests.push_back({9, kLogHeaderBytes, 0, 1, {}, {}});
  ASSERT_TRUE(store->begin(4).ok());
  ASSERT_TRUE(store->sync().ok());
  const auto before = drive->now();
  store->begin_reads(requests);  // abandoned
  const auto in_flight = store->begin_reads(requests);
  EXPECT_EQ(drive->now(), before);
  in_flight->wait();
  EXPECT_GT(drive->now(), before);
  for (int i = 0; i < 40; ++i) store->begin_reads(requests);  // more abandoned reads than are kept
  store->begin_reads(requests)->wait();
  for (std::size_t i = 0; i < 3; ++i) {
    ASSERT_TRUE(requests[i].status.ok()) << requests[i].status.ToString();
    EXPECT_EQ(requests[i].bytes, "r" + std::to_string(i + 1));
  }
  EXPECT_TRUE(requests[3].status.IsCorruption());
  EXPECT_TRUE(requests[4].status.IsCorruption());
}

// Answers at once, as a file system may.
class AsyncReader final : public rocksdb::FSRandomAccessFileOwnerWrapper {
 public:
  using FSRandomAccessFileOwnerWrapper::FSRandomAccessFileOwnerWrapper;
  IOStatus ReadAsync(rocksdb::FSReadRequest& request, const IOOptions& options, ReadAsyncCallback callback,
                     void* argument, void** /*handle*/, rocksdb::IOHandleDeleter* /*deleter*/,
                     IODebugContext* dbg) override {
    request.status = target()->Read(request.offset, request.len, options, &request.result, request.scratch, dbg);
    callback(request, argument);
    return IOStatus::OK();
  }
};

// A file system with a name, with or without the property AsyncReads.
class NamedFileSystem final : public rocksdb::FileSystemWrapper {
 public:
  NamedFileSystem(const char* name, bool any_thread_may_wait)
      : FileSystemWrapper(rocksdb::FileSystem::Default()),
        name_(name),
        async_reads_{.any_thread_may_wait = any_thread_may_wait} {
    RegisterOptions(&async_reads_, nullptr);
  }
  const char* Name() const override { return name_; }
  IOStatus NewRandomAccessFile(const std::string& path, const rocksdb::FileOptions& options,
                               std::unique_ptr<rocksdb::FSRandomAccessFile>* result, IODebugContext* dbg) override {
    const IOStatus status = target()->NewRandomAccessFile(path, options, result, dbg);
    if (status.ok()) *result = std::make_unique<AsyncReader>(std::move(*result));
    return status;
  }

 private:
  const char* const name_;
  AsyncReads async_reads_;
};

// The property counts, not the file system's name.
TEST_F(RegionStoreTest, ReadsAreAsynchronousWhereTheFileSystemPromisesIt) {
  const auto begins_reads = [this](std::shared_ptr<rocksdb::FileSystem> files) {
    std::filesystem::remove_all(directory_);
    std::filesystem::create_directory(directory_);
    std::unique_ptr<Store> store;
    EXPECT_TRUE(open_region_store({std::move(files), directory_, 8 << 20}, &store).ok());
    recover(*store);
    EXPECT_TRUE(store->begin(1).ok());
    std::vector<ReadRequest> requests(1);
    requests[0] = {1, append(*store, "record"), 0, 6, {}, {}};
    const auto in_flight = store->begin_reads(requests);
    if (in_flight) in_flight->wait();
    EXPECT_TRUE(requests[0].status.ok()) << requests[0].status.ToString();
    EXPECT_EQ(requests[0].bytes, "record");
    return in_flight != nullptr;
  };
  EXPECT_TRUE(begins_reads(std::make_shared<NamedFileSystem>("another", true)));
  EXPECT_TRUE(begins_reads(
      std::make_shared<FaultyFileSystem>(faults_, std::make_shared<NamedFileSystem>("beneath a wrapper", true))));
  EXPECT_FALSE(begins_reads(std::make_shared<NamedFileSystem>("SpillwayFileSystem", false)));
  EXPECT_FALSE(begins_reads(std::make_shared<FaultyFileSystem>(faults_)));
}

TEST_F(TornLogTest, AScanOfDamagedBytesAndAReadOfMissingOnesSaySo) {
  auto store = open();
  recover(*store);
  std::string bytes;
  write(path("000001.spill"), garbled(damaged_.ends[1] + kFrameHeaderBytes + 3));
  const Status told = store->scan(1, [](const StoredRecord&) { return Status::OK(); });
  EXPECT_TRUE(told.IsCorruption());
  EXPECT_EQ(told, store->damaged(1, damaged_.ends[1]));
  EXPECT_NE(told.ToString().find(path("000001.spill") + " is damaged at byte " + std::to_string(damaged_.ends[1])),
            std::string::npos)
      << told.ToString();
  write(path("000001.spill"), damaged_.log.substr(0, damaged_.ends[1] + kFrameHeaderBytes + 3));
  EXPECT_TRUE(store->read(1, damaged_.ends[1], 0, 15, &bytes).IsCorruption());
  EXPECT_EQ(read(*store, 1, damaged_.ends[0], 0, 3), "one");
}

TEST_F(TornLogTest, CutRemovesTheRecordAndAllAfterIt) {
  {
    auto store = open();
    recover(*store);
    faults_.syncs = 0;
    ASSERT_TRUE(store->cut(1, damaged_.ends[1]).ok());
    EXPECT_EQ(faults_.syncs, 1);
    EXPECT_EQ(store->used_bytes(), damaged_.ends[1]);
    EXPECT_FALSE(std::filesystem::exists(path("000002.spill")));
  }
  EXPECT_EQ(found(), before(damaged_.ends[1]));
  {
    auto store = open();
    recover(*store);
    ASSERT_TRUE(store->cut(1, damaged_.ends[0]).ok());
    EXPECT_TRUE(std::filesystem::exists(path("000001.spill")));
    ASSERT_TRUE(store->begin(2).ok());
    append(*store, "other");
  }
  EXPECT_EQ(found(), (Records{{2, "other"}}));
}

TEST_F(TornLogTest, CutAfterACallbackThatEndedRecovery) {
  {
    auto store = open();
    int seen = 0;
    std::uint64_t unwanted = 0;
    const Status status = store->recover([&](const StoredRecord& record) {
      unwanted = record.offset;
      return ++seen == 2 ? Status::Aborted() : Status::OK();
    });
    EXPECT_TRUE(status.IsAborted());
    ASSERT_TRUE(store->cut(1, unwanted).ok());
  }
  EXPECT_EQ(found(), before(damaged_.ends[1]));
}

TEST_F(TornLogTest, DroppedIsGoneForGoodAndReadUntilReleased) {
  auto store = open();
  recover(*store);
  ASSERT_TRUE(store->cut(2, ~std::uint64_t{0}).ok());
  const std::uint64_t both = store->used_bytes();
  EXPECT_EQ(both, damaged_.log.size() + file_bytes(path("000002.spill")).size());
  faults_.directory_syncs = 0;
  ASSERT_TRUE(store->drop(1).ok());
  EXPECT_EQ(faults_.directory_syncs, 1);
  EXPECT_EQ(read(*store, 1, damaged_.ends[0], 0, 3), "one");
  EXPECT_EQ(store->used_bytes(), both);
  store.reset();  // like a kill

  store = open();
  EXPECT_EQ(recover(*store), (Records{{2, "four"}}));
  EXPECT_EQ(store->used_bytes(), file_bytes(path("000002.spill")).size());
  EXPECT_FALSE(std::filesystem::exists(path("000001.dropped")));
  ASSERT_TRUE(store->drop(2).ok());
  store->release(2);
  EXPECT_EQ(store->used_bytes(), 0U);
  std::string bytes;
  EXPECT_TRUE(store->read(2, kLogHeaderBytes, 0, 4, &bytes).IsCorruption());
  store.reset();
  EXPECT_TRUE(found().empty());
}

TEST_F(TornLogTest, ADropThatFailedIsTriedAgain) {
  auto store = open();
  recover(*store);
  faults_.rename = IOStatus::IOError("rename");
  EXPECT_FALSE(store->drop(1).ok());
  EXPECT_TRUE(std::filesystem::exists(path("000001.spill")));
  faults_.directory_sync = IOStatus::IOError("directory");
  EXPECT_FALSE(store->drop(1).ok());
  EXPECT_EQ(read(*store, 1, damaged_.ends[0], 0, 3), "one");
  EXPECT_TRUE(store->drop(1).ok());
  store.reset();
  EXPECT_EQ(found(), (Records{{2, "four"}}));
}

TEST_F(TornLogTest, AReadErrorIsNoEndOfTheLog) {
  auto store = open();
  faults_.read = IOStatus::IOError("the drive");
  Status status;
  recover(*store, &status);
  EXPECT_TRUE(status.IsIOError()) << status.ToString();
}

// A scan reads some pieces side by side. What lies before one that cannot be read is passed on, whatever lies behind.
TEST_F(RegionStoreTest, AScanPassesOnWhatLiesBeforeAPieceThatCannotBeRead) {
  auto store = open();
  recover(*store);
  ASSERT_TRUE(store->begin(1).ok());
  std::vector<std::uint64_t> offsets;
  std::vector<std::string> records;
  for (int i = 0; i < 40; ++i) {  // 5 MB, of one byte to more than a piece
    records.emplace_back(i % 8 == 0 ? kScanReadBytes + 7 : static_cast<std::size_t>(i) * 3000 + 1,
                         static_cast<char>(i));
    offsets.push_back(append(*store, records.back()));
  }
  std::vector<std::string> found;
  const auto take = [&](const StoredRecord& record) {
    EXPECT_EQ(record.offset, offsets[found.size()]);
    found.push_back(record.bytes.ToString());
    return Status::OK();
  };
  EXPECT_TRUE(store->scan(1, take).ok());
  EXPECT_EQ(found, records);
  EXPECT_EQ(faults_.most_read_together, kScanReads);
  for (const std::size_t piece : {0, 1, 2, 3, 4, 7}) {
    faults_.reads_end = piece * kScanReadBytes;
    found.clear();
    const Status status = store->scan(1, take);
    EXPECT_TRUE(status.IsIOError()) << status.ToString();
    std::size_t whole = 0;
    for (; offsets[whole] + kFrameHeaderBytes + records[whole].size() <= faults_.reads_end;) ++whole;
    EXPECT_EQ(found.size(), whole) << piece;
  }
}

// The limit does not depend on the bytes, which do not exist here.
TEST_F(RegionStoreTest, ARecordThatIsTooLongIsNoFailure) {
  auto store = open(std::uint64_t{1} << 40);
  recover(*store);
  ASSERT_TRUE(store->begin(1).ok());
  const Slice record("x", std::uint64_t{5} << 30);
  std::uint64_t offset = 0;
  EXPECT_TRUE(store->append({&record, 1}, {&offset, 1}).IsNoSpace());
  append(*store, "a");
  store = nullptr;
  EXPECT_EQ(found(), (Records{{1, "a"}}));
}

TEST_F(RegionStoreTest, AfterAFullDriveItContinuesWithoutTheRefusedRecord) {
  auto store = open();
  recover(*store);
  ASSERT_TRUE(store->begin(1).ok());
  append(*store, "one");
  faults_.append = IOStatus::NoSpace("full");
  faults_.append_part = 10;
  EXPECT_TRUE(try_append(*store, "does not fit").IsNoSpace());
  const std::uint64_t offset = append(*store, "two");
  EXPECT_EQ(read(*store, 1, offset, 0, 3), "two");
  store.reset();
  EXPECT_EQ(found(), (Records{{1, "one"}, {1, "two"}}));
}

TEST_F(RegionStoreTest, AfterAFailedWriteOrSyncItRefusesUntilANewGenerationBegins) {
  auto store = open();
  recover(*store);
  ASSERT_TRUE(store->begin(1).ok());
  const std::uint64_t one = append(*store, "one");
  faults_.append = IOStatus::IOError("the drive");
  faults_.append_part = 15;
  EXPECT_TRUE(try_append(*store, "two").IsIOError());
  EXPECT_TRUE(try_append(*store, "three").IsIOError());
  EXPECT_TRUE(store->sync().IsIOError());
  EXPECT_EQ(read(*store, 1, one, 0, 3), "one");
  faults_.append = IOStatus::IOError("still");
  EXPECT_TRUE(store->begin(2).IsIOError());
  EXPECT_TRUE(try_append(*store, "four").IsIOError());
  ASSERT_TRUE(store->begin(2).ok());
  append(*store, "five");
  faults_.sync = IOStatus::IOError("the drive");
  EXPECT_TRUE(store->sync().IsIOError());
  EXPECT_TRUE(try_append(*store, "six").IsIOError());
  ASSERT_TRUE(store->begin(3).ok());
  append(*store, "seven");
  EXPECT_EQ(read(*store, 1, one, 0, 3), "one");
  store.reset();
  EXPECT_EQ(found(), (Records{{1, "one"}, {2, "five"}, {3, "seven"}}));
}

// A log is written out as it grows. What the kernel says of that then, it does not say again when it is synced.
TEST_F(RegionStoreTest, AfterAFailureToWriteOutItRefusesUntilANewGenerationBegins) {
  auto store = open();
  recover(*store);
  ASSERT_TRUE(store->begin(1).ok());
  const std::string large(1 << 20, 'l');
  append(*store, large);
  const auto wait_for_range_sync = [&](int count) {
    for (int i = 0; i < 10'000 && faults_.range_syncs < count; ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    ASSERT_EQ(faults_.range_syncs, count);
  };
  wait_for_range_sync(1);
  faults_.range_sync = IOStatus::IOError("the drive");
  append(*store, large);
  wait_for_range_sync(2);
  EXPECT_TRUE(store->sync().IsIOError());
  EXPECT_TRUE(try_append(*store, "refused").IsIOError());
  EXPECT_EQ(faults_.syncs, 0) << "it was synced as if nothing had been lost";
  ASSERT_TRUE(store->begin(2).ok());
  append(*store, "after");
  store.reset();
  EXPECT_EQ(found(), (Records{{1, large}, {1, large}, {2, "after"}}));
}

TEST_F(RegionStoreTest, AFileSystemThatWritesNoRangesOutSyncsInstead) {
  auto store = open();
  recover(*store);
  ASSERT_TRUE(store->begin(1).ok());
  faults_.range_sync = IOStatus::NotSupported("ranges");
  append(*store, std::string(1 << 20, 'l'));
  for (int i = 0; i < 10'000 && faults_.syncs == 0; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  EXPECT_EQ(faults_.syncs, 1);
  EXPECT_TRUE(store->sync().ok());
  EXPECT_TRUE(try_append(*store, "goes on").ok());
}

TEST_F(RegionStoreTest, ADirectoryThatCannotBeUsedIsNamed) {
  auto first = open();
  std::unique_ptr<Store> second;
  const RegionOptions options{rocksdb::FileSystem::Default(), directory_, 1 << 20};
  Status status = open_region_store(options, &second);
  EXPECT_TRUE(status.IsIOError());
  EXPECT_NE(status.ToString().find(directory_), std::string::npos) << status.ToString();

  const std::string file = temporary_.path("file");
  write(file, "no directory");
  status = open_region_store({rocksdb::FileSystem::Default(), file, 1 << 20}, &second);
  EXPECT_NE(status.ToString().find(file), std::string::npos) << status.ToString();
  EXPECT_EQ(second, nullptr);
}

// Its threads begin with the first log.
TEST_F(RegionStoreTest, OneThatTakesNothingHasNoThreads) {
  const auto threads = [] {
    return std::distance(std::filesystem::directory_iterator("/proc/self/task"), std::filesystem::directory_iterator());
  };
  const auto before = threads();
  const auto store = open();
  recover(*store);
  EXPECT_EQ(threads(), before);
  ASSERT_TRUE(store->begin(1).ok());
  EXPECT_EQ(threads(), before + 2);
}

// A sync may take half of a second, and generations end early.
TEST_F(RegionStoreTest, TheNextLogsAreMadeDuringASync) {
  const auto store = open();
  recover(*store);
  ASSERT_TRUE(store->begin(1).ok());
  append(*store, "one");
  faults_.holds_syncs = true;
  ASSERT_TRUE(store->begin(2).ok());
  while (faults_.syncs == 0) std::this_thread::yield();  // of the first log, and held
  ASSERT_TRUE(store->begin(3).ok());
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  const auto are_made = [&] {
    return std::filesystem::exists(path("000004.spill")) && std::filesystem::exists(path("000005.spill"));
  };
  while (!are_made() && std::chrono::steady_clock::now() < end) std::this_thread::yield();
  EXPECT_TRUE(are_made());
  faults_.holds_syncs = false;
}

// All that a drop waits for the drive for is done ahead, beside appends, once the generation has ended.
TEST_F(RegionStoreTest, ADropThatWasPreparedWaitsForNothing) {
  const auto store = open();
  recover(*store);
  for (GenerationId generation = 1; generation <= 3; ++generation) {
    ASSERT_TRUE(store->begin(generation).ok());
    append(*store, "a record");
    if (generation == 3) store->end();
  }
  constexpr int kNames = 5;  // two logs are made ahead
  while (faults_.directory_syncs < kNames) std::this_thread::yield();
  for (GenerationId generation = 1; generation <= 3; ++generation) {
    store->prepare_drop(generation);
    const int syncs = faults_.syncs;
    const int directory_syncs = faults_.directory_syncs;
    faults_.rename = IOStatus::IOError("nothing is renamed any more");
    EXPECT_TRUE(store->drop(generation).ok());
    EXPECT_FALSE(std::exchange(faults_.rename, IOStatus::OK()).ok());
    EXPECT_EQ(faults_.syncs, syncs);
    EXPECT_EQ(faults_.directory_syncs, directory_syncs);
  }
}

}  // namespace
}  // namespace spillway::spill
