// What the recovery of a key-value namespace distinguishes: damage, cut or dropped records, and other versions.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "base/file_bytes.h"
#include "device/kv/kv_namespace.h"
#include "flipped_bytes.h"
#include "spill/store/kv/generation_list.h"
#include "spill/store/kv/kv_durable.h"
#include "spill/store/kv/kv_pairs.h"
#include "spill_kv_store.h"

namespace spillway::spill {
namespace {

using rocksdb::Status;

// A pair is on the drive completely or not at all, so inconsistent pairs are damage and not the result of a loss of
// power.
TEST_F(KvStoreTest, AChangedRecordIsReportedByScansAndByRecovery) {
  std::vector<std::string> records = {"small", record_of(4000, 1), record_of(40'000, 2), record_of(3000, 3)};
  std::vector<std::uint64_t> offsets;
  offsets.reserve(records.size());
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
      // Its checksum, and the first and the last of its bytes in its first pair.
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

// Synced records are known to be on the drive. If any of them is missing, that is reported.
TEST_F(KvStoreTest, MissingPairsAreReportedAfterASyncOrAClose) {
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
      {  // the pair that contains it disappears, as with a damaged index of the drive
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
    // If the record of the sync is lost with the power, nothing is reported.
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

TEST(KvDurable, OneOfItsSlotsIsAlwaysValid) {
  std::string memory(KvDurable::kBytes, '\0');
  EXPECT_TRUE(KvDurable(memory.data()).read().empty());
  KvDurable durable(memory.data());
  durable.replace({{1, 10}});
  durable.add({{1, 20}, {2, 5}});
  const std::string before = memory;
  durable.add({{1, 15}, {2, 7}});
  EXPECT_EQ(durable.read(), (KvDurable::Last{{1, 20}, {2, 7}}));
  const std::string after = memory;
  // Killed during its write: any part of the new bytes.
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
  // What a full drive was not given stays recorded.
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
  {  // its list of generations consists only of numbers
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

// Four records in a pair, by a version whose default that was.
TEST_F(KvStoreTest, AStoreKeepsTheSizesThatItWasMadeWith) {
  Records all;
  all.reserve(42);
  std::uint64_t last = 0;
  {
    auto store = open();
    recover(*store);
    ASSERT_TRUE(store->begin(1).ok());
    for (unsigned i = 0; i < 40; ++i) {
      all.emplace_back(1, record_of(4096, i));
      last = append(*store, all.back().second);
      if (i == 30) {
        ASSERT_TRUE(store->sync().ok());
      }
    }
  }
  for (int times = 0; times < 2; ++times) {
    drive_ = device::make_simulated(ssd::Ssd(config_, 1));
    std::unique_ptr<Store> store;
    ASSERT_TRUE(open_kv_store({drive_.get(), 0, directory_.path("kv"), nullptr}, &store).ok());
    EXPECT_EQ(recover(*store), all);
    EXPECT_EQ(read(*store, 1, last, 0, 4096), record_of(4096, 39));
    const GenerationId next = all.back().first + 1;
    ASSERT_TRUE(store->begin(next).ok());
    all.emplace_back(next, record_of(30'000, 50));
    append(*store, all.back().second);
  }
}

TEST_F(KvStoreTest, PairsThatAreLargerThanAnyOfTheStoreAreNotCutOff) {
  Records all;
  all.reserve(20);
  {
    auto store = open();
    recover(*store);
    ASSERT_TRUE(store->begin(1).ok());
    for (unsigned i = 0; i < 20; ++i) {
      all.emplace_back(1, record_of(4096, i));
      append(*store, all.back().second);
    }
    ASSERT_TRUE(store->sync().ok());
  }
  std::filesystem::rename(directory_.path("kv.staged"), directory_.path("moved"));
  drive_ = device::make_simulated(ssd::Ssd(config_, 1));
  std::unique_ptr<Store> store;
  ASSERT_TRUE(open_kv_store({drive_.get(), 0, directory_.path("kv"), nullptr}, &store).ok());
  const Status status = store->recover([](const StoredRecord&) { return Status::OK(); });
  EXPECT_TRUE(status.IsNotSupported()) << status.ToString();
  EXPECT_NE(status.ToString().find("staging"), std::string::npos) << status.ToString();
  store = nullptr;
  std::filesystem::rename(directory_.path("moved"), directory_.path("kv.staged"));
  EXPECT_EQ(found(), all);
}

TEST(KvGenerationList, IsItselfOrDamaged) {
  const std::vector<GenerationId> ids = {1'700'000'000'000'000, 1'700'000'000'000'001};
  const std::string whole = encode_generations(ids);
  std::vector<GenerationId> decoded;
  ASSERT_TRUE(decode_generations(whole, &decoded).ok());
  EXPECT_EQ(decoded, ids);
  for (std::size_t at = 0; at < whole.size(); ++at) {
    for (int bit = 0; bit < 8; ++bit) {
      std::string changed = whole;
      changed[at] = static_cast<char>(changed[at] ^ (1 << bit));
      EXPECT_FALSE(decode_generations(changed, &decoded).ok()) << at;
    }
    EXPECT_FALSE(decode_generations(whole.substr(0, at), &decoded).ok()) << at;
  }
  ASSERT_TRUE(decode_generations(encode_generations({}), &decoded).ok());
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
  EXPECT_EQ(store->generations(), (std::vector<GenerationId>{1, 3}));  // 3 would have been the next
  store = nullptr;
  store = open();
  EXPECT_EQ(recover(*store), (Records{{1, "one"}}));
  EXPECT_EQ(store->generations(), (std::vector<GenerationId>{1, 3}));
}

TEST_F(KvStoreTest, ACutOfEverythingKeepsTheListOfDroppedGenerations) {
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
  EXPECT_EQ(store->generations(), (std::vector<GenerationId>{6, 7}));  // begun and empty; and the next
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

TEST_F(KvStoreTest, CutRecordsDoNotPreventTheDropOfALaterGeneration) {
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
    store = nullptr;  // like a kill before it was released

    EXPECT_EQ(found(), (Records{{6, "new 6"}}));
  }
}

}  // namespace
}  // namespace spillway::spill
