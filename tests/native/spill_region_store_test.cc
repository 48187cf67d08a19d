// The software region: what is in the files is what comes back, whatever happened to their ends.
#include <gtest/gtest.h>
#include <rocksdb/file_checksum.h>
#include <rocksdb/file_system.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include "base/async_reads.h"
#include "base/file_bytes.h"
#include "device/emulated/emulated.h"
#include "device/preset/preset.h"
#include "flipped_bytes.h"
#include "fs/rocksdb/file_system.h"
#include "fs/volume.h"
#include "spill/store/region/log_frame.h"
#include "spill/store/region/region_store.h"
#include "temporary_directory.h"

namespace spillway::spill {
namespace {

using rocksdb::IODebugContext;
using rocksdb::IOOptions;
using rocksdb::IOStatus;
using rocksdb::Slice;
using rocksdb::Status;

// Fails what it is told to, once; counts syncs, and spares the host's disk them.
struct Faults {
  IOStatus append;              // what the next append returns, if not OK,
  std::size_t append_part = 0;  // after it wrote so many bytes
  IOStatus sync;
  IOStatus rename;
  IOStatus directory_sync;
  IOStatus read;
  std::atomic<int> syncs = 0;
  std::atomic<bool> holds_syncs = false;
  int directory_syncs = 0;

  static IOStatus take(IOStatus* planned) { return std::exchange(*planned, IOStatus::OK()); }
};

class FaultyWriter final : public rocksdb::FSWritableFileOwnerWrapper {
 public:
  FaultyWriter(std::unique_ptr<rocksdb::FSWritableFile> file, Faults& faults)
      : FSWritableFileOwnerWrapper(std::move(file)), faults_(faults) {}
  IOStatus Append(const Slice& data, const IOOptions& options, IODebugContext* dbg) override {
    if (const IOStatus fault = Faults::take(&faults_.append); !fault.ok()) {
      EXPECT_TRUE(target()->Append(Slice(data.data(), std::min(data.size(), faults_.append_part)), options, dbg).ok());
      return fault;
    }
    return target()->Append(data, options, dbg);
  }
  IOStatus Sync(const IOOptions& /*options*/, IODebugContext* /*dbg*/) override {
    ++faults_.syncs;
    while (faults_.holds_syncs) std::this_thread::yield();
    return Faults::take(&faults_.sync);
  }
  IOStatus Fsync(const IOOptions& options, IODebugContext* dbg) override { return Sync(options, dbg); }

 private:
  Faults& faults_;
};

class FaultyReader final : public rocksdb::FSRandomAccessFileOwnerWrapper {
 public:
  FaultyReader(std::unique_ptr<rocksdb::FSRandomAccessFile> file, Faults& faults)
      : FSRandomAccessFileOwnerWrapper(std::move(file)), faults_(faults) {}
  IOStatus Read(uint64_t offset, size_t n, const IOOptions& options, Slice* result, char* scratch,
                IODebugContext* dbg) const override {
    const IOStatus fault = Faults::take(&faults_.read);
    return fault.ok() ? target()->Read(offset, n, options, result, scratch, dbg) : fault;
  }

 private:
  Faults& faults_;
};

class FaultyDirectory final : public rocksdb::FSDirectoryWrapper {
 public:
  FaultyDirectory(std::unique_ptr<rocksdb::FSDirectory> directory, Faults& faults)
      : FSDirectoryWrapper(std::move(directory)), faults_(faults) {}
  IOStatus FsyncWithDirOptions(const IOOptions& /*options*/, IODebugContext* /*dbg*/,
                               const rocksdb::DirFsyncOptions& /*why*/) override {
    ++faults_.directory_syncs;
    return Faults::take(&faults_.directory_sync);
  }

