// What the accelerator costs beside RocksDB, for the bars of KVAccel's Table VI (K21): a detector's poll 1.37 us, the
// key index's insert 0.45, check 0.20 and delete 0.28 us; and for the bar of 1.02 times RocksDB's time for Put and
// Get with nothing to divert. Prints Google Benchmark's JSON: `us_per_op` is processor time, `cpu_ratio` that of
// spillway::DB over RocksDB, the median of the openings, each with its bar beside it. Keys are random; the paper's have
// 4 bytes (K20).
#include <benchmark/benchmark.h>
#include <rocksdb/db.h>
#include <rocksdb/options.h>
#include <stdlib.h>
#include <time.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <random>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "spill/compat/db_out.h"
#include "spill/live/column_families.h"
#include "spill/live/generation.h"
#include "spill/live/key_index.h"
#include "spill/stall/detector.h"
#include "spill/stall/policy.h"
#include "spillway/db.h"

namespace {

using namespace spillway::spill;

void report(benchmark::State& state, double operations_per_iteration, double bar_us) {
  using benchmark::Counter;
  state.counters["us_per_op"] =
      Counter(operations_per_iteration * 1e-6, Counter::kIsIterationInvariantRate | Counter::kInvert);
  if (bar_us > 0) state.counters["bar_us"] = bar_us;
}

// Different keys of one length, one behind the other, in random order.
class Keys {
 public:
  Keys(std::size_t count, std::size_t bytes, std::uint64_t seed) : count_(count), bytes_(bytes) {
    std::vector<std::uint32_t> numbers(count);
    for (std::size_t i = 0; i < count; ++i) numbers[i] = static_cast<std::uint32_t>(i);
    std::shuffle(numbers.begin(), numbers.end(), std::mt19937_64(seed));
    all_.resize(count * bytes, 'k');
    for (std::size_t i = 0; i < count; ++i) {
      // Spread over all values, as hashed keys are: a multiplication by an odd number has no two the same.
      const std::uint32_t spread = numbers[i] * 2654435761U;
      for (std::size_t j = 0; j < 4; ++j) all_[(i + 1) * bytes - 1 - j] = static_cast<char>(spread >> (8 * j));
    }
  }
  std::string_view operator[](std::size_t i) const { return {all_.data() + i * bytes_, bytes_}; }
  std::size_t size() const { return count_; }

 private:
  std::size_t count_;
  std::size_t bytes_;
  std::string all_;
};

// The first half of the keys is there, the other is not.
struct Filled {
  explicit Filled(const benchmark::State& state)
      : Filled(static_cast<std::size_t>(state.range(0)), static_cast<std::size_t>(state.range(1))) {}
  Filled(std::size_t count, std::size_t key_bytes) : keys(2 * count, key_bytes, 1) { fill(count); }
  void fill(std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) insert(keys[i]);
  }
  void insert(std::string_view key) {
    ++sequence;
    index.insert(generation->add(0, key, sequence, Kind::put, {.offset = sequence * 4096, .from = 17, .length = 4096}));
  }

  Keys keys;
  ColumnFamilies families;
  std::shared_ptr<Generation> generation =
      std::make_shared<Generation>(1, families, std::function<void(GenerationId)>());
  KeyIndex index;
  Sequence sequence = 0;
};

// A diverted write's entry, and its place in the index.
void index_insert(benchmark::State& state) {
  const auto count = static_cast<std::size_t>(state.range(0));
  for (auto _ : state) {
    state.PauseTiming();
    auto filled = std::make_unique<Filled>(0, 4);
    filled->keys = Keys(count, static_cast<std::size_t>(state.range(1)), 2);
    state.ResumeTiming();
    filled->fill(count);
    state.PauseTiming();
    state.counters["bytes_per_key"] =
        static_cast<double>(filled->index.memory_bytes() + filled->generation->memory_bytes()) /
        static_cast<double>(count);
    filled.reset();
    state.ResumeTiming();
  }
  report(state, static_cast<double>(count), 0.45);
}

template <typename Check>
void check_each(benchmark::State& state, std::size_t from, double bar_us, const Check& check, const Filled& filled) {
  const auto count = static_cast<std::size_t>(state.range(0));
  std::vector<std::uint32_t> places(count);  // looked up in another order than they came
  for (std::size_t i = 0; i < count; ++i) places[i] = static_cast<std::uint32_t>(i);
  std::shuffle(places.begin(), places.end(), std::mt19937_64(3));
  std::string keys;
  const std::size_t bytes = filled.keys[0].size();
  for (const std::uint32_t place : places) keys += filled.keys[from + place];
  std::size_t at = 0;
  for (auto _ : state) {
    benchmark::DoNotOptimize(check(filled.index, std::string_view(keys.data() + at * bytes, bytes)));
    if (++at == count) at = 0;
  }
  report(state, 1, bar_us);
}

