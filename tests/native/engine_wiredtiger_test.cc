// WiredTiger beyond what every engine promises: its options, causes of host bytes and of stalls, and its module.
#include <gtest/gtest.h>
#ifdef SPILLWAY_BUILT_ENGINES
#include <wiredtiger.h>
#endif

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "device/emulated/emulated.h"
#include "engine/factory/factory.h"
#include "engine/modules.h"
#include "engine_built_modules.h"
#include "fs/volume.h"
#include "needs.h"
#include "temporary_directory.h"
#ifdef SPILLWAY_BUILT_ENGINES
#include "engine/wiredtiger/file_system.h"
#include "engine/wiredtiger/stalls.h"
#endif

namespace spillway::engine {
namespace {

// While it exists, engines are searched for elsewhere.
class EnginesAt {
 public:
  explicit EnginesAt(const std::string& place) {
    const char* const before = std::getenv("SPILLWAY_ENGINES");
    if (before != nullptr) before_ = before;
    ::setenv("SPILLWAY_ENGINES", place.c_str(), 1);
  }
  ~EnginesAt() { before_.empty() ? ::unsetenv("SPILLWAY_ENGINES") : ::setenv("SPILLWAY_ENGINES", before_.c_str(), 1); }
  EnginesAt(const EnginesAt&) = delete;
  EnginesAt& operator=(const EnginesAt&) = delete;

