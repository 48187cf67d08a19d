// Every engine on a plain directory whose file system fails or is full: failures are reported, and what was
// acknowledged is there when the file system works again.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "engine_conformance.h"
#include "engine_host_calls.h"

namespace spillway::engine {
namespace {

using Call = HostCall::Kind;

// The errno with which a call of `bytes` bytes fails; 0: it does not fail.
using Error = std::function<int(Call call, std::uint64_t bytes)>;

// A sync of a directory behaves like one of a file.
class FailingCalls final : public HostCalls {
 public:
  FailingCalls(const std::string& directory, Error error) : HostCalls(directory), error_(std::move(error)) { start(); }
  ~FailingCalls() override { stop(); }
  long around(const HostCall& call, const std::function<long()>& make) override {
    const Call kind = call.kind == Call::sync_directory ? Call::sync : call.kind;
    const bool may_fail = kind == Call::read || kind == Call::write || kind == Call::sync;
    const int error = may_fail ? error_(kind, call.bytes) : 0;
    if (error == 0) return make();
    errno = error;
    return -1;
  }

 private:
  const Error error_;
};

// Sums the bytes of writes to data files.
class WatchingCalls final : public HostCalls {
 public:
  explicit WatchingCalls(const std::string& directory) : HostCalls(directory) { start(); }
  ~WatchingCalls() override { stop(); }
  long around(const HostCall& call, const std::function<long()>& make) override {
    const long result = make();
    const std::string name = call.path.substr(call.path.rfind('/') + 1);
    const bool holds_data = name != "LOCK" && name != "WiredTiger.lock" && !name.starts_with("LOG");
    if (call.kind != Call::write || result <= 0 || !holds_data) return result;
    const std::lock_guard lock(mutex_);
    bytes_[kind_of(name)] += static_cast<std::uint64_t>(result);
    return result;
  }
  // By the cause that a file's name gives; "" for all others.
  std::map<std::string, std::uint64_t> bytes() {
    const std::lock_guard lock(mutex_);
    return bytes_;
  }
  static std::string kind_of(const std::string& name) {
    for (const char* log : {"WiredTigerLog.", "WiredTigerPreplog.", "WiredTigerTmplog."}) {
      if (name.starts_with(log)) return "wal";
    }
    if (name.ends_with(".log")) return "wal";
    if (name.ends_with(".blob") || name.ends_with(".vlog")) return "blob";
    return name.ends_with(".spill") ? "spill" : "";
  }

 private:
  std::mutex mutex_;
  std::map<std::string, std::uint64_t> bytes_;  // guarded by mutex_
};

class ConformanceInDirectory : public Conformance {
 protected:
  ~ConformanceInDirectory() override { engine_.reset(); }

  void fail(Error error) {
    failing_.reset();
    failing_ = std::make_unique<FailingCalls>(directory_, std::move(error));
  }
  void expect_all_where_it_works(const Written& written) {
    (void)engine_->close();
    engine_.reset();  // its threads have finished with the failed calls
    failing_.reset();
    open();
    expect_acknowledged(written.model, written.failed_key, written.failed_value);
    ASSERT_TRUE(engine_->put("after", "all"));
    ASSERT_TRUE(engine_->close());
  }

