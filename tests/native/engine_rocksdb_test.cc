#include <gtest/gtest.h>
#include <rocksdb/rate_limiter.h>
#include <rocksdb/table.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>

#include "device/emulated/emulated.h"
#include "engine/factory/factory.h"
#include "engine/rocksdb/options.h"
#include "engine/rocksdb/stall_listener.h"
#include "engine/rocksdb/status.h"
#include "fs/volume.h"
#include "spill/compat/cache.h"
#include "spill/compat/db_out.h"
#include "temporary_directory.h"

namespace spillway::engine {
namespace {

using Options = std::map<std::string, std::string>;

const std::atomic<bool> kNeverStopped{false};

// --- Options

RocksdbOptions parsed(const Options& options) {
  auto result = parse_rocksdb_options(options);
  EXPECT_TRUE(result.is_ok()) << result.status().message();
  return result.is_ok() ? *result : RocksdbOptions();
}

std::string refusal(const Options& options) {
  auto result = parse_rocksdb_options(options);
  EXPECT_FALSE(result.is_ok());
  if (result.is_ok()) return "";
  EXPECT_EQ(result.status().fault(), Fault::bad_input);
  return result.status().message();
}

TEST(RocksdbOptions, FindTheirPlace) {
  const RocksdbOptions options = parsed({{"max_background_jobs", "6"},
                                         {"write_buffer_size", "1048576"},
                                         {"compression", "kNoCompression"},
                                         {"block_size", "16384"},
                                         {"block_based_table_factory.cache_index_and_filter_blocks", "true"},
                                         {"sync", "true"},
                                         {"disableWAL", "false"},
                                         {"fill_cache", "false"},
                                         {"readahead_size", "2MiB"}});
  EXPECT_EQ(options.db.max_background_jobs, 6);
  EXPECT_EQ(options.column_family.write_buffer_size, 1048576U);
  EXPECT_EQ(options.column_family.compression, rocksdb::kNoCompression);
  const auto* table = options.column_family.table_factory->GetOptions<rocksdb::BlockBasedTableOptions>();
  ASSERT_NE(table, nullptr);
  EXPECT_EQ(table->block_size, 16384U);
  EXPECT_TRUE(table->cache_index_and_filter_blocks);
  EXPECT_TRUE(options.write.sync);
  EXPECT_FALSE(options.read.fill_cache);
  EXPECT_EQ(options.read.readahead_size, 2U << 20);
  EXPECT_TRUE(options.db.create_if_missing);
}

TEST(RocksdbOptions, TheRestKeepsRocksdbsDefaults) {
  const RocksdbOptions options = parsed({});
  const rocksdb::Options defaults;
  EXPECT_EQ(options.column_family.write_buffer_size, defaults.write_buffer_size);
  EXPECT_EQ(options.column_family.level0_stop_writes_trigger, defaults.level0_stop_writes_trigger);
  EXPECT_EQ(options.db.max_background_jobs, defaults.max_background_jobs);
}

TEST(RocksdbOptions, TakeCachesFiltersAndLimitersByText) {
  const RocksdbOptions options = parsed(
      {{"block_cache", "64M"}, {"filter_policy", "bloomfilter:10:false"}, {"rate_limiter_bytes_per_sec", "1000000"}});
  const auto* table = options.column_family.table_factory->GetOptions<rocksdb::BlockBasedTableOptions>();
  ASSERT_NE(table, nullptr);
  EXPECT_EQ(table->block_cache->GetCapacity(), 64U << 20);
  EXPECT_NE(table->filter_policy, nullptr);
  EXPECT_EQ(options.db.rate_limiter->GetBytesPerSecond(), 1000000);
}

TEST(RocksdbOptions, AnUnknownNameIsRefusedWithTheNearest) {
  EXPECT_EQ(refusal({{"writ_buffer_size", "1"}}),
            "engine.options.writ_buffer_size: RocksDB has no option of this name, the nearest is 'write_buffer_size'");
  EXPECT_NE(refusal({{"max_backgroun_jobs", "1"}}).find("'max_background_jobs'"), std::string::npos);
  EXPECT_NE(refusal({{"block_siz", "1"}}).find("'block_size'"), std::string::npos);
  EXPECT_NE(refusal({{"disableWal", "true"}}).find("'disableWAL'"), std::string::npos);
}

TEST(RocksdbOptions, AValueThatRocksdbDoesNotTakeIsRefused) {
  for (const auto& [name, value] : Options{{"write_buffer_size", "lots"},
                                           {"use_direct_reads", "maybe"},
                                           {"compression", "snapy"},
                                           {"block_size", "x"},
                                           {"filter_policy", "blom"},
                                           {"sync", "perhaps"},
                                           {"readahead_size", "far"}}) {
    const std::string message = refusal({{name, value}});
    EXPECT_TRUE(message.starts_with("engine.options." + name + ": RocksDB does not take '" + value + "'")) << message;
  }
}

TEST(RocksdbOptions, EveryNameItKnowsOfIsTaken) {
  for (const std::string& name : rocksdb_option_names()) {
    const auto result = parse_rocksdb_options({{name, "no such value"}});
    const bool unknown =
        !result.is_ok() && result.status().message().find("no option of this name") != std::string::npos;
    EXPECT_FALSE(unknown) << name;
  }
}

// --- The factory

TEST(RocksdbStatus, AFullDriveIsRecognizedInEveryStatus) {
  const rocksdb::Status full = rocksdb::Status::NoSpace("no space on the drive");
  EXPECT_EQ(to_status(full, "put").fault(), Fault::drive_full);
  EXPECT_EQ(to_status(rocksdb::Status::SpaceLimit("sst_file_manager"), "put").fault(), Fault::drive_full);
  // RocksDB's status for writers that its stopped compactions keep waiting. The accelerator wraps a store's failure in
  // it.
  EXPECT_EQ(to_status(rocksdb::Status::Incomplete(full.ToString()), "put").fault(), Fault::drive_full);
  EXPECT_EQ(to_status(rocksdb::Status::IOError("the spill store failed", full.ToString()), "put").fault(),
            Fault::drive_full);
  EXPECT_NE(to_status(rocksdb::Status::Incomplete(full.ToString()), "put").message().find("no space on the drive"),
            std::string::npos);
}

TEST(RocksdbStatus, AnyOtherEndKeepsItsFault) {
  EXPECT_TRUE(to_status(rocksdb::Status::OK(), "put"));
  EXPECT_EQ(to_status(rocksdb::Status::Incomplete("Write stall"), "put").fault(), Fault::stopped);
  EXPECT_EQ(to_status(rocksdb::Status::Incomplete(), "put").fault(), Fault::stopped);
  EXPECT_EQ(to_status(rocksdb::Status::ShutdownInProgress(), "put").fault(), Fault::stopped);
  EXPECT_EQ(to_status(rocksdb::Status::IOError("a page"), "get").fault(), Fault::io_error);
  EXPECT_EQ(to_status(rocksdb::Status::InvalidArgument("a key"), "put").fault(), Fault::bad_input);
  EXPECT_EQ(to_status(rocksdb::Status::NotSupported("merge"), "put").fault(), Fault::not_supported);
}

TEST(Factory, AnUnknownEngineIsRefusedWithTheNearest) {
  const Status status = check_engine({.name = "rocksd", .directory = {}, .options = {}});
  EXPECT_EQ(status.fault(), Fault::bad_input);
  EXPECT_EQ(status.message(), "engine.name: there is no engine 'rocksd', the nearest is 'rocksdb'");
}

TEST(Factory, ABadOptionCreatesNoFiles) {
  const TemporaryDirectory temporary;
  const std::string directory = temporary.path("db");
  EXPECT_FALSE(open_engine({.directory = directory, .options = {{"nonsense_option", "1"}}}).is_ok());
  EXPECT_FALSE(std::filesystem::exists(directory));
}

TEST(Factory, ADirectoryThatCannotBeMadeIsABadInput) {
  const auto engine = open_engine({.directory = "/proc/spillway/db", .options = {}});
  ASSERT_FALSE(engine.is_ok());
  EXPECT_EQ(engine.status().fault(), Fault::bad_input);
}

TEST(Factory, VersionsNameTheLibrary) { EXPECT_TRUE(engine_versions("rocksdb").contains("rocksdb")); }

// --- The engine

class EngineTest : public ::testing::TestWithParam<bool> {
 protected:
  EngineTest() {
    if (!GetParam()) return;
    ssd::SsdConfig config;
    config.capacity.capacity_bytes = 256 << 20;
    config.capacity.spare_factor = 0.2;
    device_ = device::make_simulated(ssd::Ssd(config, 1));
    volume_ = std::make_unique<fs::Volume>(*device_, fs::VolumeOptions());
  }
  Engine& open(Options options = {}) {
    options.emplace("write_buffer_size", "1048576");
    options.emplace("compression", "kNoCompression");
    engine_.reset();
    auto engine = open_engine({.directory = directory_, .options = options, .volume = volume_.get()});
    EXPECT_TRUE(engine.is_ok()) << engine.status().message();
    engine_ = std::move(*engine);
    return *engine_;
  }