 private:
  std::string before_;
};

TEST(WiredtigerModule, ThatIsNotThereIsNamedWithItsPackage) {
  const TemporaryDirectory nothing;
  const EnginesAt there(nothing.root());
  const Status status = check_engine({.name = "wiredtiger"});
  EXPECT_EQ(status.fault(), Fault::bad_input);
  EXPECT_EQ(status.message(),
            "engine.name: wiredtiger is not installed; `apt-get install libwiredtiger-dev` and build again");
  EXPECT_TRUE(engine_versions("wiredtiger").empty());
}

TEST(WiredtigerModule, ThatCannotBeLoadedIsRefused) {
  const TemporaryDirectory place;
  std::ofstream(place.path("libspillway-engine-wiredtiger.so")) << "no shared object";
  const EnginesAt there(place.root());
  const Status status = check_engine({.name = "wiredtiger"});
  EXPECT_EQ(status.fault(), Fault::bad_input);
  EXPECT_NE(status.message().find("wiredtiger cannot be loaded"), std::string::npos) << status.message();
}

#ifdef SPILLWAY_BUILT_ENGINES

// A copy with another stamp, as in an installation whose program was built again.
TEST(WiredtigerModule, OfOtherSourcesIsRefused) {
  const TemporaryDirectory place;
  const std::string name = "libspillway-engine-wiredtiger.so";
  std::ifstream from(std::string(SPILLWAY_BUILT_ENGINES) + "/" + name, std::ios::binary);
  std::string bytes((std::istreambuf_iterator<char>(from)), {});
  const std::string stamp = sources_stamp();
  std::size_t at = bytes.find(stamp);
  ASSERT_NE(at, std::string::npos);
  for (; at != std::string::npos; at = bytes.find(stamp, at + 1)) bytes[at] = bytes[at] == '0' ? '1' : '0';
  std::ofstream(place.path(name), std::ios::binary) << bytes;
  const EnginesAt there(place.root());
  const Status status = check_engine({.name = "wiredtiger"});
  EXPECT_EQ(status.fault(), Fault::bad_input);
  EXPECT_NE(status.message().find("was built from other sources than this program"), std::string::npos)
      << status.message();
}

// --- Options

Status check(const StringMap& options) { return check_engine({.name = "wiredtiger", .options = options}); }

TEST(WiredtigerOptions, FindTheirPlace) {
  for (const auto& [name, value] : StringMap{{"cache_size", "64MiB"},
                                             {"cache_size", "64MB"},
                                             {"log.file_max", "1MiB"},
                                             {"log", "(file_max=1MB,prealloc=false)"},
                                             {"eviction_dirty_trigger", "30"},
                                             {"checkpoint.wait", "5"},
                                             {"leaf_page_max", "16KiB"},
                                             {"split_pct", "80"},
                                             {"table.log.enabled", "false"},
                                             {"table.leaf_page_max", "16KB"},
                                             {"transaction_sync.method", "dsync"},
                                             {"sync", "true"}}) {
    EXPECT_TRUE(check({{name, value}})) << check({{name, value}}).message();
  }
}

TEST(WiredtigerOptions, AnUnknownNameIsRefusedWithTheNearest) {
  const auto refusal = [](const std::string& name) { return check({{name, "1"}}).message(); };
  EXPECT_NE(refusal("cache_siz").find("has no option of this name, the nearest is 'cache_size'"), std::string::npos)
      << refusal("cache_siz");
  EXPECT_NE(refusal("log.filemax").find("'log.file_max'"), std::string::npos) << refusal("log.filemax");
  EXPECT_NE(refusal("leaf_pag_max").find("'leaf_page_max'"), std::string::npos) << refusal("leaf_pag_max");
  EXPECT_NE(refusal("a.b.c").find("no option of this name"), std::string::npos) << refusal("a.b.c");
}

TEST(WiredtigerOptions, AValueThatWiredtigerDoesNotTakeIsRefused) {
  for (const auto& [name, value] : StringMap{{"cache_size", "3"},
                                             {"log.file_max", "lots"},
                                             {"leaf_page_max", "1"},
                                             {"sync", "perhaps"},
                                             {"eviction_trigger", "90,cache_size=5GB"},
                                             {"log", "(enabled=true"}}) {
    const Status status = check({{name, value}});
    EXPECT_EQ(status.fault(), Fault::bad_input) << name;
    EXPECT_TRUE(status.message().starts_with("engine.options." + name + ": WiredTiger does not take '" + value + "'"))
        << status.message();
  }
}

TEST(WiredtigerOptions, OptionsThatARunDependsOnAreRefused) {
  for (const char* name :
       {"create", "in_memory", "key_format", "readonly", "session_max", "table.value_format", "use_environment"}) {
    EXPECT_NE(check({{name, "true"}}).message().find("is set by Spillway"), std::string::npos) << name;
  }
  EXPECT_EQ(check({{"sync", "true"}, {"transaction_sync.enabled", "true"}}).message(),
            "engine.options.sync: says the same as transaction_sync; give one of them");
}

TEST(WiredtigerOptions, ACompressorMakesValuesSmaller) {
  EXPECT_FALSE(compresses({.name = "wiredtiger"}));
  EXPECT_FALSE(compresses({.name = "wiredtiger", .options = {{"block_compressor", "none"}}}));
  EXPECT_TRUE(compresses({.name = "wiredtiger", .options = {{"block_compressor", "snappy"}}}));
}

TEST(WiredtigerOptions, ErrorsThatOnlyOpeningShowsAreBadInput) {
  const TemporaryDirectory temporary;
  const auto engine = open_engine({.name = "wiredtiger",
                                   .directory = temporary.path("db"),
                                   .options = {{"block_compressor", "nothing_of_this_name"}}});
  ASSERT_FALSE(engine);
  EXPECT_EQ(engine.status().fault(), Fault::bad_input);
  EXPECT_NE(engine.status().message().find("nothing_of_this_name"), std::string::npos) << engine.status().message();
}

// No database exists yet, so the options are the reason: each message names the option, or has WiredTiger's reason.
TEST(WiredtigerOptions, OptionsThatOpeningRefusesAreNamedBadInput) {
  struct Refused {
    StringMap options;
    std::string said;
  };
  const std::vector<Refused> all = {
      {{{"extensions", "[/nonexistent/of_this_name.so]"}}, "engine.options.extensions: "},
      {{{"extensions", "[/nonexistent/of_this_name.so]"}}, "of_this_name.so"},
      {{{"type", "column"}}, "engine.options: "},
      {{{"buffer_alignment", "4097"}}, "engine.options: "},
      {{{"eviction_trigger", "10"}, {"eviction_target", "80"}}, "eviction target must be lower"},
  };
  for (const auto& [options, said] : all) {
    const TemporaryDirectory temporary(memory_path());
    const auto engine = open_engine({.name = "wiredtiger", .directory = temporary.path("db"), .options = options});
    ASSERT_FALSE(engine) << options.begin()->first;
    EXPECT_EQ(engine.status().fault(), Fault::bad_input) << engine.status().message();
    EXPECT_NE(engine.status().message().find(said), std::string::npos) << engine.status().message();
  }
}

// A run would neither count nor remove files outside the database's directory.
TEST(WiredtigerOptions, FilesElsewhereAreRefused) {
  for (const auto& [name, value] :
       StringMap{{"log.path", "/tmp"}, {"log", "(path=/tmp)"}, {"statistics_log", "(path=/tmp)"}}) {
    const Status status = check({{name, value}});
    EXPECT_EQ(status.fault(), Fault::bad_input) << name;
    EXPECT_NE(status.message().find(".path: is set by Spillway; remove it"), std::string::npos) << status.message();
  }
}

TEST(WiredtigerOptions, SyncWritesNeedALog) {
  for (const auto& [name, value] :
       StringMap{{"log.enabled", "false"}, {"log", "(enabled=false)"}, {"table.log.enabled", "false"}}) {
    EXPECT_TRUE(check({{name, value}})) << check({{name, value}}).message();
    const Status status = check({{name, value}, {"sync", "true"}});
    EXPECT_EQ(status.fault(), Fault::bad_input) << name;
    EXPECT_NE(status.message().find("engine.options.log.enabled is false"), std::string::npos) << status.message();
  }
}

// --- Causes

TEST(WiredtigerCauses, AreOfTheFileAndOfTheThread) {
  using device::Cause;
  EXPECT_EQ(wiredtiger_cause("/db/WiredTigerLog.0000000001", false), Cause::wal);
  EXPECT_EQ(wiredtiger_cause("/db/WiredTigerPreplog.0000000001", true), Cause::wal);
  EXPECT_EQ(wiredtiger_cause("/db/WiredTiger.wt", true), Cause::manifest);
  EXPECT_EQ(wiredtiger_cause("/db/WiredTiger.turtle.set", false), Cause::manifest);
  EXPECT_EQ(wiredtiger_cause("/db/data.wt", false), Cause::flush);
  EXPECT_EQ(wiredtiger_cause("/db/data.wt", true), Cause::checkpoint);
  EXPECT_EQ(wiredtiger_cause("/db/WiredTigerHS.wt", false), Cause::flush);
  EXPECT_EQ(wiredtiger_cause("/db/data-000001.lsm", false), Cause::flush);
  EXPECT_EQ(wiredtiger_cause("/db/data-000001.bf", true), Cause::checkpoint);
  EXPECT_EQ(wiredtiger_cause("/db/WiredTiger.basecfg", false), Cause::other);
}

WiredtigerOptions limits() {
  WiredtigerOptions options;
  options.eviction_share = 0.95;
  options.eviction_dirty_share = 0.2;
  options.eviction_updates_share = 0.1;
  return options;
}

TEST(WiredtigerStalls, TheTriggerThatIsExceededMostIsTheCause) {
  const auto cause = [](double inuse, double dirty, double updates) {
    return pressure_of({.inuse_bytes = inuse, .dirty_bytes = dirty, .updates_bytes = updates, .max_bytes = 1000},
                       limits());
  };
  EXPECT_EQ(cause(500, 210, 20).cause, WiredtigerCause::cache_dirty);
  EXPECT_EQ(cause(500, 110, 109).cause, WiredtigerCause::cache_updates);
  EXPECT_EQ(cause(1000, 150, 50).cause, WiredtigerCause::cache_full);
  EXPECT_GE(cause(950, 0, 0).of_trigger, 1);
  EXPECT_LT(cause(940, 190, 90).of_trigger, 1);
  EXPECT_EQ(pressure_of({}, limits()).cause, WiredtigerCause::none);
}

TEST(WiredtigerStalls, OverlappingWaitsCountOnce) {
  constexpr std::int64_t kMs = 1'000'000;
  StalledWriters held;
  held.report(100 * kMs, 150 * kMs, WiredtigerCause::cache_dirty);
  held.report(120 * kMs, 180 * kMs, WiredtigerCause::cache_dirty);  // another writer, also stalled
  held.report(130 * kMs, 170 * kMs, WiredtigerCause::cache_full);   // inside a time that was reported
  held.report(900 * kMs, 910 * kMs, WiredtigerCause::checkpoint);
  const auto stalls = held.stalls();
  ASSERT_EQ(stalls.size(), 2U);
  EXPECT_EQ(stalls[0].begin_ns, 100 * kMs);
  EXPECT_EQ(stalls[0].end_ns, 180 * kMs);
  EXPECT_EQ(stalls[0].cause, WiredtigerCause::cache_dirty);
  EXPECT_EQ(stalls[1].cause, WiredtigerCause::checkpoint);
}

class WiredtigerTest : public ::testing::Test {
 protected:
  WiredtigerTest() {
    ssd::SsdConfig config;
    config.capacity.capacity_bytes = 256 << 20;
    config.capacity.spare_factor = 0.2;
    device_ = device::make_simulated(ssd::Ssd(config, 1));
    volume_ = std::make_unique<fs::Volume>(*device_, fs::VolumeOptions());
  }

