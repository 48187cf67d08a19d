// WiscKey's design, beyond what engine_conformance_test.cc tests for every engine: records and garbage collection of
// the value log. Its recovery is tested in engine_vlog_recovery_test.cc.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "at_each_step.h"
#include "engine/vlog/record.h"
#include "engine_vlog_fixture.h"
#include "flipped_bytes.h"
#include "needs.h"

namespace spillway::engine {
namespace {

using vlog::Address;
using vlog::Position;
using vlog::Record;
using vlog::RecordKind;

class Vlog : public VlogFixture {};

// --- Records

TEST(VlogRecord, IsValidOnlyCompleteAndAtItsOwnPlace) {
  const Position at{3, 4096};
  for (const std::size_t value_bytes : {0, 1, 127, 128, 20'000}) {
    std::string log;
    const std::string value = value_of(value_bytes, value_bytes);
    const auto length = append_record(at, {.kind = RecordKind::put, .more = true, .key = "key", .value = value}, &log);
    ASSERT_EQ(length, log.size());
    EXPECT_EQ(length, vlog::record_bytes(3, value.size()));
    EXPECT_EQ(vlog::record_length(log), length);
    const std::string more = log + "behind";
    const auto record = vlog::parse_record(at, more);
    ASSERT_TRUE(record);
    EXPECT_EQ(record->key, "key");
    EXPECT_EQ(record->value, value);
    EXPECT_TRUE(record->more);
    EXPECT_FALSE(vlog::parse_record({3, 4097}, log));
    EXPECT_FALSE(vlog::parse_record({4, 4096}, log));
    EXPECT_FALSE(parse_record(at, std::string_view(log).substr(0, length - 1)));
    for (std::size_t i = 0; i < log.size(); i += 1 + i / 40) {
      std::string damaged = log;
      damaged[i] = static_cast<char>(damaged[i] ^ 0x10);
      EXPECT_FALSE(parse_record(at, damaged)) << i;
    }
  }
}

TEST(VlogRecord, AddressesAndInTreeValuesAreDistinguished) {
  std::string text;
  for (const Address& address : {Address{{1, 32}, 7}, Address{{0xfeffffff, 0xffffffff}, 0xffffffff}}) {
    format_address(address, &text);
    EXPECT_EQ(text.size(), vlog::kAddressBytes);
    EXPECT_FALSE(vlog::is_in_tree(text));
    EXPECT_EQ(vlog::parse_address(text), address);
  }
  text.assign(vlog::kAddressBytes, vlog::kInTree);
  EXPECT_FALSE(vlog::parse_address(text));
  EXPECT_FALSE(vlog::parse_address("short"));
}

// --- The engine

// Small segments and a low threshold: the collector works all the time, also on what it has moved before.
TEST_F(Vlog, DoesWhatAMapDoesWhileGarbageIsCollected) {
  for (std::uint64_t seed = 1; seed <= 3; ++seed) {
    std::filesystem::remove_all(directory_);
    std::mt19937_64 random(seed);
    Model model;
    std::uint64_t removed = 0;
    for (int life = 0; life < 3; ++life) {
      open({{"vlog.min_value_bytes", seed == 2 ? "100" : "0"}, {"vlog.prefetch", seed == 3 ? "1" : "32"}});
      expect_same(model);
      for (int i = 0; i < 2500; ++i) {
        // Some keys are rarely overwritten, others all the time.
        const std::string key = key_of(random() % 4 == 0 ? random() % 600 : random() % 60);
        if (random() % 8 == 0) {
          ASSERT_TRUE(engine_->remove(key));
          model.erase(key);
        } else {
          const std::string value = value_of(random(), random() % 300);
          ASSERT_TRUE(engine_->put(key, value));
          model[key] = value;
        }
        if (i % 500 == 0) expect_same(model);
      }
      ASSERT_TRUE(engine_->settle(kNeverStopped));
      expect_same(model);
      removed += statistic("vlog.gc_removed_segments");
      ASSERT_TRUE(engine_->close());
    }
    EXPECT_GT(removed, 20U);
    open();
    expect_same(model);
    engine_.reset();
  }
}

TEST_F(Vlog, SettlingLeavesLittleGarbage) {
  open();
  for (std::uint64_t i = 0; i < 6000; ++i) ASSERT_TRUE(engine_->put(key_of(i % 300), value_of(i, 200)));
  ASSERT_TRUE(engine_->settle(kNeverStopped));
  // 300 live records of some 220 bytes. A threshold of 0.3 leaves less than half as much garbage, and a head.
  EXPECT_LT(engine_->observe().gauge("vlog_bytes"), 2 * 300 * 220U + 3 * 16384U);
  EXPECT_GT(statistic("vlog.gc_removed_bytes"), 5000 * 200U);
}

// LevelDB compacts a table after some hundred gets that searched it in vain. The collector must not cause that.
TEST_F(Vlog, SearchingForGarbageCausesNoCompaction) {
  make_drive(64ULL << 20);
  open({{"vlog.gc_garbage_ratio", "1"}});
  for (std::uint64_t i = 0; i < 2000; ++i) ASSERT_TRUE(engine_->put(key_of(i), value_of(i, 100)));
  ASSERT_TRUE(engine_->settle(kNeverStopped));
  // A table above all others whose range includes keys that it does not have.
  ASSERT_TRUE(engine_->put(key_of(0), "new"));
  ASSERT_TRUE(engine_->put(key_of(1999), "new"));
  ASSERT_TRUE(engine_->settle(kNeverStopped));
  const auto compacted = [&] {
    return device_->counters().host_bytes_written_by_cause[static_cast<std::size_t>(device::Cause::compaction)];
  };
  const std::uint64_t before = compacted();
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(engine_->settle(kNeverStopped));
  EXPECT_EQ(compacted(), before);
  // The same number of gets causes it.
  for (std::uint64_t i = 1; i < 1999; ++i) EXPECT_TRUE(*engine_->get(key_of(i), nullptr));
  ASSERT_TRUE(engine_->settle(kNeverStopped));
  EXPECT_GT(compacted(), before);
}

// A write between the collector's read of the tree and its append to the log is newer than what it moves.
TEST_F(Vlog, CollectionBringsBackNothingThatWasOverwrittenMeanwhile) {
  Model model;
  open();
  for (std::uint64_t i = 0; i < 100; ++i) {
    model[key_of(i)] = value_of(i, 150);
    ASSERT_TRUE(engine_->put(key_of(i), value_of(i, 150)));
  }
  model["filler"] = value_of(1499, 400);  // below; the collector's thread has the model until it has settled
  std::uint64_t number = 0;
  {
    const AtEach at("vlog.gc.asked", [&] {
      for (int i = 0; i < 5; ++i, ++number) {
        const std::string key = key_of(number * 7 % 100);
        if (i == 0) {
          EXPECT_TRUE(engine_->remove(key));
          model.erase(key);
        } else {
          EXPECT_TRUE(engine_->put(key, value_of(number, 150)));
          model[key] = value_of(number, 150);
        }
      }
    });
    // Only this key from now on, so the live records of the tail are the other keys.
    for (std::uint64_t i = 0; i < 1500; ++i) ASSERT_TRUE(engine_->put("filler", value_of(i, 400)));
    ASSERT_TRUE(engine_->settle(kNeverStopped));
    EXPECT_GT(at.times(), 3);
    EXPECT_GT(statistic("vlog.moved_bytes"), 0U);
    expect_same(model);
    ASSERT_TRUE(engine_->close());
  }
  open();
  expect_same(model);
}

// A failed write replaces nothing: a record that the collector has found live is still moved.
TEST_F(Vlog, CollectionKeepsWhatAFailedWriteDidNotReplace) {
  make_drive(8ULL << 20);
  open();
  Model model;
  const std::string larger_than_the_drive(9 << 20, 'x');
  std::vector<Write> batch = {{Write::Kind::put, "large", larger_than_the_drive}};
  for (std::uint64_t i = 0; i < 100; ++i) model[key_of(i)] = value_of(i, 150);
  for (const auto& [key, value] : model) batch.push_back({Write::Kind::put, key, "new"});
  {
    const AtEach at("vlog.gc.asked", [&] { EXPECT_EQ(engine_->write(batch).fault(), Fault::drive_full); });
    for (const auto& [key, value] : model) ASSERT_TRUE(engine_->put(key, value));
    for (std::uint64_t i = 0; i < 300; ++i) ASSERT_TRUE(engine_->put("filler", value_of(i, 400)));
    model["filler"] = value_of(299, 400);
    // The second collection moves what the first one has moved.
    for (int i = 0; i < 2; ++i) ASSERT_TRUE(engine_->settle(kNeverStopped));
    EXPECT_GT(at.times(), 0);
  }
  EXPECT_GT(statistic("vlog.moved_bytes"), 0U);
  EXPECT_GT(statistic("vlog.gc_removed_segments"), 0U);
  expect_same(model);
  ASSERT_TRUE(engine_->close());
  open();
  expect_same(model);
}

TEST_F(Vlog, AScanReadsWhatWasCollectedSinceItBegan) {
  open();
  Model model;
  for (std::uint64_t i = 0; i < 200; ++i) {
    model[key_of(i)] = value_of(i, 200);
    ASSERT_TRUE(engine_->put(key_of(i), model[key_of(i)]));
  }
  std::atomic<bool> done{false};
  std::atomic<int> wrong{0};
  std::thread scanner([&] {
    while (!done) {
      Pairs pairs;
      auto seen = engine_->scan(key_of(0), 199, Direction::forward, &pairs);
      if (!seen || pairs != Pairs(model.begin(), model.end())) ++wrong;
      pairs.clear();
      seen = engine_->scan(key_of(199), 199, Direction::backward, &pairs);
      if (!seen || pairs != Pairs(model.rbegin(), model.rend())) ++wrong;
    }
  });
  // The pairs are moved repeatedly, with the same values.
  for (std::uint64_t i = 0; i < 6000; ++i) {
    const std::uint64_t number = i % 2 == 0 ? i * 7 % 200 : 0;
    if (!engine_->put(key_of(number), model[key_of(number)])) ++wrong;
  }
  if (!engine_->settle(kNeverStopped)) ++wrong;
  done = true;
  scanner.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_GT(statistic("vlog.gc_removed_segments"), 10U);
}

// A scan is delayed between its reads of the tree and of the segments, until both have changed.
TEST_F(Vlog, AScanStartsAgainIfSegmentsAreRemovedMeanwhile) {
  open();
  Model model;
  const auto put = [&](std::uint64_t i) {
    model[key_of(i % 100)] = value_of(i, 200);
    ASSERT_TRUE(engine_->put(key_of(i % 100), model[key_of(i % 100)]));
  };
  for (std::uint64_t i = 0; i < 100; ++i) put(i);
  int overtaken = 0;
  {
    const AtStep at("vlog.scan.iterator", [&] {
      const std::uint64_t before = statistic("vlog.gc_removed_segments");
      for (std::uint64_t i = 100; i < 1000; ++i) put(i);
      ASSERT_TRUE(engine_->settle(kNeverStopped));
      overtaken = statistic("vlog.gc_removed_segments") > before ? 1 : 0;
    });
    expect_same(model);
  }
  EXPECT_EQ(overtaken, 1);
}

// --- Drives

// Three times the drive's capacity, for live data of a quarter of it: writers wait for the collector, and continue.
TEST_F(Vlog, OverwritesMoreThanTheDriveHolds) {
  make_drive(8ULL << 20);
  open({{"vlog.segment_bytes", "262144"}, {"vlog.gc_garbage_ratio", "1"}, {"vlog.gc_free_ratio", "0"}});
  Model model;
  for (std::uint64_t i = 0; i < 6'000; ++i) {
    const std::string key = key_of(i * 7919 % 500);
    const std::string value = value_of(i, 4000);
    const Status status = engine_->put(key, value);
    ASSERT_TRUE(status) << i << ": " << status.message();
    model[key] = value;
  }
  expect_same(model);
  const auto stalls = engine_->stalls();
  std::uint64_t waits = 0;
  for (const Stall& stall : stalls) {
    waits += std::string_view(engine_->stall_causes()[stall.cause]) == "vlog_gc" ? 1U : 0U;
  }
  EXPECT_GT(statistic("vlog.gc_removed_bytes"), 14U << 20);
  EXPECT_GT(waits, 0U);
}

// A drive that is short of space is not read repeatedly in search of garbage, whatever the number of segments.
TEST_F(Vlog, FindingTheMostGarbageReadsLittle) {
  SPILLWAY_LONG_TEST();
  for (const char* const segment_bytes : {"262144", "32768"}) {
    make_drive(8ULL << 20);
    std::filesystem::remove_all(directory_);
    open({{"vlog.segment_bytes", segment_bytes}, {"vlog.gc_garbage_ratio", "1"}, {"vlog.gc_free_ratio", "0.5"}});
    std::mt19937_64 random(1);
    for (std::uint64_t i = 0; i < 6'000; ++i) ASSERT_TRUE(engine_->put(key_of(random() % 500), value_of(i, 4000)));
    const std::uint64_t removed = statistic("vlog.gc_removed_bytes");
    EXPECT_GT(removed, 10U << 20) << segment_bytes;
    // One read to collect a segment, about eight to choose it, and reads without effect.
    const std::uint64_t read = device_->counters().host_bytes_read_by_cause[static_cast<std::size_t>(fs::Cause::blob)];
    EXPECT_LT(read, 25 * removed) << segment_bytes;
  }
}

// The collector finds no space for what it moves: the write returns that, and nothing is lost.
TEST_F(Vlog, ADriveThatIsFullDuringACollectionLosesNothing) {
  make_drive(8ULL << 20);
  const StringMap settings = {{"vlog.segment_bytes", "65536"}, {"vlog.gc_garbage_ratio", "0.05"}};
  open(settings);
  Model model;
  std::map<std::string, std::set<std::string>> failed;  // values of failed writes, which the next open may find
  const auto put = [&](std::uint64_t key, std::uint64_t number) {
    Status status = engine_->put(key_of(key), value_of(number, 3000));
    if (status) {
      model[key_of(key)] = value_of(number, 3000);
      failed.erase(key_of(key));
    } else {
      failed[key_of(key)].insert(value_of(number, 3000));
    }
    return status;
  };
  // One of five writes has an old key, so there is a little garbage everywhere until the end.
  Status status;
  std::uint64_t writes = 0;
  for (; writes < 20'000 && status; ++writes)
    status = put(writes % 5 == 0 ? writes * 7919 % (writes + 1) : writes, writes);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.fault(), Fault::drive_full) << status.message();
  EXPECT_GT(statistic("vlog.gc_removed_segments"), 10U);
  // Further writes, to old keys, whose values stay.
  for (std::uint64_t i = 0; i < 200; ++i) (void)put(i * 7919 % writes, writes + i);
  EXPECT_FALSE(failed.empty());
  expect_same(model);
  (void)engine_->close();
  make_drive(64ULL << 20);
  open(settings);
  for (const auto& [key, values] : failed) {
    std::string found;
    const auto there = engine_->get(key, &found);
    ASSERT_TRUE(there) << there.status().message();
    if (there.value() && values.contains(found)) model[key] = found;
  }
  expect_same(model);
  for (const auto& [key, values] : failed) {
    ASSERT_TRUE(engine_->put(key, "sure"));
    model[key] = "sure";
  }
  ASSERT_TRUE(engine_->settle(kNeverStopped));
  expect_same(model);
}

// Each byte of a large value is written once. The key and the address of a small one are also written in the tree's
// levels.
TEST_F(Vlog, WritesALargeValueOnce) {
  make_drive(256ULL << 20);
  open({{"vlog.segment_bytes", "8388608"}});
  std::uint64_t user = 0;
  for (std::uint64_t i = 0; i < 800; ++i) {
    const std::string key = key_of(i * 7919 % 100'000);
    const std::string value = value_of(i, 16 << 10);
    ASSERT_TRUE(engine_->put(key, value));
    user += key.size() + value.size();
  }
  ASSERT_TRUE(engine_->flush());
  ASSERT_TRUE(engine_->close());
  const ssd::Counters counters = device_->counters();
  const double amplification = static_cast<double>(counters.host_bytes_written) / static_cast<double>(user);
  EXPECT_GT(amplification, 1.0);
  EXPECT_LT(amplification, 1.03);
  const auto of = [&](device::Cause cause) {
    return counters.host_bytes_written_by_cause[static_cast<std::size_t>(cause)];
  };
  EXPECT_GT(of(device::Cause::blob), user);
  EXPECT_LT(of(device::Cause::wal), 64U << 10);  // one page for each memtable
}

// --- What the collector reports

bool eventually(const std::function<bool()>& happens) {
  const auto note_no_gain = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (!happens() && std::chrono::steady_clock::now() < note_no_gain) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return happens();
}

TEST_F(Vlog, TheCollectorTriesAgainWhenTheDriveWasFull) {
  make_drive(8ULL << 20);
  open({{"vlog.gc", "false"}});
  Model model;
  for (std::uint64_t i = 0; i < 100; ++i) {
    model[key_of(i)] = value_of(i, 400);
    model["filler"] = value_of(i, 400);
    for (const std::string& key : {key_of(i), std::string("filler")}) ASSERT_TRUE(engine_->put(key, model[key]));
  }
  std::unique_ptr<fs::File> ballast;
  {
    std::atomic<bool> is_full{false};
    const AtStep at("vlog.gc.asked", [&] {
      ballast = std::move(*volume_->create("/ballast", fs::Cause::other));
      for (std::uint64_t size = 0, step = 1 << 20; step >= fs::kPageBytes;) {
        if (ballast->write(size, step, fs::Access::buffered)) {
          size += step;
        } else {
          step /= 2;
        }
      }
      is_full = true;
    });
    open();  // which starts the collector
    ASSERT_TRUE(eventually([&] { return is_full && engine_->observe().gauge("vlog_collecting") == 0; }));
    EXPECT_EQ(engine_->settle(kNeverStopped).fault(), Fault::drive_full);
  }
  EXPECT_EQ(statistic("vlog.moved_bytes"), 0U);
  ballast.reset();
  ASSERT_TRUE(volume_->remove("/ballast"));
  EXPECT_TRUE(eventually([&] { return statistic("vlog.moved_bytes") > 0; }));
  for (int i = 0; i < 2; ++i) ASSERT_TRUE(engine_->settle(kNeverStopped));
  EXPECT_GT(statistic("vlog.gc_removed_segments"), 0U);
  expect_same(model);
  ASSERT_TRUE(engine_->close());
}

TEST_F(Vlog, SettlingAndClosingReturnTheCollectorsError) {
  for (const bool settles : {true, false}) {
    engine_.reset();
    std::filesystem::remove_all(directory_);
    open({{"vlog.gc", "false"}});
    for (std::uint64_t i = 0; i < 200; ++i) ASSERT_TRUE(engine_->put(key_of(i % 2 == 0 ? i : 1), value_of(i, 200)));
    ASSERT_TRUE(engine_->flush());
    ASSERT_TRUE(engine_->close());
    // The last record of the first segment.
    flip(segments().front(), std::filesystem::file_size(segments().front()) - 1, 0x04);
    const AtStep at("vlog.gc.watching", [] {});
    open();
    for (int i = 0; settles && i < 2; ++i) {
      const Status status = engine_->settle(kNeverStopped);
      EXPECT_NE(status.message().find("is damaged"), std::string::npos) << status.message();
    }
    // Otherwise the sampling at every opening would reach the step.
    EXPECT_TRUE(eventually([&] { return at.was_reached() && engine_->observe().gauge("vlog_collecting") == 0; }));
    const Status status = engine_->close();
    EXPECT_NE(status.message().find("is damaged"), std::string::npos) << status.message();
  }
}

TEST_F(Vlog, ClosingReturnsWhyWritesWereRefused) {
  std::atomic<bool> fails{false};
  make_drive(8ULL << 20, [&](const device::Io& io) {
    device::IoFault injected;
    if (fails && io.op == device::Opcode::write) injected.fault = Fault::io_error;
    return injected;
  });
  sync_ = true;
  open({{"vlog.gc", "false"}});
  ASSERT_TRUE(engine_->put("key", "value"));
  fails = true;
  ASSERT_FALSE(engine_->put("key", "other"));
  fails = false;
  const Status refused = engine_->put("key", "another");
  ASSERT_FALSE(refused);
  EXPECT_EQ(engine_->close().message(), refused.message());
}

// --- What it refuses

TEST_F(Vlog, RefusesADatabaseWithoutAValueLog) {
  for (const bool flushed : {false, true}) {
    std::filesystem::remove_all(directory_);
    EngineSpec plain = spec({});
    plain.name = "leveldb";
    plain.settings.clear();
    auto leveldb = open_engine(plain);
    ASSERT_TRUE(leveldb) << leveldb.status().message();
    ASSERT_TRUE((*leveldb)->put("key", "value"));
    if (flushed) {
      ASSERT_TRUE((*leveldb)->flush());
    }
    ASSERT_TRUE((*leveldb)->close());
    const Status status = try_open();
    EXPECT_EQ(status.fault(), Fault::bad_input);
    EXPECT_NE(status.message().find("without a value log"), std::string::npos) << status.message();
    leveldb = open_engine(plain);
    ASSERT_TRUE(leveldb) << leveldb.status().message();
    std::string value;
    EXPECT_TRUE(*(*leveldb)->get("key", &value));  // it did not change
    EXPECT_EQ(value, "value");
  }
}

TEST_F(Vlog, RefusesOptionsAndSettingsThatItCannotTake) {
  EngineSpec bad = spec({});
  bad.options["reuse_logs"] = "true";
  EXPECT_EQ(check_engine(bad).fault(), Fault::bad_input);
  for (const auto& [key, value] : StringMap{{"vlog.segment_bytes", "10"},
                                            {"vlog.gc_garbage_ratio", "0"},
                                            {"vlog.gc", "perhaps"},
                                            {"vlog.prefetch", "0"},
                                            {"vlog.segment_byte", "65536"}}) {
    EngineSpec one = spec({});
    one.settings[key] = value;
    const Status status = check_engine(one);
    EXPECT_EQ(status.fault(), Fault::bad_input) << key;
    EXPECT_NE(status.message().find("engine." + key), std::string::npos) << status.message();
  }
}

}  // namespace
}  // namespace spillway::engine