  static std::string key_of(int number) { return "key" + std::to_string(1000000 + number); }

  const TemporaryDirectory temporary_;
  const std::string directory_ = temporary_.path("db");
  std::unique_ptr<device::EmulatedDevice> device_;
  std::unique_ptr<fs::Volume> volume_;
  std::unique_ptr<Engine> engine_;
};

TEST_P(EngineTest, PutsGetsRemovesAndScans) {
  Engine& engine = open();
  std::string value;
  for (int i = 0; i < 100; ++i) ASSERT_TRUE(engine.put(key_of(i), "value" + std::to_string(i)));
  ASSERT_TRUE(engine.remove(key_of(7)));
  EXPECT_TRUE(*engine.get(key_of(8), &value));
  EXPECT_EQ(value, "value8");
  EXPECT_FALSE(*engine.get(key_of(7), &value));
  EXPECT_EQ(*engine.scan(key_of(5), 3), 4U);     // the pair found and three steps: 5, 6, 8, 9
  EXPECT_EQ(*engine.scan(key_of(98), 10), 2U);   // the end
  EXPECT_EQ(*engine.scan(key_of(100), 10), 0U);  // after the end
}

TEST_P(EngineTest, WhatWasPutIsThereAfterReopening) {
  Engine& first = open();
  for (int i = 0; i < 5000; ++i) ASSERT_TRUE(first.put(key_of(i), std::string(500, 'x')));
  ASSERT_TRUE(first.close());
  Engine& second = open();
  std::string value;
  for (int i = 0; i < 5000; i += 100) EXPECT_TRUE(*second.get(key_of(i), &value)) << i;
}

TEST_P(EngineTest, ObservesRocksdbsState) {
  Engine& engine = open({{"disable_auto_compactions", "true"}});
  for (int round = 0; round < 3; ++round) {
    for (int i = 0; i < 200; ++i) ASSERT_TRUE(engine.put(key_of(i), std::string(1000, 'x')));
    ASSERT_TRUE(engine.flush());
  }
  Observation seen = engine.observe();
  EXPECT_EQ(seen.gauge("l0_files"), 3U);
  EXPECT_GT(seen.gauge("live_bytes"), 3 * 200 * 1000U);
  EXPECT_EQ(seen.gauge("immutable_memtables"), 0U);
  EXPECT_EQ(seen.stall_state, StallState::normal);
  ASSERT_TRUE(engine.put("a", std::string(100000, 'x')));
  EXPECT_GT(engine.observe().gauge("memtable_bytes"), 100000U);
  EXPECT_GT(engine.statistics().at("rocksdb.bytes.written"), 600000U);
  EXPECT_TRUE(engine.wait_for_compaction(kNeverStopped));  // also if nothing compacts
}

// Bytes and files of each level, and what flushes and compactions took, are those of the run's own files.
TEST_P(EngineTest, CountsTheLevels) {
  Engine& engine = open({{"level0_file_num_compaction_trigger", "4"}});
  for (int round = 0; round < 6; ++round) {
    for (int i = 0; i < 200; ++i) ASSERT_TRUE(engine.put(key_of(i), std::string(1000, 'x')));
    ASSERT_TRUE(engine.flush());
    ASSERT_TRUE(engine.wait_for_compaction(kNeverStopped));
  }
  const auto figures = engine.statistics();
  EXPECT_EQ(figures.at("rocksdb.level0.files"), engine.observe().gauge("l0_files"));
  const std::uint64_t bytes = figures.at("rocksdb.level0.bytes") + figures.at("rocksdb.level1.bytes");
  const Observation seen = engine.observe();
  EXPECT_EQ(bytes, seen.gauge("live_bytes"));
  EXPECT_EQ(figures.at("rocksdb.level0.bytes"), seen.gauge("level0_bytes"));
  EXPECT_EQ(figures.at("rocksdb.level1.bytes"), seen.gauge("level1_bytes"));
  EXPECT_EQ(seen.gauge("level6_bytes"), 0U);
  EXPECT_EQ(figures.at("rocksdb.level0.jobs"), 6U);  // flushes
  EXPECT_GE(figures.at("rocksdb.level1.jobs"), 1U);
  const double flushed = 6.0 * 200 * 1000;
  EXPECT_NEAR(static_cast<double>(figures.at("rocksdb.level0.written.bytes")), flushed, 0.2 * flushed);
  EXPECT_GT(figures.at("rocksdb.level0.cpu.micros"), 0U);
  EXPECT_GE(figures.at("rocksdb.level0.micros") * 11 / 10 + 1000, figures.at("rocksdb.level0.cpu.micros"));
}

// The layouts of plans/layouts.toml have the properties of their names: how many sorted runs each leaves of the same
// writes.
TEST_P(EngineTest, LaysOutItsTreeByItsOptions) {
  struct Row {
    Options options;
    std::uint64_t least_l0;
    std::uint64_t most_l0;
    bool keeps_all;
  };
  const Row rows[] = {
      {{{"level0_file_num_compaction_trigger", "4"}}, 0, 3, true},
      {{{"compaction_style", "kCompactionStyleUniversal"}, {"num_levels", "1"}}, 1, 20, true},
      {{{"compaction_style", "kCompactionStyleFIFO"},
        {"compaction_options_fifo", "{max_table_files_size=3000000;}"},
        {"max_open_files", "-1"}},
       1,
       4,
       false},
      {{{"level0_file_num_compaction_trigger", "1"},
        {"num_levels", "2"},
        {"max_bytes_for_level_base", "1099511627776"}},
       0,
       0,
       true},
  };
  for (const Row& row : rows) {
    std::filesystem::remove_all(directory_);
    if (GetParam()) volume_ = std::make_unique<fs::Volume>(*device_, fs::VolumeOptions());
    Engine& engine = open(row.options);
    for (int i = 0; i < 12'000; ++i) ASSERT_TRUE(engine.put(key_of(i * 7919 % 12'000), std::string(1000, 'x')));
    ASSERT_TRUE(engine.settle(kNeverStopped));
    const Observation seen = engine.observe();
    const std::string what = row.options.begin()->second + " " + std::to_string(seen.gauge("l0_files"));
    EXPECT_GE(seen.gauge("l0_files"), row.least_l0) << what;
    EXPECT_LE(seen.gauge("l0_files"), row.most_l0) << what;
    EXPECT_EQ(*engine.get(key_of(0), nullptr), row.keeps_all) << what;  // the first write
    ASSERT_TRUE(engine.close());
    engine_.reset();
  }
}

