// Iterators of families with a prefix extractor, over every kind of table and memtable that uses one, against RocksDB's
// and an ordered map: every seek position, and a change of direction at every position.
//
// RocksDB defines an iterator beyond the prefix of its seek only with total_order_seek, auto_prefix_mode or
// prefix_same_as_start. Without them it is compared within that prefix. SeekToFirst and SeekToLast have no prefix to
// seek in, and a hashed memtable goes forward only: both are compared in total order.
#include <gtest/gtest.h>
#include <rocksdb/db.h>
#include <rocksdb/filter_policy.h>
#include <rocksdb/memtablerep.h>
#include <rocksdb/slice_transform.h>
#include <rocksdb/snapshot.h>
#include <rocksdb/system_clock.h>
#include <rocksdb/table.h>

#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "spill/compat/db_out.h"
#include "spill/compat/rocksdb_version.h"
#include "spill_two_databases.h"

namespace spillway::clients {
namespace {

using rocksdb::Iterator;
using rocksdb::ReadOptions;
using rocksdb::Slice;

struct Tables {
  const char* name;
  void (*set)(rocksdb::Options& options);
};
void PrintTo(const Tables& tables, std::ostream* out) { *out << tables.name; }

struct Order {
  const rocksdb::Comparator* comparator;
  bool operator()(const std::string& a, const std::string& b) const { return comparator->Compare(a, b) < 0; }
};
using PrefixModel = std::map<std::string, std::string, Order>;

void set_bloom(rocksdb::Options& options, rocksdb::BlockBasedTableOptions::IndexType index) {
  rocksdb::BlockBasedTableOptions table;
  table.filter_policy.reset(rocksdb::NewBloomFilterPolicy(20));
  table.whole_key_filtering = false;
  table.index_type = index;
  options.table_factory.reset(rocksdb::NewBlockBasedTableFactory(table));
}

const Tables kTables[] = {
    {"plain_blocks", [](rocksdb::Options&) {}},
    {"bloom", [](rocksdb::Options& options) { set_bloom(options, rocksdb::BlockBasedTableOptions::kBinarySearch); }},
    {"bloom_of_memtables_too",
     [](rocksdb::Options& options) {
       set_bloom(options, rocksdb::BlockBasedTableOptions::kBinarySearch);
       options.memtable_prefix_bloom_size_ratio = 0.2;
     }},
    {"hash_index", [](rocksdb::Options& options) { set_bloom(options, rocksdb::BlockBasedTableOptions::kHashSearch); }},
    {"hash_skip_list",
     [](rocksdb::Options& options) {
       set_bloom(options, rocksdb::BlockBasedTableOptions::kBinarySearch);
       options.memtable_factory.reset(rocksdb::NewHashSkipListRepFactory(100));
       options.allow_concurrent_memtable_write = false;
     }},
    {"backwards",
     [](rocksdb::Options& options) {
       set_bloom(options, rocksdb::BlockBasedTableOptions::kBinarySearch);
       options.comparator = rocksdb::ReverseBytewiseComparator();
     }},
};

// Both databases, and their expected contents.
class World {
 public:
  explicit World(const Tables& tables) : model_(Order{options_of(tables).comparator}) {
    rocksdb::Options options = options_of(tables);
    rocksdb::DB* plain = nullptr;
    EXPECT_TRUE(rocksdb::DB::Open(options, directory_.path("plain"), spill::DbOut(&plain)).ok());
    databases_[kPlain].reset(plain);
    SpillOptions spill_options;
    spill_options.rollback = RollbackPolicy::off;
    const rocksdb::Status opened = DB::Open(options, spill_options, directory_.path("spill"), &spill_);
    EXPECT_TRUE(opened.ok()) << opened.ToString();
    databases_[kSpill].reset(spill_);
  }

  rocksdb::DB& of(Side side) { return *databases_[side]; }
  DB& spill() { return *spill_; }
  const PrefixModel& model() const { return model_; }

