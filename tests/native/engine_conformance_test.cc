// What every engine promises, whatever it is: held against a plain ordered map, on an emulated drive and on a plain
// directory, through kills, losses of power, faults of the drive and a full one.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstdlib>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "device/emulated.h"
#include "device/faulty.h"
#include "engine/factory.h"
#include "engine_built_modules.h"
#include "engine_power_loss.h"
#include "fs/volume.h"
#include "temporary_directory.h"

namespace spillway::engine {
namespace {

// An engine with options small enough that a test sees flushes and compactions.
struct Case {
  const char* engine;
  bool on_drive;
  Texts options;
  Texts settings;
};

void PrintTo(const Case& one, std::ostream* out) { *out << one.engine << (one.on_drive ? " on a drive" : ""); }

std::vector<Case> cases() {
  const Texts rocksdb = {{"write_buffer_size", "65536"},
                         {"target_file_size_base", "65536"},
                         {"max_bytes_for_level_base", "262144"},
                         {"compression", "kNoCompression"}};
  const Texts blob = {{"write_buffer_size", "65536"},
                      {"compression", "kNoCompression"},
                      {"enable_blob_files", "true"},
                      {"min_blob_size", "64"},
                      {"enable_blob_garbage_collection", "true"}};
  const Texts leveldb = {{"write_buffer_size", "65536"}, {"compression", "kNoCompression"}};
  const Texts wiredtiger = {
      {"cache_size", "1MiB"}, {"log.file_max", "1MiB"}, {"checkpoint.log_size", "256KiB"}, {"leaf_page_max", "8KiB"}};
  std::vector<Case> all;
  for (const bool on_drive : {true, false}) {
    all.push_back({"rocksdb", on_drive, rocksdb, {}});
    all.push_back({"rocksdb", on_drive, blob, {}});
    all.push_back({"spillway", on_drive, rocksdb, {}});
    all.push_back({"leveldb", on_drive, leveldb, {}});
    all.push_back(
        {"leveldb-vlog", on_drive, leveldb, {{"vlog.segment_bytes", "65536"}, {"vlog.gc_garbage_ratio", "0.3"}}});
#ifdef SPILLWAY_BUILT_ENGINES
    all.push_back({"wiredtiger", on_drive, wiredtiger, {}});
#endif
  }
  return all;
}

using Model = std::map<std::string, std::string>;

std::string key_of(std::uint64_t number) { return "key" + std::to_string(1'000'000 + number); }

// Bytes that tell which write they are of, of some length.
std::string value_of(std::uint64_t number, std::size_t bytes) {
  std::string value = std::to_string(number) + ":";
  while (value.size() < bytes) value += static_cast<char>('a' + (value.size() * 7 + number) % 26);
  return value;
}

Pairs pairs_of(const Model& model) { return {model.begin(), model.end()}; }

class Conformance : public ::testing::TestWithParam<Case> {
 protected:
  ~Conformance() override {
    engine_.reset();
    volume_.reset();
  }

  // A drive of its own for each opening: what lies in the directory is known to none of it.
  void make_drive(std::uint64_t capacity_bytes = 256ULL << 20, device::Fate fate = {},
                  fs::VolumeObserver* observer = nullptr) {
    engine_.reset();
    volume_.reset();
    if (!GetParam().on_drive) return;
    ssd::SsdConfig config;
    config.geometry.pages_per_block = 32;
    config.capacity.capacity_bytes = capacity_bytes;
    config.capacity.spare_factor = 0.2;
    device_ = device::make_simulated(ssd::Ssd(config, 1));
    faulty_ = std::make_unique<device::FaultyDevice>(
        *device_, fate ? fate : [](const device::Io&) { return device::Misfortune(); });
    fs::VolumeOptions options;
    options.observer = observer;
    volume_ = std::make_unique<fs::Volume>(*faulty_, options);
  }

  Status try_open(const Texts& more = {}) {
    EngineSpec spec;
    spec.name = GetParam().engine;
    spec.directory = directory_;
    spec.options = GetParam().options;
    for (const auto& [name, value] : more) spec.options[name] = value;
    spec.settings = GetParam().settings;
    spec.volume = volume_.get();
    engine_.reset();
    auto opened = open_engine(spec);
    if (!opened) return opened.status();
    engine_ = std::move(*opened);
    return Status::ok();
  }
  Engine& open(const Texts& more = {}) {
    const Status status = try_open(more);
    EXPECT_TRUE(status) << status.message();
    return *engine_;
  }

