#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <fstream>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "device/emulated/emulated.h"
#include "device/faulty_device.h"
#include "engine/factory/factory.h"
#include "engine/leveldb/env.h"
#include "engine/leveldb/info_log.h"
#include "engine/leveldb/options.h"
#include "engine/leveldb/store.h"
#include "engine/writer_stalls.h"
#include "fs/volume.h"
#include "temporary_directory.h"

namespace spillway::engine {
namespace {

// --- Stalls that writers report

bool same(const Stall& stall, std::int64_t begin, std::int64_t end, StallState state, StallCause cause) {
  return stall.begin_ns == begin && stall.end_ns == end && stall.state == state && stall.cause == cause;
}

TEST(WriterStalls, LastFromTheFirstWritersStallToTheLastWritersEnd) {
  WriterStalls stalls({.delayed_ns = 10, .stopped_ns = 10});
  stalls.begin_at(100, StallState::stopped, 1);
  stalls.begin_at(150, StallState::delayed, 2);  // another writer; the cause of the first one counts
  stalls.end_at(200);
  EXPECT_EQ(stalls.state(), StallState::stopped);
  EXPECT_EQ(stalls.cause(), 1);
  stalls.end_at(300);
  EXPECT_EQ(stalls.state(), StallState::normal);
  const auto all = stalls.stalls_at(1000);
  ASSERT_EQ(all.size(), 1U);
  EXPECT_TRUE(same(all[0], 100, 300, StallState::stopped, 1));
}

TEST(WriterStalls, AreOneWhereTheNextFollowsAtOnce) {
  WriterStalls stalls({.delayed_ns = 10, .stopped_ns = 10});
  for (const std::int64_t at : {100, 109, 140}) {
    stalls.begin_at(at, StallState::delayed, 2);
    stalls.end_at(at + 5);
  }
  stalls.begin_at(146, StallState::stopped, 2);  // follows at once, but has another state
  stalls.end_at(150);
  const auto all = stalls.stalls_at(1000);
  ASSERT_EQ(all.size(), 3U);
  EXPECT_TRUE(same(all[0], 100, 114, StallState::delayed, 2));
  EXPECT_TRUE(same(all[1], 140, 145, StallState::delayed, 2));
  EXPECT_TRUE(same(all[2], 146, 150, StallState::stopped, 2));
}

TEST(WriterStalls, OfAnUnmergedStateAreSeparate) {
  WriterStalls stalls({.delayed_ns = 10});
  for (const StallState state : {StallState::stopped, StallState::delayed}) {
    const std::int64_t begin = state == StallState::stopped ? 100 : 200;
    for (const std::int64_t at : {begin, begin + 5}) {
      stalls.begin_at(at, state, 1);
      stalls.end_at(at + 5);
    }
  }
  const auto all = stalls.stalls_at(210);
  ASSERT_EQ(all.size(), 3U);
  EXPECT_TRUE(same(all[0], 100, 105, StallState::stopped, 1));
  EXPECT_TRUE(same(all[1], 105, 110, StallState::stopped, 1));
  EXPECT_TRUE(same(all[2], 200, 210, StallState::delayed, 1));
}

TEST(WriterStalls, ContinueUntilTheyEndOrCannotBeMerged) {
  WriterStalls stalls({.delayed_ns = 10, .stopped_ns = 10});
  EXPECT_TRUE(stalls.stalls_at(50).empty());
  stalls.begin_at(100, StallState::stopped, 1);
  EXPECT_EQ(stalls.stalls_at(130)[0].end_ns, 130);
  stalls.end_at(140);
  EXPECT_EQ(stalls.stalls_at(145)[0].end_ns, 145);
  EXPECT_EQ(stalls.stalls_at(151)[0].end_ns, 140);
  stalls.end_at(160);  // no stall is in progress
  EXPECT_EQ(stalls.stalls_at(200).size(), 1U);
}

// --- The info log

void log_line(LevelDbInfoLog& log, const char* format, ...) {
  std::va_list arguments;
  va_start(arguments, format);
  log.Logv(format, arguments);
  va_end(arguments);
}

TEST(LevelDbInfoLog, DistinguishesFlushedTablesFromCompactedOnes) {
  LevelDbInfoLog log([](LevelDbInfoLog::Wait) {});
  EXPECT_FALSE(log.is_flush(5));
  log_line(log, "Level-0 table #%llu: started", 5ULL);
  EXPECT_TRUE(log.is_flush(5));
  EXPECT_FALSE(log.is_flush(6));
  log_line(log, "Level-0 table #%llu: %lld bytes %s", 5ULL, 100LL, "OK");
  log_line(log, "Compacting %d@%d + %d@%d files", 4, 0, 1, 1);
  EXPECT_TRUE(log.compacting());
  log_line(log, "Compacted %d@%d + %d@%d files => %lld bytes", 4, 0, 1, 1, 1000LL);
  EXPECT_FALSE(log.compacting());
  log_line(log, "Moved #%lld to level-%d %lld bytes %s: %s\n", 7LL, 1, 5LL, "OK", "files[ 0 1 ]");
  EXPECT_EQ(log.flushes(), 1U);
  EXPECT_EQ(log.compactions(), 1U);
  EXPECT_EQ(log.moves(), 1U);
}

TEST(LevelDbInfoLog, ReportsWhyAWriterWaits) {
  std::vector<LevelDbInfoLog::Wait> waits;
  LevelDbInfoLog log([&](LevelDbInfoLog::Wait wait) { waits.push_back(wait); });
  log_line(log, "Current memtable full; waiting...\n");
  log_line(log, "Too many L0 files; waiting...\n");
  log_line(log, "Recovering log #%llu", 3ULL);
  EXPECT_EQ(waits, (std::vector{LevelDbInfoLog::Wait::memtable, LevelDbInfoLog::Wait::l0}));
}

// --- Options

// LevelDB closes its Env as soon as a task's function is done, while the task's thread is still returning.
TEST(LevelDbEnvTest, MayBeDestroyedBeforeItsTaskHasReturned) {
  struct Place {
    alignas(LevelDbEnv) std::array<std::byte, sizeof(LevelDbEnv)> bytes{};
    LevelDbEnv* env = nullptr;
  };
  const LevelDbInfoLog log([](LevelDbInfoLog::Wait) {});
  Place place;
  place.env = new (place.bytes.data()) LevelDbEnv(log, {});  // NOLINT: its place is watched
  place.env->Schedule(
      [](void* given) {
        auto* const gone = static_cast<Place*>(given);
        gone->env->~LevelDbEnv();
        gone->bytes.fill(std::byte{0x5a});
      },
      &place);
  std::atomic<bool> is_behind{false};  // LevelDB has one background thread, which runs its tasks in order
  leveldb::Env::Default()->Schedule([](void* given) { static_cast<std::atomic<bool>*>(given)->store(true); },
                                    &is_behind);
  while (!is_behind) std::this_thread::yield();
  EXPECT_TRUE(std::ranges::all_of(place.bytes, [](std::byte each) { return each == std::byte{0x5a}; }));
}

TEST(LevelDbOptions, AreLevelDbsByName) {
  auto parsed = parse_leveldb_options({{"write_buffer_size", "16MiB"},
                                       {"max_open_files", "500"},
                                       {"max_file_size", "8388608"},
                                       {"block_size", "9KiB"},
                                       {"block_restart_interval", "8"},
                                       {"block_cache", "32MiB"},
                                       {"filter_policy", "10"},
                                       {"compression", "kNoCompression"},
                                       {"paranoid_checks", "true"},
                                       {"reuse_logs", "true"},
                                       {"sync", "true"},
                                       {"verify_checksums", "true"},
                                       {"fill_cache", "false"}});
  ASSERT_TRUE(parsed) << parsed.status().message();
  EXPECT_EQ(parsed->db.write_buffer_size, 16U << 20);
  EXPECT_EQ(parsed->db.max_open_files, 500);
  EXPECT_EQ(parsed->db.max_file_size, 8U << 20);
  EXPECT_EQ(parsed->db.block_size, 9U << 10);
  EXPECT_EQ(parsed->db.block_restart_interval, 8);
  EXPECT_EQ(parsed->db.block_cache, parsed->block_cache.get());
  EXPECT_NE(parsed->db.filter_policy, nullptr);
  EXPECT_EQ(parsed->db.compression, leveldb::kNoCompression);
  EXPECT_TRUE(parsed->db.paranoid_checks && parsed->db.reuse_logs && parsed->write.sync &&
              parsed->read.verify_checksums && !parsed->read.fill_cache && parsed->db.create_if_missing);
}

TEST(LevelDbOptions, AreLevelDbsDefaultsWhereNotNamed) {
  auto parsed = parse_leveldb_options({});
  ASSERT_TRUE(parsed);
  const leveldb::Options defaults;
  EXPECT_EQ(parsed->db.write_buffer_size, defaults.write_buffer_size);
  EXPECT_EQ(parsed->db.max_file_size, defaults.max_file_size);
  EXPECT_EQ(parsed->db.block_cache, nullptr);
  EXPECT_EQ(parsed->db.compression, leveldb::kSnappyCompression);
}

TEST(LevelDbOptions, AreRefusedWithWhatTheyTake) {
  struct Row {
    const char* name;
    const char* value;
    const char* message;
  };
  const Row rows[] = {
      {"write_bufer_size", "1",
       "engine.options.write_bufer_size: LevelDB has no option of this name, the nearest is "
       "'write_buffer_size'"},
      {"write_buffer_size", "1", "engine.options.write_buffer_size is '1'; it takes a size from 65536 to 1073741824"},
      {"max_file_size", "512KiB",
       "engine.options.max_file_size is '512KiB'; it takes a size from 1048576 to "
       "1073741824"},
      {"compression", "none", "engine.options.compression is 'none'; it takes kNoCompression or kSnappyCompression"},
      {"sync", "yes", "engine.options.sync is 'yes'; it takes true or false"},
  };
  for (const Row& row : rows) {
    const auto parsed = parse_leveldb_options({{row.name, row.value}});
    EXPECT_EQ(parsed.status().fault(), Fault::bad_input);
    EXPECT_EQ(parsed.status().message(), row.message);
  }
}

// --- The engine

class LevelDbEngine : public ::testing::Test {
 protected:
  LevelDbEngine() {
    ssd::SsdConfig config;
    config.capacity.capacity_bytes = 256 << 20;
    config.capacity.spare_factor = 0.2;
    device_ = device::make_simulated(ssd::Ssd(config, 1));
  }
  ~LevelDbEngine() override {
    engine_.reset();
    volume_.reset();
  }