  void put(const std::string& key, const std::string& value) {
    for (const auto& db : databases_) EXPECT_TRUE(db->Put({}, key, value).ok());
    model_[key] = value;
  }
  void remove(const std::string& key) {
    for (const auto& db : databases_) EXPECT_TRUE(db->Delete({}, key).ok());
    model_.erase(key);
  }
  void remove_range(std::string begin, std::string end) {
    if (model_.key_comp()(end, begin)) begin.swap(end);
    for (const auto& db : databases_) {
      EXPECT_TRUE(db->DeleteRange({}, db->DefaultColumnFamily(), begin, end).ok());
    }
    model_.erase(model_.lower_bound(begin), model_.lower_bound(end));
  }
  void flush() {
    for (const auto& db : databases_) EXPECT_TRUE(db->Flush({}).ok());
  }

 private:
  static rocksdb::Options options_of(const Tables& tables) {
    rocksdb::Options options;
    options.create_if_missing = true;
    options.prefix_extractor.reset(rocksdb::NewFixedPrefixTransform(1));
    options.disable_auto_compactions = true;  // so that a family has several tables
    tables.set(options);
    return options;
  }

  const TemporaryDirectory directory_;
  Both<std::unique_ptr<rocksdb::DB>> databases_;
  DB* spill_ = nullptr;
  PrefixModel model_;
};

// The positions of an iterator with these options, by the map.
class Reference {
 public:
  Reference(const PrefixModel& model, const ReadOptions& options) : order_(model.key_comp()), options_(options) {
    for (const auto& [key, value] : model) {
      if (options.iterate_lower_bound && order_(key, options.iterate_lower_bound->ToString())) continue;
      if (options.iterate_upper_bound && !order_(key, options.iterate_upper_bound->ToString())) continue;
      rows_.emplace_back(key, value);
    }
  }

  void seek(const std::string& target) {
    for (at_ = 0; at_ < size() && order_(rows_[at_].first, target);) ++at_;
    prefix_ = target[0];
  }
  void seek_for_prev(const std::string& target) {
    for (at_ = size() - 1; at_ >= 0 && order_(target, rows_[at_].first);) --at_;
    prefix_ = target[0];
  }
  // As in RocksDB, it seeks to the bound, and then has the bound's prefix.
  void seek_to_first() {
    if (options_.iterate_lower_bound) return seek(options_.iterate_lower_bound->ToString());
    at_ = 0;
    prefix_ = is_row() ? std::optional(rows_[at_].first[0]) : std::nullopt;
  }
  void seek_to_last() {
    if (options_.iterate_upper_bound) return seek_for_prev(options_.iterate_upper_bound->ToString());
    at_ = size() - 1;
    prefix_ = is_row() ? std::optional(rows_[at_].first[0]) : std::nullopt;
  }
  void move(bool forward) { at_ += forward ? 1 : -1; }

  bool valid() const { return is_row() && (!options_.prefix_same_as_start || is_in_prefix()); }
  // Whether RocksDB defines what is found here.
  bool is_defined() const {
    if (options_.prefix_same_as_start || options_.total_order_seek || options_.auto_prefix_mode) return true;
    return is_row() && is_in_prefix();
  }
  const std::pair<std::string, std::string>& row() const { return rows_[at_]; }

 private:
  int size() const { return static_cast<int>(rows_.size()); }
  bool is_row() const { return at_ >= 0 && at_ < size(); }
  bool is_in_prefix() const { return prefix_ && rows_[at_].first[0] == *prefix_; }

  const Order order_;
  const ReadOptions& options_;
  std::vector<std::pair<std::string, std::string>> rows_;
  int at_ = -1;
  std::optional<char> prefix_;
};

class SpillPrefixIterator : public ::testing::TestWithParam<Tables> {
 protected:
  // Prefixes a to e, some of which are never written.
  std::string key(const char* prefixes) {
    return std::string(1, prefixes[random_.below(std::char_traits<char>::length(prefixes))]) +
           std::to_string(random_.below(6));
  }

