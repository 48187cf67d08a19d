// Every engine keeps what it acknowledged when its process is killed, and with sync writes when power is lost.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "engine_conformance.h"
#include "engine_directory_power.h"
#include "engine_power_loss.h"

namespace spillway::engine {
namespace {

// Shared by the killed client and its judge: a page of a file.
struct Shared {
  std::atomic<std::uint64_t> acknowledged;
  std::atomic<std::uint64_t> dies_in_a_sync_behind;  // 0: the client is killed from outside, at any place
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

// For a client: ends the process when a sync of written bytes has begun and has had no effect yet, once that many
// writes are acknowledged.
void die_in_sync(const Shared& shared) {
  const std::uint64_t enough = shared.dies_in_a_sync_behind;
  if (enough != 0 && shared.acknowledged >= enough) ::kill(::getpid(), SIGKILL);
}

// For an emulated drive.
class JournalOfASyncCutShort final : public VolumeJournal {
 public:
  JournalOfASyncCutShort(const std::string& path, const Shared& shared, Syncs syncs)
      : VolumeJournal(path), shared_(shared), syncs_(syncs) {}
  void wrote(std::uint64_t file, std::uint64_t offset, std::uint64_t length) override {
    VolumeJournal::wrote(file, offset, length);
    const std::scoped_lock lock(mutex_);
    written_.insert(file);
  }
  void sync_begins(std::uint64_t file) override {
    VolumeJournal::sync_begins(file);
    const std::scoped_lock lock(mutex_);
    if (written_.erase(file) != 0) die_in_sync(shared_);
  }
  void synced(std::uint64_t file) override {
    if (syncs_ == Syncs::kept) VolumeJournal::synced(file);
  }