  Engine& open(const StringMap& options, bool on_drive = true) {
    auto engine = open_engine({.name = "wiredtiger",
                               .directory = temporary_.path("db"),
                               .options = options,
                               .volume = on_drive ? volume_.get() : nullptr});
    EXPECT_TRUE(engine.is_ok()) << engine.status().message();
    engine_ = std::move(*engine);
    return *engine_;
  }

  std::uint64_t host_bytes(device::Cause cause) const {
    return device_->counters().host_bytes_written_by_cause[static_cast<std::size_t>(cause)];
  }

  static std::string key_of(int number) { return "key" + std::to_string(1'000'000 + number); }

  const TemporaryDirectory temporary_{memory_path()};
  std::unique_ptr<device::EmulatedDevice> device_;
  std::unique_ptr<fs::Volume> volume_;
  std::unique_ptr<Engine> engine_;
};

// Direct I/O for data and log: the drive receives each byte that WiredTiger writes, plus the few that it writes outside
// its block manager (its turtle file, the heads of its files) and the rest of a page in which a log record ends.
TEST_F(WiredtigerTest, ItsOwnCountOfBytesWrittenIsTheDrives) {
  Engine& engine = open({{"cache_size", "2MB"}, {"log.file_max", "4MB"}, {"direct_io", "[data,checkpoint]"}});
  for (int i = 0; i < 20'000; ++i) ASSERT_TRUE(engine.put(key_of(i * 7919 % 20'000), std::string(200, 'x')));
  ASSERT_TRUE(engine.flush());
  const auto statistics = engine.statistics();
  const auto data = static_cast<double>(host_bytes(device::Cause::flush) + host_bytes(device::Cause::checkpoint) +
                                        host_bytes(device::Cause::manifest));
  const auto own = static_cast<double>(statistics.at("block-manager: bytes written"));
  EXPECT_NEAR(data / own, 1, 0.02);
  EXPECT_GT(host_bytes(device::Cause::flush), 0U);
  EXPECT_GT(host_bytes(device::Cause::checkpoint), 0U);
  const auto log = static_cast<double>(statistics.at("log: log bytes written"));
  EXPECT_GE(static_cast<double>(host_bytes(device::Cause::wal)), 0.98 * log);
}