  void fill(World& world, int operations) {
    const char* const sets[] = {"ac", "ace", "b", "abd"};
    const char* prefixes = sets[0];
    for (int i = 0; i < operations; ++i) {
      const std::uint64_t what = random_.below(20);
      if (what < 11) {
        world.put(key(prefixes), "v" + std::to_string(i));
      } else if (what < 15) {
        world.remove(key(prefixes));
      } else if (what < 16 && !has_hashed_memtables()) {
        world.remove_range(key("abcde"), key("abcde"));
      } else if (what < 18) {
        world.flush();
        prefixes = sets[random_.below(4)];
      } else {
        world.spill().SetDiversion(diverts_ && random_.one_in(2) ? Diversion::always : Diversion::never);
      }
    }
  }

  bool has_hashed_memtables() const { return std::string(GetParam().name) == "hash_skip_list"; }

  // Whether the iterator is at the map's position, if RocksDB defines it.
  static bool agrees(Iterator& iterator, const Reference& reference, const std::string& steps) {
    if (!reference.is_defined()) return false;
    EXPECT_EQ(iterator.Valid(), reference.valid()) << steps;
    EXPECT_TRUE(iterator.status().ok()) << iterator.status().ToString() << " " << steps;
    if (!iterator.Valid() || !reference.valid()) return false;
    EXPECT_EQ(iterator.key().ToString(), reference.row().first) << steps;
    EXPECT_EQ(iterator.value().ToString(), reference.row().second) << steps;
    return !HasFailure();
  }

  // From 9.8 on prefix_same_as_start uses prefix filters even with total_order_seek. RocksDB's iterators then turn
  // around as if they had not, and are wrong.
  static constexpr bool kPrefixBeforeTotalOrder = SPILLWAY_ROCKSDB_AT_LEAST(9, 8);
  static constexpr int kMostSteps = 40;  // more than there are keys
  enum Start { first, last, seek, seek_for_prev };

  // Seeks, moves `before` steps in one direction, and then in the other direction to the end.
  static void turn_after(Iterator& iterator, Reference reference, Start start, const std::string& target, int before) {
    const char* const names[] = {"first", "last", "seek ", "seek for prev "};
    std::string steps = names[start] + target;
    switch (start) {
      case first:
        iterator.SeekToFirst();
        reference.seek_to_first();
        break;
      case last:
        iterator.SeekToLast();
        reference.seek_to_last();
        break;
      case seek:
        iterator.Seek(target);
        reference.seek(target);
        break;
      case seek_for_prev:
        iterator.SeekForPrev(target);
        reference.seek_for_prev(target);
    }
    bool forward = start == first || start == seek;
    for (int i = 0; agrees(iterator, reference, steps) && i < kMostSteps; ++i) {
      if (i == before) forward = !forward;
      steps += forward ? " next" : " prev";
      if (forward) {
        iterator.Next();
      } else {
        iterator.Prev();
      }
      reference.move(forward);
    }
  }

  void expect_all_as_the_map(Iterator& iterator, const PrefixModel& model, const ReadOptions& options) const {
    const Reference reference(model, options);
    const bool is_mixed = options.total_order_seek && options.prefix_same_as_start && kPrefixBeforeTotalOrder;
    const bool has_total_order = (options.total_order_seek && !is_mixed) || options.auto_prefix_mode;
    const bool goes_back = has_total_order || !(has_hashed_memtables() || is_mixed);
    for (int before = goes_back ? 0 : kMostSteps; before <= (goes_back ? 7 : kMostSteps) && !HasFailure(); ++before) {
      if (has_total_order) turn_after(iterator, reference, first, "", before);
      if (has_total_order) turn_after(iterator, reference, last, "", before);
      for (const char prefix : {'a', 'b', 'c', 'd', 'e', 'f'}) {
        for (char digit = '0'; digit < '7'; ++digit) {
          const std::string target{prefix, digit};
          turn_after(iterator, reference, seek, target, before);
          if (goes_back) turn_after(iterator, reference, seek_for_prev, target, before);
        }
      }
    }
  }