// By a write: does the key lie in the spill store?
void index_check_hit(benchmark::State& state) {
  const Filled filled(state);
  check_each(
      state, 0, 0.20, [](const KeyIndex& index, std::string_view key) { return index.contains(0, key); }, filled);
}

void index_check_miss(benchmark::State& state) {
  const Filled filled(state);
  check_each(
      state, static_cast<std::size_t>(state.range(0)), 0.20,
      [](const KeyIndex& index, std::string_view key) { return index.contains(0, key); }, filled);
}

// By a read: where the value lies, and its generation kept until it was read. The paper's device looks that up itself.
void index_find_hit(benchmark::State& state) {
  const Filled filled(state);
  check_each(
      state, 0, 0, [](const KeyIndex& index, std::string_view key) { return index.find(0, key); }, filled);
}

void index_check_empty(benchmark::State& state) {
  const KeyIndex index;
  for (auto _ : state) benchmark::DoNotOptimize(index.contains(0, "1234"));
  report(state, 1, 0.20);
}

// A rollback's end: all keys of one generation leave the index.
void index_delete(benchmark::State& state) {
  for (auto _ : state) {
    state.PauseTiming();
    auto filled = std::make_unique<Filled>(state);
    state.ResumeTiming();
    filled->index.remove(*filled->generation);
    state.PauseTiming();
    if (!filled->index.empty()) state.SkipWithError("keys were left");
    filled.reset();
    state.ResumeTiming();
  }
  report(state, static_cast<double>(state.range(0)), 0.28);
}

void controller_route(benchmark::State& state) {
  Signals signals{.l0_files = 10, .immutable_memtables = 1, .hard_pending_compaction_bytes = 256ULL << 30};
  Route route = Route::main;
  for (auto _ : state) {
    benchmark::DoNotOptimize(signals);
    route = next_route(route, signals, {});
    benchmark::DoNotOptimize(route);
  }
  report(state, 1, 0);
}

void expect_ok(const rocksdb::Status& status) {
  if (!status.ok()) throw std::runtime_error(status.ToString());
}