// A table's files of every type count as the table's, and writes to them have a cause.
TEST_F(WiredtigerTest, FilesOfEveryTypeOfTableAreData) {
  for (const char* const type : {"file", "lsm"}) {
    const std::uint64_t other_before = host_bytes(device::Cause::other);
    auto engine = open_engine({.name = "wiredtiger",
                               .directory = temporary_.path(type),
                               .options = {{"type", type}, {"log.file_max", "4MB"}, {"lsm.chunk_size", "1MB"}},
                               .volume = volume_.get()});
    ASSERT_TRUE(engine.is_ok()) << engine.status().message();
    for (int i = 0; i < 20'000; ++i) ASSERT_TRUE((*engine)->put(key_of(i), std::string(200, 'x')));
    ASSERT_TRUE((*engine)->flush());
    constexpr std::uint64_t kWritten = 20'000 * 210;
    EXPECT_GT((*engine)->observe().gauge("live_bytes"), kWritten / 2) << type;
    EXPECT_LT(host_bytes(device::Cause::other) - other_before, kWritten / 20) << type;
    ASSERT_TRUE((*engine)->close());
  }
}

TEST_F(WiredtigerTest, MakesCheckpointsByTheLogThatWasWritten) {
  Engine& engine = open({{"checkpoint.log_size", "1MB"}, {"log.file_max", "4MB"}});
  bool made_one = false;
  for (int i = 0; i < 100'000 && !made_one; ++i) {
    ASSERT_TRUE(engine.put(key_of(i), std::string(1000, 'x')));
    if (i % 100 != 0) continue;
    for (const Event& event : engine.take_events()) made_one = made_one || event.name == "wiredtiger.checkpoint";
  }
  EXPECT_TRUE(made_one);
  EXPECT_GT(host_bytes(device::Cause::checkpoint), 0U);
}

// A cache that is much too small for its writers: they must evict, also by WiredTiger's own statistics.
TEST_F(WiredtigerTest, WritersThatMustEvictAreHeldBack) {
  Engine& engine = open({{"cache_size", "1MB"},
                         {"log.file_max", "4MB"},
                         {"eviction_dirty_trigger", "6"},
                         {"eviction_dirty_target", "5"},
                         {"checkpoint.wait", "0"},
                         {"checkpoint.log_size", "0"}});
  const auto stall_ns = [&] {
    std::int64_t sum = 0;
    for (const Stall& stall : engine.stalls()) {
      EXPECT_NE(stall.cause, WiredtigerCause::none);
      EXPECT_NE(stall.cause, WiredtigerCause::checkpoint);  // there was no checkpoint
      sum += stall.end_ns - stall.begin_ns;
    }
    return sum;
  };
  std::atomic<bool> stop{false};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 50'000 && !stop; ++i) (void)engine.put(key_of(i * 7919 % 40'000 + t), std::string(4000, 'x'));
    });
  }
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (stall_ns() == 0 && std::chrono::steady_clock::now() < end) std::this_thread::yield();
  stop = true;
  for (std::thread& thread : threads) thread.join();
  EXPECT_GT(stall_ns(), 0);
  EXPECT_GT(engine.statistics().at("thread-yield: application thread time waiting for cache (usecs)"), 0U);
}