  void expect_same_with_every_option(World& world, const Both<const rocksdb::Snapshot*>& snapshots,
                                     const PrefixModel& model) {
    for (int way = 0; way < 5 && !HasFailure(); ++way) {
      const std::string lower = key("abcde");
      const std::string upper = key("abcde");
      const Slice bounds[] = {lower, upper};
      ReadOptions options;
      options.prefix_same_as_start = way == 1 || way == 4;
      options.total_order_seek = way == 2 || way == 4;
      options.auto_prefix_mode = way == 3;
      if (random_.one_in(3)) options.iterate_lower_bound = &bounds[0];
      if (random_.one_in(3)) options.iterate_upper_bound = &bounds[1];
      SCOPED_TRACE("way " + std::to_string(way) + (options.iterate_lower_bound ? " from " + lower : "") +
                   (options.iterate_upper_bound ? " to " + upper : ""));
      for (const Side side : {kPlain, kSpill}) {
        SCOPED_TRACE(side == kPlain ? "RocksDB" : "Spillway");
        options.snapshot = snapshots[side];
        const std::unique_ptr<Iterator> iterator(world.of(side).NewIterator(options));
        expect_all_as_the_map(*iterator, model, options);
        if (options.snapshot) continue;
        EXPECT_TRUE(iterator->Refresh().ok());
        expect_all_as_the_map(*iterator, model, options);
      }
    }
  }

