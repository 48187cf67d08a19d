// Threads write the same keys, some of which are diverted: nothing acknowledged is lost, duplicated or out of order,
// batches are seen completely, and checkpoints are a prefix. Plain RocksDB is checked against the same rules.
//
// A few seconds with fixed seeds; spill_metamorphic.h describes longer runs.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "spill_metamorphic.h"
#include "spill_shared_history.h"
#include "spill_two_databases.h"

namespace spillway::clients {
namespace {

using rocksdb::ColumnFamilyHandle;
using rocksdb::ReadOptions;
using rocksdb::Slice;
using rocksdb::Status;
using rocksdb::WriteBatch;

constexpr std::size_t kKeys = 6;  // of each family
constexpr std::size_t kFamilies = 2;
constexpr std::size_t kCounters = 3;
constexpr std::size_t kWriters = 4;

// What to read: a database, and its families in the order of TwoDatabases::families().
struct Readable {
  rocksdb::DB& db;
  std::vector<ColumnFamilyHandle*> families;
};

class SharedKeys {
 public:
  SharedKeys(TwoDatabases& databases, Side side) : databases_(databases), side_(side) {}

  void write(std::size_t writer, std::uint64_t seed, int steps) {
    Random random(seed + writer);
    for (int i = 0; i < steps && !::testing::Test::HasFailure(); ++i) step(writer, random);
  }
  // The same, in a frame that the thread sanitizer's suppressions name.
  [[gnu::noinline]] void by_plain_rocksdb(std::size_t writer, std::uint64_t seed, int steps) {
    write(writer, seed, steps);
  }

  // Reads everything in one state, that of the snapshot if there is one.
  void expect_allowed(const Readable& from, const rocksdb::Snapshot* snapshot, SharedHistory::Tick read_began,
                      const std::string& what) {
    ReadOptions options;
    options.snapshot = snapshot;
    std::vector<SharedHistory::Seen> seen;
    for (std::size_t key = 0; key < kKeys * kFamilies; ++key) {
      seen.push_back({key, get(from, options, family_of(key), name_of(key))});
    }
    EXPECT_EQ(history_.judge(seen, read_began), "") << what;
    expect_batches_whole(from, options, what);
  }

  void expect_all_counted(const Readable& from) {
    for (std::size_t i = 0; i < kCounters; ++i) {
      const auto value = get(from, {}, kFamilies, counter(i));
      EXPECT_EQ(value.value_or("0"), std::to_string(counted_[i])) << "of " << counter(i);
    }
  }

  // A checkpoint that is made during writes has everything acknowledged before it, and a prefix of what comes later.
  void expect_checkpoint_is_a_prefix(const std::string& name) {
    const SharedHistory::Tick began = history_.now();
    TwoDatabases::Handles handles;
    const auto copy = databases_.open_checkpoint(side_, name, &handles);
    ASSERT_NE(copy, nullptr);
    expect_allowed({*copy, handles}, nullptr, began, "in a checkpoint");
    for (ColumnFamilyHandle* handle : handles) EXPECT_TRUE(copy->DestroyColumnFamilyHandle(handle).ok());
  }

  SharedHistory::Tick now() { return history_.now(); }
  Readable live() {
    Readable all{db(), {}};
    for (const Family& one : databases_.families()) all.families.push_back(one.handles[side_]);
    return all;
  }

 private:
  static std::size_t family_of(std::size_t key) { return key / kKeys; }
  static std::string name_of(std::size_t key) { return "list " + std::to_string(key % kKeys); }
  static std::string counter(std::size_t i) { return "counter " + std::to_string(i); }
  static std::string own(std::size_t writer) { return "own " + std::to_string(writer); }

  rocksdb::DB& db() { return databases_.of(side_); }
  ColumnFamilyHandle* handle(std::size_t family) { return databases_.families()[family].handles[side_]; }

  static std::optional<std::string> get(const Readable& from, const ReadOptions& options, std::size_t family,
                                        const std::string& key) {
    std::string value;
    const Status status = from.db.Get(options, from.families[family], key, &value);
    EXPECT_TRUE(status.ok() || status.IsNotFound()) << status.ToString();
    return status.ok() ? std::optional(value) : std::nullopt;
  }

  void step(std::size_t writer, Random& random) {
    const std::uint64_t what = random.below(100);
    if (what < 40) return write_one(random);
    if (what < 55) return write_batch(writer, random);
    if (what < 70) return count(random);
    if (what < 80) return write_in_order(writer);
    if (what < 90) return read_one(random);
    if (what < 97) return read_snapshot();
    if (what < 99) return divert(random);
    EXPECT_TRUE(db().Flush({}, handle(random.below(kFamilies))).ok());
  }

  static SharedHistory::Kind kind(Random& random) {
    const std::uint64_t what = random.below(10);
    return what < 7 ? SharedHistory::Kind::merge : what < 9 ? SharedHistory::Kind::put : SharedHistory::Kind::remove;
  }

  void write_one(Random& random) {
    const std::size_t key = random.below(kKeys * kFamilies);
    const SharedHistory::Kind what = kind(random);
    const SharedHistory::Id id = history_.begin(key, what);
    const std::string text = std::to_string(id);
    ColumnFamilyHandle* const family = handle(family_of(key));
    rocksdb::WriteOptions options;
    options.sync = random.one_in(20);
    const Status status = what == SharedHistory::Kind::put      ? db().Put(options, family, name_of(key), text)
                          : what == SharedHistory::Kind::remove ? db().Delete(options, family, name_of(key))
                                                                : db().Merge(options, family, name_of(key), text);
    EXPECT_TRUE(status.ok()) << status.ToString();
    history_.end(id);
  }

