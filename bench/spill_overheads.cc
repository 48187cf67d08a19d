// What the accelerator costs beside RocksDB, for the bars of KVAccel's Table VI (K21): a detector's poll 1.37 us, the
// location index's insert 0.45, check 0.20 and delete 0.28 us. Prints Google Benchmark's JSON; `us_per_op` is the
// figure and `bar_us`, where there is one, the paper's. Keys are random; the paper's have 4 bytes (K20).
#include <benchmark/benchmark.h>
#include <rocksdb/db.h>
#include <rocksdb/options.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <random>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "spill/controller.h"
#include "spill/generation.h"
#include "spill/key_index.h"

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
void check_each(benchmark::State& state, std::size_t from, const Check& check, const Filled& filled) {
  const auto count = static_cast<std::size_t>(state.range(0));
  const Keys order(count, 4, 3);  // looked up in another order than they came
  std::vector<std::uint32_t> places(count);
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
  report(state, 1, 0.20);
}

// By a write: does the key lie in the spill store?
void index_check_hit(benchmark::State& state) {
  const Filled filled(state);
  check_each(
      state, 0, [](const KeyIndex& index, std::string_view key) { return index.contains(0, key); }, filled);
}

void index_check_miss(benchmark::State& state) {
  const Filled filled(state);
  check_each(
      state, static_cast<std::size_t>(state.range(0)),
      [](const KeyIndex& index, std::string_view key) { return index.contains(0, key); }, filled);
}

// By a read: where, and its generation kept until the value was read.
void index_find_hit(benchmark::State& state) {
  const Filled filled(state);
  check_each(
      state, 0, [](const KeyIndex& index, std::string_view key) { return index.find(0, key); }, filled);
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

// A RocksDB with some files and memtables, in a directory that goes with it.
class Database {
 public:
  Database() {
    std::string path = (std::filesystem::temp_directory_path() / "spillway-bench-XXXXXX").string();
    if (mkdtemp(path.data()) == nullptr) throw std::runtime_error("no temporary directory");
    path_ = path;
    rocksdb::Options options;
    options.create_if_missing = true;
    options.disable_auto_compactions = true;
    rocksdb::DB* db = nullptr;
    expect_ok(rocksdb::DB::Open(options, path_, &db));
    db_.reset(db);
    for (int file = 0; file < 10; ++file) {
      for (int i = 0; i < 100; ++i) expect_ok(db_->Put({}, std::to_string(file * i), "value"));
      expect_ok(db_->Flush({}));
    }
  }
  ~Database() {
    db_.reset();
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  rocksdb::DB& operator*() { return *db_; }

 private:
  static void expect_ok(const rocksdb::Status& status) {
    if (!status.ok()) throw std::runtime_error(status.ToString());
  }
  std::string path_;
  std::unique_ptr<rocksdb::DB> db_;
};

// What a poll cannot do without: three numbers from RocksDB.
void detector_properties(benchmark::State& state) {
  Database database;
  rocksdb::DB& db = *database;
  for (auto _ : state) {
    std::string l0_files;
    std::uint64_t memtables = 0;
    std::uint64_t pending = 0;
    db.GetProperty("rocksdb.num-files-at-level0", &l0_files);
    db.GetIntProperty(rocksdb::DB::Properties::kNumImmutableMemTable, &memtables);
    db.GetIntProperty(rocksdb::DB::Properties::kEstimatePendingCompactionBytes, &pending);
    benchmark::DoNotOptimize(l0_files);
    benchmark::DoNotOptimize(memtables);
    benchmark::DoNotOptimize(pending);
  }
  report(state, 1, 1.37);
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
BENCHMARK(detector_properties);

}  // namespace

BENCHMARK_MAIN();
