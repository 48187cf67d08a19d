// What every engine promises while nothing fails: checked against an ordered map, on an emulated drive and on a plain
// directory. Kills and losses of power: engine_conformance_kill_test.cc. Faults and full drives:
// engine_conformance_faults_test.cc, and for plain directories engine_conformance_directory_test.cc.
#include "engine_conformance.h"

#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <vector>

namespace spillway::engine {
namespace {

// Every store that the program knows of; WiredTiger where its module is built. The raw engine keeps no values.
TEST(ConformanceCases, HaveEveryRegisteredEngine) {
  std::set<std::string> expected;
  for (const std::string& name : engine_names()) {
    EngineSpec spec;
    spec.name = name;
    if (is_store(spec)) expected.insert(name);
  }
  std::set<std::string> tried;
  for (const Case& one : cases()) tried.insert(one.engine);
  EXPECT_EQ(tried, expected);
}

TEST_P(Conformance, DoesWhatAnOrderedMapDoes) {
  make_drive();
  open();
  Model model;
  work(model, 1, 6000, 1500, 400);
  expect_same(model);
  ASSERT_TRUE(engine_->flush());
  expect_same(model);
  work(model, 2, 3000, 1500, 400);
  const std::atomic<bool> go_on{false};
  ASSERT_TRUE(engine_->settle(go_on));
  expect_same(model);
}

TEST_P(Conformance, ReopensWithAllThatWasWritten) {
  make_drive();
  Model model;
  for (std::uint64_t round = 0; round < 3; ++round) {
    open();
    expect_same(model);
    work(model, 10 + round, 2500, 800, 400);
    ASSERT_TRUE(engine_->close());
  }
  make_drive();  // a new drive, on which all files are unknown
  open();
  expect_same(model);
}

TEST_P(Conformance, TakesKeysAndValuesOfAllKinds) {
  make_drive();
  open();
  Model model = {{std::string("\0", 1), ""},
                 {std::string("a\0b", 3), std::string(1, '\0')},
                 {"a", std::string(1'000'000, 'x')},
                 {std::string(300, 'k'), "long key"},
                 {"\x7f", "last"}};
  for (const auto& [key, value] : model) ASSERT_TRUE(engine_->put(key, value));
  expect_same(model);
  ASSERT_TRUE(engine_->flush());
  expect_same(model);
  std::string found = "unchanged";
  EXPECT_FALSE(*engine_->get("absent", &found));
  EXPECT_TRUE(*engine_->get("a", nullptr));
  ASSERT_TRUE(engine_->remove("absent"));
  ASSERT_TRUE(engine_->write({}));
  expect_same(model);
}

TEST_P(Conformance, ScansFromBetweenBeforeAndAfterKeys) {
  make_drive();
  open();
  for (const char* key : {"b", "d", "f"}) ASSERT_TRUE(engine_->put(key, key));
  const auto keys = [&](const char* from, std::uint64_t nexts, Direction direction) {
    Pairs pairs;
    const auto seen = engine_->scan(from, nexts, direction, &pairs);
    EXPECT_TRUE(seen.is_ok());
    EXPECT_EQ(seen.value(), pairs.size());
    std::string all;
    for (const auto& [key, value] : pairs) all += key;
    return all;
  };
  EXPECT_EQ(keys("a", 9, Direction::forward), "bdf");
  EXPECT_EQ(keys("b", 1, Direction::forward), "bd");
  EXPECT_EQ(keys("c", 9, Direction::forward), "df");
  EXPECT_EQ(keys("f", 0, Direction::forward), "f");
  EXPECT_EQ(keys("g", 9, Direction::forward), "");
  EXPECT_EQ(keys("g", 9, Direction::backward), "fdb");
  EXPECT_EQ(keys("f", 1, Direction::backward), "fd");
  EXPECT_EQ(keys("e", 9, Direction::backward), "db");
  EXPECT_EQ(keys("b", 9, Direction::backward), "b");
  EXPECT_EQ(keys("a", 9, Direction::backward), "");
}

TEST_P(Conformance, ServesManyThreads) {
  make_drive();
  open();
  constexpr int kThreads = 4;
  std::vector<Model> models(kThreads);
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      std::mt19937_64 random(static_cast<std::uint64_t>(t));
      Model& own = models[static_cast<std::size_t>(t)];
      for (int i = 0; i < 1500; ++i) {
        const std::string key = key_of(random() % 200 * kThreads + static_cast<std::uint64_t>(t));
        const std::string value = value_of(static_cast<std::uint64_t>(i), random() % 300);
        if (!engine_->put(key, value)) ++wrong;
        own[key] = value;
        std::string found;
        const auto there = engine_->get(key, &found);
        if (!there || !there.value() || found != value) ++wrong;
        if (i % 50 == 0 && !engine_->scan(key, 20)) ++wrong;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
  Model all;
  for (const Model& own : models) all.insert(own.begin(), own.end());
  expect_same(all);
}

// Only an emulated drive has counters.
class ConformanceOnDrive : public Conformance {};

TEST_P(ConformanceOnDrive, CountsWhatReachesTheDriveByCause) {
  make_drive();
  open();
  Model model;
  work(model, 3, 6000, 1500, 400);
  ASSERT_TRUE(engine_->flush());
  const ssd::Counters counters = device_->counters();
  std::uint64_t by_cause = 0;
  for (const std::uint64_t bytes : counters.host_bytes_written_by_cause) by_cause += bytes;
  EXPECT_EQ(by_cause, counters.host_bytes_written);
  const auto of = [&](device::Cause cause) {
    return counters.host_bytes_written_by_cause[static_cast<std::size_t>(cause)];
  };
  std::uint64_t user = 0;
  for (const auto& [key, value] : model) user += key.size() + value.size();
  // The log, with the cause that the engine uses for it.
  EXPECT_GT(of(device::Cause::wal) + of(device::Cause::spill) + of(device::Cause::blob), user);
  EXPECT_GT(counters.host_bytes_written, 2 * user);  // in the log, and in the tree
  EXPECT_EQ(of(device::Cause::user), 0U);
  EXPECT_LT(of(device::Cause::other),
            counters.host_bytes_written / 20);  // one page each for small files: OPTIONS, IDENTITY
}

TEST_P(Conformance, NamesItsCausesGaugesAndVersions) {
  make_drive();
  open();
  const auto causes = engine_->stall_causes();
  ASSERT_GE(causes.size(), 1U);
  ASSERT_LE(causes.size(), kMostStallCauses);
  EXPECT_STREQ(causes[0], "none");
  const Observation first = engine_->observe();
  const Observation second = engine_->observe();
  ASSERT_FALSE(first.gauges.empty());
  ASSERT_EQ(first.gauges.size(), second.gauges.size());
  for (std::size_t i = 0; i < first.gauges.size(); ++i) EXPECT_STREQ(first.gauges[i].name, second.gauges[i].name);
  EXPECT_FALSE(engine_->statistics().empty());
  EXPECT_FALSE(engine_versions(GetParam().engine).empty());
}

TEST_P(Conformance, RefusesOptionsAndSettingsThatItDoesNotKnow) {
  make_drive();
  EngineSpec spec;
  spec.name = GetParam().engine;
  spec.directory = directory_;
  spec.volume = volume_.get();
  spec.options = {{"write_bufer_size", "1"}};
  const Status option = check_engine(spec);
  EXPECT_EQ(option.fault(), Fault::bad_input);
  EXPECT_NE(option.message().find("engine.options.write_bufer_size"), std::string::npos) << option.message();
  spec.options.clear();
  spec.settings = {{"no.such", "1"}};
  const Status setting = check_engine(spec);
  EXPECT_EQ(setting.fault(), Fault::bad_input);
  EXPECT_NE(setting.message().find("engine.no.such"), std::string::npos) << setting.message();
  EXPECT_FALSE(std::filesystem::exists(directory_));
}

INSTANTIATE_TEST_SUITE_P(Engines, Conformance, ::testing::ValuesIn(cases()), name_of_case);
INSTANTIATE_TEST_SUITE_P(Engines, ConformanceOnDrive, ::testing::ValuesIn(cases_on(/*drive=*/true)), name_of_case);

}  // namespace
}  // namespace spillway::engine
