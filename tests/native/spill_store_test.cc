// What every spill store promises (store.h), in the order of that header, tested for each: files in a directory, and a
// drive's key-value namespace, with and without vendor extensions for reads.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "device/faulty_device.h"
#include "device_small_drive.h"
#include "faults/file_system.h"
#include "faults/power_loss.h"
#include "needs.h"
#include "spill/store/kv/kv_store.h"
#include "spill/store/region/region_store.h"
#include "spill/store/store.h"
#include "temporary_directory.h"

namespace spillway::spill {
namespace {

using rocksdb::Slice;
using rocksdb::Status;

// A drive, and the conditions that a process may find when it opens a store on it.
class StoreDrive {
 public:
  virtual ~StoreDrive() = default;
  // Opens like a new process.
  virtual std::unique_ptr<Store> open() = 0;
  // The process ends with a loss of power. The seed determines which of the unsynced data is left.
  virtual void lose_power(std::unique_ptr<Store> store, std::uint64_t seed) = 0;
  // If `fails`, the drive fails to make anything of a generation durable from now on.
  virtual void set_failing(bool fails) = 0;
};

class RegionDrive final : public StoreDrive {
 public:
  std::unique_ptr<Store> open() override {
    system_ = *faults::FaultyFileSystem::open(root_);
    set_failing(false);
    std::unique_ptr<Store> store;
    const Status status = open_region_store({system_, root_ + "/spill", 8 << 20}, &store);
    EXPECT_TRUE(status.ok()) << status.ToString();
    return store;
  }
  void lose_power(std::unique_ptr<Store> store, std::uint64_t seed) override {
    system_->cut_power();
    store.reset();
    const std::string left = scratch_.path("after-" + std::to_string(++losses_));
    const spillway::Status status = faults::power_loss(root_, left, {.seed = seed});
    ASSERT_TRUE(status) << status.message();
    root_ = left;
  }
  void set_failing(bool fails) override {
    system_->set_fault_rule([fails](const faults::FileOperation& operation) {
      const bool is_sync =
          operation.action == faults::Action::sync && operation.name.find(".spill") != std::string::npos;
      if (!fails || !is_sync) return faults::FileFault();
      return faults::FileFault{.status = rocksdb::IOStatus::IOError("injected")};
    });
  }

 private:
  const TemporaryDirectory scratch_{memory_path()};
  std::string root_ = scratch_.path("before");
  int losses_ = 0;
  std::shared_ptr<faults::FaultyFileSystem> system_;
};

class KvDrive final : public StoreDrive {
 public:
  // With a retrieve from the middle of a value and a batch retrieve, or without.
  explicit KvDrive(bool has_extensions) : has_extensions_(has_extensions) {}
  std::unique_ptr<Store> open() override {
    ssd::SsdConfig config = device::small_drive();
    config.namespaces.kv_share = 0.25;
    config.namespaces.memtable_bytes = 256 * 1024;
    config.namespaces.retrieve_offset = has_extensions_;
    config.namespaces.batch_retrieve_keys = has_extensions_ ? 4 : 0;
    drive_ = device::make_simulated(ssd::Ssd(config, 1));
    fails_ = false;
    front_ = std::make_unique<device::FaultyDevice>(*drive_, [this](const device::Io& io) {
      device::IoFault injected;
      if (fails_ && io.op == device::Opcode::kv_batch_store) injected.fault = Fault::io_error;
      return injected;
    });
    std::unique_ptr<Store> store;
    const Status status = open_kv_store({drive_.get(), 0, scratch_.path("kv"), front_.get(), 128}, &store);
    EXPECT_TRUE(status.ok()) << status.ToString();
    return store;
  }
  // Staging is lost with the host's memory. The drive has everything that it has acknowledged.
  void lose_power(std::unique_ptr<Store> store, std::uint64_t /*seed*/) override {
    store.reset();
    std::filesystem::remove(scratch_.path("kv.staged"));
  }
  void set_failing(bool fails) override { fails_ = fails; }

