// A spill store in the key-value namespace of a small simulated drive, for tests of kills, losses of power, failures
// and a full drive.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <fstream>
#include <limits>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "device/faulty_device.h"
#include "device_small_drive.h"
#include "spill/store/kv/kv_store.h"
#include "temporary_directory.h"

namespace spillway::spill {

// What msync has made durable of the one file that is mapped from its beginning: staging. The test_spill executable
// replaces msync (spill_kv_store_test.cc).
inline std::string& staging_on_disk() {
  static std::string bytes;
  return bytes;
}

inline ssd::SsdConfig kv_drive() {
  ssd::SsdConfig config = device::small_drive();
  config.namespaces.kv_share = 0.25;
  config.namespaces.memtable_bytes = 256 * 1024;
  return config;
}

using Records = std::vector<std::pair<GenerationId, std::string>>;

inline constexpr std::uint32_t kStaged = 128;  // pairs: a small part of the small drive
inline constexpr std::uint32_t kTestedPair = 17 * 1024;

class KvStoreTest : public ::testing::Test {
 protected:
  KvStoreTest() { staging_on_disk().clear(); }  // another test's contents

  // Like a new process: a new drive with the stored contents.
  std::unique_ptr<Store> open() {
    drive_ = device::make_simulated(ssd::Ssd(config_, 1));
    front_ = std::make_unique<device::FaultyDevice>(*drive_, [this](const device::Io& io) {
      while (io.op == device::Opcode::kv_batch_store && holds_) {
        is_held_ = true;
        std::this_thread::yield();
      }
      device::IoFault injected;
      if (io.op == fails_ && skip_-- <= 0 && most_failures_-- > 0) injected.fault = Fault::io_error;
      if (io.op == full_for_) injected.outcome = ssd::Outcome::kv_capacity_exceeded;
      return injected;
    });
    std::unique_ptr<Store> store;
    const rocksdb::Status status =
        open_kv_store({drive_.get(), 0, directory_.path("kv"), front_.get(), kStaged, kTestedPair}, &store);
    EXPECT_TRUE(status.ok()) << status.ToString();
    return store;
  }

  Records recover(Store& store) {
    Records records;
    const rocksdb::Status status = store.recover([&](const StoredRecord& record) {
      records.emplace_back(record.generation, record.bytes.ToString());
      last_ = {record.generation, record.offset};
      return rocksdb::Status::OK();
    });
    EXPECT_TRUE(status.ok()) << status.ToString();
    return records;
  }
  Records found() { return recover(*open()); }
  // Removes what a loss of power loses and a kill does not.
  void lose_staging() { std::filesystem::remove(directory_.path("kv.staged")); }

  // Removes everything from staging that was not made durable: the least that a loss of power leaves.
  void lose_unsynced_staging() { std::ofstream(directory_.path("kv.staged"), std::ios::binary) << staging_on_disk(); }

  static rocksdb::Status try_append(Store& store, const std::string& record, std::uint64_t* offset = nullptr) {
    const rocksdb::Slice slice(record);
    std::uint64_t ignored = 0;
    return store.append({&slice, 1}, {offset != nullptr ? offset : &ignored, 1});
  }
  static std::uint64_t append(Store& store, const std::string& record) {
    std::uint64_t offset = 0;
    const rocksdb::Status status = try_append(store, record, &offset);
    EXPECT_TRUE(status.ok()) << status.ToString();
    return offset;
  }
  static std::string read(const Store& store, GenerationId generation, std::uint64_t offset, std::uint64_t from,
                          std::uint64_t length) {
    std::string bytes;
    const rocksdb::Status status = store.read(generation, offset, from, length, &bytes);
    EXPECT_TRUE(status.ok()) << status.ToString();
    return bytes;
  }

  ssd::SsdConfig config_ = kv_drive();
  TemporaryDirectory directory_;
  std::unique_ptr<device::EmulatedDevice> drive_;
  std::unique_ptr<device::Device> front_;
  std::atomic<device::Opcode> fails_ = device::Opcode::flush;     // flush: no command fails
  std::atomic<device::Opcode> full_for_ = device::Opcode::flush;  // flush: for no command
  std::atomic<int> skip_ = 0;
  std::atomic<int> most_failures_ = std::numeric_limits<int>::max();
  std::atomic<bool> holds_ = false;    // holds batch stores back before the drive gets them
  std::atomic<bool> is_held_ = false;  // a batch store is or was held back
  std::pair<GenerationId, std::uint64_t> last_;
};

inline constexpr std::size_t kStagingHead = 4096;
inline constexpr std::size_t kSlot = 64 + kTestedPair;

// Bytes near each other differ.
inline std::string record_of(std::size_t bytes, unsigned seed) {
  std::string record(bytes, ' ');
  for (std::size_t i = 0; i < bytes; ++i) record[i] = static_cast<char>((i * 131 + i / 251 + seed * 17) & 0xff);
  return record;
}

}  // namespace spillway::spill