 private:
  Faults& faults_;
};

class FaultyFileSystem final : public rocksdb::FileSystemWrapper {
 public:
  explicit FaultyFileSystem(Faults& faults, const std::shared_ptr<FileSystem>& target = FileSystem::Default())
      : FileSystemWrapper(target), faults_(faults) {}
  const char* Name() const override { return "FaultyFileSystem"; }
  IOStatus NewWritableFile(const std::string& path, const rocksdb::FileOptions& options,
                           std::unique_ptr<rocksdb::FSWritableFile>* result, IODebugContext* dbg) override {
    const IOStatus status = target()->NewWritableFile(path, options, result, dbg);
    if (status.ok() && is_log(path)) *result = std::make_unique<FaultyWriter>(std::move(*result), faults_);
    return status;
  }
  IOStatus ReopenWritableFile(const std::string& path, const rocksdb::FileOptions& options,
                              std::unique_ptr<rocksdb::FSWritableFile>* result, IODebugContext* dbg) override {
    const IOStatus status = target()->ReopenWritableFile(path, options, result, dbg);
    if (status.ok() && is_log(path)) *result = std::make_unique<FaultyWriter>(std::move(*result), faults_);
    return status;
  }
  IOStatus NewRandomAccessFile(const std::string& path, const rocksdb::FileOptions& options,
                               std::unique_ptr<rocksdb::FSRandomAccessFile>* result, IODebugContext* dbg) override {
    const IOStatus status = target()->NewRandomAccessFile(path, options, result, dbg);
    if (status.ok()) *result = std::make_unique<FaultyReader>(std::move(*result), faults_);
    return status;
  }
  IOStatus NewDirectory(const std::string& path, const IOOptions& options,
                        std::unique_ptr<rocksdb::FSDirectory>* result, IODebugContext* dbg) override {
    const IOStatus status = target()->NewDirectory(path, options, result, dbg);
    if (status.ok()) *result = std::make_unique<FaultyDirectory>(std::move(*result), faults_);
    return status;
  }
  IOStatus RenameFile(const std::string& from, const std::string& to, const IOOptions& options,
                      IODebugContext* dbg) override {
    const IOStatus fault = Faults::take(&faults_.rename);
    return fault.ok() ? target()->RenameFile(from, to, options, dbg) : fault;
  }

 private:
  static bool is_log(const std::string& path) { return path.find("DURABLE") == std::string::npos; }

  Faults& faults_;
};

using Records = std::vector<std::pair<GenerationId, std::string>>;

class RegionStoreTest : public ::testing::Test {
 protected:
  RegionStoreTest() { std::filesystem::create_directory(directory_); }

  std::unique_ptr<Store> open(std::uint64_t capacity_bytes = 8 << 20) {
    std::unique_ptr<Store> store;
    const RegionOptions options{std::make_shared<FaultyFileSystem>(faults_), directory_, capacity_bytes};
    const Status status = open_region_store(options, &store);
    EXPECT_TRUE(status.ok()) << status.ToString();
    return store;
  }

  Records recover(Store& store, Status* status = nullptr) {
    Records records;
    last_ = {};
    const Status all = store.recover([&](const StoredRecord& record) {
      records.emplace_back(record.generation, record.bytes.ToString());
      last_ = {record.generation, record.offset};
      return Status::OK();
    });
    if (status == nullptr) {
      EXPECT_TRUE(all.ok()) << all.ToString();
    } else {
      *status = all;
    }
    return records;
  }
  // What a new process finds.
  Records found() { return recover(*open()); }

  static std::uint64_t append(Store& store, const std::string& record) {
    const Slice slice(record);
    std::uint64_t offset = 0;
    const Status status = store.append({&slice, 1}, {&offset, 1});
    EXPECT_TRUE(status.ok()) << status.ToString();
    return offset;
  }
  static Status try_append(Store& store, const std::string& record) {
    const Slice slice(record);
    std::uint64_t offset = 0;
    return store.append({&slice, 1}, {&offset, 1});
  }
  static std::string read(const Store& store, GenerationId generation, std::uint64_t offset, std::uint64_t from,
                          std::uint64_t length) {
    std::string bytes;
    const Status status = store.read(generation, offset, from, length, &bytes);
    EXPECT_TRUE(status.ok()) << status.ToString();
    return bytes;
  }

  // What no sync makes durable, a loss of power may take.
  void lose_ends() const { std::filesystem::remove(path("DURABLE")); }
  std::string path(const std::string& name) const { return directory_ + "/" + name; }
  static void write(const std::string& file, const std::string& bytes) {
    std::ofstream(file, std::ios::binary | std::ios::trunc) << bytes;
  }