 private:
  std::unique_ptr<FailingCalls> failing_;
};

// The counted bytes are those of the system calls, with each option for ways of writing.
TEST_P(ConformanceInDirectory, CountsByCauseWhatItsCallsWrite) {
  const std::string engine = GetParam().engine;
  std::vector<StringMap> ways = {{}, {{"sync", "true"}}};
  if (engine == "rocksdb" || engine == "spillway") {
    ways.push_back({{"use_direct_io_for_flush_and_compaction", "true"}});
    ways.push_back({{"recycle_log_file_num", "4"}});
    ways.push_back({{"bytes_per_sync", "65536"}, {"wal_bytes_per_sync", "16384"}, {"strict_bytes_per_sync", "true"}});
  }
  if (engine == "wiredtiger") ways.push_back({{"direct_io", "[data]"}});
  fs::WriteCounts::Bytes before{};
  for (const StringMap& way : ways) {
    SCOPED_TRACE(way.empty() ? "as it comes" : way.begin()->first);
    WatchingCalls calls(directory_);
    open(way);
    Model model;
    work(model, 3, 2500, 700, 400);
    const std::atomic<bool> go_on{false};
    ASSERT_TRUE(engine_->settle(go_on));
    ASSERT_TRUE(engine_->close());
    engine_.reset();

    const fs::WriteCounts::Bytes now = writes_.bytes();
    std::map<std::string, std::uint64_t> counted;
    for (std::size_t i = 0; i < device::kCauses; ++i) {
      const std::string cause = device::name_of(static_cast<device::Cause>(i));
      const std::uint64_t bytes = now[i] - before[i];
      if (bytes > 0) counted[cause == "wal" || cause == "blob" || cause == "spill" ? cause : ""] += bytes;
    }
    before = now;
    EXPECT_EQ(counted, calls.bytes());
    EXPECT_GT(counted["wal"] + counted["blob"] + counted["spill"], 0U);
    EXPECT_GT(counted[""], 0U);
    std::filesystem::remove_all(directory_);
  }
  EXPECT_EQ(before[static_cast<std::size_t>(device::Cause::user)], 0U);
}

// Writes to a mapping are not system calls. They are counted when RocksDB appends. No other engine maps files for
// writing.
class RocksdbInDirectory : public ConformanceInDirectory {};

TEST_P(RocksdbInDirectory, CountsWhatIsAppendedToMappings) {
  std::vector<fs::WriteCounts::Bytes> counted;
  for (const char* const maps : {"false", "true"}) {
    const fs::WriteCounts::Bytes before = writes_.bytes();
    // One memtable: otherwise it is random how many a flush takes together, and so which overwritten keys it omits.
    open({{"allow_mmap_writes", maps}, {"disable_auto_compactions", "true"}, {"write_buffer_size", "67108864"}});
    Model model;
    work(model, 3, 3000, 1500, 400);
    ASSERT_TRUE(engine_->flush());
    ASSERT_TRUE(engine_->close());
    engine_.reset();
    counted.push_back(writes_.bytes());
    for (std::size_t i = 0; i < before.size(); ++i) counted.back()[i] -= before[i];
    std::filesystem::remove_all(directory_);
  }
  for (const device::Cause cause : {device::Cause::wal, device::Cause::flush}) {
    const auto plain = static_cast<double>(counted[0][static_cast<std::size_t>(cause)]);
    const auto mapped = static_cast<double>(counted[1][static_cast<std::size_t>(cause)]);
    EXPECT_GT(plain, 0);
    EXPECT_NEAR(mapped / plain, 1, 0.02);
  }
}

TEST_P(ConformanceInDirectory, AFullFileSystemIsReportedAndLosesNothing) {
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

// No writer waits for ever for another's failed write.
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

TEST_P(ConformanceInDirectory, FailedWritesAreReportedAndLoseNothing) {
  open();
  std::atomic<int> writes{0};
  fail([&](Call call, std::uint64_t) { return call == Call::write && ++writes > 1000 ? EIO : 0; });
  const Written written = write_until_failure(20'000, 1000, 1000);
  ASSERT_FALSE(written.status);
  EXPECT_EQ(written.status.fault(), Fault::io_error) << written.status.message();
  expect_no_lies(written.model, written.failed_key, written.failed_value);
  expect_all_where_it_works(written);
}

TEST_P(ConformanceInDirectory, AFailedSyncIsReportedToSyncWrites) {
  open({{"sync", "true"}});
  ASSERT_TRUE(engine_->put("before", "all"));
  fail([&](Call call, std::uint64_t) { return call == Call::sync ? EIO : 0; });
  EXPECT_FALSE(engine_->put("during", "it"));
  Written written;
  written.model = {{"before", "all"}};
  expect_no_lies(written.model);
  expect_all_where_it_works(written);
}

// A read that cannot be done is an error: not an absent key, and not an earlier value.
TEST_P(ConformanceInDirectory, FailedReadsAreReportedAndLoseNothing) {
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

std::vector<Case> rocksdb_cases() {
  std::vector<Case> cases = cases_on(/*drive=*/false);
  std::erase_if(cases, [](const Case& each) { return std::string_view(each.engine) != "rocksdb"; });
  return cases;
}

INSTANTIATE_TEST_SUITE_P(Engines, ConformanceInDirectory, ::testing::ValuesIn(cases_on(/*drive=*/false)), name_of_case);
INSTANTIATE_TEST_SUITE_P(Engines, RocksdbInDirectory, ::testing::ValuesIn(rocksdb_cases()), name_of_case);

}  // namespace
}  // namespace spillway::engine
