// A spill store in files whose writes, syncs and reads fail as a test requests, and logs that the test may damage.
#pragma once

#include <gtest/gtest.h>
#include <rocksdb/file_system.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/file_bytes.h"
#include "spill/store/region/log_frame.h"
#include "spill/store/region/region_store.h"
#include "temporary_directory.h"

namespace spillway::spill {

// Each requested failure happens once. Counts syncs, and does not pass them to the host's disk.
struct Faults {
  rocksdb::IOStatus append;     // the status of the next append, if not OK,
  std::size_t append_part = 0;  // after it wrote this many bytes
  rocksdb::IOStatus sync;
  rocksdb::IOStatus range_sync;
  rocksdb::IOStatus rename;
  rocksdb::IOStatus directory_sync;
  rocksdb::IOStatus read;
  std::uint64_t reads_end = ~std::uint64_t{0};  // a read beyond this byte of a file fails, each time
  std::size_t most_read_together = 0;
  std::atomic<int> syncs = 0;
  std::atomic<int> range_syncs = 0;
  std::atomic<bool> holds_syncs = false;
  std::atomic<int> directory_syncs = 0;

  static rocksdb::IOStatus take(rocksdb::IOStatus* planned) { return std::exchange(*planned, rocksdb::IOStatus::OK()); }
};

class FaultyWriter final : public rocksdb::FSWritableFileOwnerWrapper {
 public:
  FaultyWriter(std::unique_ptr<rocksdb::FSWritableFile> file, Faults& faults)
      : FSWritableFileOwnerWrapper(std::move(file)), faults_(faults) {}
  rocksdb::IOStatus Append(const rocksdb::Slice& data, const rocksdb::IOOptions& options,
                           rocksdb::IODebugContext* dbg) override {
    if (const rocksdb::IOStatus fault = Faults::take(&faults_.append); !fault.ok()) {
      EXPECT_TRUE(
          target()->Append(rocksdb::Slice(data.data(), std::min(data.size(), faults_.append_part)), options, dbg).ok());
      return fault;
    }
    return target()->Append(data, options, dbg);
  }
  rocksdb::IOStatus Sync(const rocksdb::IOOptions& /*options*/, rocksdb::IODebugContext* /*dbg*/) override {
    ++faults_.syncs;
    while (faults_.holds_syncs) std::this_thread::yield();
    return Faults::take(&faults_.sync);
  }
  rocksdb::IOStatus RangeSync(uint64_t /*offset*/, uint64_t /*bytes*/, const rocksdb::IOOptions& /*options*/,
                              rocksdb::IODebugContext* /*dbg*/) override {
    const rocksdb::IOStatus status = Faults::take(&faults_.range_sync);
    ++faults_.range_syncs;
    return status;
  }
  rocksdb::IOStatus Fsync(const rocksdb::IOOptions& options, rocksdb::IODebugContext* dbg) override {
    return Sync(options, dbg);
  }

 private:
  Faults& faults_;
};

class FaultyReader final : public rocksdb::FSRandomAccessFileOwnerWrapper {
 public:
  FaultyReader(std::unique_ptr<rocksdb::FSRandomAccessFile> file, Faults& faults)
      : FSRandomAccessFileOwnerWrapper(std::move(file)), faults_(faults) {}
  rocksdb::IOStatus Read(uint64_t offset, size_t n, const rocksdb::IOOptions& options, rocksdb::Slice* result,
                         char* scratch, rocksdb::IODebugContext* dbg) const override {
    rocksdb::IOStatus fault = Faults::take(&faults_.read);
    if (fault.ok() && offset + n > faults_.reads_end) fault = rocksdb::IOStatus::IOError("the drive");
    return fault.ok() ? target()->Read(offset, n, options, result, scratch, dbg) : fault;
  }
  rocksdb::IOStatus MultiRead(rocksdb::FSReadRequest* requests, size_t count, const rocksdb::IOOptions& options,
                              rocksdb::IODebugContext* dbg) override {
    faults_.most_read_together = std::max(faults_.most_read_together, count);
    for (rocksdb::FSReadRequest* one = requests; one != requests + count; ++one) {
      one->status = Read(one->offset, one->len, options, &one->result, one->scratch, dbg);
    }
    return rocksdb::IOStatus::OK();
  }

