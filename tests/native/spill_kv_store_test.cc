// The spill store in a key-value namespace: what every Store owes, on a simulated drive.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>
#include <map>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "at_each_step.h"
#include "base/file_bytes.h"
#include "device/faulty_device.h"
#include "device_small_drive.h"
#include "flipped_bytes.h"
#include "spill/store/kv/kv_append_window.h"
#include "spill/store/kv/kv_durable.h"
#include "spill/store/kv/kv_mark.h"
#include "spill/store/kv/kv_store.h"
#include "temporary_directory.h"

namespace spillway::spill {
namespace {

// What msync has made durable of the one file that is mapped from its begin on: staging.
std::string& staging_on_disk() {
  static std::string bytes;
  return bytes;
}

using rocksdb::Slice;
using rocksdb::Status;

ssd::SsdConfig kv_drive() {
  ssd::SsdConfig config = device::small_drive();
  config.namespaces.kv_share = 0.25;
  config.namespaces.memtable_bytes = 256 * 1024;
  return config;
}

using Records = std::vector<std::pair<GenerationId, std::string>>;

constexpr std::uint32_t kStaged = 128;  // pairs: a small part of the small drive

class KvStoreTest : public ::testing::Test {
 protected:
  KvStoreTest() { staging_on_disk().clear(); }  // another test's

  // As a new process: a new drive, which holds what its contents hold.
  std::unique_ptr<Store> open() {
    drive_ = device::make_simulated(ssd::Ssd(kv_drive(), 1));
    door_ = std::make_unique<device::FaultyDevice>(*drive_, [this](const device::Io& io) {
      while (io.op == device::Opcode::kv_batch_store && holds_) {
        is_held_ = true;
        std::this_thread::yield();
      }
      device::InjectedFault injected;
      if (io.op == fails_ && skip_-- <= 0 && most_failures_-- > 0) injected.fault = Fault::io_error;
      if (io.op == full_for_) injected.outcome = ssd::Outcome::kv_capacity_exceeded;
      return injected;
    });
    std::unique_ptr<Store> store;
    const Status status = open_kv_store({drive_.get(), 0, directory_.path("kv"), door_.get(), kStaged}, &store);
    EXPECT_TRUE(status.ok()) << status.ToString();
    return store;
  }

  Records recover(Store& store) {
    Records records;
    const Status status = store.recover([&](const StoredRecord& record) {
      records.emplace_back(record.generation, record.bytes.ToString());
      last_ = {record.generation, record.offset};
      return Status::OK();
    });
    EXPECT_TRUE(status.ok()) << status.ToString();
    return records;
  }
  Records found() { return recover(*open()); }
  // What a loss of power takes that a killed process leaves.
  void lose_staging() { std::filesystem::remove(directory_.path("kv.staged")); }

  // Of staging, all that was not made durable there: the least that a loss of power leaves.
  void lose_unsynced_staging() { std::ofstream(directory_.path("kv.staged"), std::ios::binary) << staging_on_disk(); }

  static Status try_append(Store& store, const std::string& record, std::uint64_t* offset = nullptr) {
    const Slice slice(record);
    std::uint64_t ignored = 0;
    return store.append({&slice, 1}, {offset != nullptr ? offset : &ignored, 1});
  }
  static std::uint64_t append(Store& store, const std::string& record) {
    std::uint64_t offset = 0;
    const Status status = try_append(store, record, &offset);
    EXPECT_TRUE(status.ok()) << status.ToString();
    return offset;
  }
  static std::string read(const Store& store, GenerationId generation, std::uint64_t offset, std::uint64_t from,
                          std::uint64_t length) {
    std::string bytes;
    const Status status = store.read(generation, offset, from, length, &bytes);
    EXPECT_TRUE(status.ok()) << status.ToString();
    return bytes;
  }