  void expect_same(const Model& model) {
    Pairs forward;
    auto seen = engine_->scan("", model.size() + 10, Direction::forward, &forward);
    ASSERT_TRUE(seen) << seen.status().message();
    EXPECT_EQ(*seen, model.size());
    EXPECT_EQ(forward, pairs_of(model));
    Pairs backward;
    seen = engine_->scan("\xff", model.size() + 10, Direction::backward, &backward);
    ASSERT_TRUE(seen) << seen.status().message();
    std::reverse(backward.begin(), backward.end());
    EXPECT_EQ(backward, pairs_of(model));
    for (const auto& [key, value] : model) {
      std::string found;
      auto there = engine_->get(key, &found);
      ASSERT_TRUE(there) << there.status().message();
      ASSERT_TRUE(*there) << key;
      ASSERT_EQ(found, value) << key;
    }
  }

  // Puts, overwrites, removals and batches of `operations` operations on `keys` keys, on the engine and the model.
  void work(Model& model, std::uint64_t seed, int operations, std::uint64_t keys, std::size_t most_value_bytes) {
    std::mt19937_64 random(seed);
    for (int i = 0; i < operations; ++i) {
      const std::string key = key_of(random() % keys);
      const std::string value = value_of(random() % 1'000'000, random() % most_value_bytes);
      switch (random() % 10) {
        case 0:
          ASSERT_TRUE(engine_->remove(key));
          model.erase(key);
          break;
        case 1: {
          const std::string other = key_of(random() % keys);
          const std::vector<Write> batch = {{Write::Kind::put, other, "before"},
                                            {Write::Kind::remove, key, {}},
                                            {Write::Kind::put, key, value},
                                            {Write::Kind::remove, other, {}}};
          ASSERT_TRUE(engine_->write(batch));
          model[key] = value;
          model.erase(other);
          break;
        }
        default:
          ASSERT_TRUE(engine_->put(key, value));
          model[key] = value;
      }
    }
  }