TEST_F(WiredtigerTest, TakesNoEmptyKey) {
  Engine& engine = open({{"log.file_max", "4MB"}});
  EXPECT_EQ(engine.put("", "value").fault(), Fault::bad_input);
  EXPECT_FALSE(*engine.get("", nullptr));
  EXPECT_TRUE(engine.remove(""));
}

TEST_F(WiredtigerTest, OneDatabaseIsOpenOnce) {
  open({{"log.file_max", "4MB"}});
  const auto second =
      open_engine({.name = "wiredtiger", .directory = temporary_.path("db"), .options = {}, .volume = volume_.get()});
  EXPECT_FALSE(second);
}

TEST_F(WiredtigerTest, OpensNoDatabaseOfAnotherEngineNorTheyOneOfIts) {
  open({{"log.file_max", "4MB"}});
  engine_.reset();
  const auto refusal = [&](const std::string& engine, const std::string& directory) {
    return open_engine({.name = engine, .directory = directory}).status();
  };
  ASSERT_TRUE(refusal("rocksdb", temporary_.path("rocks")));
  for (const auto& [engine, directory] :
       StringMap{{"rocksdb", temporary_.path("db")}, {"wiredtiger", temporary_.path("rocks")}}) {
    const Status status = refusal(engine, directory);
    EXPECT_EQ(status.fault(), Fault::bad_input);
    EXPECT_TRUE(status.message().starts_with("directory: " + directory + " holds a database of ")) << status.message();
  }
}

#else

TEST(WiredtigerModule, IsBuiltWhereWiredtigerIsInstalled) {
  SPILLWAY_NEEDS(false, "WiredTiger at the time of the build; libwiredtiger-dev brings it");
}

#endif

}  // namespace
}  // namespace spillway::engine
