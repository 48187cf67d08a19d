// Every engine keeps what it acknowledged when its process is killed, and with sync writes when power is lost.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "engine_conformance.h"
#include "engine_power_loss.h"

namespace spillway::engine {
namespace {

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
  const ClientsPlace place(directory);
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

INSTANTIATE_TEST_SUITE_P(Engines, ConformanceKilled, ::testing::ValuesIn(cases()), name_of_case);

}  // namespace
}  // namespace spillway::engine