  const TemporaryDirectory temporary_{memory_path()};
  std::string directory_ = temporary_.path("db");
  std::unique_ptr<device::EmulatedDevice> device_;
  std::unique_ptr<device::FaultyDevice> faulty_;
  std::unique_ptr<fs::Volume> volume_;
  std::unique_ptr<Engine> engine_;
};

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
  make_drive();  // a new drive, to which everything that lies there is unknown
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

TEST_P(Conformance, ScansFromBetweenBeforeAndBehindKeys) {
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

TEST_P(Conformance, CountsWhatReachesTheDriveByCause) {
  if (!GetParam().on_drive) GTEST_SKIP() << "the drive's counters are the emulated drive's";
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
  // The log, whatever the engine takes for it.
  EXPECT_GT(of(device::Cause::wal) + of(device::Cause::spill) + of(device::Cause::blob), user);
  EXPECT_GT(counters.host_bytes_written, 2 * user);  // in the log, and in the tree
  EXPECT_EQ(of(device::Cause::user), 0U);
  EXPECT_LT(of(device::Cause::other),
            counters.host_bytes_written / 20);  // a page each of small files: OPTIONS, IDENTITY
}

// What the killed client and its judge share: a page of a file.
struct Shared {
  std::atomic<std::uint64_t> acknowledged;
  std::atomic<std::uint64_t> dies_in_a_sync_behind;  // 0: the client is killed from outside, wherever it is
};

class SharedPage {
 public:
  explicit SharedPage(const std::string& path) {
    const int fd = ::open(path.c_str(), O_CREAT | O_RDWR, 0600);
    if (::ftruncate(fd, sizeof(Shared)) != 0) std::perror("shared page");
    page_ = ::mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    ::close(fd);
  }
  ~SharedPage() { ::munmap(page_, sizeof(Shared)); }
  SharedPage(const SharedPage&) = delete;
  SharedPage& operator=(const SharedPage&) = delete;
  Shared& operator*() const { return *static_cast<Shared*>(page_); }

 private:
  void* page_;
};

// Ends the process where a sync of written bytes has begun and has done nothing yet.
class JournalOfASyncCutShort final : public VolumeJournal {
 public:
  JournalOfASyncCutShort(const std::string& path, const Shared& shared) : VolumeJournal(path), shared_(shared) {}
  void wrote(std::uint64_t file, std::uint64_t offset, std::uint64_t length) override {
    VolumeJournal::wrote(file, offset, length);
    const std::scoped_lock lock(mutex_);
    written_.insert(file);
  }
  void sync_begins(std::uint64_t file) override {
    VolumeJournal::sync_begins(file);
    const std::scoped_lock lock(mutex_);
    const std::uint64_t enough = shared_.dies_in_a_sync_behind;
    if (written_.erase(file) != 0 && enough != 0 && shared_.acknowledged >= enough) ::kill(::getpid(), SIGKILL);
  }

 private:
  const Shared& shared_;
  std::mutex mutex_;
  std::set<std::uint64_t> written_;  // and not synced since
};

// The client is this program again, for engines keep threads that a fork would lose. It is asked for by a variable:
// the directory of the test, and the journal to keep ("" for none).
constexpr const char* kClientDirectory = "SPILLWAY_CONFORMANCE_DIRECTORY";
constexpr const char* kClientJournal = "SPILLWAY_CONFORMANCE_JOURNAL";

// Kills the client once so many writes are acknowledged, unless it does so in a sync. False when it ended by itself.
bool kill_client(const std::string& test, const std::string& directory, const std::string& journal,
                 const Shared& shared, std::uint64_t enough) {
  ::setenv(kClientDirectory, directory.c_str(), 1);
  ::setenv(kClientJournal, journal.c_str(), 1);
  std::string filter = "--gtest_filter=" + test;
  std::string disabled = "--gtest_also_run_disabled_tests";
  std::string brief = "--gtest_brief=1";
  std::string self = "/proc/self/exe";
  char* arguments[] = {self.data(), filter.data(), disabled.data(), brief.data(), nullptr};
  pid_t child = 0;
  if (::posix_spawn(&child, self.c_str(), nullptr, nullptr, arguments, environ) != 0) return false;
  int state = 0;
  while (shared.acknowledged < enough || shared.dies_in_a_sync_behind != 0) {
    if (::waitpid(child, &state, WNOHANG) == child) return WIFSIGNALED(state) && WTERMSIG(state) == SIGKILL;
    std::this_thread::sleep_for(std::chrono::microseconds(200));
  }
  ::kill(child, SIGKILL);
  ::waitpid(child, &state, 0);
  return WIFSIGNALED(state);
}

class ConformanceKilled : public Conformance {
 protected:
  // Write number i puts a key whose value names i, and a companion in the same batch.
  static constexpr std::uint64_t kKeys = 300;
  static std::vector<std::pair<std::string, std::string>> write_of(std::uint64_t i) {
    return {{key_of(i % kKeys), value_of(i, 300)}, {"twin" + key_of(i % kKeys), std::to_string(i)}};
  }

  static std::string client() {
    const auto* const info = ::testing::UnitTest::GetInstance()->current_test_info();
    const std::string name = info->name();
    return std::string(info->test_suite_name()) + ".DISABLED_Client" + name.substr(name.find('/'));
  }

  void write_for_ever(Shared& shared) {
    for (std::uint64_t i = shared.acknowledged; i < 200'000; ++i) {
      const auto pairs = write_of(i);
      const std::vector<Write> batch = {{Write::Kind::put, pairs[0].first, pairs[0].second},
                                        {Write::Kind::put, pairs[1].first, pairs[1].second}};
      if (!engine_->write(batch)) ::_exit(1);
      shared.acknowledged = i + 1;
    }
  }

  void expect_all_acknowledged(std::uint64_t acknowledged) {
    for (std::uint64_t k = 0; k < std::min(kKeys, acknowledged); ++k) {
      const std::uint64_t last = (acknowledged - 1 - k) / kKeys * kKeys + k;  // the last write of this key
      std::string value;
      auto there = engine_->get(key_of(k), &value);
      ASSERT_TRUE(there) << there.status().message();
      ASSERT_TRUE(*there) << "write " << last << " of " << acknowledged;
      const std::uint64_t found = std::stoull(value);
      ASSERT_GE(found, last) << "of " << acknowledged;
      ASSERT_EQ(value, value_of(found, 300));
      std::string twin;
      ASSERT_TRUE(*engine_->get("twin" + key_of(k), &twin));
      ASSERT_EQ(twin, std::to_string(found)) << "half a batch";
    }
  }
};

// Not a test: the client that others kill.
TEST_P(ConformanceKilled, DISABLED_Client) {
  const char* const directory = std::getenv(kClientDirectory);
  if (directory == nullptr) GTEST_SKIP() << "runs for the tests below only";
  directory_ = std::string(directory) + "/db";
  const std::string journal = std::getenv(kClientJournal);
  std::unique_ptr<VolumeJournal> observer;
  const SharedPage page(std::string(directory) + "/acknowledged");
  if (!journal.empty()) observer = std::make_unique<JournalOfASyncCutShort>(journal, *page);
  make_drive(256ULL << 20, {}, observer.get());
  open(journal.empty() ? Texts() : Texts{{"sync", "true"}});
  write_for_ever(*page);
}

TEST_P(ConformanceKilled, KeepsWhatWasAcknowledged) {
  const SharedPage page(temporary_.path("acknowledged"));
  Shared& shared = *page;
  for (std::uint64_t round = 1; round <= 2; ++round) {
    ASSERT_TRUE(kill_client(client(), temporary_.root(), "", shared, shared.acknowledged + 1500));
    make_drive();
    open();
    expect_all_acknowledged(shared.acknowledged);
    ASSERT_TRUE(engine_->close());
  }
}

TEST_P(ConformanceKilled, KeepsSyncedWritesThroughALossOfPower) {
  if (!GetParam().on_drive) GTEST_SKIP() << "what reached a real drive cannot be taken back";
  const SharedPage page(temporary_.path("acknowledged"));
  Shared& shared = *page;
  int lost_something = 0;
  for (std::uint64_t round = 1; round <= 3; ++round) {
    const std::string journal = temporary_.path("journal" + std::to_string(round));
    const std::uint64_t enough = shared.acknowledged + 700;
    shared.dies_in_a_sync_behind = round == 2 ? 0 : enough;
    ASSERT_TRUE(kill_client(client(), temporary_.root(), journal, shared, enough));
    lost_something += PowerCut(journal).apply(round);
    make_drive();
    open();
    expect_all_acknowledged(shared.acknowledged);
    ASSERT_TRUE(engine_->close());
  }
  EXPECT_GT(lost_something, 0);  // else nothing was tried
}

TEST_P(Conformance, AFullDriveIsToldAndLosesNothing) {
  if (!GetParam().on_drive) GTEST_SKIP() << "the host's disk is not to be filled";
  make_drive(16ULL << 20);
  open();
  Model model;
  Status status;
  for (std::uint64_t i = 0; i < 20'000 && status; ++i) {
    const std::string value = value_of(i, 4000);
    status = engine_->put(key_of(i), value);
    if (status) model[key_of(i)] = value;
  }
  ASSERT_FALSE(status);
  EXPECT_EQ(status.fault(), Fault::drive_full) << status.message();
  for (const auto& [key, value] : model) {
    std::string found;
    auto there = engine_->get(key, &found);
    if (there && *there) {
      ASSERT_EQ(found, value);
    }
  }
  (void)engine_->close();
  make_drive();  // with room
  open();
  for (const auto& [key, value] : model) {
    std::string found;
    auto there = engine_->get(key, &found);
    ASSERT_TRUE(there) << there.status().message();
    ASSERT_TRUE(*there) << key;
    ASSERT_EQ(found, value);
  }
  ASSERT_TRUE(engine_->put("after", "all"));
}

// From some write on every write to the drive fails, for a while or for good.
TEST_P(Conformance, AFailingDriveIsToldAndLosesNothing) {
  if (!GetParam().on_drive) GTEST_SKIP() << "faults are the emulated drive's";
  for (const bool for_good : {true, false}) {
    std::atomic<int> writes{0};
    make_drive(256ULL << 20, [&, for_good](const device::Io& io) {
      device::Misfortune misfortune;
      if (io.op != device::Opcode::write) return misfortune;
      const int now = ++writes;
      if (now > 40 && (for_good || now < 44)) misfortune.fault = Fault::io_error;
      return misfortune;
    });
    open();
    Model model;
    Status status;
    for (std::uint64_t i = 0; i < 8000 && status; ++i) {
      const std::string value = value_of(i, 1000);
      status = engine_->put(key_of(i % 1000), value);
      if (status) model[key_of(i % 1000)] = value;
    }
    EXPECT_TRUE(!for_good || !status);
    (void)engine_->close();
    make_drive();
    open();
    for (const auto& [key, value] : model) {
      std::string found;
      auto there = engine_->get(key, &found);
      ASSERT_TRUE(there) << there.status().message();
      ASSERT_TRUE(*there) << key;
    }
    ASSERT_TRUE(engine_->close());
    std::filesystem::remove_all(directory_);
  }
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

std::string name_of_case(const ::testing::TestParamInfo<Case>& info) {
  std::string name = info.param.engine;
  std::replace(name.begin(), name.end(), '-', '_');
  if (info.param.options.contains("enable_blob_files")) name += "_blob";
  return name + (info.param.on_drive ? "_on_a_drive" : "_in_a_directory");
}

INSTANTIATE_TEST_SUITE_P(Engines, Conformance, ::testing::ValuesIn(cases()), name_of_case);
INSTANTIATE_TEST_SUITE_P(Engines, ConformanceKilled, ::testing::ValuesIn(cases()), name_of_case);

}  // namespace
}  // namespace spillway::engine