  TemporaryDirectory directory_;
  std::unique_ptr<device::EmulatedDevice> drive_;
  std::unique_ptr<device::Device> door_;
  std::atomic<device::Opcode> fails_ = device::Opcode::flush;     // nobody flushes
  std::atomic<device::Opcode> full_for_ = device::Opcode::flush;  // likewise
  std::atomic<int> skip_ = 0;
  std::atomic<int> most_failures_ = std::numeric_limits<int>::max();
  std::atomic<bool> holds_ = false;    // batch stores, before the drive sees them
  std::atomic<bool> is_held_ = false;  // one of them waits, or did
  std::pair<GenerationId, std::uint64_t> last_;
};

constexpr std::size_t kStagingHead = 4096;
constexpr std::size_t kSlot = 64 + 17 * 1024;

// No two bytes near each other alike.
std::string record_of(std::size_t bytes, unsigned seed) {
  std::string record(bytes, ' ');
  for (std::size_t i = 0; i < bytes; ++i) record[i] = static_cast<char>((i * 131 + i / 251 + seed * 17) & 0xff);
  return record;
}

TEST_F(KvStoreTest, WhatIsAppendedIsReadScannedAndRecovered) {
  // Around the size of a pair, and beyond that of a batch store and of all staging.
  Records all;
  {
    auto store = open();
    EXPECT_TRUE(recover(*store).empty());
    ASSERT_TRUE(store->begin(7).ok());
    std::vector<std::string> records;
    for (const std::size_t bytes :
         {1UL, 17399UL, 17400UL, 17401UL, 34808UL, 34809UL, 100UL, 200UL, 300'000UL, 2'500'000UL}) {
      records.push_back(record_of(bytes, static_cast<unsigned>(records.size())));
      all.emplace_back(7, records.back());
    }
    const std::vector<Slice> slices(records.begin(), records.end());
    std::vector<std::uint64_t> offsets(slices.size());
    ASSERT_TRUE(store->append(slices, offsets).ok());
    for (std::size_t i = 0; i < records.size(); ++i) {
      EXPECT_TRUE(i == 0 || offsets[i] > offsets[i - 1]);
      const std::size_t bytes = records[i].size();
      EXPECT_EQ(read(*store, 7, offsets[i], 0, bytes), records[i]);
      EXPECT_EQ(read(*store, 7, offsets[i], bytes / 3, bytes / 2), records[i].substr(bytes / 3, bytes / 2));
      std::string beyond;
      EXPECT_TRUE(store->read(7, offsets[i], bytes - 1, 2, &beyond).IsCorruption()) << bytes;
      EXPECT_TRUE(store->read(7, offsets[i], bytes + 40'000, 2, &beyond).IsCorruption()) << bytes;
    }
    ASSERT_TRUE(store->begin(8).ok());
    EXPECT_EQ(read(*store, 8, append(*store, "next"), 1, 2), "ex");
    Records scanned;
    const auto keep = [&](const StoredRecord& record) {
      EXPECT_EQ(record.offset, offsets[scanned.size()]);
      scanned.emplace_back(record.generation, record.bytes.ToString());
      return Status::OK();
    };
    ASSERT_TRUE(store->scan(7, keep).ok());
    EXPECT_EQ(scanned, all);
    EXPECT_GT(drive_->kv_counters().scans, 1U);
    EXPECT_GT(drive_->kv_counters().flushes, 0U);
  }
  all.emplace_back(8, "next");
  EXPECT_EQ(found(), all);
}

TEST_F(KvStoreTest, ManyReadsEachHaveTheirAnswer) {
  auto store = open();
  recover(*store);
  std::vector<ReadRequest> requests;
  for (GenerationId generation = 1; generation <= 3; ++generation) {
    ASSERT_TRUE(store->begin(generation).ok());
    for (unsigned i = 0; i < 5; ++i) {
      requests.insert(requests.begin(), {generation, append(*store, record_of(40'000, i)), 30'000, 9'000, {}, {}});
    }
  }
  requests.push_back({3, requests[0].offset, 39'999, 2, {}, {}});
  requests.push_back({9, 0, 0, 1, {}, {}});
  store->read_many(requests);
  for (unsigned i = 0; i < 15; ++i) {
    ASSERT_TRUE(requests[i].status.ok()) << requests[i].status.ToString();
    EXPECT_EQ(requests[i].bytes, record_of(40'000, 4 - i % 5).substr(30'000, 9'000));
  }
  EXPECT_TRUE(requests[15].status.IsCorruption());
  EXPECT_TRUE(requests[16].status.IsCorruption());
}

TEST_F(KvStoreTest, ReadsThatWereBegunAreWaitedForOrLeftAlone) {
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
  store->begin_reads(requests);  // and left alone
  const auto in_flight = store->begin_reads(requests);
  EXPECT_EQ(drive_->now(), before);
  in_flight->wait();
  EXPECT_GT(drive_->now(), before);
  for (int i = 0; i < 40; ++i) store->begin_reads(requests);  // more than are left alone for long
  store->begin_reads(requests)->wait();
  for (unsigned i = 0; i < 5; ++i) {
    ASSERT_TRUE(requests[i].status.ok()) << requests[i].status.ToString();
    EXPECT_EQ(requests[i].bytes, record_of(40'000, i).substr(30'000, 9'000));
  }
  EXPECT_TRUE(requests[5].status.IsCorruption());
}

TEST_F(KvStoreTest, CutForgetsTheRecordAndAllBehindIt) {
  {
    auto store = open();
    recover(*store);
    ASSERT_TRUE(store->begin(1).ok());
    append(*store, "one");
    const std::uint64_t two = append(*store, record_of(50'000, 2));
    append(*store, "three");
    ASSERT_TRUE(store->begin(2).ok());
    append(*store, "four");
    store = nullptr;
    store = open();
    recover(*store);
    ASSERT_TRUE(store->cut(1, two).ok());
  }
  auto store = open();
  EXPECT_EQ(recover(*store), (Records{{1, "one"}}));
  ASSERT_TRUE(store->cut(1, ~std::uint64_t{0}).ok());  // keeps all of them
  ASSERT_TRUE(store->begin(2).ok());
  append(*store, "other");
  store = nullptr;
  EXPECT_EQ(found(), (Records{{1, "one"}, {2, "other"}}));
}

TEST_F(KvStoreTest, DroppedIsGoneForGoodAndReadUntilReleased) {
  auto store = open();
  recover(*store);
  ASSERT_TRUE(store->begin(1).ok());
  const std::uint64_t one = append(*store, "one");
  ASSERT_TRUE(store->begin(2).ok());
  const std::uint64_t before = store->used_bytes();
  append(*store, "two");
  const std::uint64_t both = store->used_bytes();
  ASSERT_TRUE(store->drop(1).ok());
  EXPECT_EQ(read(*store, 1, one, 0, 3), "one");
  constexpr std::uint64_t kAnnounced = sizeof(GenerationId);  // more or less, while the next one's mark is on its way
  EXPECT_GE(store->used_bytes() + kAnnounced, both);
  EXPECT_LE(store->used_bytes(), both + kAnnounced);
  store = nullptr;  // killed here

  store = open();
  EXPECT_EQ(recover(*store), (Records{{2, "two"}}));
  EXPECT_GE(store->used_bytes() + kAnnounced, both - before);
  EXPECT_LE(store->used_bytes(), both - before + kAnnounced);
  ASSERT_TRUE(store->drop(2).ok());
  store->release(2);
  EXPECT_EQ(store->used_bytes(), 0U);
  std::string bytes;
  EXPECT_TRUE(store->read(2, 0, 0, 3, &bytes).IsCorruption());
  EXPECT_TRUE(store->begin(2).IsInvalidArgument());  // never given twice
  store = nullptr;
  store = open();
  EXPECT_TRUE(recover(*store).empty());
  EXPECT_TRUE(store->begin(2).IsInvalidArgument());
  EXPECT_TRUE(store->begin(3).ok());
}

TEST_F(KvStoreTest, NothingBeyondItsCapacityIsTakenAndSpaceComesBack) {
  auto store = open();
  recover(*store);
  const std::string record = record_of(100'000, 1);
  for (GenerationId generation = 1; generation <= 3; ++generation) {
    ASSERT_TRUE(store->begin(generation).ok());
    Status status;
    std::uint64_t appended = 0;
    while ((status = try_append(*store, record)).ok()) ++appended;
    EXPECT_TRUE(status.IsNoSpace()) << status.ToString();
    EXPECT_GT(appended * record.size(), store->capacity_bytes() * 9 / 10);
    EXPECT_LE(store->used_bytes(), store->capacity_bytes());
    const std::uint64_t used = store->used_bytes();
    EXPECT_TRUE(try_append(*store, record).IsNoSpace());
    EXPECT_EQ(store->used_bytes(), used);
    ASSERT_TRUE(store->drop(generation).ok());
    store->release(generation);
    EXPECT_EQ(store->used_bytes(), 0U);
  }
  EXPECT_EQ(drive_->model().audit().value_or(""), "");
}

// Generations that are dropped in order and released in any, as where snapshots hold them, leave the drive's runs with
// holes: it is full before the store's count says so, in the middle of what was acknowledged. The store is full then,
// no more: what it took is read, synced, and on the drive once there is room.
// The binding record outlives all generations: it must not keep the drive from freeing what lies around it.
TEST_F(KvStoreTest, SpaceComesBackBesideABindingRecord) {
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

// What a full drive did not take lies in staging, durably: damage there is told as damage anywhere else.
TEST_F(KvStoreTest, DamageInStagingAfterACloseIsTold) {
  auto store = open();
  recover(*store);
  ASSERT_TRUE(store->begin(1).ok());
  full_for_ = device::Opcode::kv_batch_store;
  append(*store, std::string(1000, 'a'));
  ASSERT_TRUE(store->sync().ok());
  ASSERT_TRUE(store->close().ok());
  full_for_ = device::Opcode::flush;
  store.reset();
  {
    const std::string all = file_bytes(directory_.path("kv.staged"));
    std::fstream file(directory_.path("kv.staged"), std::ios::in | std::ios::out | std::ios::binary);
    const std::size_t at = all.find(std::string(100, 'a'));
    ASSERT_NE(at, std::string::npos);
    file.clear();
    file.seekp(static_cast<std::streamoff>(at));
    file.put('b');
  }
  Records records;
  const Status status = open()->recover([&](const StoredRecord& record) {
    records.emplace_back(record.generation, record.bytes.ToString());
    return Status::OK();
  });
  EXPECT_TRUE(status.IsCorruption()) << status.ToString() << ", " << records.size() << " records";
}

// The clock may have been set back since: numbers go on from where they were.
TEST_F(KvStoreTest, TellsTheNewestNumberThoughNothingIsLeft) {
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

TEST_F(KvStoreTest, ADriveThatIsFullOfHolesLosesNothing) {
  struct Taken {
    std::uint64_t offset = 0;
    std::size_t bytes = 0;
    unsigned seed = 0;
  };
  std::uint64_t refused = 0;
  for (unsigned seed = 1; seed <= 3; ++seed) {
    SCOPED_TRACE(seed);
    std::filesystem::remove(directory_.path("kv"));
    lose_staging();
    std::mt19937_64 random(seed);
    std::map<GenerationId, std::vector<Taken>> live;
    std::map<GenerationId, std::vector<Taken>> held;  // dropped, and read all the same
    auto store = open();
    recover(*store);
    GenerationId now = 0;
    const auto begin_next = [&] {
      const Status status = store->begin(now + 1);
      ASSERT_TRUE(status.ok() || status.IsNoSpace()) << status.ToString();
      if (status.ok()) live[++now];
    };
    const auto release_one = [&] {
      if (held.empty()) return;
      const auto one = std::next(held.begin(), static_cast<std::ptrdiff_t>(random() % held.size()));
      store->release(one->first);
      held.erase(one);
    };
    const auto drop_oldest = [&] {
      if (live.size() < 2) return;
      const Status status = store->drop(live.begin()->first);
      ASSERT_TRUE(status.ok()) << status.ToString();
      held.insert(live.extract(live.begin()));
    };
    const auto expect_read = [&](const auto& of) {
      if (of.empty()) return;
      const auto& [generation, all] = *std::next(of.begin(), static_cast<std::ptrdiff_t>(random() % of.size()));
      if (all.empty()) return;
      const Taken& one = all[random() % all.size()];
      ASSERT_TRUE(read(*store, generation, one.offset, 0, one.bytes) == record_of(one.bytes, one.seed));
    };
    begin_next();
    for (unsigned step = 0; step < 12'000 && !HasFailure(); ++step) {
      const std::uint64_t what = random() % 100;
      if (what == 0) begin_next();
      if (what == 1) {
        ASSERT_TRUE(store->sync().ok());
      }
      if (what == 2) release_one();
      if (what < 10) expect_read(live);
      if (what < 6) expect_read(held);
      const Taken one{0, 100 + random() % 9000, step};
      std::uint64_t offset = 0;
      const Status status = try_append(*store, record_of(one.bytes, one.seed), &offset);
      if (status.ok()) {
        live[now].push_back({offset, one.bytes, one.seed});
        continue;
      }
      ASSERT_TRUE(status.IsNoSpace()) << status.ToString();
      ++refused;
      drop_oldest();
      release_one();
      if (live.size() < 2) begin_next();
    }
    ASSERT_TRUE(store->sync().ok());
    for (const auto& [generation, all] : live) {  // as a rollback reads them
      auto next = all.begin();
      const Status scanned = store->scan(generation, [&](const StoredRecord& record) {
        EXPECT_TRUE(next != all.end() && record.offset == next->offset);
        ++next;
        return Status::OK();
      });
      EXPECT_TRUE(scanned.ok() && next == all.end()) << scanned.ToString();
    }
    while (!held.empty()) release_one();
    ASSERT_TRUE(store->close().ok());
    store = nullptr;
    Records expected;
    for (const auto& [generation, all] : live) {
      for (const Taken& one : all) expected.emplace_back(generation, record_of(one.bytes, one.seed));
    }
    EXPECT_TRUE(found() == expected);
  }
  EXPECT_GT(refused, 0U);
}

TEST_F(KvStoreTest, SeveralRecordsAreOnePairAndReadFromMemoryUntilTheyAreThere) {
  auto store = open();
  recover(*store);
  ASSERT_TRUE(store->begin(1).ok());
  const auto in_drive = [&] { return drive_->kv_counters().stored_pairs; };
  append(*store, "zero");
  ASSERT_TRUE(store->sync().ok());  // and that it has begun, and that the next one will
  const std::uint64_t before = in_drive();
  holds_ = true;
  std::vector<std::uint64_t> offsets;
  for (unsigned i = 0; i < 100; ++i) {
    offsets.push_back(append(*store, record_of(4000, i)));
    EXPECT_EQ(read(*store, 1, offsets.back(), 10, 3000), record_of(4000, i).substr(10, 3000));
  }
  EXPECT_EQ(in_drive(), before);
  EXPECT_EQ(drive_->kv_counters().retrieves, 2U);  // of the marks, on opening
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

  // What is synced is in a pair that is closed; what is handed on, too.
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
}

// The drive has the first and the third, and not the second: nothing behind the first may be there after a loss of
// power, and nothing is lost while the process lives.
TEST_F(KvStoreTest, WhatADriveDidNotTakeIsToldLaterReadFromMemoryAndStoredAgain) {
  auto store = open();
  recover(*store);
  ASSERT_TRUE(store->begin(1).ok());
  const std::uint64_t one = append(*store, record_of(4000, 1));
  ASSERT_TRUE(store->sync().ok());
  holds_ = true;
  fails_ = device::Opcode::kv_batch_store;
  const std::uint64_t two = append(*store, record_of(16'000, 2));
  const std::uint64_t three = append(*store, record_of(4000, 3));
  holds_ = false;
  EXPECT_TRUE(store->sync().IsIOError());
  EXPECT_TRUE(store->sync().IsIOError());
  EXPECT_TRUE(try_append(*store, "four").IsIOError());
  fails_ = device::Opcode::flush;
  EXPECT_EQ(read(*store, 1, one, 0, 4000), record_of(4000, 1));
  EXPECT_EQ(read(*store, 1, two, 0, 16'000), record_of(16'000, 2));
  EXPECT_EQ(read(*store, 1, three, 0, 4000), record_of(4000, 3));
  EXPECT_TRUE(store->scan(1, [](const StoredRecord&) { return Status::OK(); }).IsIOError());

  fails_ = device::Opcode::kv_batch_store;
  EXPECT_TRUE(store->begin(2).IsIOError());  // the one before would not be durable
  EXPECT_EQ(read(*store, 1, two, 0, 16'000), record_of(16'000, 2));
  fails_ = device::Opcode::flush;
  ASSERT_TRUE(store->begin(3).ok());
  append(*store, "four");
  ASSERT_TRUE(store->sync().ok());
  const Records all{{1, record_of(4000, 1)}, {1, record_of(16'000, 2)}, {1, record_of(4000, 3)}, {3, "four"}};
  store = nullptr;
  lose_staging();
  EXPECT_TRUE(found() == all);
}

TEST_F(KvStoreTest, WhatAFullDriveRefusesIsDurableInStagingAfterASync) {
  auto store = open();
  recover(*store);
  ASSERT_TRUE(store->begin(1).ok());
  full_for_ = device::Opcode::kv_batch_store;
  append(*store, "one");
  ASSERT_TRUE(store->sync().ok());
  store = nullptr;
  full_for_ = device::Opcode::flush;
  lose_unsynced_staging();

  // It is there once, though the power fails again.
  store = open();
  EXPECT_EQ(recover(*store), (Records{{1, "one"}}));
  ASSERT_TRUE(store->cut(1, 0).ok());
  store = nullptr;
  lose_unsynced_staging();
  EXPECT_EQ(found(), Records());
}

TEST_F(KvStoreTest, WhatIsDroppedOnAFullDriveIsGoneForGood) {
  auto store = open();
  recover(*store);
  for (const GenerationId generation : {1U, 2U, 3U}) {
    ASSERT_TRUE(store->begin(generation).ok());
    append(*store, std::to_string(generation));
  }
  ASSERT_TRUE(store->sync().ok());
  full_for_ = device::Opcode::kv_store;
  for (const GenerationId generation : {1U, 2U}) ASSERT_TRUE(store->drop(generation).ok());
  store = nullptr;  // killed before it was released
  full_for_ = device::Opcode::flush;
  lose_unsynced_staging();
  EXPECT_EQ(found(), (Records{{3, "3"}}));
}

// A killed process leaves what the drive does not have in staging: behind what it has, and where a gap is in that.
TEST_F(KvStoreTest, WhatAKilledProcessHadStagedIsStoredByTheNext) {
  const Records all{{1, "one"}, {1, record_of(600'000, 2)}, {1, "three"}, {1, "four"}};
  for (const int taken : {0, 1, 3}) {  // batch stores
    SCOPED_TRACE(taken);
    std::filesystem::remove(directory_.path("kv"));
    lose_staging();
    auto store = open();
    recover(*store);
    ASSERT_TRUE(store->begin(1).ok());
    skip_ = taken;
    fails_ = device::Opcode::kv_batch_store;
    holds_ = true;
    for (const auto& [generation, record] : all) append(*store, record);
    holds_ = false;
    EXPECT_TRUE(store->sync().IsIOError());
    store = nullptr;
    fails_ = device::Opcode::flush;
    std::uint64_t used = 0;
    for (int times = 0; times < 2; ++times) {
      store = open();
      EXPECT_TRUE(recover(*store) == all);
      EXPECT_TRUE(times == 0 || store->used_bytes() == used);
      used = store->used_bytes();
      store = nullptr;
    }
    lose_staging();  // it is on the drive now
    EXPECT_TRUE(found() == all);
  }
}

TEST_F(KvStoreTest, StagingThatALossOfPowerToreCountsUpToThere) {
  for (const std::size_t torn_at : {std::size_t{4096 + 20}, std::size_t{4096 + 64 + 5000}, std::size_t{0}}) {
    SCOPED_TRACE(torn_at);
    std::filesystem::remove(directory_.path("kv"));
    lose_staging();
    auto store = open();
    recover(*store);
    ASSERT_TRUE(store->begin(1).ok());
    append(*store, "durable");
    ASSERT_TRUE(store->sync().ok());
    holds_ = true;
    for (unsigned i = 0; i < 4; ++i) append(*store, record_of(4000, i));
    fails_ = device::Opcode::kv_batch_store;
    holds_ = false;
    EXPECT_TRUE(store->sync().IsIOError());
    store = nullptr;
    fails_ = device::Opcode::flush;
    std::fstream file(directory_.path("kv.staged"), std::ios::in | std::ios::out | std::ios::binary);
    if (torn_at == 0) {
      file << std::string(4096, '\0');
    } else {  // every slot, for it is not told which one is used
      for (std::size_t at = torn_at; at < 4096 + kStaged * kSlot; at += kSlot) {
        file.seekp(static_cast<std::streamoff>(at));
        file.put('\x55');
      }
    }
    file.close();
    EXPECT_EQ(found(), (Records{{1, "durable"}}));
  }
}

// Two of its four records were on the host's drive when the power failed, and all of the pair behind it.
TEST_F(KvStoreTest, APairThatWasLongerOnceIsTheLast) {
  auto store = open();
  recover(*store);
  ASSERT_TRUE(store->begin(1).ok());
  holds_ = true;
  append(*store, record_of(4000, 1));
  append(*store, record_of(4000, 2));
  const std::string before = file_bytes(directory_.path("kv.staged"));
  for (unsigned i = 3; i <= 6; ++i) append(*store, record_of(4000, i));
  std::string mixed = file_bytes(directory_.path("kv.staged"));
  fails_ = device::Opcode::kv_batch_store;
  holds_ = false;
  EXPECT_TRUE(store->sync().IsIOError());
  store = nullptr;
  fails_ = device::Opcode::flush;
  int older = 0;
  for (std::size_t at = kStagingHead; at < mixed.size(); at += kSlot) {
    if (before.compare(at, 8, std::string(8, '\0')) == 0) continue;
    mixed.replace(at, kSlot, before, at, kSlot);
    ++older;
  }
  ASSERT_EQ(older, 1);
  std::ofstream(directory_.path("kv.staged"), std::ios::binary) << mixed;
  EXPECT_TRUE(found() == (Records{{1, record_of(4000, 1)}, {1, record_of(4000, 2)}}));
}

// Near its capacity, and larger than all staging: what was refused stays away, whatever ends the process.
TEST_F(KvStoreTest, WhatWasRefusedNeverComesBack) {
  auto store = open();
  recover(*store);
  ASSERT_TRUE(store->begin(1).ok());
  Records all;
  const std::uint64_t cautious = store->capacity_bytes() - std::uint64_t{4} * 256 * 1024;
  while (store->used_bytes() + 110'000 < cautious) {
    append(*store, record_of(100'000, 1));
    all.emplace_back(1, record_of(100'000, 1));
  }
  ASSERT_TRUE(store->sync().ok());
  fails_ = device::Opcode::kv_batch_store;
  skip_ = 3;
  EXPECT_TRUE(try_append(*store, record_of(800'000, 2)).IsIOError());
  fails_ = device::Opcode::flush;
  store = nullptr;
  EXPECT_TRUE(found() == all);

  store = open();
  recover(*store);
  ASSERT_TRUE(store->cut(1, ~std::uint64_t{0}).ok());
  ASSERT_TRUE(store->drop(1).ok());
  store->release(1);
  ASSERT_TRUE(store->begin(2).ok());
  append(*store, "two");
  ASSERT_TRUE(store->sync().ok());
  skip_ = 3;
  fails_ = device::Opcode::kv_batch_store;
  EXPECT_TRUE(try_append(*store, record_of(3'000'000, 3)).IsIOError());
  fails_ = device::Opcode::flush;
  ASSERT_TRUE(store->begin(3).ok());
  store = nullptr;
  EXPECT_TRUE(found() == (Records{{2, "two"}}));
}

// Room that comes back while an append takes back what the drive refused is not for that.
TEST_F(KvStoreTest, WhatWasRefusedIsNotHandedOverAgainBesideARelease) {
  auto store = open();
  recover(*store);
  ASSERT_TRUE(store->begin(1).ok());
  append(*store, "old");
  ASSERT_TRUE(store->begin(2).ok());
  append(*store, "before");
  ASSERT_TRUE(store->sync().ok());
  ASSERT_TRUE(store->drop(1).ok());
  full_for_ = device::Opcode::kv_batch_store;
  std::thread release;
  {
    const AtStep refused("spill.kv.append.refused", [&] {
      holds_ = true;  // what is handed over now comes late
      full_for_ = device::Opcode::flush;
      release = std::thread([&] { store->release(1); });
      for (int i = 0; i < 300 && !is_held_; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    });
    EXPECT_TRUE(try_append(*store, record_of(3'000'000, 3)).IsNoSpace()) << "it is longer than all staging";
    ASSERT_TRUE(refused.was_reached());
  }
  holds_ = false;
  release.join();
  append(*store, "after");
  ASSERT_TRUE(store->sync().ok());
  store = nullptr;
  EXPECT_EQ(found(), (Records{{2, "before"}, {2, "after"}}));
}

TEST_F(KvStoreTest, StagingOfAnotherIsRefused) {
  std::ofstream(directory_.path("kv.staged")) << std::string(5000, 'x');
  drive_ = device::make_simulated(ssd::Ssd(kv_drive(), 1));
  std::unique_ptr<Store> store;
  const Status status = open_kv_store({drive_.get(), 0, directory_.path("kv"), nullptr}, &store);
  EXPECT_TRUE(status.IsInvalidArgument()) << status.ToString();
  EXPECT_NE(status.ToString().find("kv.staged"), std::string::npos) << status.ToString();
}

// A pair is on the drive whole or not at all, so what does not fit was damaged and no loss of power explains it.
TEST_F(KvStoreTest, ARecordThatChangedIsToldByScansAndByRecovery) {
  std::vector<std::string> records = {"small", record_of(4000, 1), record_of(40'000, 2), record_of(3000, 3)};
  std::vector<std::uint64_t> offsets;
  auto store = open();
  recover(*store);
  ASSERT_TRUE(store->begin(5).ok());
  for (const std::string& record : records) offsets.push_back(append(*store, record));
  ASSERT_TRUE(store->sync().ok());
  const std::string file = directory_.path("kv");
  const std::string whole = file_bytes(file);
  const auto ignore = [](const StoredRecord&) { return Status::OK(); };
  const auto expect_told = [&](const Status& status, std::uint64_t offset) {
    EXPECT_TRUE(status.IsCorruption()) << status.ToString();
    const std::string place = "is damaged at byte " + std::to_string(offset) + " of generation 5";
    EXPECT_NE(status.ToString().find(place), std::string::npos) << status.ToString();
  };
  for (const bool is_open : {true, false}) {
    if (!is_open) store = nullptr;
    for (std::size_t i = 0; i < records.size(); ++i) {
      const std::size_t at = whole.find(records[i].substr(0, 3000));
      ASSERT_NE(at, std::string::npos);
      // Its checksum; its first and its last byte of those in its first pair.
      for (const std::size_t changed : {at - 1, at, at + std::min<std::size_t>(records[i].size(), 3000) - 1}) {
        SCOPED_TRACE(changed);
        flip(file, changed, 0x40);
        expect_told(is_open ? store->scan(5, ignore) : open()->recover(ignore), offsets[i]);
        flip(file, changed, 0x40);
      }
    }
    if (is_open) {
      EXPECT_TRUE(store->scan(5, ignore).ok());
    }
  }
  EXPECT_EQ(found().size(), records.size());
}

// What was synced is known to be on the drive: without it, and whatever is missing of it, it is told.
TEST_F(KvStoreTest, PairsThatAreGoneAreToldAfterASyncOrAClose) {
  for (const bool closes : {false, true}) {
    SCOPED_TRACE(closes);
    std::filesystem::remove(directory_.path("kv"));
    lose_staging();
    auto store = open();
    recover(*store);
    ASSERT_TRUE(store->begin(5).ok());
    for (unsigned i = 0; i < 12; ++i) append(*store, record_of(4000, i));
    ASSERT_TRUE(store->sync().ok());
    ASSERT_TRUE(store->begin(6).ok());
    append(*store, record_of(4000, 12));
    ASSERT_TRUE((closes ? store->close() : store->sync()).ok());
    store = nullptr;
    EXPECT_EQ(found().size(), 13U);
    const std::string whole = file_bytes(directory_.path("kv"));
    const std::string staged = file_bytes(directory_.path("kv.staged"));
    for (const unsigned gone : {0U, 5U, 11U, 12U}) {
      SCOPED_TRACE(gone);
      std::ofstream(directory_.path("kv"), std::ios::binary) << whole;
      std::ofstream(directory_.path("kv.staged"), std::ios::binary) << staged;
      {  // the pair that has it goes, as it does where the drive's index is damaged
        drive_ = device::make_simulated(ssd::Ssd(kv_drive(), 1));
        auto space = device::KvNamespace::open(*drive_, 0, directory_.path("kv"));
        ASSERT_TRUE(space);
        const PositionBytes key = gone == 12 ? bytes_of({6, 0}) : bytes_of({5, gone / 4 * 17408});
        device::KvIo io;
        io.op = ssd::Opcode::kv_delete;
        io.key = {key.data(), key.size()};
        const auto queue = (*space)->open_queue();
        auto done = device::run(*queue, io);
        ASSERT_TRUE(done && done->outcome == ssd::Outcome::success);
      }
      const Status status = open()->recover([](const StoredRecord&) { return Status::OK(); });
      EXPECT_TRUE(status.IsCorruption()) << status.ToString();
      const std::string place = gone == 12 ? "of generation 6" : "of generation 5";
      EXPECT_NE(status.ToString().find(place), std::string::npos) << status.ToString();
    }
    // Where what says so is lost with the power, nothing is said.
    std::ofstream(directory_.path("kv"), std::ios::binary) << whole;
    lose_staging();
    EXPECT_EQ(found().size(), 13U);
  }
}

TEST_F(KvStoreTest, WhatWasCutOrDroppedIsNotMissed) {
  for (const bool closes : {false, true}) {
    SCOPED_TRACE(closes);
    std::filesystem::remove(directory_.path("kv"));
    lose_staging();
    auto store = open();
    recover(*store);
    std::uint64_t second = 0;
    for (GenerationId generation = 5; generation <= 7; ++generation) {
      ASSERT_TRUE(store->begin(generation).ok());
      append(*store, record_of(4000, 1));
      second = append(*store, record_of(4000, 2));
    }
    ASSERT_TRUE(store->close().ok());
    store = nullptr;
    store = open();
    recover(*store);
    ASSERT_TRUE(store->cut(6, second).ok());
    ASSERT_TRUE(store->drop(5).ok());
    store->release(5);
    ASSERT_TRUE(store->begin(8).ok());
    append(*store, "eight");
    if (closes) {
      ASSERT_TRUE(store->close().ok());
    }
    store = nullptr;
    EXPECT_TRUE(found() == (Records{{6, record_of(4000, 1)}, {8, "eight"}}));
  }
}

TEST(KvDurable, OneOfItsSlotsIsAlwaysWhole) {
  std::string memory(KvDurable::kBytes, '\0');
  EXPECT_TRUE(KvDurable(memory.data()).read().empty());
  KvDurable durable(memory.data());
  durable.replace({{1, 10}});
  durable.note({{1, 20}, {2, 5}});
  const std::string before = memory;
  durable.note({{1, 15}, {2, 7}});
  EXPECT_EQ(durable.read(), (KvDurable::Last{{1, 20}, {2, 7}}));
  const std::string after = memory;
  // Killed while it was written: any part of the new bytes.
  for (std::size_t at = 0; at < memory.size(); ++at) {
    memory = after.substr(0, at) + before.substr(at);
    const KvDurable::Last found = KvDurable(memory.data()).read();
    EXPECT_TRUE(found == (KvDurable::Last{{1, 20}, {2, 7}}) || found == (KvDurable::Last{{1, 20}, {2, 5}})) << at;
    memory = after;
    memory[at] = static_cast<char>(memory[at] ^ 0x20);
    const KvDurable::Last older = KvDurable(memory.data()).read();
    EXPECT_TRUE(older == (KvDurable::Last{{1, 20}, {2, 7}}) || older == (KvDurable::Last{{1, 20}, {2, 5}})) << at;
  }
  memory = after;
  KvDurable later(memory.data());
  later.replace({{2, 3}});
  EXPECT_EQ(later.read(), (KvDurable::Last{{2, 3}}));
  KvDurable::Last many;
  for (GenerationId generation = 1; generation <= 200; ++generation) many[generation] = generation;
  later.replace(many);
  EXPECT_EQ(later.read().size(), 93U);
  EXPECT_EQ(later.read().rbegin()->first, 200U);
  // What a full drive was not told stays said.
  later.drop(150);
  EXPECT_EQ(KvDurable(memory.data()).dropped(), 150U);
  KvDurable next(memory.data());
  next.replace({{160, 1}});
  EXPECT_EQ(KvDurable(memory.data()).dropped(), 150U);
  EXPECT_EQ(next.read(), (KvDurable::Last{{160, 1}}));
}

TEST_F(KvStoreTest, WhatAnotherVersionLeftIsRefusedByName) {
  const auto expect_refused = [](const Status& status) {
    EXPECT_TRUE(status.IsNotSupported()) << status.ToString();
    EXPECT_NE(status.ToString().find("another version of Spillway"), std::string::npos) << status.ToString();
  };
  const auto try_open = [&](std::unique_ptr<Store>* store) {
    drive_ = device::make_simulated(ssd::Ssd(kv_drive(), 1));
    return open_kv_store({drive_.get(), 0, directory_.path("kv"), nullptr, kStaged}, store);
  };
  {  // its list of generations: numbers and nothing else
    drive_ = device::make_simulated(ssd::Ssd(kv_drive(), 1));
    auto space = device::KvNamespace::open(*drive_, 0, directory_.path("kv"));
    ASSERT_TRUE(space);
    const PositionBytes key = bytes_of({0, 1});
    const GenerationId begun = 1'700'000'000'000'000;
    device::KvIo io;
    io.key = {key.data(), key.size()};
    io.value = {reinterpret_cast<const char*>(&begun), sizeof begun};
    const auto queue = (*space)->open_queue();
    auto done = device::run(*queue, io);
    ASSERT_TRUE(done && done->outcome == ssd::Outcome::success);
  }
  std::unique_ptr<Store> store;
  ASSERT_TRUE(try_open(&store).ok());
  expect_refused(store->recover([](const StoredRecord&) { return Status::OK(); }));
  store = nullptr;
  std::filesystem::remove(directory_.path("kv"));

  found();
  flip(directory_.path("kv.staged"), 15, 3 ^ 2);  // the version of its staging
  expect_refused(try_open(&store));
}

TEST(KvMark, IsItselfOrDamaged) {
  const std::vector<GenerationId> ids = {1'700'000'000'000'000, 1'700'000'000'000'001};
  const std::string whole = encode_mark(ids);
  std::vector<GenerationId> decoded;
  ASSERT_TRUE(decode_mark(whole, &decoded).ok());
  EXPECT_EQ(decoded, ids);
  for (std::size_t at = 0; at < whole.size(); ++at) {
    for (int bit = 0; bit < 8; ++bit) {
      std::string changed = whole;
      changed[at] = static_cast<char>(changed[at] ^ (1 << bit));
      EXPECT_FALSE(decode_mark(changed, &decoded).ok()) << at;
    }
    EXPECT_FALSE(decode_mark(whole.substr(0, at), &decoded).ok()) << at;
  }
  ASSERT_TRUE(decode_mark(encode_mark({}), &decoded).ok());
  EXPECT_TRUE(decoded.empty());
}

TEST_F(KvStoreTest, ACutInTheMiddleOfAPairKeepsWhatIsBeforeIt) {
  std::uint64_t two = 0;
  {
    auto store = open();
    recover(*store);
    ASSERT_TRUE(store->begin(1).ok());
    append(*store, "one");
    two = append(*store, "two");
    append(*store, "three");
    ASSERT_TRUE(store->sync().ok());
    append(*store, "four");
  }
  auto store = open();
  EXPECT_EQ(recover(*store).size(), 4U);
  ASSERT_TRUE(store->cut(1, two).ok());
  store = nullptr;
  EXPECT_EQ(found(), (Records{{1, "one"}}));
}

TEST_F(KvStoreTest, AnAppendAfterAFailureIsRefusedAndWhatIsBehindAGapIsForgotten) {
  auto store = open();
  recover(*store);
  ASSERT_TRUE(store->begin(1).ok());
  append(*store, "one");
  ASSERT_TRUE(store->sync().ok());
  fails_ = device::Opcode::kv_batch_store;
  skip_ = 1;  // the first part of it is stored
  append(*store, record_of(600'000, 2));
  EXPECT_TRUE(store->sync().IsIOError());
  EXPECT_TRUE(try_append(*store, "three").IsIOError());
  fails_ = device::Opcode::flush;
  store = nullptr;  // killed before anything else begins
  lose_staging();

  store = open();
  EXPECT_EQ(recover(*store), (Records{{1, "one"}}));
  const std::uint64_t with_the_rest = store->used_bytes();
  ASSERT_TRUE(store->cut(1, ~std::uint64_t{0}).ok());
  EXPECT_LT(store->used_bytes(), with_the_rest - 60'000);
  ASSERT_TRUE(store->begin(2).ok());
  append(*store, "five");
  store = nullptr;
  EXPECT_EQ(found(), (Records{{1, "one"}, {2, "five"}}));
}

TEST_F(KvStoreTest, DroppingAnEmptyGenerationLeavesAnOlderOne) {
  auto store = open();
  recover(*store);
  ASSERT_TRUE(store->begin(1).ok());
  append(*store, "one");
  ASSERT_TRUE(store->begin(2).ok());
  append(*store, "two");
  store = nullptr;
  store = open();
  recover(*store);
  ASSERT_TRUE(store->cut(2, 0).ok());
  ASSERT_TRUE(store->drop(2).ok());
  store->release(2);
  EXPECT_EQ(store->generations(), (std::vector<GenerationId>{1, 3}));  // 3 would have been next
  store = nullptr;
  store = open();
  EXPECT_EQ(recover(*store), (Records{{1, "one"}}));
  EXPECT_EQ(store->generations(), (std::vector<GenerationId>{1, 3}));
}

TEST_F(KvStoreTest, ASyncAfterTheLastGenerationWasDroppedHasNothingToDo) {
  auto store = open();
  recover(*store);
  ASSERT_TRUE(store->begin(1).ok());
  append(*store, "one");
  ASSERT_TRUE(store->sync().ok());
  ASSERT_TRUE(store->drop(1).ok());
  EXPECT_TRUE(store->sync().ok());
  EXPECT_TRUE(try_append(*store, "two").IsIOError());
}

// Nor on the drive, where they come to it while it takes what was before them. It takes so many pairs with a command.
TEST_F(KvStoreTest, AGenerationIsOnTheDriveBehindAllOfTheOneBefore) {
  constexpr unsigned kCommand = kPairsACommand;
  auto store = open();
  recover(*store);
  ASSERT_TRUE(store->begin(1).ok());
  append(*store, record_of(16'000, 0));
  is_held_ = false;
  holds_ = true;
  store->hand_on();
  while (!is_held_) std::this_thread::yield();
  for (unsigned i = 1; i <= kCommand; ++i) append(*store, record_of(16'000, i));
  ASSERT_TRUE(store->begin(2).ok());
  append(*store, record_of(16'000, 99));
  store->hand_on();
  skip_ = 1;  // what is held
  most_failures_ = 1;
  fails_ = device::Opcode::kv_batch_store;
  holds_ = false;
  EXPECT_TRUE(store->sync().IsIOError());
  store = nullptr;
  lose_staging();
  EXPECT_EQ(found(), (Records{{1, record_of(16'000, 0)}}));
}

// A generation begins while pairs of the one before are in staging yet: a loss of power leaves no hole between them.
TEST_F(KvStoreTest, AGenerationThatBeginsBehindOneOnItsWayIsLostWithIt) {
  auto store = open();
  recover(*store);
  ASSERT_TRUE(store->begin(1).ok());
  append(*store, "durable");
  ASSERT_TRUE(store->sync().ok());
  holds_ = true;
  append(*store, record_of(4000, 1));
  ASSERT_TRUE(store->begin(2).ok());
  append(*store, record_of(4000, 2));
  const std::string staged = file_bytes(directory_.path("kv.staged"));
  fails_ = device::Opcode::kv_batch_store;
  holds_ = false;
  EXPECT_TRUE(store->sync().IsIOError());
  store = nullptr;
  fails_ = device::Opcode::flush;
  // Each slot gone in turn, as a page that the power took: what is left is a prefix.
  const Records all{{1, "durable"}, {1, record_of(4000, 1)}, {2, record_of(4000, 2)}};
  const std::string drive = file_bytes(directory_.path("kv"));
  std::set<std::size_t> kept{found().size()};
  for (std::size_t at = 4096; at + kSlot <= staged.size(); at += kSlot) {
    if (staged.compare(at, 8, std::string(8, '\0')) == 0) continue;  // nothing was in it
    std::string torn = staged;
    std::fill_n(torn.begin() + static_cast<std::ptrdiff_t>(at), 64, '\0');
    std::ofstream(directory_.path("kv.staged"), std::ios::binary) << torn;
    std::ofstream(directory_.path("kv"), std::ios::binary) << drive;
    const Records left = found();
    ASSERT_LE(left.size(), all.size());
    EXPECT_TRUE(std::equal(left.begin(), left.end(), all.begin())) << at;
    kept.insert(left.size());
  }
  EXPECT_EQ(kept, (std::set<std::size_t>{1, 2, 3}));
}

TEST_F(KvStoreTest, ACutOfAllForgetsNotWhatWasDropped) {
  auto store = open();
  recover(*store);
  ASSERT_TRUE(store->begin(5).ok());
  append(*store, "five");
  ASSERT_TRUE(store->begin(6).ok());
  EXPECT_EQ(store->generations(), (std::vector<GenerationId>{5, 6}));
  ASSERT_TRUE(store->drop(5).ok());
  store->release(5);
  store = nullptr;

  store = open();
  EXPECT_TRUE(recover(*store).empty());
  EXPECT_EQ(store->generations(), (std::vector<GenerationId>{6, 7}));  // begun, and nothing is in it; and the next
  ASSERT_TRUE(store->cut(0, 0).ok());
  EXPECT_EQ(store->used_bytes(), 0U);
  EXPECT_TRUE(store->begin(5).IsInvalidArgument());
  ASSERT_TRUE(store->begin(7).ok());
  append(*store, "seven");
  store = nullptr;
  store = open();
  EXPECT_EQ(recover(*store), (Records{{7, "seven"}}));
  EXPECT_EQ(std::ranges::count(store->generations(), GenerationId{7}), 1);
}

TEST_F(KvStoreTest, WhatWasCutStandsInNobodysWayWhenALaterGenerationIsDropped) {
  for (const GenerationId cut : {1U, 2U}) {
    SCOPED_TRACE(cut);
    std::filesystem::remove(directory_.path("kv"));
    lose_staging();
    auto store = open();
    recover(*store);
    for (const GenerationId generation : {1U, 2U, 3U}) {
      ASSERT_TRUE(store->begin(generation).ok());
      append(*store, "old " + std::to_string(generation));
    }
    ASSERT_TRUE(store->sync().ok());
    store = nullptr;

    store = open();
    recover(*store);
    ASSERT_TRUE(store->cut(cut, 0).ok());
    for (const GenerationId generation : {5U, 6U}) {
      ASSERT_TRUE(store->begin(generation).ok());
      append(*store, "new " + std::to_string(generation));
    }
    ASSERT_TRUE(store->sync().ok());
    for (const GenerationId generation : {1U, 5U}) ASSERT_TRUE(store->drop(generation).ok());
    store = nullptr;  // killed before it was released

    EXPECT_EQ(found(), (Records{{6, "new 6"}}));
  }
}

TEST_F(KvStoreTest, GenerationsOnlyGrowAndADriveWithoutANamespaceIsNamed) {
  auto store = open();
  recover(*store);
  EXPECT_TRUE(store->begin(0).IsInvalidArgument());
  EXPECT_TRUE(try_append(*store, "none").IsIOError());
  ASSERT_TRUE(store->begin(5).ok());
  append(*store, "five");
  EXPECT_TRUE(store->begin(5).IsInvalidArgument());
  EXPECT_TRUE(try_append(*store, "none").IsIOError());
  ASSERT_TRUE(store->begin(6).ok());
  EXPECT_TRUE(try_append(*store, "").IsInvalidArgument());
  store = nullptr;
  EXPECT_EQ(found(), (Records{{5, "five"}}));

  ssd::SsdConfig plain = kv_drive();
  plain.namespaces.kv_share = 0;
  const auto drive = device::make_simulated(ssd::Ssd(plain, 1));
  const Status status = open_kv_store({drive.get(), 0, "", nullptr}, &store);
  EXPECT_TRUE(status.IsInvalidArgument());
  EXPECT_NE(status.ToString().find("namespaces.kv_share"), std::string::npos);
}

}  // namespace
}  // namespace spillway::spill

// In the place of the C library's.
extern "C" int msync(void* address, std::size_t length, int flags) {
  const auto result = static_cast<int>(syscall(SYS_msync, address, length, flags));
  std::string& there = spillway::spill::staging_on_disk();
  there.resize(std::max(there.size(), length));
  there.replace(0, length, static_cast<const char*>(address), length);
  return result;
}