  // Lists of both families, the pair that readers compare, and counters. Some keys are slow to compare.
  void write_batch(std::size_t writer, Random& random) {
    WriteBatch batch;
    if (random.one_in(4)) {
      for (int i = 0; i < 3000; ++i) batch.Delete(handle(0), "nobody's " + std::to_string(writer));
    }
    std::vector<SharedHistory::Id> ids;
    std::array<std::uint64_t, kCounters> increments{};
    for (std::uint64_t left = 1 + random.below(4); left > 0; --left) {
      const std::size_t key = random.below(kKeys * kFamilies);
      const SharedHistory::Kind what = kind(random);
      ids.push_back(history_.begin(key, what));
      const std::string text = std::to_string(ids.back());
      ColumnFamilyHandle* const family = handle(family_of(key));
      if (what == SharedHistory::Kind::put) batch.Put(family, name_of(key), text);
      if (what == SharedHistory::Kind::remove) batch.Delete(family, name_of(key));
      if (what == SharedHistory::Kind::merge) batch.Merge(family, name_of(key), text);
    }
    const std::string pair = std::to_string(writer) + " " + std::to_string(random.below(~std::uint64_t{0}));
    batch.Put(handle(0), "pair", pair);
    if (random.one_in(2)) {
      const std::size_t which = random.below(kCounters);
      batch.Merge(handle(kFamilies), counter(which), "1");
      ++increments[which];
    }
    batch.Put(handle(1), "pair", pair);
    const Status status = db().Write({}, &batch);
    EXPECT_TRUE(status.ok()) << status.ToString();
    for (const SharedHistory::Id id : ids) history_.end(id);
    for (std::size_t i = 0; i < kCounters; ++i) counted_[i] += increments[i];
  }

  void count(Random& random) {
    const std::size_t which = random.below(kCounters);
    const Status status = db().Merge({}, handle(kFamilies), counter(which), "1");
    EXPECT_TRUE(status.ok()) << status.ToString();
    ++counted_[which];
  }

  // Writes first to one family, then to the other.
  void write_in_order(std::size_t writer) {
    const std::string text = std::to_string(++written_[writer]);
    EXPECT_TRUE(db().Put({}, handle(0), own(writer), text).ok());
    EXPECT_TRUE(db().Put({}, handle(1), own(writer), text).ok());
    EXPECT_EQ(get(live(), {}, 1, own(writer)), text);
  }

  void read_one(Random& random) {
    const std::size_t key = random.below(kKeys * kFamilies);
    const SharedHistory::Tick began = history_.now();
    const auto found = get(live(), {}, family_of(key), name_of(key));
    EXPECT_EQ(history_.judge({{key, found}}, began), "");
  }

  void read_snapshot() {
    const SharedHistory::Tick began = history_.now();
    rocksdb::ManagedSnapshot snapshot(&db());
    expect_allowed(live(), snapshot.snapshot(), began, "in a snapshot");
  }

  static void expect_batches_whole(const Readable& from, const ReadOptions& options, const std::string& what) {
    EXPECT_EQ(get(from, options, 0, "pair"), get(from, options, 1, "pair")) << "half of a batch " << what;
    for (std::size_t writer = 0; writer < kWriters; ++writer) {
      const auto first = std::stoull(get(from, options, 0, own(writer)).value_or("0"));
      const auto second = std::stoull(get(from, options, 1, own(writer)).value_or("0"));
      EXPECT_TRUE(first == second || first == second + 1) << first << " and then " << second << " " << what;
    }
  }

  void divert(Random& random) {
    const auto how = random.of<Diversion>({Diversion::always, Diversion::always, Diversion::never});
    databases_.spill().SetDiversion(how);
  }

  TwoDatabases& databases_;
  const Side side_;
  SharedHistory history_{kKeys * kFamilies};
  std::array<std::atomic<std::uint64_t>, kCounters> counted_{};
  std::array<std::uint64_t, kWriters> written_{};
};

void run(std::uint64_t seed, Side side, int steps) {
  SCOPED_TRACE("seed " + std::to_string(seed) + (side == kPlain ? " on RocksDB" : ""));
  TwoDatabases databases(seed, /*with_counters=*/true);
  if (::testing::Test::HasFailure()) return;
  SharedKeys keys(databases, side);
  {
    std::optional<RollbackThread> rollback;
    if (seed % 3 != 0) rollback.emplace(databases, seed);
    std::vector<std::thread> writers;
    std::atomic<std::size_t> left{kWriters};
    for (std::size_t i = 0; i < kWriters; ++i) {
      writers.emplace_back([&, i] {
        side == kPlain ? keys.by_plain_rocksdb(i, seed, steps) : keys.write(i, seed, steps);
        --left;
      });
    }
    for (int i = 0; left > 0 && !::testing::Test::HasFailure(); ++i) {
      keys.expect_checkpoint_is_a_prefix("copy " + std::to_string(i));
    }
    for (std::thread& one : writers) one.join();
  }
  keys.expect_allowed(keys.live(), nullptr, keys.now(), "at the end");
  keys.expect_all_counted(keys.live());
  EXPECT_TRUE(side == kPlain || databases.diverted() > 0);
  EXPECT_TRUE(databases.spill().Rollback().ok());
  keys.expect_allowed(keys.live(), nullptr, keys.now(), "after a rollback");
  keys.expect_all_counted(keys.live());
}

TEST(SpillMetamorphic, SharedKeysOfRocksdbKeepTheRules) { run(1, kPlain, 300); }

TEST(SpillMetamorphic, SharedKeysKeepTheRules) {
  for_each_seed({.from = 1, .count = 3, .steps = 400}, [](std::uint64_t seed, int steps) { run(seed, kSpill, steps); });
}

}  // namespace
}  // namespace spillway::clients