 private:
  const Shared& shared_;
  const Syncs syncs_;
  std::mutex mutex_;
  std::set<std::uint64_t> written_;  // and not synced since
};

// The client is this program, started again, because a fork would not have the threads of engines. A variable with the
// test's directory requests it. Further variables: the journal to keep ("": none, and no sync), and whether syncs are
// ignored.
constexpr const char* kClientDirectory = "SPILLWAY_CONFORMANCE_DIRECTORY";
constexpr const char* kClientJournal = "SPILLWAY_CONFORMANCE_JOURNAL";
constexpr const char* kClientSyncs = "SPILLWAY_CONFORMANCE_SYNCS";

// Kills the client once that many writes are acknowledged, unless it ends itself in a sync. False if it ended
// otherwise.
bool kill_client(const std::string& test, const std::string& directory, const std::string& journal,
                 const Shared& shared, std::uint64_t enough, Syncs syncs = Syncs::kept) {
  ::setenv(kClientDirectory, directory.c_str(), 1);
  ::setenv(kClientJournal, journal.c_str(), 1);
  ::setenv(kClientSyncs, syncs == Syncs::kept ? "kept" : "ignored", 1);
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
  // Write i puts a key whose value names i, and a second key in the same batch.
  static constexpr std::uint64_t kKeys = 300;
  // Losses of power that are tried for one death in a directory. The journal of a drive allows only one, because the
  // cut is made in place.
  static constexpr std::uint64_t kLosses = 6;
  static std::vector<std::pair<std::string, std::string>> write_of(std::uint64_t i) {
    return {{key_of(i % kKeys), value_of(i, 300)}, {"twin" + key_of(i % kKeys), std::to_string(i)}};
  }

  // LevelDB 1.23 syncs its directory with a MANIFEST, not when it creates a log. Until the next MANIFEST is synced,
  // synced data of that log depends on a name that is not synced. ext4 and XFS make it durable with the log's first
  // sync.
  static Names names() {
    return std::string(GetParam().engine) == "leveldb" ? Names::with_their_file : Names::with_their_directory;
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

  // What is wrong with the store's contents after that many acknowledged writes; empty: nothing.
  std::string judge(std::uint64_t acknowledged) {
    for (std::uint64_t k = 0; k < std::min(kKeys, acknowledged); ++k) {
      const std::uint64_t last = (acknowledged - 1 - k) / kKeys * kKeys + k;  // the last write of this key
      const std::string which = "write " + std::to_string(last) + " of " + std::to_string(acknowledged);
      std::string value;
      std::string twin;
      for (auto& [key, into] : {std::pair{key_of(k), &value}, std::pair{"twin" + key_of(k), &twin}}) {
        auto there = engine_->get(key, into);
        if (!there) return which + ": " + there.status().message();
        if (!*there) return which + " is lost";
      }
      std::uint64_t found = 0;
      std::from_chars(twin.data(), twin.data() + twin.size(), found);
      if (found < last) return which + " is lost: there is write " + std::to_string(found);
      if (value != value_of(found, 300)) return which + " is torn, or half a batch: " + value.substr(0, 20);
    }
    return "";
  }
  // It also accepts further writes, which are there when it is opened again.
  void expect_all_and_usable(std::uint64_t acknowledged) {
    open();
    ASSERT_EQ(judge(acknowledged), "");
    ASSERT_TRUE(engine_->put("further", std::to_string(acknowledged)));
    ASSERT_TRUE(engine_->close());
    make_drive();
    open();
    std::string value;
    ASSERT_TRUE(*engine_->get("further", &value));
    ASSERT_EQ(value, std::to_string(acknowledged));
    ASSERT_EQ(judge(acknowledged), "");
    ASSERT_TRUE(engine_->close());
    engine_.reset();
  }

  // Lets a client write with sync and die. The returned function simulates one loss of power by its seed, and returns
  // how many files lost something.
  std::function<int(std::uint64_t seed)> power_cut_of_client(const Shared& shared, std::uint64_t enough, Syncs syncs) {
    const std::string journal = temporary_.path("journal");
    std::filesystem::remove(journal);
    const bool died = kill_client(client(), temporary_.root(), journal, shared, enough, syncs);
    EXPECT_TRUE(died);
    if (!died) return {};
    if (GetParam().on_drive) {
      return [journal, this](std::uint64_t seed) {
        const int lost = PowerCut(journal).apply(seed);
        make_drive();
        return lost;
      };
    }
    return [cut = DirectoryPowerCut(directory_)](std::uint64_t seed) {
      auto lost = cut.apply(seed);
      EXPECT_TRUE(lost) << lost.status().message();
      return lost ? *lost : 0;
    };
  }
};

// Not a test: the client that other tests kill.
TEST_P(ConformanceKilled, DISABLED_Client) {
  const char* const directory = std::getenv(kClientDirectory);
  if (directory == nullptr) GTEST_SKIP() << "runs for the tests below only";
  directory_ = std::string(directory) + "/db";
  const std::string journal = std::getenv(kClientJournal);
  const Syncs syncs = std::string(std::getenv(kClientSyncs)) == "kept" ? Syncs::kept : Syncs::ignored;
  std::unique_ptr<VolumeJournal> observer;
  std::unique_ptr<DirectoryJournal> calls;
  const SharedPage page(std::string(directory) + "/acknowledged");
  if (!journal.empty() && GetParam().on_drive) {
    observer = std::make_unique<JournalOfASyncCutShort>(journal, *page, syncs);
  } else if (!journal.empty()) {
    calls = std::make_unique<DirectoryJournal>(directory_, names(), syncs, [&] { die_in_sync(*page); });
  }
  make_drive(256ULL << 20, {}, observer.get());
  open(journal.empty() ? StringMap() : StringMap{{"sync", "true"}});
  write_for_ever(*page);
}

TEST_P(ConformanceKilled, KeepsWhatWasAcknowledged) {
  const SharedPage page(temporary_.path("acknowledged"));
  Shared& shared = *page;
  for (std::uint64_t round = 1; round <= 2; ++round) {
    ASSERT_TRUE(kill_client(client(), temporary_.root(), "", shared, shared.acknowledged + 1500));
    make_drive();
    expect_all_and_usable(shared.acknowledged);
  }
}

TEST_P(ConformanceKilled, KeepsSyncedWritesThroughALossOfPower) {
  const SharedPage page(temporary_.path("acknowledged"));
  Shared& shared = *page;
  int lost_something = 0;
  for (std::uint64_t round = 1; round <= 3; ++round) {
    const std::uint64_t enough = shared.acknowledged + 700;
    shared.dies_in_a_sync_behind = round == 2 ? 0 : enough;
    const auto lose_power = power_cut_of_client(shared, enough, Syncs::kept);
    ASSERT_TRUE(lose_power);
    for (std::uint64_t loss = 1; loss <= (GetParam().on_drive ? 1 : kLosses); ++loss) {
      SCOPED_TRACE("round " + std::to_string(round) + ", loss " + std::to_string(loss));
      lost_something += lose_power(10 * round + loss);
      ASSERT_NO_FATAL_FAILURE(expect_all_and_usable(shared.acknowledged));
    }
  }
  EXPECT_GT(lost_something, 0);  // otherwise the loss of power had no effect
}

// If syncs have no effect, writes are lost, and the judge finds that.
TEST_P(ConformanceKilled, AJudgeFindsWhatIgnoredSyncsLose) {
  const SharedPage page(temporary_.path("acknowledged"));
  const auto lose_power = power_cut_of_client(*page, 700, Syncs::ignored);
  ASSERT_TRUE(lose_power);
  int found = 0;
  for (std::uint64_t loss = 1; loss <= (GetParam().on_drive ? 1 : kLosses); ++loss) {
    lose_power(loss);
    found += !try_open() || !judge((*page).acknowledged).empty() ? 1 : 0;
    engine_.reset();
  }
  EXPECT_GT(found, 0);
}

INSTANTIATE_TEST_SUITE_P(Engines, ConformanceKilled, ::testing::ValuesIn(cases()), name_of_case);

}  // namespace
}  // namespace spillway::engine
