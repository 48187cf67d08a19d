// Every engine on a plain directory whose file system fails or is full: what went wrong is told, and what was
// acknowledged is there when the file system works again.
//
// The system's calls that read at a place, write and sync are defined here, so that the engines' libraries call these:
// for files below a directory that a test has chosen they fail as it says.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "engine_conformance.h"

namespace spillway::engine {
namespace {

enum class Call : std::uint8_t { read, write, sync };

// Says with which error a call of `bytes` bytes fails; 0: it does not.
struct Failing {
  std::string directory;
  std::function<int(Call call, std::uint64_t bytes)> error;
};
std::atomic<const Failing*> failing{nullptr};

bool fails(int fd, Call call, std::uint64_t bytes) {
  const Failing* const chosen = failing.load();
  if (chosen == nullptr) return false;
  std::array<char, 4096> path{};
  const ssize_t length = ::readlink(("/proc/self/fd/" + std::to_string(fd)).c_str(), path.data(), path.size());
  if (length < 0 || !std::string_view(path.data(), static_cast<std::size_t>(length)).starts_with(chosen->directory)) {
    return false;
  }
  const int error = chosen->error(call, bytes);
  errno = error;
  return error != 0;
}

std::uint64_t bytes_of(const struct iovec* parts, int count) {
  std::uint64_t bytes = 0;
  for (int i = 0; i < count; ++i) bytes += parts[i].iov_len;
  return bytes;
}

}  // namespace
}  // namespace spillway::engine

// NOLINTBEGIN: names and signatures are the system's
extern "C" {
using spillway::engine::bytes_of;
using spillway::engine::Call;
using spillway::engine::fails;

__attribute__((visibility("default"))) ssize_t write(int fd, const void* bytes, size_t count) {
  return fails(fd, Call::write, count) ? -1 : ::syscall(SYS_write, fd, bytes, count);
}
__attribute__((visibility("default"))) ssize_t pwrite64(int fd, const void* bytes, size_t count, off64_t at) {
  return fails(fd, Call::write, count) ? -1 : ::syscall(SYS_pwrite64, fd, bytes, count, at);
}
__attribute__((visibility("default"))) ssize_t pwrite(int fd, const void* bytes, size_t count, off_t at) {
  return pwrite64(fd, bytes, count, at);
}
__attribute__((visibility("default"))) ssize_t writev(int fd, const struct iovec* parts, int count) {
  return fails(fd, Call::write, bytes_of(parts, count)) ? -1 : ::syscall(SYS_writev, fd, parts, count);
}
__attribute__((visibility("default"))) ssize_t pread64(int fd, void* bytes, size_t count, off64_t at) {
  return fails(fd, Call::read, count) ? -1 : ::syscall(SYS_pread64, fd, bytes, count, at);
}
__attribute__((visibility("default"))) ssize_t pread(int fd, void* bytes, size_t count, off_t at) {
  return pread64(fd, bytes, count, at);
}
__attribute__((visibility("default"))) int fdatasync(int fd) {
  return fails(fd, Call::sync, 0) ? -1 : static_cast<int>(::syscall(SYS_fdatasync, fd));
}
__attribute__((visibility("default"))) int fsync(int fd) {
  return fails(fd, Call::sync, 0) ? -1 : static_cast<int>(::syscall(SYS_fsync, fd));
}
}
// NOLINTEND

namespace spillway::engine {
namespace {

class ConformanceInDirectory : public Conformance {
 protected:
  ~ConformanceInDirectory() override { failing = nullptr; }

  void fail(std::function<int(Call, std::uint64_t)> error) {
    failing_ = {directory_, std::move(error)};
    failing = &failing_;
  }
  void expect_all_where_it_works(const Written& written) {
    (void)engine_->close();
    engine_.reset();  // its threads are done with what failed
    failing = nullptr;
    open();
    expect_acknowledged(written.model, written.failed_key, written.failed_value);
    ASSERT_TRUE(engine_->put("after", "all"));
    ASSERT_TRUE(engine_->close());
  }

