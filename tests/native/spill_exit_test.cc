// Processes that exit with a database open.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <string>
#include <thread>

#include "base/at_exit.h"
#include "spillway/db.h"
#include "temporary_directory.h"

namespace spillway {
namespace {

// Thread → how often it has begun to wait, of all threads but this one.
std::map<std::string, std::int64_t> waits_of_others() {
  std::map<std::string, std::int64_t> waits;
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
    if (task.path().filename() == std::to_string(getpid())) continue;
    std::ifstream status(task.path() / "status");
    for (std::string line; std::getline(status, line);) {
      if (!line.starts_with("voluntary_ctxt_switches:")) continue;
      waits[task.path().filename()] = std::atoll(line.c_str() + line.find(':') + 1);
    }
  }
  return waits;
}

// How many threads wake up again and again. The rollback thread does, and calls nothing of RocksDB without generations.
int waking_threads() {
  const auto before = waits_of_others();
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  int waking = 0;
  for (const auto& [thread, waits] : waits_of_others()) {
    const auto found = before.find(thread);
    if (found != before.end() && waits - found->second >= 30) ++waking;
  }
  return waking;
}

constexpr int kAsExpected = 3;

// Opens a database in a child, which leaves it open and exits. Returns the child's exit code.
int exit_with_open(const std::string& path, void (*at_the_end)()) {
  const pid_t child = fork();
  if (child == 0) {
    std::atexit(at_the_end);  // runs behind whatever is registered later
    SpillOptions spill;
    spill.poll_ms = 1;
    rocksdb::Options options;
    options.create_if_missing = true;
    DB* db = nullptr;
    if (!DB::Open(options, spill, path, &db).ok() || !db->Put({}, "a", "1").ok()) _exit(1);
    std::exit(0);
  }
  int status = 0;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status)) << "by a signal: " << WTERMSIG(status);
  return WEXITSTATUS(status);
}

// RocksDB's static objects are destroyed then, and a poll reads some of them.
TEST(SpillExit, NothingPollsBehindTheHandlersOfAnExit) {
  const TemporaryDirectory directory;
  const auto check = [] { _exit(waking_threads() < 2 ? kAsExpected : 1); };
  const AtExit of_the_parent([] {});  // whose handler would run too late in the child
  EXPECT_EQ(exit_with_open(directory.path("db"), check), kAsExpected);
}

// The first of the two is the parent's, and would run first.
TEST(SpillExit, AnActionOfTheParentIsNotRunByAChild) {
  std::array<std::optional<AtExit>, 2> actions;
  actions[0].emplace([] { _exit(1); });
  const pid_t child = fork();
  if (child == 0) {
    actions[1].emplace([] { _exit(kAsExpected); });
    std::exit(0);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == kAsExpected);
}

}  // namespace
}  // namespace spillway