TEST_P(EngineTest, WaitsUntilCompactionIsAtRest) {
  Engine& engine = open({{"max_bytes_for_level_base", "4194304"}, {"target_file_size_base", "1048576"}});
  for (int i = 0; i < 20000; ++i) ASSERT_TRUE(engine.put(key_of(i * 7919 % 20000), std::string(1000, 'x')));
  ASSERT_TRUE(engine.flush());
  ASSERT_TRUE(engine.wait_for_compaction(kNeverStopped));
  const Observation seen = engine.observe();
  EXPECT_EQ(seen.gauge("running_compactions"), 0U);
  EXPECT_LT(seen.gauge("l0_files"), 4U);
}

// Small memtables and low triggers: every second flush causes diversion until its compaction has ended.
TEST_P(EngineTest, TheAcceleratorDivertsAndSettles) {
  auto opened = open_engine({.name = "spillway",
                             .directory = directory_,
                             .options = {{"write_buffer_size", "65536"},
                                         {"compression", "kNoCompression"},
                                         {"level0_file_num_compaction_trigger", "2"},
                                         {"level0_stop_writes_trigger", "3"}},
                             .settings = {{"spill.poll_ms", "1"}},
                             .volume = volume_.get()});
  ASSERT_TRUE(opened) << opened.status().message();
  engine_ = std::move(*opened);
  Engine& engine = *engine_;
  int pairs = 0;
  constexpr int kMostPairs = 100'000;
  while (pairs < kMostPairs && (pairs % 16 != 0 || engine.observe().spill->diverted_writes == 0)) {
    ASSERT_TRUE(engine.put(key_of(pairs++), std::string(1000, 'x')));
  }
  ASSERT_LT(pairs, kMostPairs) << "nothing was diverted";
  EXPECT_TRUE(*engine.get(key_of(pairs - 1), nullptr));
  EXPECT_EQ(*engine.scan(key_of(0), kMostPairs), static_cast<std::uint64_t>(pairs));
  ASSERT_TRUE(engine.settle(kNeverStopped));
  const Observation seen = engine.observe();
  EXPECT_EQ(seen.spill->live_bytes, 0U);
  EXPECT_GT(seen.spill->rolled_back_bytes, 0U);
  EXPECT_EQ(*engine.scan(key_of(0), kMostPairs), static_cast<std::uint64_t>(pairs));
  EXPECT_GE(engine.statistics().at("spill.diverted_writes"), 1U);
  const auto events = engine.take_events();
  ASSERT_FALSE(events.empty());
  EXPECT_EQ(events.front().name, "spill.divert_begin");
}