  Random random_{1};
  bool diverts_ = true;
};

TEST_P(SpillPrefixIterator, AgreesWithRocksdbsAndReversesAnywhere) {
  for (int round = 0; round < 4 && !HasFailure(); ++round) {
    SCOPED_TRACE("round " + std::to_string(round));
    World world(GetParam());
    diverts_ = round % 4 != 3;
    fill(world, 20 << (round % 3));
    const Both<const rocksdb::Snapshot*> snapshots{world.of(kPlain).GetSnapshot(), world.of(kSpill).GetSnapshot()};
    const PrefixModel then = world.model();
    fill(world, 40);
    expect_same_with_every_option(world, snapshots, then);
    expect_same_with_every_option(world, {}, world.model());
    for (const Side side : {kPlain, kSpill}) world.of(side).ReleaseSnapshot(snapshots[side]);
  }
}

// Before anything is diverted, after it was brought back, and when something is diverted again.
TEST_P(SpillPrefixIterator, IsRefreshedBetweenBothKindsOfView) {
  World world(GetParam());
  for (const char* one : {"a1", "a3", "c2"}) world.put(one, "main");
  ReadOptions options;
  options.prefix_same_as_start = true;
  options.total_order_seek = has_hashed_memtables();
  const std::unique_ptr<Iterator> iterator(world.of(kSpill).NewIterator(options));
  expect_all_as_the_map(*iterator, world.model(), options);
  for (int i = 0; i < 3 && !HasFailure(); ++i) {
    world.spill().SetDiversion(Diversion::always);
    for (const char* one : {"a0", "a2", "a3", "c1"}) world.put(one, "spill " + std::to_string(i));
    world.remove("a1");
    ASSERT_TRUE(iterator->Refresh().ok());
    EXPECT_FALSE(iterator->Valid());
    expect_all_as_the_map(*iterator, world.model(), options);
    ASSERT_TRUE(world.spill().Rollback().ok());
    ASSERT_TRUE(iterator->Refresh().ok());
    EXPECT_FALSE(iterator->Valid());
    expect_all_as_the_map(*iterator, world.model(), options);
  }
}

// RocksDB could not ingest such tables.
TEST(SpillReadOptions, OfAFamilyOfPlainTablesNothingIsSpilled) {
  World world({"plain_table", [](rocksdb::Options& options) {
                 options.table_factory.reset(rocksdb::NewPlainTableFactory());
                 options.allow_mmap_reads = true;
               }});
  world.put("a1", "main");
  world.put("b1", "main");
  world.flush();
  std::unique_ptr<Iterator> iterator(world.of(kSpill).NewIterator({}));
  iterator->Seek("a1");
  ASSERT_TRUE(iterator->Valid());
  world.spill().SetDiversion(Diversion::always);
  world.put("a2", "spill");
  EXPECT_EQ(world.spill().GetSpillStatistics().live_entries, 0U);
  ASSERT_TRUE(world.spill().Rollback().ok());
  iterator.reset(world.of(kSpill).NewIterator({}));
  iterator->Seek("a2");
  ASSERT_TRUE(iterator->Valid()) << iterator->status().ToString();
  EXPECT_EQ(iterator->value(), "spill");
}

TEST(SpillReadOptions, AreRefusedAndIgnoredAsByRocksdb) {
  World world(kTables[0]);
  world.put("a1", "main");
  world.spill().SetDiversion(Diversion::always);
  world.put("b1", "spill");
  world.remove_range("a", "c");
  for (const Side side : {kPlain, kSpill}) {
    SCOPED_TRACE(side == kPlain ? "RocksDB" : "Spillway");
    rocksdb::DB& db = world.of(side);
    ReadOptions options;
    options.read_tier = rocksdb::kPersistedTier;
    const std::unique_ptr<Iterator> refused(db.NewIterator(options));
    EXPECT_TRUE(refused->status().IsNotSupported());
    std::vector<Iterator*> none;
    EXPECT_TRUE(db.NewIterators(options, {db.DefaultColumnFamily()}, &none).IsNotSupported());
    EXPECT_TRUE(none.empty());

    std::string value;
    for (const char* key : {"a1", "b1"}) EXPECT_TRUE(db.Get({}, key, &value).IsNotFound());
    options = {};
    options.ignore_range_deletions = true;
    for (const char* key : {"a1", "b1"}) EXPECT_TRUE(db.Get(options, key, &value).ok()) << key;
    rocksdb::ManagedSnapshot snapshot(&db);
    options.snapshot = snapshot.snapshot();
    for (const char* key : {"a1", "b1"}) EXPECT_TRUE(db.Get(options, key, &value).ok()) << key;
  }
}

// Keys after the one with which the values exceeded the limit are not read.
TEST(SpillReadOptions, AreLimitedToASizeOfValuesAsByRocksdb) {
  World world(kTables[0]);
  const std::string value(1000, 'v');
  world.put("a1", value);
  world.spill().SetDiversion(Diversion::always);
  for (const char* key : {"b1", "c1", "d1", "e1"}) world.put(key, value);
  const std::vector<rocksdb::Slice> keys{"a1", "b1", "b2", "c1", "d1", "e1"};
  ReadOptions options;
  options.value_size_soft_limit = 2500;
  for (const Side side : {kPlain, kSpill}) {
    SCOPED_TRACE(side == kPlain ? "RocksDB" : "Spillway");
    std::vector<std::string> values;
    std::string outcome;
    for (const rocksdb::Status& status : world.of(side).MultiGet(options, keys, &values)) {
      outcome += status.ok() ? 'v' : status.IsNotFound() ? '-' : status.IsAborted() ? 'x' : '?';
    }
    // From some version before 9.10 on RocksDB does not look for keys in tables once those in memtables were too many.
    EXPECT_EQ(outcome, side == kPlain && SPILLWAY_ROCKSDB_AT_LEAST(9, 0) ? "vvxvxx" : "vv-vxx");
  }
}

// In key order, unless the caller says that they are sorted.
TEST(SpillReadOptions, AreLimitedToASizeOfValuesInTheOrderOfKeysAsByRocksdb) {
  World world(kTables[0]);
  const std::string value(1000, 'v');
  world.spill().SetDiversion(Diversion::always);
  for (const char* key : {"a1", "b1", "c1"}) world.put(key, value);
  const std::vector<rocksdb::Slice> keys{"c1", "b2", "b1", "a1"};
  ReadOptions options;
  options.value_size_soft_limit = 1500;
  for (const Side side : {kPlain, kSpill}) {
    SCOPED_TRACE(side == kPlain ? "RocksDB" : "Spillway");
    std::vector<rocksdb::PinnableSlice> values(keys.size());
    std::vector<rocksdb::Status> statuses(keys.size());
    rocksdb::DB& db = world.of(side);
    db.MultiGet(options, db.DefaultColumnFamily(), keys.size(), keys.data(), values.data(), statuses.data());
    std::string outcome;
    for (const rocksdb::Status& status : statuses) {
      outcome += status.ok() ? 'v' : status.IsNotFound() ? '-' : status.IsAborted() ? 'x' : '?';
    }
    EXPECT_EQ(outcome, "xxvv");
    const rocksdb::Slice timestamp("12345678");
    ReadOptions stamped;
    stamped.timestamp = &timestamp;
    std::string ignored;
    EXPECT_TRUE(db.Get(stamped, "a1", &ignored).IsInvalidArgument());
    EXPECT_TRUE(db.MultiGet(stamped, keys, std::make_unique<std::vector<std::string>>().get())[0].IsInvalidArgument());
  }
}

// A clock that is a day late.
class LateClock final : public rocksdb::SystemClockWrapper {
 public:
  LateClock() : SystemClockWrapper(rocksdb::SystemClock::Default()) {}
  const char* Name() const override { return "late"; }
  std::uint64_t NowMicros() override { return target_->NowMicros() - kDayMicros; }
  static constexpr std::uint64_t kDayMicros = std::uint64_t{24} * 3600 * 1'000'000;
};

class LateEnv final : public rocksdb::EnvWrapper {
 public:
  LateEnv() : EnvWrapper(rocksdb::Env::Default()) { system_clock_ = std::make_shared<LateClock>(); }
};

// By the clock of the database's Env.
TEST(SpillReadOptions, HaveADeadlineForEveryRead) {
  static LateEnv env;
  World world({"late", [](rocksdb::Options& options) { options.env = &env; }});
  world.spill().SetDiversion(Diversion::always);
  for (const char* key : {"a1", "b1"}) world.put(key, "value");
  const auto outcome = [&](const ReadOptions& options) {
    std::string value;
    std::vector<std::string> values;
    std::vector<rocksdb::Status> statuses = world.spill().MultiGet(options, {"a1", "a2", "b1"}, &values);
    EXPECT_TRUE(statuses[1].IsNotFound()) << "for which no value is read: " << statuses[1].ToString();
    statuses[1] = world.spill().Get(options, "a1", &value);
    const std::unique_ptr<Iterator> iterator(world.spill().NewIterator(options));
    iterator->SeekToFirst();
    EXPECT_EQ(iterator->Valid(), iterator->status().ok());
    statuses.push_back(iterator->status());
    std::string letters;
    for (const auto& one : statuses) letters += one.ok() ? 'v' : one.IsTimedOut() ? 't' : '?';
    return letters;
  };
  const std::uint64_t now = rocksdb::SystemClock::Default()->NowMicros();
  ReadOptions options;
  for (const bool on_snapshot : {false, true}) {
    rocksdb::ManagedSnapshot snapshot(&world.spill());
    options.snapshot = on_snapshot ? snapshot.snapshot() : nullptr;
    options.deadline = std::chrono::microseconds(now - LateClock::kDayMicros / 2);
    EXPECT_EQ(outcome(options), "vvvv");
    options.deadline = std::chrono::microseconds(now - LateClock::kDayMicros - 1);
    EXPECT_EQ(outcome(options), "tttt");
  }
}

INSTANTIATE_TEST_SUITE_P(Tables, SpillPrefixIterator, ::testing::ValuesIn(kTables),
                         [](const auto& test) { return std::string(test.param.name); });

}  // namespace
}  // namespace spillway::clients