 private:
  const bool has_extensions_;
  const TemporaryDirectory scratch_;
  std::unique_ptr<device::EmulatedDevice> drive_;
  std::unique_ptr<device::Device> front_;
  std::atomic<bool> fails_ = false;
};

using ReadRecords = std::vector<std::pair<GenerationId, std::string>>;

// Bytes near each other differ.
std::string made_record(std::size_t bytes, unsigned seed) {
  std::string record(bytes, ' ');
  for (std::size_t i = 0; i < bytes; ++i) record[i] = static_cast<char>((i * 131 + i / 251 + seed * 17) & 0xff);
  return record;
}

enum class StoreKind : std::uint8_t { region, key_value, key_value_with_extensions };

class EveryStore : public ::testing::TestWithParam<StoreKind> {
 protected:
  EveryStore() : drive_(new_drive()) {}
  static std::unique_ptr<StoreDrive> new_drive() {
    if (!is_key_value()) return std::make_unique<RegionDrive>();
    return std::make_unique<KvDrive>(GetParam() == StoreKind::key_value_with_extensions);
  }
  static bool is_key_value() { return GetParam() != StoreKind::region; }

  // Opens like a new process, which recovers and keeps everything.
  ReadRecords reopen() {
    store_.reset();
    store_ = drive_->open();
    const ReadRecords found = recover(*store_);
    if (!found.empty()) {
      EXPECT_TRUE(store_->cut(last_.first, ~std::uint64_t{0}).ok());
    }
    return found;
  }
  void begin(GenerationId generation) {
    const Status status = store_->begin(generation);
    ASSERT_TRUE(status.ok()) << status.ToString();
  }
  std::uint64_t append(const std::string& record) {
    std::uint64_t offset = 0;
    const Status status = try_append(record, &offset);
    EXPECT_TRUE(status.ok()) << status.ToString();
    return offset;
  }
  Status try_append(const std::string& record, std::uint64_t* offset = nullptr) {
    const Slice slice(record);
    std::uint64_t ignored = 0;
    return store_->append({&slice, 1}, {offset != nullptr ? offset : &ignored, 1});
  }
  std::string read(GenerationId generation, std::uint64_t offset, std::uint64_t from, std::uint64_t length) {
    std::string bytes;
    const Status status = store_->read(generation, offset, from, length, &bytes);
    EXPECT_TRUE(status.ok()) << status.ToString();
    return bytes;
  }
  Status read_status(GenerationId generation, std::uint64_t offset, std::uint64_t from, std::uint64_t length) {
    std::string bytes;
    return store_->read(generation, offset, from, length, &bytes);
  }
  ReadRecords recover(Store& store) {
    ReadRecords records;
    last_ = {};
    const Status status = store.recover([&](const StoredRecord& record) {
      records.emplace_back(record.generation, record.bytes.ToString());
      last_ = {record.generation, record.offset};
      return Status::OK();
    });
    EXPECT_TRUE(status.ok()) << status.ToString();
    return records;
  }
  bool has_generation(GenerationId generation) const {
    return std::ranges::count(store_->generations(), generation) == 1;
  }