// The second file of L0 delays writers until a compaction has taken both.
TEST_P(EngineTest, ReportsStallsAndTheirCause) {
  Engine& engine = open({{"level0_file_num_compaction_trigger", "2"},
                         {"level0_slowdown_writes_trigger", "2"},
                         {"level0_stop_writes_trigger", "100"},
                         {"max_background_jobs", "1"},
                         {"delayed_write_rate", "4194304"},
                         {"max_bytes_for_level_base", "1048576"}});
  for (int i = 0; i < 12000; ++i) ASSERT_TRUE(engine.put(key_of(i * 7919 % 12000), std::string(1000, 'x')));
  ASSERT_TRUE(engine.flush());
  ASSERT_TRUE(engine.wait_for_compaction(kNeverStopped));
  (void)engine.observe();
  const auto stalls = engine.stalls();
  bool l0 = false;
  std::int64_t end = 0;
  for (const Stall& stall : stalls) {
    EXPECT_GE(stall.begin_ns, end);  // one after another
    EXPECT_GE(stall.end_ns, stall.begin_ns);
    EXPECT_NE(stall.state, StallState::normal);
    EXPECT_NE(stall.cause, RocksdbCause::none);
    EXPECT_NE(stall.cause, RocksdbCause::pending_compaction_bytes);  // far below its limits
    end = stall.end_ns;
    l0 = l0 || stall.cause == RocksdbCause::l0;
  }
  EXPECT_TRUE(l0);
  EXPECT_EQ(engine.observe().stall_state, StallState::normal);
}