class Directory {
 public:
  Directory() : path_((std::filesystem::temp_directory_path() / "spillway-bench-XXXXXX").string()) {
    if (mkdtemp(path_.data()) == nullptr) throw std::runtime_error("no temporary directory");
  }
  ~Directory() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  Directory(const Directory&) = delete;
  Directory& operator=(const Directory&) = delete;
  std::string operator/(const char* name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

// The look that the detector takes ten times a second, at a RocksDB with files and a memtable.
void detector_poll(benchmark::State& state) {
  const Directory directory;
  rocksdb::Options options;
  options.create_if_missing = true;
  options.level0_file_num_compaction_trigger = 30;
  rocksdb::DB* raw = nullptr;
  expect_ok(rocksdb::DB::Open(options, directory / "db", DbOut(&raw)));
  const std::unique_ptr<rocksdb::DB> db(raw);
  for (int file = 0; file < 10; ++file) {
    for (int i = 0; i < 100; ++i) expect_ok(db->Put({}, std::to_string(file * i), "value"));
    expect_ok(db->Flush({}));
  }
  ColumnFamilies families;
  expect_ok(families.add(db->DefaultColumnFamily()));
  if (signals_of(*db, families, {}, Route::main).l0_files != 10)
    state.SkipWithError("the detector does not see 10 files");
  for (auto _ : state) benchmark::DoNotOptimize(signals_of(*db, families, {}, Route::main));
  report(state, 1, 1.37);
}

// --- spillway::DB with nothing to divert beside plain RocksDB. They take turns in short blocks of the same operations;
// each pair of blocks gives one ratio of their times, each opening of two databases the median of its
// pairs.

constexpr int kBlock = 500;
constexpr int kPairs = 1500;
constexpr int kPairsOfAnOpening = 60;
constexpr std::uint64_t kDatabaseKeys = 100000;

struct Seconds {
  double wall = 0;
  double cpu = 0;  // of this thread: what others do on a busy machine is not in it
};

Seconds now() {
  const auto read = [](clockid_t clock) {
    timespec time{};
    clock_gettime(clock, &time);
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
  };
  return {read(CLOCK_MONOTONIC), read(CLOCK_THREAD_CPUTIME_ID)};
}

struct Arms {
  Directory directory;
  std::unique_ptr<rocksdb::DB> plain;
  std::unique_ptr<rocksdb::DB> spillway;

  Arms() {
    rocksdb::Options options;
    options.create_if_missing = true;
    options.write_buffer_size = 256 << 20;  // no flush on the way
    options.compression = rocksdb::kNoCompression;
    rocksdb::DB* raw = nullptr;
    expect_ok(rocksdb::DB::Open(options, directory / "plain", DbOut(&raw)));
    plain.reset(raw);
    spillway::DB* ours = nullptr;
    expect_ok(spillway::DB::Open(options, {}, directory / "spillway", &ours));
    spillway.reset(ours);
  }
};

std::string key_of(std::uint64_t number) {
  const std::string digits = std::to_string(number);
  return std::string(16 - digits.size(), '0') + digits;
}

template <typename Operation>
Seconds block(rocksdb::DB& db, std::uint64_t seed, const Operation& operation) {
  std::mt19937_64 random(seed);
  const Seconds began = now();
  for (int i = 0; i < kBlock; ++i) operation(db, key_of(random() % kDatabaseKeys));
  const Seconds ended = now();
  return {ended.wall - began.wall, ended.cpu - began.cpu};
}

double quantile(std::vector<double> values, double share) {
  std::sort(values.begin(), values.end());
  return values[static_cast<std::size_t>(share * static_cast<double>(values.size() - 1))];
}

void report_ratio(benchmark::State& state, const char* clock, const std::vector<double>& ratios) {
  const std::string name = clock;
  state.counters[name + "_ratio"] = quantile(ratios, 0.5);
  state.counters[name + "_ratio_p25"] = quantile(ratios, 0.25);
  state.counters[name + "_ratio_p75"] = quantile(ratios, 0.75);
  // Half the width of the median's 95 % interval: McGill, Tukey and Larsen, "Variations of Box Plots", 1978.
  state.counters[name + "_ratio_95"] =
      1.57 * (quantile(ratios, 0.75) - quantile(ratios, 0.25)) / std::sqrt(static_cast<double>(ratios.size()));
}

// The median of the pairs of each opening: where memory comes to lie favours one arm or the other by 2 % for as long as
// a database is open, and more pairs of the same opening do not show it.
template <typename Open, typename Operation>
void in_turns(benchmark::State& state, const Open& open, const Operation& operation) {
  std::vector<double> wall;
  std::vector<double> cpu;
  std::vector<double> plain_us;
  std::vector<double> wall_of_pairs;
  std::vector<double> cpu_of_pairs;
  std::unique_ptr<Arms> arms;
  std::uint64_t pair = 0;
  for (auto _ : state) {
    if (pair % kPairsOfAnOpening == 0) {
      state.PauseTiming();
      arms.reset();
      arms = open();
      state.ResumeTiming();
    }
    const bool plain_first = pair % 2 == 0;
    ++pair;
    Seconds first = block(plain_first ? *arms->plain : *arms->spillway, pair, operation);
    Seconds second = block(plain_first ? *arms->spillway : *arms->plain, pair, operation);
    if (!plain_first) std::swap(first, second);
    wall_of_pairs.push_back(second.wall / first.wall);
    cpu_of_pairs.push_back(second.cpu / first.cpu);
    plain_us.push_back(first.cpu / kBlock * 1e6);
    if (pair % kPairsOfAnOpening == 0) {
      wall.push_back(quantile(std::exchange(wall_of_pairs, {}), 0.5));
      cpu.push_back(quantile(std::exchange(cpu_of_pairs, {}), 0.5));
    }
  }
  report_ratio(state, "wall", wall);
  report_ratio(state, "cpu", cpu);
  state.counters["plain_cpu_us"] = quantile(plain_us, 0.5);
  state.counters["bar_ratio"] = 1.02;
}

void put(rocksdb::DB& db, const std::string& key) {
  static const std::string value(100, 'v');
  expect_ok(db.Put({}, key, value));
}

void get(rocksdb::DB& db, const std::string& key) {
  std::string value;
  expect_ok(db.Get({}, key, &value));
}

void put_beside_rocksdb(benchmark::State& state) {
  in_turns(
      state, [] { return std::make_unique<Arms>(); }, put);
}

void get_beside_rocksdb(benchmark::State& state) {
  const auto filled = [] {
    auto arms = std::make_unique<Arms>();
    for (rocksdb::DB* db : {arms->plain.get(), arms->spillway.get()}) {
      for (std::uint64_t key = 0; key < kDatabaseKeys; ++key) put(*db, key_of(key));
      expect_ok(db->Flush({}));
    }
    return arms;
  };
  in_turns(state, filled, get);
}

void sizes(benchmark::internal::Benchmark* one) {
  one->ArgNames({"keys", "key_bytes"})->ArgsProduct({{1 << 16, 1 << 20}, {4, 16}});
}

BENCHMARK(index_insert)->Apply(sizes)->Unit(benchmark::kMillisecond);
BENCHMARK(index_check_hit)->Apply(sizes);
BENCHMARK(index_check_miss)->Apply(sizes);
BENCHMARK(index_find_hit)->Apply(sizes);
BENCHMARK(index_check_empty);
BENCHMARK(index_delete)->Apply(sizes)->Unit(benchmark::kMillisecond);
BENCHMARK(controller_route);
BENCHMARK(detector_poll);
BENCHMARK(put_beside_rocksdb)->Iterations(kPairs)->Unit(benchmark::kMillisecond);
BENCHMARK(get_beside_rocksdb)->Iterations(kPairs)->Unit(benchmark::kMillisecond);

}  // namespace

BENCHMARK_MAIN();