  std::unique_ptr<StoreDrive> drive_;
  std::unique_ptr<Store> store_;
  std::pair<GenerationId, std::uint64_t> last_;  // of the last recovery
};

std::string name_of(const ::testing::TestParamInfo<StoreKind>& kind) {
  if (kind.param == StoreKind::region) return "Region";
  return kind.param == StoreKind::key_value ? "KeyValue" : "KeyValueWithExtensions";
}
INSTANTIATE_TEST_SUITE_P(All, EveryStore,
                         ::testing::Values(StoreKind::region, StoreKind::key_value,
                                           StoreKind::key_value_with_extensions),
                         name_of);

// --- recover, read, scan

// Sizes around that of a pair in the key-value namespace, and beyond one transfer of either store.
TEST_P(EveryStore, RecordsAreReadScannedAndRecoveredInOrder) {
  EXPECT_EQ(reopen(), ReadRecords());
  begin(7);
  std::vector<std::string> records;
  ReadRecords all;
  for (const std::size_t bytes :
       {1UL, 17399UL, 17400UL, 17401UL, 34808UL, 34809UL, 100UL, 200UL, 300'000UL, 2'500'000UL}) {
    records.push_back(made_record(bytes, static_cast<unsigned>(records.size())));
    all.emplace_back(7, records.back());
  }
  const std::vector<Slice> slices(records.begin(), records.end());
  std::vector<std::uint64_t> offsets(slices.size());
  ASSERT_TRUE(store_->append(slices, offsets).ok());
  EXPECT_TRUE(std::is_sorted(offsets.begin(), offsets.end(), std::less_equal<>()));
  for (std::size_t i = 0; i < records.size(); ++i) {
    const std::size_t bytes = records[i].size();
    EXPECT_EQ(read(7, offsets[i], 0, bytes), records[i]);
    EXPECT_EQ(read(7, offsets[i], bytes / 3, bytes / 2), records[i].substr(bytes / 3, bytes / 2));
  }
  begin(8);
  EXPECT_EQ(read(8, append("next"), 1, 2), "ex");
  std::size_t scanned = 0;
  const Status status = store_->scan(7, [&](const StoredRecord& record) {
    EXPECT_EQ(record.generation, 7U);
    EXPECT_EQ(record.offset, offsets[scanned]);
    EXPECT_EQ(record.bytes.ToString(), records[scanned++]);
    return Status::OK();
  });
  EXPECT_TRUE(status.ok()) << status.ToString();
  EXPECT_EQ(scanned, records.size());
  all.emplace_back(8, "next");
  EXPECT_TRUE(reopen() == all);  // killed without a close
  EXPECT_EQ(read(7, offsets[1], 5, 9), records[1].substr(5, 9));
}

TEST_P(EveryStore, AnErrorOfTheCallerEndsRecoveryAndScans) {
  reopen();
  begin(1);
  for (const char* record : {"one", "two", "three"}) append(record);
  int seen = 0;
  std::uint64_t second = 0;
  const auto stops = [&](const StoredRecord& record) {
    second = record.offset;
    return ++seen == 2 ? Status::Aborted() : Status::OK();
  };
  EXPECT_TRUE(store_->scan(1, stops).IsAborted());
  EXPECT_EQ(seen, 2);
  store_.reset();
  store_ = drive_->open();
  seen = 0;
  EXPECT_TRUE(store_->recover(stops).IsAborted());
  EXPECT_EQ(seen, 2);
  ASSERT_TRUE(store_->cut(1, second).ok());
  EXPECT_EQ(reopen(), (ReadRecords{{1, "one"}}));
}

TEST_P(EveryStore, WhatIsNotThereIsCorruption) {
  reopen();
  begin(1);
  const std::uint64_t one = append("one");
  append("two");
  // A log is read on, into the record behind it; a key-value pair has no bytes behind its own.
  EXPECT_EQ(read_status(1, one, 2, 2).ok(), !is_key_value());
  EXPECT_EQ(read_status(1, one, 2, 2).IsCorruption(), is_key_value());
  const std::uint64_t last = append(made_record(40'000, 1));
  EXPECT_TRUE(read_status(1, last, 39'999, 2).IsCorruption());
  EXPECT_TRUE(read_status(1, last, 80'000, 2).IsCorruption());
  EXPECT_TRUE(read_status(9, one, 0, 1).IsCorruption());
  EXPECT_TRUE(store_->damaged(1, one).IsCorruption());
  EXPECT_NE(store_->damaged(1, last).ToString().find(std::to_string(last)), std::string::npos);
}

TEST_P(EveryStore, EachOfManyReadsHasItsOwnAnswer) {
  reopen();
  std::vector<ReadRequest> requests;
  for (GenerationId generation = 1; generation <= 3; ++generation) {
    begin(generation);
    for (unsigned i = 0; i < 5; ++i) {
      requests.insert(requests.begin(), {generation, append(made_record(40'000, i)), 30'000, 9'000, {}, {}});
    }
  }
  requests.push_back({3, requests[0].offset, 39'999, 2, {}, {}});  // longer than the record
  requests.push_back({9, requests[0].offset, 0, 1, {}, {}});       // of a generation that does not exist
  const auto expect_answers = [&] {
    for (unsigned i = 0; i < 15; ++i) {
      ASSERT_TRUE(requests[i].status.ok()) << requests[i].status.ToString();
      EXPECT_EQ(requests[i].bytes, made_record(40'000, 4 - i % 5).substr(30'000, 9'000));
    }
    EXPECT_TRUE(requests[15].status.IsCorruption());
    EXPECT_TRUE(requests[16].status.IsCorruption());
    for (ReadRequest& one : requests) {
      one.bytes.clear();
      one.status = Status::Incomplete();
    }
  };
  store_->read_many(requests);
  expect_answers();
  store_->begin_reads(requests);  // abandoned
  if (const auto in_flight = store_->begin_reads(requests)) in_flight->wait();
  expect_answers();
}

// --- cut

TEST_P(EveryStore, ACutRemovesARecordAndEverythingAfterIt) {
  reopen();
  begin(1);
  append("one");
  const std::uint64_t two = append(made_record(50'000, 2));
  append("three");
  begin(2);
  append("four");
  reopen();
  const std::uint64_t before = store_->used_bytes();
  store_.reset();
  store_ = drive_->open();
  recover(*store_);
  ASSERT_TRUE(store_->cut(1, two).ok());
  EXPECT_LT(store_->used_bytes() + 50'000, before);
  EXPECT_EQ(reopen(), (ReadRecords{{1, "one"}}));  // also durably
  begin(2);
  append("other");
  EXPECT_EQ(reopen(), (ReadRecords{{1, "one"}, {2, "other"}}));
  drive_->lose_power(std::move(store_), 1);
  EXPECT_EQ(reopen().front(), (std::pair<GenerationId, std::string>{1, "one"}));
}

TEST_P(EveryStore, ACutAtTheBeginLeavesAnEmptyGeneration) {
  reopen();
  begin(1);
  const std::uint64_t one = append("one");
  append("two");
  store_.reset();
  store_ = drive_->open();
  EXPECT_EQ(recover(*store_).size(), 2U);
  ASSERT_TRUE(store_->cut(1, one).ok());
  EXPECT_TRUE(has_generation(1));
  EXPECT_EQ(reopen(), ReadRecords());
  begin(2);
  append("three");
  EXPECT_EQ(reopen(), (ReadRecords{{2, "three"}}));
}

// --- begin, generations

TEST_P(EveryStore, ABegunGenerationIsDistinguishedFromADroppedOne) {
  reopen();
  begin(5);
  append("five");
  ASSERT_TRUE(store_->sync().ok());
  begin(6);
  append("lost with the power");
  EXPECT_EQ(store_->generations(), (std::vector<GenerationId>{5, 6}));
  ASSERT_TRUE(store_->drop(5).ok());
  EXPECT_EQ(store_->generations(), (std::vector<GenerationId>{6}));
  drive_->lose_power(std::move(store_), 0);
  reopen();
  EXPECT_FALSE(has_generation(5));
  EXPECT_TRUE(has_generation(6));
}

TEST_P(EveryStore, NumbersOfGenerationsOnlyGrow) {
  reopen();
  EXPECT_TRUE(try_append("none has begun").IsIOError());
  begin(5);
  append("five");
  EXPECT_TRUE(store_->begin(5).IsInvalidArgument());
  EXPECT_TRUE(store_->begin(4).IsInvalidArgument());
  begin(6);
  EXPECT_TRUE(try_append("").IsInvalidArgument());
  append("six");
  EXPECT_EQ(reopen(), (ReadRecords{{5, "five"}, {6, "six"}}));
  EXPECT_TRUE(store_->begin(6).IsInvalidArgument());
  if (store_->newest_known() > 0) {
    EXPECT_TRUE(store_->begin(store_->newest_known()).IsInvalidArgument());
  }
  begin(std::max<GenerationId>(store_->newest_known(), 6) + 1);
}

// --- append, sync

TEST_P(EveryStore, NothingBeyondItsCapacityIsAcceptedAndReleasedBytesAreReused) {
  reopen();
  const std::string record = made_record(100'000, 1);
  for (GenerationId generation = 1; generation <= 3; ++generation) {
    begin(generation);
    std::uint64_t appended = 0;
    Status status;
    while ((status = try_append(record)).ok()) ++appended;
    EXPECT_TRUE(status.IsNoSpace()) << status.ToString();
    EXPECT_GT(appended * record.size(), store_->capacity_bytes() * 9 / 10);
    const std::uint64_t used = store_->used_bytes();
    EXPECT_LE(used, store_->capacity_bytes());
    const std::vector<Slice> several(3, Slice(record));  // all or none
    std::vector<std::uint64_t> offsets(3);
    EXPECT_TRUE(store_->append(several, offsets).IsNoSpace());
    EXPECT_EQ(store_->used_bytes(), used);
    ASSERT_TRUE(store_->sync().ok());  // nothing has failed
    std::uint64_t scanned = 0;
    const Status scan = store_->scan(generation, [&](const StoredRecord&) {
      ++scanned;
      return Status::OK();
    });
    EXPECT_TRUE(scan.ok()) << scan.ToString();
    EXPECT_EQ(scanned, appended);
    ASSERT_TRUE(store_->drop(generation).ok());
    store_->release(generation);
    EXPECT_EQ(store_->used_bytes(), 0U);
  }
}

// A prefix of every generation is left, and what was synced is in it.
TEST_P(EveryStore, ALossOfPowerLeavesAPrefixWithAllThatWasSynced) {
  for (std::uint64_t seed = 0; seed < (runs_long_tests() ? 16U : 4U); ++seed) {
    SCOPED_TRACE(seed);
    store_.reset();  // must be destroyed before its drive
    drive_ = new_drive();
    reopen();
    ReadRecords all;
    std::size_t synced = 0;
    for (GenerationId generation = 1; generation <= 4; ++generation) {
      begin(generation);
      for (unsigned i = 0; i < 4; ++i) {
        all.emplace_back(generation, made_record(3000 + 100 * i, i));
        append(all.back().second);
        if (generation == 2 && i == 1) {
          ASSERT_TRUE(store_->sync().ok());
          synced = all.size();
        }
      }
      store_->hand_on();
    }
    drive_->lose_power(std::move(store_), seed);
    const ReadRecords left = reopen();
    ASSERT_GE(left.size(), synced);
    ASSERT_LE(left.size(), all.size());
    EXPECT_TRUE(std::equal(left.begin(), left.end(), all.begin()));
  }
}

TEST_P(EveryStore, AfterAFailureItAcceptsNothingUntilAGenerationBegins) {
  reopen();
  begin(1);
  append("one");
  ASSERT_TRUE(store_->sync().ok());
  drive_->set_failing(true);
  const std::uint64_t two = append("two");
  EXPECT_TRUE(store_->sync().IsIOError());
  EXPECT_TRUE(store_->sync().IsIOError());
  EXPECT_TRUE(try_append("three").IsIOError());
  drive_->set_failing(false);
  EXPECT_TRUE(store_->sync().IsIOError());
  EXPECT_TRUE(try_append("three").IsIOError());
  EXPECT_EQ(read(1, two, 0, 3), "two");
  begin(2);  // makes all accepted records durable
  EXPECT_EQ(read(1, two, 0, 3), "two");
  append("four");
  ASSERT_TRUE(store_->sync().ok());
  drive_->lose_power(std::move(store_), 3);
  EXPECT_EQ(reopen(), (ReadRecords{{1, "one"}, {1, "two"}, {2, "four"}}));
}

// --- close

TEST_P(EveryStore, WhatWasClosedIsDurableAndCanStillBeRead) {
  reopen();
  begin(1);
  append("one");
  begin(2);
  const std::uint64_t two = append("two");
  ASSERT_TRUE(store_->close().ok());
  EXPECT_EQ(read(2, two, 0, 3), "two");
  drive_->lose_power(std::move(store_), 5);
  EXPECT_EQ(reopen(), (ReadRecords{{1, "one"}, {2, "two"}}));
}

// --- drop, release

TEST_P(EveryStore, ADroppedGenerationIsReadUntilItIsReleasedAndNeverRecovered) {
  reopen();
  begin(1);
  const std::uint64_t one = append("one");
  begin(2);
  append("two");
  EXPECT_EQ(store_->held_bytes(), 0U);
  ASSERT_TRUE(store_->drop(1).ok());
  EXPECT_EQ(read(1, one, 0, 3), "one");
  EXPECT_GT(store_->held_bytes(), 0U);
  EXPECT_GE(store_->used_bytes(), store_->held_bytes());
  store_->release(1);
  EXPECT_EQ(store_->held_bytes(), 0U);
  EXPECT_TRUE(read_status(1, one, 0, 3).IsCorruption());
  append("three");
  EXPECT_EQ(reopen(), (ReadRecords{{2, "two"}, {2, "three"}}));
  ASSERT_TRUE(store_->drop(2).ok());
  drive_->lose_power(std::move(store_), 7);  // before it is released
  EXPECT_EQ(reopen(), ReadRecords());
}

TEST_P(EveryStore, WhatWasPreparedForADropIsThereUntilItIsDropped) {
  reopen();
  begin(1);
  const std::uint64_t one = append("one");
  begin(2);
  append("two");
  ASSERT_TRUE(store_->sync().ok());
  store_->prepare_drop(1);
  EXPECT_EQ(read(1, one, 0, 3), "one");
  append("three");
  begin(3);
  append("four");
  ASSERT_TRUE(store_->sync().ok());
  ASSERT_TRUE(store_->drop(1).ok());
  EXPECT_EQ(read(1, one, 0, 3), "one");
  store_->prepare_drop(2);
  drive_->lose_power(std::move(store_), 8);  // before it is dropped, and before the first is released
  ReadRecords left = reopen();
  if (!left.empty() && left.front().first == 2) left.erase(left.begin(), left.begin() + 2);
  EXPECT_EQ(left, (ReadRecords{{3, "four"}}));
  begin(4);
  append("five");
  if (has_generation(2)) {
    ASSERT_TRUE(store_->drop(2).ok());
  }
  store_->prepare_drop(3);
  store_->prepare_drop(3);
  ASSERT_TRUE(store_->drop(3).ok());
  store_->release(3);
  EXPECT_EQ(reopen(), (ReadRecords{{4, "five"}}));
}

TEST_P(EveryStore, WhatHasEndedIsReadSyncedDroppedAndRecoveredAsEver) {
  reopen();
  store_->end();  // nothing has begun
  begin(1);
  const std::uint64_t one = append("one");
  store_->end();
  store_->end();
  EXPECT_EQ(read(1, one, 0, 3), "one");
  ASSERT_TRUE(store_->sync().ok());
  drive_->lose_power(std::move(store_), 11);
  EXPECT_EQ(reopen(), (ReadRecords{{1, "one"}}));
  begin(2);
  append("two");
  store_->end();
  begin(3);
  append("three");
  store_->end();
  for (GenerationId generation = 1; generation <= 3; ++generation) {
    store_->prepare_drop(generation);
    ASSERT_TRUE(store_->drop(generation).ok());
    store_->release(generation);
  }
  EXPECT_EQ(store_->used_bytes(), store_->held_bytes());
  begin(4);
  append("four");
  ASSERT_TRUE(store_->sync().ok());
  drive_->lose_power(std::move(store_), 12);
  EXPECT_EQ(reopen(), (ReadRecords{{4, "four"}}));
}

TEST_P(EveryStore, DropsArePreparedWhileOneAppends) {
  reopen();
  constexpr GenerationId kGenerations = 12;
  std::atomic<GenerationId> sealed = 0;
  std::atomic<GenerationId> prepared = 0;
  std::thread other([&] {
    while (prepared < kGenerations - 1) {
      if (prepared == sealed) continue;
      store_->prepare_drop(prepared + 1);
      ++prepared;
    }
  });
  GenerationId dropped = 0;
  ReadRecords last;
  for (GenerationId generation = 1; generation <= kGenerations; ++generation) {
    begin(generation);
    last.clear();
    for (unsigned i = 0; i < 20; ++i) {
      const std::string record = made_record(2000, i);
      append(record);
      last.emplace_back(generation, record);
    }
    ASSERT_TRUE(store_->sync().ok());
    sealed = generation - 1;
    while (prepared < sealed) std::this_thread::yield();
    for (; dropped < prepared; store_->release(++dropped)) ASSERT_TRUE(store_->drop(dropped + 1).ok());
    EXPECT_LE(store_->held_bytes(), store_->used_bytes());
  }
  other.join();
  EXPECT_EQ(store_->held_bytes(), 0U);
  EXPECT_TRUE(reopen() == last);
}

TEST_P(EveryStore, AnEmptyGenerationMayBeDroppedBeforeAnOlderOne) {
  reopen();
  begin(1);
  append("one");
  begin(2);
  ASSERT_TRUE(store_->drop(2).ok());
  store_->release(2);
  EXPECT_FALSE(has_generation(2));
  EXPECT_EQ(reopen(), (ReadRecords{{1, "one"}}));
  EXPECT_FALSE(has_generation(2));
}

TEST_P(EveryStore, ADroppedCurrentGenerationAcceptsNothingAndIsNoFailure) {
  reopen();
  begin(1);
  append("one");
  ASSERT_TRUE(store_->drop(1).ok());
  EXPECT_TRUE(store_->sync().ok());
  EXPECT_TRUE(try_append("two").IsIOError());
  begin(2);
  append("two");
  ASSERT_TRUE(store_->sync().ok());
  EXPECT_EQ(reopen(), (ReadRecords{{2, "two"}}));
}

// --- The binding record

TEST_P(EveryStore, TheBindingRecordIsTheLastThatWasWritten) {
  reopen();
  std::string bytes = "untouched";
  ASSERT_TRUE(store_->read_binding(&bytes).ok());
  EXPECT_EQ(bytes, "");
  EXPECT_NE(store_->binding_place(), "");
  const std::uint64_t used = store_->used_bytes();
  ASSERT_TRUE(store_->write_binding("first").ok());
  ASSERT_TRUE(store_->write_binding("second").ok());
  EXPECT_EQ(store_->used_bytes(), used);  // it is not a record
  begin(1);
  append("one");
  ASSERT_TRUE(store_->sync().ok());
  ASSERT_TRUE(store_->drop(1).ok());
  store_->release(1);
  drive_->lose_power(std::move(store_), 9);
  store_ = drive_->open();
  ASSERT_TRUE(store_->read_binding(&bytes).ok());  // also before recover()
  EXPECT_EQ(bytes, "second");
  EXPECT_EQ(recover(*store_), ReadRecords());
  ASSERT_TRUE(store_->read_binding(&bytes).ok());
  EXPECT_EQ(bytes, "second");
}

// --- Threads

// One thread appends, begins and drops. Others sync, read, scan and read sizes concurrently.
TEST_P(EveryStore, OthersReadScanAndSyncWhileOneAppends) {
  reopen();
  begin(1);
  constexpr unsigned kRecords = 300;
  std::vector<std::atomic<std::uint64_t>> offsets(kRecords);  // 0: does not exist yet
  std::atomic<bool> is_over = false;
  const std::uint64_t first = append(made_record(2000, 0));
  std::vector<std::thread> others;
  others.emplace_back([&] {
    while (!is_over) EXPECT_TRUE(store_->sync().ok());
  });
  others.emplace_back([&] {
    for (unsigned i = 1; !is_over; i = i % (kRecords - 1) + 1) {
      EXPECT_EQ(read(1, first, 0, 2000), made_record(2000, 0));
      const std::uint64_t offset = offsets[i].load();
      if (offset == 0) continue;
      EXPECT_EQ(read(i < kRecords / 2 ? 1 : 2, offset, 100, 50), made_record(2000, i).substr(100, 50));
    }
  });
  others.emplace_back([&] {
    while (!is_over) {
      unsigned scanned = 0;
      const Status status = store_->scan(1, [&](const StoredRecord& record) {
        EXPECT_EQ(record.bytes.ToString(), made_record(2000, scanned++));
        return Status::OK();
      });
      EXPECT_TRUE(status.ok()) << status.ToString();
      EXPECT_LE(store_->used_bytes(), store_->capacity_bytes());
    }
  });
  for (unsigned i = 1; i < kRecords; ++i) {
    if (i == kRecords / 2) begin(2);
    offsets[i] = append(made_record(2000, i));
  }
  is_over = true;
  for (std::thread& one : others) one.join();
  ReadRecords all;
  for (unsigned i = 0; i < kRecords; ++i) all.emplace_back(i < kRecords / 2 ? 1 : 2, made_record(2000, i));
  EXPECT_TRUE(reopen() == all);
}

}  // namespace
}  // namespace spillway::spill
