// The spill store in a key-value namespace: pairs, reads in flight, and its numbers. spill_store_test.cc tests what
// every store promises.
#include "spill_kv_store.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <fstream>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "spillway/db.h"

namespace spillway::spill {
namespace {

using rocksdb::Status;

TEST_F(KvStoreTest, BegunReadsAreWaitedForOrAbandoned) {
  auto store = open();
  recover(*store);
  ASSERT_TRUE(store->begin(1).ok());
  std::vector<ReadRequest> requests;
  for (unsigned i = 0; i < 5; ++i) {
    requests.push_back({1, append(*store, record_of(40'000, i)), 30'000, 9'000, {}, {}});
  }
  requests.push_back({9, 0, 0, 1, {}, {}});
  ASSERT_TRUE(store->sync().ok());
  const auto before = drive_->now();
  store->begin_reads(requests);  // abandoned
  const auto in_flight = store->begin_reads(requests);
  EXPECT_EQ(drive_->now(), before);
  in_flight->wait();
  EXPECT_GT(drive_->now(), before);
  for (int i = 0; i < 40; ++i) store->begin_reads(requests);  // more abandoned reads than are kept
  store->begin_reads(requests)->wait();
  for (unsigned i = 0; i < 5; ++i) {
    ASSERT_TRUE(requests[i].status.ok()) << requests[i].status.ToString();
    EXPECT_EQ(requests[i].bytes, record_of(40'000, i).substr(30'000, 9'000));
  }
  EXPECT_TRUE(requests[5].status.IsCorruption());
}

// The binding record outlives all generations. It must not keep the drive from freeing space around it.
TEST_F(KvStoreTest, SpaceIsFreedAroundABindingRecord) {
  auto store = open();
  recover(*store);
  ASSERT_TRUE(store->write_binding("bound").ok());
  for (GenerationId generation = 1; generation <= 200; ++generation) {
    ASSERT_TRUE(store->begin(generation).ok()) << generation;
    for (int i = 0; i < 16; ++i) ASSERT_TRUE(try_append(*store, std::string(64 << 10, 'v')).ok()) << generation;
    ASSERT_TRUE(store->sync().ok()) << generation;
    ASSERT_TRUE(store->drop(generation).ok()) << generation;
    store->release(generation);
  }
  std::string bytes;
  ASSERT_TRUE(store->read_binding(&bytes).ok());
  EXPECT_EQ(bytes, "bound");
}

// The clock may have been set back since, so numbers continue from the newest one.
TEST_F(KvStoreTest, ReturnsTheNewestNumberThoughNothingIsLeft) {
  constexpr GenerationId kLate = GenerationId{1} << 60;
  auto store = open();
  recover(*store);
  ASSERT_TRUE(store->begin(kLate).ok());
  append(*store, "a");
  ASSERT_TRUE(store->drop(kLate).ok());
  store->release(kLate);
  store.reset();
  store = open();
  EXPECT_TRUE(recover(*store).empty());
  EXPECT_GE(store->newest_known(), kLate);
  EXPECT_TRUE(store->begin(store->newest_known() + 1).ok());
}

TEST_F(KvStoreTest, SeveralRecordsAreOnePairAndReadFromMemoryUntilTheyAreThere) {
  auto store = open();
  recover(*store);
  ASSERT_TRUE(store->begin(1).ok());
  const auto in_drive = [&] { return drive_->kv_counters().stored_pairs; };
  append(*store, "zero");
  ASSERT_TRUE(store->sync().ok());  // also that it has begun, and that the next one will
  const std::uint64_t before = in_drive();
  holds_ = true;
  std::vector<std::uint64_t> offsets;
  for (unsigned i = 0; i < 100; ++i) {
    offsets.push_back(append(*store, record_of(4000, i)));
    EXPECT_EQ(read(*store, 1, offsets.back(), 10, 3000), record_of(4000, i).substr(10, 3000));
  }
  EXPECT_EQ(in_drive(), before);
  EXPECT_EQ(drive_->kv_counters().retrieves, 2U);  // of the marks, at opening
  std::string beyond;
  EXPECT_TRUE(store->read(1, offsets[98], 3999, 2, &beyond).IsCorruption());
  EXPECT_TRUE(store->read(1, offsets[99], 3999, 2, &beyond).IsCorruption());
  const std::uint64_t used = store->used_bytes();
  holds_ = false;
  ASSERT_TRUE(store->sync().ok());
  EXPECT_EQ(in_drive() - before, 25U);  // four each
  EXPECT_EQ(store->used_bytes(), used);
  for (unsigned i = 0; i < 100; ++i) EXPECT_EQ(read(*store, 1, offsets[i], 0, 4000), record_of(4000, i));
  EXPECT_EQ(drive_->kv_counters().retrieves, 102U);
  EXPECT_TRUE(store->read(1, offsets[98], 3999, 2, &beyond).IsCorruption());
  EXPECT_TRUE(store->read(1, offsets[99], 3999, 2, &beyond).IsCorruption());

  // Synced records are in a closed pair, and so are submitted ones.
  append(*store, "five");
  ASSERT_TRUE(store->sync().ok());
  append(*store, "six");
  store->hand_on();
  append(*store, "seven");
  ASSERT_TRUE(store->sync().ok());
  EXPECT_EQ(in_drive() - before, 28U);
}

TEST_F(KvStoreTest, AnAppendWaitsForRoomAndNoLonger) {
  auto store = open();
  recover(*store);
  ASSERT_TRUE(store->begin(1).ok());
  holds_ = true;
  const std::uint64_t room = kStaged * std::uint64_t{4};
  std::atomic<std::uint64_t> appended = 0;
  std::thread writer([&] {
    for (unsigned i = 0; i < 2 * room; ++i, ++appended) append(*store, record_of(4000, i));
  });
  while (appended < room) std::this_thread::yield();
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_EQ(appended, room);
  holds_ = false;
  writer.join();
  EXPECT_EQ(appended, 2 * room);
  EXPECT_GE(store->append_wait(), std::chrono::milliseconds(20));
}

// A write that the drive delays counts as one that waits.
TEST_F(KvStoreTest, AWriteThatWaitsForTheDriveIsCountedAsOneThatWaits) {
  const TemporaryDirectory directory;
  rocksdb::Options options;
  options.create_if_missing = true;
  SpillOptions spill;
  spill.store = open();
  spill.rollback = RollbackPolicy::off;
  DB* opened = nullptr;
  ASSERT_TRUE(DB::Open(options, spill, directory.path("db"), &opened).ok());
  spill.store.reset();
  const std::unique_ptr<DB> db(opened);
  db->SetDiversion(Diversion::always);
  holds_ = true;
  const std::uint64_t room = kStaged * std::uint64_t{4};
  std::atomic<std::uint64_t> written = 0;
  std::thread writer([&] {
    for (unsigned i = 0; i < 2 * room; ++i, ++written) {
      EXPECT_TRUE(db->Put({}, "key" + std::to_string(i), std::string(4000, 'v')).ok());
    }
  });
  for (std::uint64_t before = ~std::uint64_t{0}; before != written;) {  // until it does not change any more
    before = written;
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
  holds_ = false;
  writer.join();
  const SpillStatistics statistics = db->GetSpillStatistics();
  EXPECT_EQ(statistics.diverted_writes, 2 * room);
  EXPECT_GT(statistics.waits, 0U);
  EXPECT_GE(statistics.wait_us, 90'000U);
}

TEST_F(KvStoreTest, StagingOfAnotherIsRefused) {
  std::ofstream(directory_.path("kv.staged")) << std::string(5000, 'x');
  drive_ = device::make_simulated(ssd::Ssd(kv_drive(), 1));
  std::unique_ptr<Store> store;
  const Status status = open_kv_store({drive_.get(), 0, directory_.path("kv"), nullptr}, &store);
  EXPECT_TRUE(status.IsInvalidArgument()) << status.ToString();
  EXPECT_NE(status.ToString().find("kv.staged"), std::string::npos) << status.ToString();
}

TEST_F(KvStoreTest, ADriveWithoutANamespaceIsNamed) {
  ssd::SsdConfig plain = kv_drive();
  plain.namespaces.kv_share = 0;
  const auto drive = device::make_simulated(ssd::Ssd(plain, 1));
  std::unique_ptr<Store> store;
  const Status status = open_kv_store({drive.get(), 0, "", nullptr}, &store);
  EXPECT_TRUE(status.IsInvalidArgument());
  EXPECT_NE(status.ToString().find("namespaces.kv_share"), std::string::npos);
}

}  // namespace
}  // namespace spillway::spill

// Replaces the C library's function.
extern "C" int msync(void* address, std::size_t length, int flags) {
  const auto result = static_cast<int>(syscall(SYS_msync, address, length, flags));
  std::string& there = spillway::spill::staging_on_disk();
  there.resize(std::max(there.size(), length));
  there.replace(0, length, static_cast<const char*>(address), length);
  return result;
}
