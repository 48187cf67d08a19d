// Recovery of a value log: torn ends, damage, kills and losses of power.
#include <gtest/gtest.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "at_each_step.h"
#include "engine/vlog/record.h"
#include "engine_power_loss.h"
#include "engine_vlog_fixture.h"
#include "flipped_bytes.h"

namespace spillway::engine {
namespace {

class VlogRecovery : public VlogFixture {};

// A log that is cut at any byte has all records before that, and every batch completely or not at all.
TEST_F(VlogRecovery, ATornTailLeavesAPrefix) {
  open({{"vlog.segment_bytes", "1048576"}});
  std::vector<Model> after;  // after each write
  Model model;
  after.push_back(model);
  for (std::uint64_t i = 0; i < 5; ++i) {
    const std::string twin = "twin" + std::to_string(i);
    const std::string last_twin = "twin" + std::to_string(i - 1);
    const std::string key = key_of(i % 3);
    const std::string value = value_of(i, 30);
    const std::vector<Write> batch = {
        {Write::Kind::put, key, value}, {Write::Kind::remove, last_twin, {}}, {Write::Kind::put, twin, value}};
    ASSERT_TRUE(engine_->write(batch));
    model[key] = value;
    model.erase(last_twin);
    model[twin] = value;
    after.push_back(model);
  }
  // As a killed process leaves it.
  const std::string image = temporary_.path("image");
  std::filesystem::copy(directory_, image, std::filesystem::copy_options::recursive);
  engine_.reset();
  directory_ = temporary_.path("torn");
  const auto bytes = std::filesystem::file_size(image + "/000001.vlog");
  std::size_t last = after.size() - 1;
  for (auto size = bytes; size >= vlog::kHeaderBytes; --size) {
    std::filesystem::remove_all(directory_);
    std::filesystem::copy(image, directory_, std::filesystem::copy_options::recursive);
    std::filesystem::resize_file(directory_ + "/000001.vlog", size);
    open({{"vlog.gc", "false"}});
    Pairs pairs;
    ASSERT_TRUE(engine_->scan("", 100, Direction::forward, &pairs));
    while (last > 0 && pairs != Pairs(after[last].begin(), after[last].end())) --last;
    ASSERT_EQ(pairs, Pairs(after[last].begin(), after[last].end())) << size;
    // It continues from there, and later writes are found after the torn end.
    if (size % 16 != 0) continue;
    ASSERT_TRUE(engine_->put("new", "value"));
    engine_.reset();
    open({{"vlog.gc", "false"}});
    EXPECT_TRUE(*engine_->get("new", nullptr));
    Pairs again;
    ASSERT_TRUE(engine_->scan("", 100, Direction::forward, &again));
    EXPECT_EQ(again.size(), pairs.size() + 1);
  }
  EXPECT_EQ(last, 0U);
}

// Whichever byte of the log changes, a value is right, or there is an error.
TEST_F(VlogRecovery, ADamagedByteIsNoticed) {
  for (const bool flushed : {false, true}) {
    std::filesystem::remove_all(directory_);
    Model model;
    open({{"vlog.segment_bytes", "4096"}});
    for (std::uint64_t i = 0; i < 60; ++i) {
      model[key_of(i % 40)] = value_of(i, 100);
      ASSERT_TRUE(engine_->put(key_of(i % 40), model[key_of(i % 40)]));
    }
    if (flushed) {
      ASSERT_TRUE(engine_->flush());
    }
    ASSERT_TRUE(engine_->close());
    engine_.reset();
    int errors = 0;
    for (const std::string& segment : segments()) {
      const auto bytes = std::filesystem::file_size(segment);
      for (std::uint64_t at = 0; at < bytes; at += flushed ? 61 : 97) {
        flip(segment, at, 0x04);
        if (const Status status = try_open({{"vlog.gc", "false"}}); !status) {
          EXPECT_NE(status.message().find("damaged"), std::string::npos) << status.message();
          ++errors;
        } else {
          for (const auto& [key, value] : model) {
            std::string found;
            const auto there = engine_->get(key, &found);
            if (!there) ++errors;
            if (there) {
              ASSERT_TRUE(there.value()) << segment << " at " << at;
              ASSERT_EQ(found, value) << segment << " at " << at;
            }
          }
          engine_.reset();
        }
        flip(segment, at, 0x04);
      }
    }
    EXPECT_GT(errors, 20);
  }
}

TEST_F(VlogRecovery, ALostSegmentIsNoticed) {
  open({{"vlog.segment_bytes", "4096"}, {"vlog.gc", "false"}});
  for (std::uint64_t i = 0; i < 200; ++i) ASSERT_TRUE(engine_->put(key_of(i), value_of(i, 100)));
  ASSERT_TRUE(engine_->close());
  engine_.reset();
  auto all = segments();
  ASSERT_GT(all.size(), 3U);
  all.pop_back();  // nothing records that there was a last one
  for (const std::string& segment : all) {
    const std::string aside = temporary_.path("aside");
    std::filesystem::rename(segment, aside);
    const Status status = try_open({{"vlog.gc", "false"}});
    const bool noticed = !status || !engine_->get(key_of(1), nullptr) || !engine_->scan("", 100);
    EXPECT_TRUE(noticed) << segment;
    engine_.reset();
    std::filesystem::rename(aside, segment);
  }
}

// LevelDB's own log has the position from which recovery reads the value log. Without it nothing shows what is missing.
TEST_F(VlogRecovery, ALostBeginningOfRecoveryIsNoticed) {
  open();
  for (std::uint64_t i = 0; i < 300; ++i) ASSERT_TRUE(engine_->put(key_of(i), value_of(i, 100)));
  ASSERT_TRUE(engine_->close());
  engine_.reset();
  std::string marker;
  for (const auto& entry : std::filesystem::directory_iterator(directory_)) {
    if (entry.path().extension() == ".log") marker = entry.path().string();
  }
  ASSERT_FALSE(marker.empty());
  const std::string aside = temporary_.path("aside");
  std::filesystem::rename(marker, aside);
  const auto bytes = std::filesystem::file_size(aside);
  for (std::uint64_t damage = 0; damage <= bytes + 1; ++damage) {
    std::filesystem::remove(marker);
    if (damage <= bytes) std::filesystem::copy_file(aside, marker);
    if (damage < bytes) flip(marker, damage, 0x20);
    if (damage == bytes) std::filesystem::resize_file(marker, bytes - 1);
    const Status status = try_open();
    ASSERT_FALSE(status) << damage;
    EXPECT_NE(status.message().find("says where its value log goes on"), std::string::npos) << status.message();
    engine_.reset();
  }
  std::filesystem::rename(aside, marker);
  open();
  for (std::uint64_t i = 0; i < 300; ++i) EXPECT_TRUE(*engine_->get(key_of(i), nullptr)) << i;
}

// --- Kills

constexpr const char* kDirectory = "SPILLWAY_VLOG_DIRECTORY";
constexpr const char* kStep = "SPILLWAY_VLOG_STEP";
constexpr std::uint64_t kKeys = 80;
constexpr std::uint64_t kMostWrites = 6000;

// Write i puts a value that names it. The file has the number of acknowledged writes.
void write_until_killed(Engine& engine, const std::string& progress, std::uint64_t from) {
  std::FILE* const file = std::fopen(progress.c_str(), "r+b");
  for (std::uint64_t i = from; i < kMostWrites; ++i) {
    const std::string key = i % 3 == 0 ? "cold" + std::to_string(i % kKeys) : key_of(i % kKeys);
    if (!engine.put(key, value_of(i, 200))) ::_exit(1);
    const std::uint64_t done = i + 1;
    if (::pwrite(::fileno(file), &done, sizeof done, 0) != sizeof done) ::_exit(2);
  }
  std::fclose(file);
}

// Runs this program again for one of the disabled tests. Returns whether it was killed.
bool is_killed(const std::string& client, const std::filesystem::path& directory) {
  std::string self = "/proc/self/exe";
  std::string filter = "--gtest_filter=" + client;
  std::string disabled = "--gtest_also_run_disabled_tests";
  std::string brief = "--gtest_brief=1";
  char* arguments[] = {self.data(), filter.data(), disabled.data(), brief.data(), nullptr};
  pid_t child = 0;
  int state = 0;
  const ClientsPlace place(directory);
  EXPECT_EQ(::posix_spawn(&child, self.c_str(), nullptr, nullptr, arguments, environ), 0);
  EXPECT_EQ(::waitpid(child, &state, 0), child);
  if (WIFSIGNALED(state)) return true;
  EXPECT_EQ(WEXITSTATUS(state), 0) << client;
  return false;
}

// Not a test: the client that the test below kills when the step is reached for the third time.
TEST_F(VlogRecovery, DISABLED_Client) {
  const char* const where = std::getenv(kDirectory);
  if (where == nullptr) GTEST_SKIP() << "runs for the test below only";
  directory_ = std::string(where) + "/db";
  std::uint64_t done = 0;
  std::FILE* const progress = std::fopen((std::string(where) + "/progress").c_str(), "rb");
  ASSERT_EQ(std::fread(&done, sizeof done, 1, progress), 1U);
  std::fclose(progress);
  std::atomic<int> times{0};
  const std::string step = std::getenv(kStep);
  const AtSteps watch([&](std::string_view reached) {
    if (reached == step && ++times == 3) ::kill(::getpid(), SIGKILL);
  });
  open();
  write_until_killed(*engine_, std::string(where) + "/progress", done);
  (void)engine_->settle(kNeverStopped);
}

TEST_F(VlogRecovery, LosesNothingAtAnyKill) {
  for (const char* const step :
       {"vlog.segment.made", "vlog.log.made", "vlog.append.written", "vlog.tree.written", "vlog.flush.log_synced",
        "vlog.gc.watching", "vlog.gc.asked", "vlog.gc.moved", "vlog.gc.removing", "vlog.replay.batch"}) {
    std::filesystem::remove_all(directory_);
    std::uint64_t done = 0;
    std::FILE* const progress = std::fopen(temporary_.path("progress").c_str(), "w+b");
    ASSERT_EQ(std::fwrite(&done, sizeof done, 1, progress), 1U);
    std::fflush(progress);
    ::setenv(kDirectory, temporary_.root().c_str(), 1);
    ::setenv(kStep, step, 1);
    int killed = 0;
    // A second life, so that what is found after a kill is written to, collected and killed again. A replay of the log
    // needs contents, so for its steps the first life is killed elsewhere.
    for (int life = 0; life < 2; ++life) {
      if (std::string_view(step) == "vlog.replay.batch") ::setenv(kStep, life == 0 ? "vlog.tree.written" : step, 1);
      if (is_killed("VlogRecovery.DISABLED_Client", temporary_.root())) ++killed;
    }
    EXPECT_GE(killed, 1) << step << " was not reached three times";
    ASSERT_EQ(::pread(::fileno(progress), &done, sizeof done, 0), static_cast<ssize_t>(sizeof done));
    std::fclose(progress);
    Model model;
    for (std::uint64_t i = 0; i < done; ++i) {
      model[i % 3 == 0 ? "cold" + std::to_string(i % kKeys) : key_of(i % kKeys)] = std::to_string(i);
    }
    open();
    for (const auto& [key, number] : model) {
      std::string value;
      const auto there = engine_->get(key, &value);
      ASSERT_TRUE(there) << step << ": " << there.status().message();
      ASSERT_TRUE(there.value()) << step << " " << key << " of " << done;
      const std::uint64_t found = std::stoull(value);
      // The write in flight at the kill may be there.
      ASSERT_TRUE(found == std::stoull(number) || found == done) << step << " " << key;
      ASSERT_EQ(value, value_of(found, 200)) << step;
    }
    engine_.reset();
  }
}

// --- Losses of power

constexpr const char* kLife = "SPILLWAY_VLOG_LIFE";
constexpr std::uint64_t kFlushed = 200;
// With keys of a KiB, recovery writes some 1000 of them to the tree at once. By the third time it has waited for the
// flush of the first memtable.
constexpr std::uint64_t kUnsynced = 4000;
constexpr int kReplayed = 3500;

std::string long_key_of(std::uint64_t number) { return key_of(number) + std::string(1000, 'k'); }

// Not a test: the client that the test below kills, first after unsynced writes, then during their replay.
TEST_F(VlogRecovery, DISABLED_ReplayingClient) {
  const char* const where = std::getenv(kDirectory);
  if (where == nullptr) GTEST_SKIP() << "runs for the test below only";
  directory_ = std::string(where) + "/db";
  const std::string life = std::getenv(kLife);
  VolumeJournal journal(std::string(where) + "/journal" + life);
  make_drive(64ULL << 20, {}, &journal);
  std::atomic<int> times{0};
  const AtSteps watch([&](std::string_view reached) {
    if (reached == "vlog.replay.batch" && ++times == kReplayed) ::kill(::getpid(), SIGKILL);
  });
  if (life == "1") memtable_bytes_ = 64 << 20;
  open({{"vlog.segment_bytes", "262144"}, {"vlog.gc", "false"}});
  for (std::uint64_t i = 0; i < kFlushed + kUnsynced; ++i) {
    if (i == kFlushed) {
      ASSERT_TRUE(engine_->flush());
    }
    ASSERT_TRUE(engine_->put(long_key_of(i), value_of(i, 20)));
  }
  ::kill(::getpid(), SIGKILL);
}

// What recovery writes to the tree may be flushed before recovery reaches the end of the log, so the log must be
// durable first.
TEST_F(VlogRecovery, ALossOfPowerDuringAReplayKeepsWhatWasDurable) {
  ::setenv(kDirectory, temporary_.root().c_str(), 1);
  for (const char* const life : {"1", "2"}) {
    ::setenv(kLife, life, 1);
    ASSERT_TRUE(is_killed("VlogRecovery.DISABLED_ReplayingClient", temporary_.root()));
  }
  int tables = 0;
  for (const auto& entry : std::filesystem::directory_iterator(directory_)) {
    tables += entry.path().extension() == ".ldb" ? 1 : 0;
  }
  EXPECT_GE(tables, 2) << "nothing was flushed during the replay";
  const std::string image = temporary_.path("image");
  std::filesystem::rename(directory_, image);
  for (std::uint64_t seed = 1; seed <= 4; ++seed) {
    std::filesystem::copy(image, directory_, std::filesystem::copy_options::recursive);
    PowerCut cut(temporary_.path("journal1"));
    cut.go_on(temporary_.path("journal2"));
    (void)cut.apply(seed);
    const Status status = try_open({{"vlog.segment_bytes", "262144"}, {"vlog.gc", "false"}});
    ASSERT_TRUE(status) << status.message();
    Pairs pairs;
    ASSERT_TRUE(engine_->scan("", kFlushed + kUnsynced, Direction::forward, &pairs));
    ASSERT_GE(pairs.size(), kFlushed);
    for (std::uint64_t i = 0; i < pairs.size(); ++i) ASSERT_EQ(pairs[i], std::pair(long_key_of(i), value_of(i, 20)));
    engine_.reset();
    std::filesystem::remove_all(directory_);
  }
}

}  // namespace
}  // namespace spillway::engine
