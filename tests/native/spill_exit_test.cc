// Processes that exit with a database open.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <filesystem>
#include <iterator>
#include <optional>
#include <string>

#include "base/at_exit.h"
#include "spillway/db.h"
#include "temporary_directory.h"

namespace spillway {
namespace {

std::ptrdiff_t threads() { return std::distance(std::filesystem::directory_iterator("/proc/self/task"), {}); }

std::ptrdiff_t threads_before = 0;
constexpr int kOneIsGone = 3;

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
    threads_before = threads();
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
  const auto check = [] { _exit(threads() == threads_before - 1 ? kOneIsGone : 1); };
  EXPECT_EQ(exit_with_open(directory.path("db"), check), kOneIsGone);
}

// The first of the two is the parent's, and would run first.
TEST(SpillExit, AnActionOfTheParentIsNotRunByAChild) {
  std::array<std::optional<AtExit>, 2> actions;
  actions[0].emplace([] { _exit(1); });
  const pid_t child = fork();
  if (child == 0) {
    actions[1].emplace([] { _exit(kOneIsGone); });
    std::exit(0);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == kOneIsGone);
}

}  // namespace
}  // namespace spillway