TEST_P(EngineTest, AWriteThatMustNotWaitReturnsStopped) {
  Engine& engine = open({{"no_slowdown", "true"},
                         {"level0_file_num_compaction_trigger", "1"},
                         {"level0_slowdown_writes_trigger", "1"},
                         {"level0_stop_writes_trigger", "1"}});
  Status status;
  for (int i = 0; i < 200000 && status; ++i) status = engine.put(key_of(i), std::string(1000, 'x'));
  EXPECT_EQ(status.fault(), Fault::stopped) << status.message();
}

// RocksDB may report a stall while it holds its mutex, as it does when it reserves file numbers for an ingestion. Here
// the report is made in a callback that always holds it.
TEST(StallListener, IsNotifiedWhileRocksdbHoldsItsMutex) {
  class Teller final : public rocksdb::EventListener {
   public:
    explicit Teller(StallListener& watch) : watch_(watch) {}
    void OnMemTableSealed(const rocksdb::MemTableInfo&) override {
      rocksdb::WriteStallInfo info;
      info.condition = {rocksdb::WriteStallCondition::kNormal, rocksdb::WriteStallCondition::kStopped};  // now, before
      watch_.OnStallConditionsChanged(info);
      told_ = true;
    }
    std::atomic<bool> told_ = false;

   private:
    StallListener& watch_;
  };
  TemporaryDirectory directory;
  StallListener watch;
  const auto teller = std::make_shared<Teller>(watch);
  rocksdb::Options options;
  options.create_if_missing = true;
  options.listeners = {teller};
  rocksdb::DB* opened = nullptr;
  ASSERT_TRUE(rocksdb::DB::Open(options, directory.path("db"), spill::DbOut(&opened)).ok());
  const std::unique_ptr<rocksdb::DB> db(opened);
  watch.attach(db.get());
  ASSERT_TRUE(db->Put({}, "key", "value").ok());
  ASSERT_TRUE(db->Flush({}).ok());
  EXPECT_TRUE(teller->told_);
  watch.detach();
  EXPECT_EQ(watch.state(), StallState::normal);
}

INSTANTIATE_TEST_SUITE_P(Targets, EngineTest, ::testing::Bool(),
                         [](const auto& test) { return test.param ? "emulated" : "directory"; });

TEST(RocksdbCompression, IsWhatTheOptionsOrTheBuildSay) {
  EngineSpec spec;
  spec.name = "rocksdb";
  EXPECT_FALSE(engine_compression(spec).empty());
  spec.options = {{"compression", "kLZ4Compression"}};
  EXPECT_EQ(engine_compression(spec), "lz4");
  spec.name = "leveldb";
  spec.options = {};
  EXPECT_EQ(engine_compression(spec), "");  // its options say it
}

}  // namespace
}  // namespace spillway::engine