 private:
  Faults& faults_;
};

class FaultyDirectory final : public rocksdb::FSDirectoryWrapper {
 public:
  FaultyDirectory(std::unique_ptr<rocksdb::FSDirectory> directory, Faults& faults)
      : FSDirectoryWrapper(std::move(directory)), faults_(faults) {}
  rocksdb::IOStatus FsyncWithDirOptions(const rocksdb::IOOptions& /*options*/, rocksdb::IODebugContext* /*dbg*/,
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
  rocksdb::IOStatus NewWritableFile(const std::string& path, const rocksdb::FileOptions& options,
                                    std::unique_ptr<rocksdb::FSWritableFile>* result,
                                    rocksdb::IODebugContext* dbg) override {
    const rocksdb::IOStatus status = target()->NewWritableFile(path, options, result, dbg);
    if (status.ok() && is_log(path)) *result = std::make_unique<FaultyWriter>(std::move(*result), faults_);
    return status;
  }
  rocksdb::IOStatus ReopenWritableFile(const std::string& path, const rocksdb::FileOptions& options,
                                       std::unique_ptr<rocksdb::FSWritableFile>* result,
                                       rocksdb::IODebugContext* dbg) override {
    const rocksdb::IOStatus status = target()->ReopenWritableFile(path, options, result, dbg);
    if (status.ok() && is_log(path)) *result = std::make_unique<FaultyWriter>(std::move(*result), faults_);
    return status;
  }
  rocksdb::IOStatus NewRandomAccessFile(const std::string& path, const rocksdb::FileOptions& options,
                                        std::unique_ptr<rocksdb::FSRandomAccessFile>* result,
                                        rocksdb::IODebugContext* dbg) override {
    const rocksdb::IOStatus status = target()->NewRandomAccessFile(path, options, result, dbg);
    if (status.ok()) *result = std::make_unique<FaultyReader>(std::move(*result), faults_);
    return status;
  }
  rocksdb::IOStatus NewDirectory(const std::string& path, const rocksdb::IOOptions& options,
                                 std::unique_ptr<rocksdb::FSDirectory>* result, rocksdb::IODebugContext* dbg) override {
    const rocksdb::IOStatus status = target()->NewDirectory(path, options, result, dbg);
    if (status.ok()) *result = std::make_unique<FaultyDirectory>(std::move(*result), faults_);
    return status;
  }
  rocksdb::IOStatus RenameFile(const std::string& from, const std::string& to, const rocksdb::IOOptions& options,
                               rocksdb::IODebugContext* dbg) override {
    const rocksdb::IOStatus fault = Faults::take(&faults_.rename);
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
    const rocksdb::Status status = open_region_store(options, &store);
    EXPECT_TRUE(status.ok()) << status.ToString();
    return store;
  }

  Records recover(Store& store, rocksdb::Status* status = nullptr) {
    Records records;
    last_ = {};
    const rocksdb::Status all = store.recover([&](const StoredRecord& record) {
      records.emplace_back(record.generation, record.bytes.ToString());
      last_ = {record.generation, record.offset};
      return rocksdb::Status::OK();
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
    const rocksdb::Slice slice(record);
    std::uint64_t offset = 0;
    const rocksdb::Status status = store.append({&slice, 1}, {&offset, 1});
    EXPECT_TRUE(status.ok()) << status.ToString();
    return offset;
  }
  static rocksdb::Status try_append(Store& store, const std::string& record) {
    const rocksdb::Slice slice(record);
    std::uint64_t offset = 0;
    return store.append({&slice, 1}, {&offset, 1});
  }
  static std::string read(const Store& store, GenerationId generation, std::uint64_t offset, std::uint64_t from,
                          std::uint64_t length) {
    std::string bytes;
    const rocksdb::Status status = store.read(generation, offset, from, length, &bytes);
    EXPECT_TRUE(status.ok()) << status.ToString();
    return bytes;
  }

  // Removes a file that no sync makes durable, so that a loss of power may remove it.
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

// The two logs that the next tests damage, the offsets of their records, and their contents.
struct Damaged {
  const Records records{{1, "one"}, {1, "a second record"}, {1, "3"}, {2, "four"}};
  std::vector<std::uint64_t> ends;  // of the frames of generation 1, the first one its header's
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

  // The records that are complete before byte `at` of generation 1.
  Records before(std::uint64_t at) const {
    Records records;
    for (std::size_t i = 0; i + 1 < damaged_.ends.size() && damaged_.ends[i + 1] <= at; ++i) {
      records.push_back(damaged_.records[i]);
    }
    return records;
  }

  // Recovers, cuts as the DB does, appends, and recovers again: what was lost stays lost.
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
    rocksdb::Status status;
    recover(*open(), &status);
    EXPECT_TRUE(status.IsCorruption()) << status.ToString();
    EXPECT_NE(status.ToString().find(path(file) + " is damaged at byte " + std::to_string(offset) + ","),
              std::string::npos)
        << status.ToString();
  }

  Damaged damaged_;
};

}  // namespace spillway::spill