 private:
  Failing failing_;
};

TEST_P(ConformanceInDirectory, AFullFileSystemIsToldAndLosesNothing) {
  open();
  std::atomic<std::uint64_t> written_bytes{0};
  fail([&](Call call, std::uint64_t bytes) {
    return call == Call::write && (written_bytes += bytes) > 4U << 20 ? ENOSPC : 0;
  });
  const Written written = write_until_failure(20'000, 20'000, 1000);
  ASSERT_FALSE(written.status);
  EXPECT_EQ(written.status.fault(), Fault::drive_full) << written.status.message();
  expect_no_lies(written.model, written.failed_key, written.failed_value);
  expect_all_where_it_works(written);
}

// None of several writers waits for ever for another's write that has failed.
TEST_P(ConformanceInDirectory, AFullFileSystemEndsEveryWriter) {
  open();
  std::atomic<std::uint64_t> written_bytes{0};
  fail([&](Call call, std::uint64_t bytes) {
    return call == Call::write && (written_bytes += bytes) > 4U << 20 ? ENOSPC : 0;
  });
  constexpr std::uint64_t kThreads = 4;
  std::array<Model, kThreads> models;
  std::array<bool, kThreads> ended{};
  std::vector<std::thread> threads;
  for (std::uint64_t t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (std::uint64_t i = t; i < 20'000 && !ended[t]; i += kThreads) {
        const std::string value = value_of(i, 1000);
        ended[t] = !engine_->put(key_of(i), value);
        if (!ended[t]) models[t][key_of(i)] = value;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  Written written;
  for (std::uint64_t t = 0; t < kThreads; ++t) {
    EXPECT_TRUE(ended[t]) << t;
    written.model.insert(models[t].begin(), models[t].end());
  }
  expect_no_lies(written.model);
  expect_all_where_it_works(written);
}

TEST_P(ConformanceInDirectory, WritesThatFailAreToldAndLoseNothing) {
  open();
  std::atomic<int> writes{0};
  fail([&](Call call, std::uint64_t) { return call == Call::write && ++writes > 1000 ? EIO : 0; });
  const Written written = write_until_failure(20'000, 1000, 1000);
  ASSERT_FALSE(written.status);
  EXPECT_EQ(written.status.fault(), Fault::io_error) << written.status.message();
  expect_no_lies(written.model, written.failed_key, written.failed_value);
  expect_all_where_it_works(written);
}

TEST_P(ConformanceInDirectory, ASyncThatFailsIsToldToSyncWrites) {
  open({{"sync", "true"}});
  ASSERT_TRUE(engine_->put("before", "all"));
  fail([&](Call call, std::uint64_t) { return call == Call::sync ? EIO : 0; });
  EXPECT_FALSE(engine_->put("during", "it"));
  Written written;
  written.model = {{"before", "all"}};
  expect_no_lies(written.model);
  expect_all_where_it_works(written);
}

// What cannot be read is an error: neither absent nor an earlier value.
TEST_P(ConformanceInDirectory, ReadsThatFailAreToldAndLoseNothing) {
  open();
  const Written written = write_until_failure(4000, 1000, 1000);
  ASSERT_TRUE(written.status) << written.status.message();
  const std::atomic<bool> go_on{false};
  ASSERT_TRUE(engine_->settle(go_on));
  ASSERT_TRUE(engine_->close());
  open();  // with empty caches
  std::atomic<int> failed_calls{0};
  fail([&](Call call, std::uint64_t) { return call == Call::read && ++failed_calls > 0 ? EIO : 0; });
  expect_no_lies(written.model);
  int failed = 0;
  for (const auto& [key, value] : written.model) failed += engine_->get(key, nullptr) ? 0 : 1;
  // LevelDB maps its tables into memory, where no call can fail.
  EXPECT_EQ(failed > 0, failed_calls > 0);
  EXPECT_TRUE(failed > 0 || std::string(GetParam().engine) == "leveldb");
  if (failed > 0) {
    const auto seen = engine_->scan("", 5000);
    EXPECT_FALSE(seen.is_ok());
  }
  expect_all_where_it_works(written);
}

INSTANTIATE_TEST_SUITE_P(Engines, ConformanceInDirectory, ::testing::ValuesIn(cases_on(/*drive=*/false)), name_of_case);

}  // namespace
}  // namespace spillway::engine