  const TemporaryDirectory temporary_;
  const std::string directory_ = temporary_.path("spill");
  Faults faults_;
  std::pair<GenerationId, std::uint64_t> last_;
};

TEST_F(RegionStoreTest, WhatIsAppendedIsReadScannedAndRecovered) {
  const std::string large(3 * kScanReadBytes + 17, 'x');
  const std::string batch = std::string(1000, 'h') + "value" + std::string(1000, 't');
  std::vector<std::uint64_t> offsets(3);
  {
    auto store = open();
    EXPECT_TRUE(recover(*store).empty());
    ASSERT_TRUE(store->begin(7).ok());
    const std::vector<Slice> records = {"first", large, batch};
    ASSERT_TRUE(store->append(records, offsets).ok());
    EXPECT_EQ(read(*store, 7, offsets[0], 0, 5), "first");
    EXPECT_EQ(read(*store, 7, offsets[1], 10, large.size() - 10), large.substr(10));
    EXPECT_EQ(read(*store, 7, offsets[2], 1000, 5), "value");
    ASSERT_TRUE(store->begin(8).ok());
    EXPECT_EQ(read(*store, 8, append(*store, "next"), 1, 2), "ex");
    EXPECT_EQ(store->used_bytes(), file_bytes(path("000007.spill")).size() + file_bytes(path("000008.spill")).size());

    Records scanned;
    const auto keep = [&](const StoredRecord& record) {
      EXPECT_EQ(record.offset, offsets[scanned.size()]);
      scanned.emplace_back(record.generation, record.bytes.ToString());
      return Status::OK();
    };
    ASSERT_TRUE(store->scan(7, keep).ok());
    EXPECT_EQ(scanned, (Records{{7, "first"}, {7, large}, {7, batch}}));
  }
  EXPECT_EQ(found(), (Records{{7, "first"}, {7, large}, {7, batch}, {8, "next"}}));
}

TEST_F(RegionStoreTest, ManyReadsEachHaveTheirAnswer) {
  auto store = open();
  recover(*store);
  std::vector<ReadRequest> requests;
  for (GenerationId generation = 1; generation <= 3; ++generation) {
    ASSERT_TRUE(store->begin(generation).ok());
    for (int i = 0; i < 5; ++i) {
      const std::string record = "record " + std::to_string(generation) + std::to_string(i);
      requests.insert(requests.begin(), {generation, append(*store, record), 7, 2, {}, {}});
    }
  }
  requests.push_back({3, requests[0].offset, 7, 3, {}, {}});  // longer than the record
  requests.push_back({9, kLogHeaderBytes, 0, 1, {}, {}});
  store->read_many(requests);
  for (std::size_t i = 0; i < 15; ++i) {
    ASSERT_TRUE(requests[i].status.ok()) << requests[i].status.ToString();
    EXPECT_EQ(requests[i].bytes, std::to_string(3 - i / 5) + std::to_string(4 - i % 5));
  }
  EXPECT_TRUE(requests[15].status.IsCorruption());
  EXPECT_TRUE(requests[16].status.IsCorruption());
}

// On an emulated drive's file system.
TEST_F(RegionStoreTest, ReadsThatWereBegunAreWaitedForOrLeftAlone) {
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
  store->begin_reads(requests);  // and left alone
  const auto in_flight = store->begin_reads(requests);
  EXPECT_EQ(drive->now(), before);
  in_flight->wait();
  EXPECT_GT(drive->now(), before);
  for (int i = 0; i < 40; ++i) store->begin_reads(requests);  // more than are left alone for long
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

// A file system with a name, and with a promise or without.
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

// Not what it is called.
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

// The two logs that the next tests damage, the offsets of their records, and what is in them.
struct Damaged {
  const Records records{{1, "one"}, {1, "a second record"}, {1, "3"}, {2, "four"}};
  std::vector<std::uint64_t> ends;  // of the frames of generation 1, its header's first
  std::string log;
};

class TornLogTest : public RegionStoreTest {
 protected:
  TornLogTest() {
    auto store = open();
    recover(*store);
    EXPECT_TRUE(store->begin(1).ok());
    damaged_.ends.push_back(kLogHeaderBytes);
    for (const auto& [generation, record] : damaged_.records) {
      if (generation == 2) {
        EXPECT_TRUE(store->sync().ok());
        EXPECT_TRUE(store->begin(2).ok());
      }
      const std::uint64_t offset = append(*store, record);
      if (generation == 1) damaged_.ends.push_back(offset + kFrameHeaderBytes + record.size());
    }
    store.reset();
    lose_ends();
    damaged_.log = file_bytes(path("000001.spill"));
    EXPECT_EQ(damaged_.log.size(), damaged_.ends.back());
  }

  // What is whole before byte `at` of generation 1.
  Records before(std::uint64_t at) const {
    Records records;
    for (std::size_t i = 0; i + 1 < damaged_.ends.size() && damaged_.ends[i + 1] <= at; ++i) {
      records.push_back(damaged_.records[i]);
    }
    return records;
  }

  // Recovers, cuts as the DB does, goes on writing, and looks again: what was lost stays lost.
  void expect_recovers(const Records& expected) {
    {
      auto store = open();
      ASSERT_EQ(recover(*store), expected);
      if (!expected.empty()) {
        ASSERT_TRUE(store->cut(last_.first, last_.second + 1).ok());
      }
      ASSERT_TRUE(store->begin(last_.first + 1).ok());
      append(*store, "later");
    }
    Records then = expected;
    then.emplace_back(last_.first + 1, "later");
    ASSERT_EQ(found(), then);
    std::filesystem::remove_all(directory_);
    std::filesystem::create_directory(directory_);
  }

  // With one byte changed.
  std::string garbled(std::uint64_t at) const {
    std::string log = damaged_.log;
    log[at] = static_cast<char>(log[at] ^ (at % 2 == 0 ? 1 : 0xff));
    return log;
  }

  void expect_told(const std::string& file, std::uint64_t offset) {
    Status status;
    recover(*open(), &status);
    EXPECT_TRUE(status.IsCorruption()) << status.ToString();
    EXPECT_NE(status.ToString().find(path(file) + " is damaged at byte " + std::to_string(offset) + ","),
              std::string::npos)
        << status.ToString();
  }

  Damaged damaged_;
};

// As a loss of power may leave the newest log.
TEST_F(TornLogTest, CutShortAtEveryByte) {
  for (std::uint64_t size = 0; size < damaged_.log.size(); ++size) {
    SCOPED_TRACE(size);
    write(path("000001.spill"), damaged_.log.substr(0, size));
    std::filesystem::remove(path("000002.spill"));
    expect_recovers(before(size));
    if (HasFatalFailure()) return;
  }
}

TEST_F(TornLogTest, GarbledAtEveryByte) {
  for (std::uint64_t at = 0; at < damaged_.log.size(); ++at) {
    SCOPED_TRACE(at);
    write(path("000001.spill"), garbled(at));
    std::filesystem::remove(path("000002.spill"));
    expect_recovers(at < kLogHeaderBytes ? Records{} : before(at));
    if (HasFatalFailure()) return;
  }
}

// The next log says that it was begun when this one was durable: no loss of power tears it then.
TEST_F(TornLogTest, DamageToAnOlderLogIsTold) {
  for (std::uint64_t at = 0; at < damaged_.log.size(); ++at) {
    SCOPED_TRACE(at);
    const std::uint64_t frame =
        at < kLogHeaderBytes ? 0 : *std::prev(std::upper_bound(damaged_.ends.begin(), damaged_.ends.end(), at));
    write(path("000001.spill"), garbled(at));
    expect_told("000001.spill", frame);
    // Between two frames nothing tells that more was there.
    if (at <= kLogHeaderBytes || at == frame) continue;
    write(path("000001.spill"), damaged_.log.substr(0, at));
    expect_told("000001.spill", frame);
  }
}

// A log is made durable while the next is appended to. What a process leaves that dies before it is.
class UnsyncedLogTest : public TornLogTest {
 protected:
  UnsyncedLogTest() {
    std::filesystem::remove_all(directory_);
    std::filesystem::create_directory(directory_);
    faults_.holds_syncs = true;
    auto store = open();
    recover(*store);
    GenerationId now = 0;
    for (const auto& [generation, record] : damaged_.records) {
      if (generation != std::exchange(now, generation)) {
        EXPECT_TRUE(store->begin(generation).ok());
      }
      append(*store, record);
    }
    for (const char* name : {"000001.spill", "000002.spill"}) left_[name] = file_bytes(path(name));
    faults_.holds_syncs = false;
    EXPECT_TRUE(store->sync().ok());
    append(*store, "knows that all before it is durable");
    knowing_ = file_bytes(path("000002.spill"));
    damaged_.log = left_["000001.spill"];
  }

  void leave(const std::string& first, const std::string& second) {
    lose_ends();
    write(path("000001.spill"), first);
    write(path("000002.spill"), second);
  }

  std::map<std::string, std::string> left_;
  std::string knowing_;
};

TEST_F(UnsyncedLogTest, WhatIsTornOfItTakesTheNextOneAlong) {
  leave(damaged_.log, left_["000002.spill"]);
  EXPECT_EQ(found(), damaged_.records);
  for (std::uint64_t at = 0; at < damaged_.log.size(); ++at) {
    SCOPED_TRACE(at);
    leave(damaged_.log.substr(0, at), left_["000002.spill"]);  // also where a record ends, and nothing is torn
    expect_recovers(before(at));
    leave(garbled(at), left_["000002.spill"]);
    expect_recovers(at < kLogHeaderBytes ? Records{} : before(at));
    if (HasFatalFailure()) return;
  }
}

TEST_F(UnsyncedLogTest, DamageToItIsToldOnceTheNextOneKnowsItToBeDurable) {
  for (std::uint64_t at = 0; at < damaged_.log.size(); ++at) {
    SCOPED_TRACE(at);
    const std::uint64_t frame =
        at < kLogHeaderBytes ? 0 : *std::prev(std::upper_bound(damaged_.ends.begin(), damaged_.ends.end(), at));
    leave(garbled(at), knowing_);
    expect_told("000001.spill", frame);
    if (at < kLogHeaderBytes) continue;
    leave(damaged_.log.substr(0, at), knowing_);
    expect_told("000001.spill", frame);
  }
}

// Three at once: the third knows nothing of the first but that it was not durable.
TEST_F(RegionStoreTest, SeveralLogsAreOnTheirWayToBeingDurableAndAreCutTogether) {
  faults_.holds_syncs = true;
  std::string first;
  {
    auto store = open();
    recover(*store);
    for (GenerationId generation = 1; generation <= 3; ++generation) {
      ASSERT_TRUE(store->begin(generation).ok());
      append(*store, std::to_string(generation));
    }
    first = file_bytes(path("000001.spill"));
    for (const char* name : {"000002.spill", "000003.spill"}) {
      write(path(std::string("kept.") + name), file_bytes(path(name)));
    }
    faults_.holds_syncs = false;
    ASSERT_TRUE(store->sync().ok());
  }
  for (const char* name : {"000002.spill", "000003.spill"}) {
    std::filesystem::rename(path(std::string("kept.") + name), path(name));
  }
  lose_ends();
  EXPECT_EQ(found(), (Records{{1, "1"}, {2, "2"}, {3, "3"}}));
  lose_ends();
  write(path("000001.spill"), first.substr(0, first.size() - 1));
  auto store = open();
  EXPECT_EQ(recover(*store), Records{});
  ASSERT_TRUE(store->cut(0, 0).ok());
  ASSERT_TRUE(store->begin(4).ok());
  append(*store, "4");
  store.reset();
  EXPECT_EQ(found(), (Records{{4, "4"}}));
}

// It is relied on from then on: it is synced, as far back as it may not have been.
TEST_F(RegionStoreTest, RecoveryMakesDurableWhatAKilledProcessLeft) {
  faults_.holds_syncs = true;
  std::map<std::string, std::string> left;
  {
    auto store = open();
    recover(*store);
    for (GenerationId generation = 1; generation <= 3; ++generation) {
      ASSERT_TRUE(store->begin(generation).ok());
      append(*store, std::to_string(generation));
    }
    for (const char* name : {"000001.spill", "000002.spill", "000003.spill"}) left[name] = file_bytes(path(name));
    faults_.holds_syncs = false;
  }
  for (const auto& [name, bytes] : left) write(path(name), bytes);
  auto store = open();
  const int before = faults_.syncs;
  recover(*store);
  EXPECT_EQ(faults_.syncs - before, 3);
}

// A later frame knows that the ones before it were synced, and no power tears them then.
TEST_F(TornLogTest, DamageToWhatWasSyncedIsTold) {
  std::vector<std::uint64_t> offsets;
  {
    auto store = open();
    recover(*store);
    ASSERT_TRUE(store->begin(3).ok());
    offsets.push_back(append(*store, "synced"));
    offsets.push_back(append(*store, std::string(2 * kScanReadBytes, 's')));
    ASSERT_TRUE(store->sync().ok());
    offsets.push_back(append(*store, "not synced, but knows"));
    offsets.push_back(append(*store, "the newest"));
  }
  const std::string log = file_bytes(path("000003.spill"));
  for (std::size_t i = 0; i < offsets.size(); ++i) {
    for (const std::uint64_t at : {offsets[i], offsets[i] + 4, offsets[i] + kFrameHeaderBytes + 3}) {  // length at 4
      SCOPED_TRACE(at);
      std::string damaged = log;
      damaged[at] = static_cast<char>(damaged[at] ^ 0x40);
      write(path("000003.spill"), damaged);
      if (i < 2) {
        expect_told("000003.spill", offsets[i]);
      } else {
        EXPECT_EQ(found().size(), damaged_.records.size() + i);
      }
    }
  }
}

// What is left where a generation could not be begun is no log that lost something.
TEST_F(TornLogTest, ALeftoverBeginningEndsNothing) {
  write(path("000001.spill"), damaged_.log.substr(0, kLogHeaderBytes / 2));
  EXPECT_EQ(found(), (Records{{2, "four"}}));
}

// Its header is whole, so it is no torn one of ours.
TEST_F(TornLogTest, ALogOfAnotherVersionIsRefused) {
  for (const auto& [version, header_bytes] :
       {std::pair<char, std::size_t>{1, 28}, {2, kLogHeaderBytes}, {4, kLogHeaderBytes}}) {
    std::string other = damaged_.log;
    other[7] = version;
    const auto checksum = rocksdb::GetFileChecksumGenCrc32cFactory()->CreateFileChecksumGenerator({});
    checksum->Update(other.data(), header_bytes - 4);
    checksum->Finalize();
    other.replace(header_bytes - 4, 4, checksum->GetChecksum());
    write(path("000001.spill"), other);
    auto store = open();
    Status status;
    EXPECT_TRUE(recover(*store, &status).empty());
    EXPECT_TRUE(status.IsNotSupported());
  }
}

TEST_F(TornLogTest, ZerosBehindTheEndAreNoRecords) {
  write(path("000001.spill"), damaged_.log + std::string(10000, '\0'));
  std::filesystem::remove(path("000002.spill"));
  expect_recovers(before(damaged_.log.size()));
}

// The same generation of the same store, made twice: blocks of the first must not pass for the second's.
TEST_F(TornLogTest, FramesOfAnOlderLogOfTheSameNumberAreNotTaken) {
  std::filesystem::remove_all(directory_);
  {
    auto store = open();
    recover(*store);
    ASSERT_TRUE(store->begin(1).ok());
    append(*store, "new");
  }
  const std::string log = file_bytes(path("000001.spill"));
  write(path("000001.spill"), log + damaged_.log.substr(log.size()));
  ASSERT_EQ(log.size(), damaged_.ends[1]);
  EXPECT_EQ(found(), (Records{{1, "new"}}));
}

// What a store of which nothing is left to be made durable says about itself when it is closed.
class ClosedStoreTest : public RegionStoreTest {
 protected:
  ClosedStoreTest() {
    auto store = open();
    recover(*store);
    for (GenerationId generation = 1; generation <= 3; ++generation) {
      EXPECT_TRUE(store->begin(generation).ok());
      for (int i = 0; i < 3; ++i) append(*store, std::string(50, static_cast<char>('a' + i)));
    }
    EXPECT_TRUE(store->close().ok());
    store.reset();
    for (const auto& entry : std::filesystem::directory_iterator(directory_)) {
      const std::string name = entry.path().filename();
      if (name != "LOCK") files_[name] = file_bytes(entry.path());
    }
    all_ = found();
    EXPECT_EQ(files_.size(), 4U);  // and what says so
  }
  void restore() const {
    for (const auto& [name, bytes] : files_) write(path(name), bytes);
  }
  // All of it, or an error that names the file.
  void expect_all_or_told(const std::string& name, bool may_be_all) {
    Status status;
    const Records left = recover(*open(), &status);
    if (status.ok()) {
      EXPECT_TRUE(may_be_all);
      EXPECT_EQ(left, all_);
    } else {
      EXPECT_TRUE(status.IsCorruption()) << status.ToString();
      EXPECT_NE(status.ToString().find(path(name)), std::string::npos) << status.ToString();
    }
  }

  std::map<std::string, std::string> files_;
  Records all_;
};

TEST_F(ClosedStoreTest, AnyByteThatChangedIsToldOrChangesNothing) {
  for (const auto& [name, bytes] : files_) {
    for (std::size_t at = 0; at < bytes.size(); ++at) {
      SCOPED_TRACE(name + " at " + std::to_string(at));
      restore();
      flip(path(name), at, static_cast<std::uint8_t>(1U << (at % 8)));
      expect_all_or_told(name, /*may_be_all=*/name == "DURABLE");
    }
  }
}

TEST_F(ClosedStoreTest, AFileThatIsShorterOrEmptyOrGoneOrZeroedIsTold) {
  for (const auto& [name, bytes] : files_) {
    const bool may_be_all = name == "DURABLE";
    for (std::size_t size = 0; size < bytes.size(); ++size) {
      SCOPED_TRACE(name + " of " + std::to_string(size));
      restore();
      write(path(name), bytes.substr(0, size));
      expect_all_or_told(name, may_be_all);
    }
    SCOPED_TRACE(name);
    restore();
    write(path(name), std::string(bytes.size(), '\0'));
    expect_all_or_told(name, may_be_all);
    restore();
    std::filesystem::remove(path(name));
    expect_all_or_told(name, may_be_all);
  }
}

// What a later process did to it ends what the earlier one said.
TEST_F(ClosedStoreTest, WhatWasCutOrDroppedIsNotMissed) {
  for (const bool closes : {false, true}) {
    for (const bool cuts : {false, true}) {
      SCOPED_TRACE(closes);
      SCOPED_TRACE(cuts);
      std::filesystem::remove_all(directory_);
      std::filesystem::create_directory(directory_);
      restore();
      auto store = open();
      recover(*store);
      ASSERT_TRUE(store->cut(cuts ? 2 : 3, cuts ? last_.second : ~std::uint64_t{0}).ok());
      ASSERT_TRUE(store->drop(1).ok());
      store->release(1);
      ASSERT_TRUE(store->begin(4).ok());
      append(*store, "four");
      if (closes) {
        ASSERT_TRUE(store->close().ok());
      }
      store.reset();
      Records expected(all_.begin() + 3, all_.begin() + (cuts ? 5 : 9));
      expected.emplace_back(4, "four");
      EXPECT_EQ(found(), expected);
    }
  }
}

// Killed after a sync: what was synced is known, though no later frame tells.
TEST_F(RegionStoreTest, DamageToTheLastThatWasSyncedIsToldAfterAKill) {
  std::uint64_t synced = 0;
  std::uint64_t loose = 0;
  {
    auto store = open();
    recover(*store);
    ASSERT_TRUE(store->begin(1).ok());
    append(*store, "first");
    synced = append(*store, "synced");
    ASSERT_TRUE(store->sync().ok());
    loose = append(*store, "not synced");
  }
  const std::string log = path("000001.spill");
  const std::string whole = file_bytes(log);
  for (const std::uint64_t size : {std::uint64_t{0}, std::uint64_t{10}, synced, synced + 20, loose - 1}) {
    SCOPED_TRACE(size);
    write(log, whole.substr(0, size));
    Status status;
    recover(*open(), &status);
    EXPECT_TRUE(status.IsCorruption()) << status.ToString();
    EXPECT_NE(status.ToString().find(log + " is damaged at byte "), std::string::npos) << status.ToString();
  }
  write(log, whole);
  flip(log, synced + kFrameHeaderBytes + 2, 1);
  Status status;
  recover(*open(), &status);
  EXPECT_TRUE(status.IsCorruption()) << status.ToString();
  // Behind it, it may have been torn by a loss of power.
  write(log, whole.substr(0, whole.size() - 1));
  EXPECT_EQ(found(), (Records{{1, "first"}, {1, "synced"}}));
  // And where what says so is lost with the power, nothing is said.
  std::filesystem::remove(path("DURABLE"));
  write(log, whole.substr(0, loose - 1));
  EXPECT_EQ(found(), (Records{{1, "first"}}));
}

// It is written anew when there is much in it.
TEST_F(RegionStoreTest, ManySyncsLeaveASmallFile) {
  auto store = open();
  recover(*store);
  ASSERT_TRUE(store->begin(1).ok());
  for (int i = 0; i < 10000; ++i) {
    append(*store, "r");
    ASSERT_TRUE(store->sync().ok());
  }
  const std::uint64_t end = file_bytes(path("000001.spill")).size();
  store.reset();
  EXPECT_LT(file_bytes(path("DURABLE")).size(), 140'000U);
  std::filesystem::resize_file(path("000001.spill"), end - 1);
  store = open();
  Status status;
  recover(*store, &status);
  EXPECT_TRUE(status.IsCorruption()) << status.ToString();
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

TEST_F(TornLogTest, CutForgetsTheRecordAndAllBehindIt) {
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
  store.reset();  // killed here

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

TEST_F(RegionStoreTest, NothingBeyondItsCapacityIsTaken) {
  const std::string record(100, 'r');
  auto store = open(kLogHeaderBytes + 3 * (kFrameHeaderBytes + 100));
  recover(*store);
  ASSERT_TRUE(store->begin(1).ok());
  append(*store, record);
  const std::vector<Slice> three(3, record);
  std::vector<std::uint64_t> offsets(3);
  EXPECT_TRUE(store->append(three, offsets).IsNoSpace());
  append(*store, record);
  append(*store, record);
  EXPECT_EQ(store->used_bytes(), store->capacity_bytes());
  EXPECT_TRUE(try_append(*store, "1").IsNoSpace());
  ASSERT_TRUE(store->drop(1).ok());
  store->release(1);
  ASSERT_TRUE(store->begin(2).ok());
  append(*store, record);
  store.reset();
  EXPECT_EQ(found(), (Records{{2, record}}));
}

// It does not look at the bytes: there are none.
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

TEST_F(RegionStoreTest, AfterAFullDriveItGoesOnWithoutWhatDidNotFit) {
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

TEST_F(RegionStoreTest, AfterAFailedWriteOrSyncItRefusesUntilItBeginsAnew) {
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

TEST_F(RegionStoreTest, GenerationsOnlyGrow) {
  auto store = open();
  recover(*store);
  ASSERT_TRUE(store->begin(5).ok());
  append(*store, "five");
  EXPECT_TRUE(store->begin(5).IsInvalidArgument());
  EXPECT_TRUE(store->begin(4).IsInvalidArgument());
  EXPECT_TRUE(try_append(*store, "none").IsIOError());
  ASSERT_TRUE(store->begin(6).ok());
  EXPECT_TRUE(try_append(*store, "").IsInvalidArgument());
  store.reset();
  EXPECT_EQ(found(), (Records{{5, "five"}}));
}

}  // namespace
}  // namespace spillway::spill
