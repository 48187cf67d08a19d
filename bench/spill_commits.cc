// What a write and a read cost while everything is diverted: the commit path, with 1, 2 and 4 writers, and the read
// path through the key index. Prints Google Benchmark's JSON: `real_time` is microseconds per call of one thread.
//
// Only spillway/db.h is used, so that scripts/before_after_native.py can build this file in an older checkout too.
#include <benchmark/benchmark.h>
#include <stdlib.h>

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <stdexcept>
#include <string>

#include "spillway/db.h"

namespace {

constexpr std::int64_t kPuts = 100'000;  // of each thread; all of them stay in the spill store
constexpr std::uint64_t kKeys = 100'000;
constexpr std::size_t kValueBytes = 100;

void expect_ok(const rocksdb::Status& status) {
  if (!status.ok()) throw std::runtime_error(status.ToString());
}

std::string key_of(std::uint64_t number) {
  std::string key = std::to_string(number * 2654435761U % 4294967296U);
  return key.insert(0, 16 - std::min<std::size_t>(key.size(), 16), '0');
}

// A database of which everything is diverted and nothing comes back.
class Diverting {
 public:
  Diverting() {
    std::string name = (std::filesystem::temp_directory_path() / "spillway-commits-XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr) throw std::runtime_error("no temporary directory");
    directory_ = name;
    rocksdb::Options options;
    options.create_if_missing = true;
    spillway::SpillOptions spill;
    spill.rollback = spillway::RollbackPolicy::off;
    spillway::DB* opened = nullptr;
    expect_ok(spillway::DB::Open(options, spill, directory_ + "/db", &opened));
    db_.reset(opened);
    db_->SetDiversion(spillway::Diversion::always);
  }
  ~Diverting() {
    db_.reset();
    std::filesystem::remove_all(directory_);
  }
  Diverting(const Diverting&) = delete;
  Diverting& operator=(const Diverting&) = delete;
  spillway::DB& db() { return *db_; }

 private:
  std::string directory_;
  std::unique_ptr<spillway::DB> db_;
};

std::unique_ptr<Diverting> shared;
std::atomic<std::uint64_t> next_thread{0};

void diverted_put(benchmark::State& state) {
  if (state.thread_index() == 0) shared = std::make_unique<Diverting>();
  const std::string value(kValueBytes, 'v');
  std::uint64_t number = next_thread.fetch_add(1) << 32;
  for (auto _ : state) expect_ok(shared->db().Put({}, key_of(number++), value));
  if (state.thread_index() == 0) {
    const spillway::SpillStatistics statistics = shared->db().GetSpillStatistics();
    state.counters["share_diverted"] = static_cast<double>(statistics.diverted_writes) /
                                       static_cast<double>(statistics.diverted_writes + statistics.main_writes);
    shared.reset();
  }
}

void get_of_diverted(benchmark::State& state) {
  Diverting diverting;
  const std::string value(kValueBytes, 'v');
  for (std::uint64_t number = 0; number < kKeys; ++number) expect_ok(diverting.db().Put({}, key_of(number), value));
  std::string found;
  std::uint64_t number = 0;
  for (auto _ : state) expect_ok(diverting.db().Get({}, key_of(number++ * 7919 % kKeys), &found));
}

BENCHMARK(diverted_put)->Iterations(kPuts)->ThreadRange(1, 4)->UseRealTime()->Unit(benchmark::kMicrosecond);
BENCHMARK(get_of_diverted)->Unit(benchmark::kMicrosecond);

}  // namespace

BENCHMARK_MAIN();