  Engine& open(device::IoFaultRule rule = [](const device::Io&) { return device::IoFault(); }) {
    faulty_ = std::make_unique<device::FaultyDevice>(*device_, std::move(rule));
    volume_ = std::make_unique<fs::Volume>(*faulty_, fs::VolumeOptions());
    auto engine = open_engine({.name = "leveldb",
                               .directory = temporary_.path("db"),
                               .options = {{"write_buffer_size", "65536"}, {"compression", "kNoCompression"}},
                               .volume = volume_.get()});
    EXPECT_TRUE(engine.is_ok()) << engine.status().message();
    engine_ = std::move(*engine);
    return *engine_;
  }

  std::uint64_t written(device::Cause cause) {
    return device_->counters().host_bytes_written_by_cause[static_cast<std::size_t>(cause)];
  }

  const TemporaryDirectory temporary_{memory_path()};
  std::unique_ptr<device::EmulatedDevice> device_;
  std::unique_ptr<device::FaultyDevice> faulty_;
  std::unique_ptr<fs::Volume> volume_;
  std::unique_ptr<Engine> engine_;
};

std::string key_of(int number) { return "key" + std::to_string(1'000'000 + number); }

TEST_F(LevelDbEngine, CountsFlushesApartFromCompactions) {
  Engine& engine = open();
  for (int i = 0; i < 400; ++i) ASSERT_TRUE(engine.put(key_of(i), std::string(100, 'v')));
  ASSERT_TRUE(engine.flush());
  EXPECT_GT(written(device::Cause::flush), 40'000U);
  EXPECT_EQ(written(device::Cause::compaction), 0U);
  for (int i = 0; i < 20'000; ++i) ASSERT_TRUE(engine.put(key_of(i * 7919 % 5000), std::string(100, 'v')));
  const std::atomic<bool> go_on{false};
  ASSERT_TRUE(engine.settle(go_on));
  const auto figures = engine.statistics();
  // Neighbouring memtables have no key in common, so a compaction of level 0 writes all that was flushed into it. Not
  // compacted may be the first table, one that was placed below level 0, and up to three of level 0.
  const double flushes = static_cast<double>(figures.at("leveldb.flushes"));
  const double compacted = static_cast<double>(written(device::Cause::compaction));
  EXPECT_GT(compacted, static_cast<double>(written(device::Cause::flush)) * (flushes - 5) / flushes);
  EXPECT_GT(figures.at("leveldb.compactions"), 0U);
  EXPECT_GT(figures.at("leveldb.flushes"), 10U);
  EXPECT_LT(engine.observe().gauge("l0_files"), 4U);
  EXPECT_EQ(engine.observe().gauge("running_compactions"), 0U);
}

// The drive receives what LevelDB appends, in whole pages: no more, and nothing twice.
TEST_F(LevelDbEngine, WritesTablesOnce) {
  Engine& engine = open();
  for (int i = 0; i < 30'000; ++i) ASSERT_TRUE(engine.put(key_of(i), std::string(100, 'v')));
  const std::atomic<bool> go_on{false};
  ASSERT_TRUE(engine.settle(go_on));
  const double live = static_cast<double>(engine.observe().gauge("live_bytes"));
  std::uint64_t in_directory = 0;
  for (const auto& entry : std::filesystem::directory_iterator(temporary_.path("db"))) {
    if (entry.path().extension() == ".ldb") in_directory += entry.file_size();
  }
  EXPECT_EQ(engine.observe().gauge("live_bytes"), in_directory);
  // Keys in order, so that tables are only moved: each is written once, and its last page is partly filled.
  EXPECT_NEAR(static_cast<double>(written(device::Cause::flush) + written(device::Cause::compaction)) / live, 1.0, 0.1);
}

// While a table is delayed at the drive, a memtable fills, and its writer waits for the one before it.
TEST_F(LevelDbEngine, AWriterThatWaitsForAFlushIsAStallForItsMemtable) {
  // The engine is closed after the test's own variables have gone.
  const auto slow = std::make_shared<std::atomic<bool>>(false);
  Engine& engine = open([slow](const device::Io& io) {
    device::IoFault injected;
    if (*slow && io.op == device::Opcode::write && io.cause == device::Cause::flush) {
      injected.delay = std::chrono::milliseconds(100);
    }
    return injected;
  });
  *slow = true;
  std::int64_t longest_ns = 0;
  for (int i = 0; i < 3000; ++i) {
    const std::int64_t begin = steady_now_ns();
    ASSERT_TRUE(engine.put(key_of(i), std::string(100, 'v')));
    longest_ns = std::max(longest_ns, steady_now_ns() - begin);
  }
  *slow = false;
  std::int64_t memtable_ns = 0;
  for (const Stall& stall : engine.stalls()) {
    EXPECT_NE(stall.state, StallState::normal);
    if (stall.cause == LevelDbCause::memtable) memtable_ns = std::max(memtable_ns, stall.end_ns - stall.begin_ns);
  }
  EXPECT_GT(memtable_ns, 10'000'000);
  EXPECT_LE(memtable_ns, longest_ns);
  EXPECT_EQ(engine.observe().stall_state, StallState::normal);
}

// Compactions are delayed: L0 grows to 8 files, and each write is delayed. (LevelDB flushes during a compaction, in the
// same thread, so a longer delay would be a stall for memtables.)
TEST_F(LevelDbEngine, TooManyL0FilesDelayWrites) {
  const auto slow = std::make_shared<std::atomic<bool>>(true);
  Engine& engine = open([slow](const device::Io& io) {
    device::IoFault injected;
    if (*slow && io.op == device::Opcode::write && io.cause == device::Cause::compaction) {
      injected.delay = std::chrono::milliseconds(100);
    }
    return injected;
  });
  bool delayed = false;
  for (int i = 0; i < 60'000 && !delayed; ++i) {
    ASSERT_TRUE(engine.put(key_of(i * 7919 % 60'000), std::string(100, 'v')));
    if (i % 100 != 0) continue;
    for (const Stall& stall : engine.stalls()) {
      delayed = delayed || (stall.state == StallState::delayed && stall.cause == LevelDbCause::l0);
    }
  }
  *slow = false;
  EXPECT_TRUE(delayed);
}

TEST_F(LevelDbEngine, ReadsRaiseCompactionsBySeeks) {
  Engine& engine = open();
  for (int i = 0; i < 30'000; ++i) ASSERT_TRUE(engine.put(key_of(i * 7919 % 10'000), std::string(100, 'v')));
  const std::atomic<bool> go_on{false};
  ASSERT_TRUE(engine.settle(go_on));
  const auto before = engine.statistics();
  for (int i = 0; i < 200'000; ++i) ASSERT_TRUE(engine.get(key_of(i * 31 % 10'000) + "x", nullptr));
  ASSERT_TRUE(engine.wait_for_compaction(go_on));
  const auto after = engine.statistics();
  EXPECT_GT(after.at("leveldb.compactions") + after.at("leveldb.moved_tables"),
            before.at("leveldb.compactions") + before.at("leveldb.moved_tables"));
}

TEST_F(LevelDbEngine, KeepsLevelDbsOwnLog) {
  open();
  std::ifstream log(temporary_.path("db") + "/LOG");
  std::string line;
  EXPECT_TRUE(std::getline(log, line));
}

}  // namespace
}  // namespace spillway::engine
