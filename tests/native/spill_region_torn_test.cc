// Logs as a loss of power, or damage, may leave them: torn ends are cut, and missing durable records are reported.
#include <gtest/gtest.h>
#include <rocksdb/file_checksum.h>

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/file_bytes.h"
#include "spill_region_store.h"

namespace spillway::spill {
namespace {

using rocksdb::Status;

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

// The next log states that this one was durable when it began, so no loss of power can have torn it.
TEST_F(TornLogTest, DamageToAnOlderLogIsReported) {
  for (std::uint64_t at = 0; at < damaged_.log.size(); ++at) {
    SCOPED_TRACE(at);
    const std::uint64_t frame =
        at < kLogHeaderBytes ? 0 : *std::prev(std::upper_bound(damaged_.ends.begin(), damaged_.ends.end(), at));
    write(path("000001.spill"), garbled(at));
    expect_told("000001.spill", frame);
    // Between two frames nothing shows that there was more.
    if (at <= kLogHeaderBytes || at == frame) continue;
    write(path("000001.spill"), damaged_.log.substr(0, at));
    expect_told("000001.spill", frame);
  }
}

// A log is made durable while the next one is appended to. This is what a process leaves that dies before.
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
    leave(damaged_.log.substr(0, at), left_["000002.spill"]);  // also at the end of a record, where nothing is torn
    expect_recovers(before(at));
    leave(garbled(at), left_["000002.spill"]);
    expect_recovers(at < kLogHeaderBytes ? Records{} : before(at));
    if (HasFatalFailure()) return;
  }
}

TEST_F(UnsyncedLogTest, DamageToItIsReportedOnceTheNextLogRecordsThatItIsDurable) {
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

// Three logs at once: the third only knows that the first was not durable.
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

// After recovery these records count as durable, so recovery syncs everything that may not have been synced.
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

// A later frame states that the ones before it were synced, so no loss of power can have torn them.
TEST_F(TornLogTest, DamageToSyncedRecordsIsReported) {
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

// The remains of a failed begin() are not a log that has lost records.
TEST_F(TornLogTest, ALeftoverBeginningEndsNothing) {
  write(path("000001.spill"), damaged_.log.substr(0, kLogHeaderBytes / 2));
  EXPECT_EQ(found(), (Records{{2, "four"}}));
}

// Its header is complete, so it is not a torn log of this version.
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

TEST_F(TornLogTest, ZerosAfterTheEndAreNoRecords) {
  write(path("000001.spill"), damaged_.log + std::string(10000, '\0'));
  std::filesystem::remove(path("000002.spill"));
  expect_recovers(before(damaged_.log.size()));
}

// The same generation of the same store, created twice: blocks of the first must not be taken for the second's.
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

}  // namespace
}  // namespace spillway::spill
