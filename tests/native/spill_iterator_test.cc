// Iterators over a real RocksDB (in memory) and generations on a store that the test controls, against an ordered map.
#include <gtest/gtest.h>
#include <rocksdb/db.h>
#include <rocksdb/env.h>
#include <rocksdb/slice_transform.h>

#include <chrono>
#include <functional>
#include <map>
#include <random>

#include "spill/compat/db_out.h"
#include "spill/compat/refreshable_iterator.h"
#include "spill/read/iterator.h"
#include "spill/read/read_state.h"
#include "spill/store/checksum.h"

namespace spillway::spill {
namespace {

using rocksdb::Comparator;
using rocksdb::Iterator;
using rocksdb::ReadOptions;
using rocksdb::Slice;
using rocksdb::Status;

// Records how it was read. Values whose text is `broken` cannot be read. Background reads are done when they are waited
// for.
class FakeStore final : public Store {
 public:
  Status recover(const Each& /*each*/) override { return Status::OK(); }
  Status cut(GenerationId /*generation*/, std::uint64_t /*offset*/) override { return Status::OK(); }
  Status begin(GenerationId /*generation*/) override { return Status::OK(); }
  std::vector<GenerationId> generations() const override { return {}; }
  Status append(std::span<const Slice> records, std::span<std::uint64_t> offsets) override {
    for (std::size_t i = 0; i < records.size(); ++i) {
      offsets[i] = bytes_.size();
      bytes_.append(records[i].data(), records[i].size());
    }
    return Status::OK();
  }
  Status sync() override { return Status::OK(); }
  Status read(GenerationId /*generation*/, std::uint64_t offset, std::uint64_t from, std::uint64_t length,
              std::string* bytes) const override {
    *bytes = bytes_.substr(offset + from, length);
    return !broken.empty() && *bytes == broken ? Status::Corruption("broken") : Status::OK();
  }
  void read_many(std::span<ReadRequest> requests) const override {
    batches.push_back(requests.size());
    Store::read_many(requests);
  }
  std::unique_ptr<ReadsInFlight> begin_reads(std::span<ReadRequest> requests) const override {
    if (!in_background) return Store::begin_reads(requests);
    batches.push_back(requests.size());
    on_their_way += requests.size();
    most_on_their_way = std::max(most_on_their_way, on_their_way);
    return std::make_unique<Flight>(*this, requests);
  }
  Status scan(GenerationId /*generation*/, const Each& /*each*/) const override { return Status::OK(); }
  Status drop(GenerationId /*generation*/) override { return Status::OK(); }
  void release(GenerationId /*generation*/) override {}
  Status read_binding(std::string* /*bytes*/) const override { return Status::NotSupported(); }
  Status write_binding(const std::string& /*bytes*/) override { return Status::NotSupported(); }
  std::uint64_t used_bytes() const override { return bytes_.size(); }
  std::uint64_t capacity_bytes() const override { return 1 << 30; }

  std::string broken;
  bool in_background = false;
  mutable std::vector<std::size_t> batches;
  mutable std::size_t on_their_way = 0;
  mutable std::size_t most_on_their_way = 0;

 private:
  struct Flight final : ReadsInFlight {
    Flight(const FakeStore& its_store, std::span<ReadRequest> its_requests) : store(its_store), requests(its_requests) {
      for (ReadRequest& one : requests) one.bytes = "not there yet";
    }
    ~Flight() override { store.on_their_way -= requests.size(); }
    Flight(const Flight&) = delete;
    Flight& operator=(const Flight&) = delete;
    void wait() override { store.Store::read_many(requests); }

    const FakeStore& store;
    const std::span<ReadRequest> requests;
  };

  std::string bytes_;
};

struct Order {
  const Comparator* comparator;
  bool operator()(const std::string& a, const std::string& b) const { return comparator->Compare(a, b) < 0; }
};
using Model = std::map<std::string, std::string, Order>;

// Both stores, and their merged contents.
class World {
 public:
  explicit World(const Comparator* comparator = rocksdb::BytewiseComparator()) : model_(Order{comparator}) {
    rocksdb::Options options;
    options.create_if_missing = true;
    options.env = env_.get();
    options.comparator = comparator;
    options.prefix_extractor.reset(rocksdb::NewFixedPrefixTransform(1));
    rocksdb::DB* db = nullptr;
    EXPECT_TRUE(rocksdb::DB::Open(options, "/db", spill::DbOut(&db)).ok());
    db_.reset(db);
    EXPECT_TRUE(families_.add(db_->DefaultColumnFamily()).ok());
  }

  // Follows the rule of both stores: a key that is diverted, or covered by a diverted range, goes to the spill store.
  void put(const std::string& key, const std::string& value, bool divert) {
    if (divert || diverted(key)) {
      spill_put(key, value);
    } else {
      EXPECT_TRUE(db_->Put({}, key, value).ok());
    }
    model_[key] = value;
  }
  void remove(const std::string& key, bool divert) {
    if (divert || diverted(key)) {
      add(key, Kind::remove, {});
    } else {
      EXPECT_TRUE(db_->Delete({}, key).ok());
    }
    model_.erase(key);
  }
  void remove_range(const std::string& begin, const std::string& end) {
    generations_.back()->add(RangeTombstone{kFamily, begin, end, ++sequence_});
    if (!model_.key_comp()(begin, end)) return;
    model_.erase(model_.lower_bound(begin), model_.lower_bound(end));
  }
  void put_elsewhere(const std::string& key) { generations_.back()->add(7, key, ++sequence_, Kind::remove, {}); }
  void next_generation() {
    generations_.push_back(std::make_shared<Generation>(generations_.size() + 1, families_, nullptr));
  }

  View view() const { return {std::make_shared<const Generations>(generations_), sequence_}; }
  IteratorSource base(const ReadOptions& options) {
    ReadOptions main = main_options(options, view().generations);
    IteratorSource result;
    result.view = view();
    if (options.snapshot) {
      const ReadState& state = static_cast<const SpillSnapshot*>(options.snapshot)->state();
      main.snapshot = state.main.get();
      result.view = state.view;
    }
    result.main.reset(db_->NewIterator(main));
    result.prefix_extractor = prefix_extractor_of(db_->DefaultColumnFamily(), options, result.view);
    return result;
  }
  std::unique_ptr<Iterator> iterator(const ReadOptions& options = {}) {
    return make_iterator(base(options), IteratedFamily{kFamily, families_.comparator(kFamily)}, options,
                         ValueReader(store_), [this, options](const rocksdb::Snapshot* snapshot) {
                           ReadOptions renewed = options;
                           renewed.snapshot = snapshot;
                           return base(renewed);
                         });
  }

  ReadState read_state() {
    return {view(), {db_->GetSnapshot(), [this](const rocksdb::Snapshot* one) { db_->ReleaseSnapshot(one); }}};
  }

  const Model& model() const { return model_; }
  FakeStore& store() { return store_; }
  const ColumnFamilies& families() const { return families_; }

 private:
  static constexpr std::uint32_t kFamily = 0;

  bool diverted(const std::string& key) const {
    return view().find(kFamily, key) || view().covering_tombstone(kFamily, key, families_) > 0;
  }
  void add(const std::string& key, Kind kind, const Location& value, std::uint32_t checksum = 0) {
    generations_.back()->add(kFamily, key, ++sequence_, kind, value, checksum);
  }
  void spill_put(const std::string& key, const std::string& value) {
    const std::string record = "head" + value;
    const Slice records[] = {record};
    std::uint64_t offset = 0;
    EXPECT_TRUE(store_.append(records, {&offset, 1}).ok());
    add(key, Kind::put, {offset, 4, static_cast<std::uint32_t>(value.size())}, crc32c(value));
  }

  const std::unique_ptr<rocksdb::Env> env_{rocksdb::NewMemEnv(rocksdb::Env::Default())};
  std::unique_ptr<rocksdb::DB> db_;
  ColumnFamilies families_;
  FakeStore store_;
  Generations generations_{std::make_shared<Generation>(1, families_, nullptr)};
  Sequence sequence_ = 0;
  Model model_;
};

std::string all_of(Iterator& iterator) {
  std::string text;
  for (iterator.SeekToFirst(); iterator.Valid(); iterator.Next()) {
    text += iterator.key().ToString() + "=" + iterator.value().ToString() + " ";
  }
  EXPECT_TRUE(iterator.status().ok()) << iterator.status().ToString();
  return text;
}

std::string backwards(Iterator& iterator) {
  std::string text;
  for (iterator.SeekToLast(); iterator.Valid(); iterator.Prev()) {
    text += iterator.key().ToString() + "=" + iterator.value().ToString() + " ";
  }
  EXPECT_TRUE(iterator.status().ok()) << iterator.status().ToString();
  return text;
}

TEST(SpillIterator, OneVersionOfAKeyAndNoneOfWhatIsDeleted) {
  World world;
  for (const char* key : {"a", "b", "c", "e"}) world.put(key, "main", false);
  world.put("b", "spill", true);
  world.put("d", "spill", true);
  world.remove("c", true);
  world.put_elsewhere("a");  // in another column family
  world.next_generation();
  world.put("d", "newer", true);
  EXPECT_EQ(all_of(*world.iterator()), "a=main b=spill d=newer e=main ");
  EXPECT_EQ(backwards(*world.iterator()), "e=main d=newer b=spill a=main ");
}

TEST(SpillIterator, ARangeDeletionHidesWhatIsOlderInBothStores) {
  World world;
  for (const char* key : {"a", "b", "c", "d", "e", "f"}) world.put(key, "main", false);
  world.put("c", "spill", true);
  world.remove_range("b", "d");
  world.remove_range("d", "e");
  world.put("cc", "after", true);
  EXPECT_EQ(all_of(*world.iterator()), "a=main cc=after e=main f=main ");
  EXPECT_EQ(backwards(*world.iterator()), "f=main e=main cc=after a=main ");
}

TEST(SpillIterator, ReversesAtAKeyWhoseNeighboursAreCovered) {
  World world;
  for (const char* key : {"b", "d", "e", "g"}) world.put(key, "main", false);
  world.put("b", "spill", true);
  world.put("g", "spill", true);
  world.remove_range("c", "f");
  const auto iterator = world.iterator();
  iterator->Seek("b");  // RocksDB's side skips the covered range, in which its "b" and "g" are older
  iterator->Next();
  ASSERT_TRUE(iterator->Valid());
  EXPECT_EQ(iterator->key(), "g");
  iterator->Prev();
  ASSERT_TRUE(iterator->Valid());
  EXPECT_EQ(iterator->value(), "spill");
  iterator->Prev();
  EXPECT_FALSE(iterator->Valid());
  iterator->Seek("b");
  iterator->Prev();
  EXPECT_FALSE(iterator->Valid());
}

TEST(SpillIterator, AScanReadsItsValuesTogetherAndNoneTwice) {
  World world;
  for (int i = 100; i < 400; ++i) world.put("k" + std::to_string(i), "value " + std::to_string(i), true);
  const Slice upper("k300");
  ReadOptions options;
  options.iterate_upper_bound = &upper;
  const auto iterator = world.iterator(options);
  int seen = 100;
  for (iterator->Seek("k1"); iterator->Valid(); iterator->Next(), ++seen) {
    EXPECT_EQ(iterator->value(), "value " + std::to_string(seen));
  }
  EXPECT_EQ(seen, 300);
  EXPECT_EQ(world.store().batches, (std::vector<std::size_t>{1, 1, 2, 4, 8, 16, 32, 64, 64, 8}));

  world.store().batches.clear();
  iterator->Seek("k200");  // a look-up of one key reads one value
  EXPECT_EQ(world.store().batches, (std::vector<std::size_t>{1}));
}

TEST(SpillIterator, AScanFindsItsValuesPrefetched) {
  World world;
  world.store().in_background = true;
  for (int i = 100; i < 400; ++i) world.put("k" + std::to_string(i), "value " + std::to_string(i), true);
  const auto iterator = world.iterator();
  std::size_t waits_for_nothing = 0;  // steps after which nothing was in flight
  int seen = 100;
  for (iterator->Seek("k1"); iterator->Valid(); iterator->Next(), ++seen) {
    EXPECT_EQ(iterator->value(), "value " + std::to_string(seen));
    if (world.store().on_their_way == 0) ++waits_for_nothing;
  }
  EXPECT_EQ(seen, 400);
  std::size_t read = 0;
  for (const std::size_t batch : world.store().batches) read += batch;
  EXPECT_EQ(read, 300U);
  EXPECT_GT(world.store().most_on_their_way, 32U);
  EXPECT_LT(waits_for_nothing, 50U);  // the first two, and the last values

  world.store().batches.clear();
  iterator->Seek("k200");  // a look-up of one key reads one value
  EXPECT_EQ(world.store().batches, (std::vector<std::size_t>{1}));
  for (int i = 0; i < 10; ++i) iterator->Next();
  EXPECT_GT(world.store().on_their_way, 0U);
  iterator->Seek("k300");  // values read for the other place are dropped
  EXPECT_EQ(world.store().on_their_way, 0U);
  EXPECT_EQ(iterator->value(), "value 300");
}

TEST(SpillIterator, ReadsAheadNoMoreBytesThanItMay) {
  for (const bool in_background : {false, true}) {
    World world;
    world.store().in_background = in_background;
    for (int i = 0; i < 20; ++i) world.put("k" + std::to_string(10 + i), std::string(400'000, 'v'), true);
    const auto iterator = world.iterator();
    for (iterator->SeekToFirst(); iterator->Valid(); iterator->Next()) EXPECT_EQ(iterator->value().size(), 400'000U);
    EXPECT_EQ(world.store().most_on_their_way, in_background ? 1U : 0U);
    EXPECT_EQ(*std::max_element(world.store().batches.begin(), world.store().batches.end()), 1U);
  }
}

TEST(SpillIterator, AValueThatCannotBeReadEndsItWhereItIs) {
  World world;
  for (int i = 0; i < 9; ++i) world.put(std::to_string(i), "v" + std::to_string(i), true);
  world.store().broken = "v7";
  const auto iterator = world.iterator();
  std::string seen;
  for (iterator->SeekToFirst(); iterator->Valid(); iterator->Next()) seen += iterator->key().ToString();
  EXPECT_EQ(seen, "0123456");
  EXPECT_TRUE(iterator->status().IsCorruption());
  iterator->Seek("8");  // a seek clears the error
  EXPECT_TRUE(iterator->Valid());
  EXPECT_TRUE(iterator->status().ok());
}

TEST(SpillIterator, AnErrorOfRocksdbsSideIsItsError) {
  World world;
  world.put("a", "spill", true);
  const auto iterator = make_iterator(
      {world.view(), std::unique_ptr<Iterator>(rocksdb::NewErrorIterator(Status::IOError("gone"))), {}, {}},
      IteratedFamily{0, rocksdb::BytewiseComparator()}, {}, ValueReader(world.store()), nullptr);
  iterator->SeekToFirst();
  EXPECT_FALSE(iterator->Valid());
  EXPECT_TRUE(iterator->status().IsIOError());
}

TEST(SpillIterator, DoesNotReadTheDriveWhereOnlyMemoryIsAllowed) {
  World world;
  world.put("a", "main", false);
  world.put("b", "spill", true);
  ReadOptions options;
  options.read_tier = rocksdb::kBlockCacheTier;
  const auto iterator = world.iterator(options);
  iterator->SeekToFirst();
  EXPECT_TRUE(iterator->Valid());
  iterator->Next();
  EXPECT_FALSE(iterator->Valid());
  EXPECT_TRUE(iterator->status().IsIncomplete());
}

TEST(SpillIterator, EveryTierButTheBlockCacheMayRead) {
  World world;
  world.put("a", "main", false);
  for (const char* key : {"b", "c", "d"}) world.put(key, "spill", true);
  ReadOptions options;
  options.read_tier = rocksdb::kMemtableTier;  // RocksDB's iterators ignore it
  EXPECT_EQ(all_of(*world.iterator(options)), "a=main b=spill c=spill d=spill ");
  options.read_tier = rocksdb::kPersistedTier;  // RocksDB's iterators refuse it
  const auto iterator = world.iterator(options);
  EXPECT_TRUE(iterator->status().IsNotSupported());
  iterator->SeekToFirst();
  EXPECT_FALSE(iterator->Valid());
  EXPECT_TRUE(iterator->status().IsNotSupported());
}

TEST(SpillIterator, ReadsNothingAfterItsDeadline) {
  World world;
  world.put("a", "main", false);
  world.put("b", "spill", true);
  ReadOptions options;
  options.deadline = std::chrono::microseconds(1);  // in 1970
  const auto iterator = world.iterator(options);
  iterator->Seek("b");
  EXPECT_FALSE(iterator->Valid());
  EXPECT_TRUE(iterator->status().IsTimedOut()) << iterator->status().ToString();
  EXPECT_TRUE(world.store().batches.empty());
  options.deadline = std::chrono::hours(24 * 365 * 1000);
  EXPECT_EQ(all_of(*world.iterator(options)), "a=main b=spill ");
}

TEST(SpillIterator, PassesNoMoreDeletionsThanItMay) {
  for (const bool forward : {true, false}) {
    World world;
    world.put("a", "spill", true);
    for (const char* key : {"b", "c", "d"}) world.remove(key, true);
    world.put("e", "spill", true);
    const auto go = [&](std::uint64_t most) {
      ReadOptions options;
      options.max_skippable_internal_keys = most;
      auto iterator = world.iterator(options);
      iterator->Seek(forward ? "a" : "e");
      EXPECT_TRUE(iterator->Valid());
      forward ? iterator->Next() : iterator->Prev();
      return iterator;
    };
    for (const std::uint64_t enough : {0, 3, 4}) {
      ASSERT_TRUE(go(enough)->Valid());
      EXPECT_EQ(go(enough)->key(), forward ? "e" : "a");
    }
    EXPECT_FALSE(go(2)->Valid());
    EXPECT_TRUE(go(2)->status().IsIncomplete());
  }
}

TEST(SpillIterator, IgnoresTheRangeDeletionsOfBothStores) {
  World world;
  world.put("a", "main", false);
  world.put("b", "spill", true);
  world.put("c", "spill", true);
  world.remove("c", true);
  world.remove_range("a", "z");
  EXPECT_EQ(all_of(*world.iterator()), "");
  ReadOptions options;
  options.ignore_range_deletions = true;
  EXPECT_EQ(all_of(*world.iterator(options)), "a=main b=spill ");
  EXPECT_EQ(backwards(*world.iterator(options)), "b=spill a=main ");
}

TEST(SpillIterator, SeesItsStateUntilItIsRefreshed) {
  World world;
  world.put("a", "1", false);
  world.put("b", "1", true);
  const auto iterator = world.iterator();
  world.put("a", "2", false);
  world.put("b", "2", true);
  world.put("c", "2", true);
  EXPECT_EQ(all_of(*iterator), "a=1 b=1 ");
  EXPECT_TRUE(iterator->Refresh().ok());
  EXPECT_FALSE(iterator->Valid());
  EXPECT_EQ(all_of(*iterator), "a=2 b=2 c=2 ");
}

// From RocksDB 8.7 on it sees the current state then, before it refuses.
TEST(SpillIterator, OnASnapshotSeesThatUntilItIsRefreshed) {
  World world;
  world.put("a", "1", false);
  world.put("b", "1", true);
  const SpillSnapshot snapshot(world.read_state());
  world.put("a", "2", false);
  world.remove("b", true);
  ReadOptions options;
  options.snapshot = &snapshot;
  const auto iterator = world.iterator(options);
  EXPECT_EQ(all_of(*iterator), "a=1 b=1 ");
  const rocksdb::Status status = iterator->Refresh();
  EXPECT_TRUE(kRefreshLeavesSnapshots ? status.ok() : status.IsNotSupported()) << status.ToString();
  EXPECT_EQ(all_of(*iterator), kRefreshLeavesSnapshots ? "a=2 " : "a=1 b=1 ");
}

#if SPILLWAY_ROCKSDB_AT_LEAST(8, 7)
TEST(SpillIterator, IsMovedToASnapshotAndBack) {
  World world;
  const SpillSnapshot empty(world.read_state());
  world.put("a", "1", false);
  world.put("b", "1", true);
  const SpillSnapshot snapshot(world.read_state());
  world.put("a", "2", true);
  world.remove("b", true);
  const auto iterator = world.iterator();
  EXPECT_EQ(all_of(*iterator), "a=2 ");
  EXPECT_TRUE(iterator->Refresh(&snapshot).ok());
  EXPECT_FALSE(iterator->Valid());
  EXPECT_EQ(all_of(*iterator), "a=1 b=1 ");
  EXPECT_EQ(backwards(*iterator), "b=1 a=1 ");
  EXPECT_TRUE(iterator->Refresh(&empty).ok());
  EXPECT_EQ(all_of(*iterator), "");
  EXPECT_TRUE(iterator->Refresh(nullptr).ok());
  EXPECT_EQ(all_of(*iterator), "a=2 ");
}
#endif

TEST(SpillIterator, KeysOfTheSpillStoreArePinned) {
  World world;
  world.put("b", "spill", true);
  const auto iterator = world.iterator();
  std::string answer;
  iterator->SeekToFirst();
  EXPECT_TRUE(iterator->GetProperty("rocksdb.iterator.is-key-pinned", &answer).ok());
  EXPECT_EQ(answer, "1");
  EXPECT_TRUE(iterator->GetProperty("rocksdb.iterator.internal-key", &answer).ok());
  EXPECT_EQ(answer, "b");
  EXPECT_TRUE(iterator->GetProperty("rocksdb.iterator.super-version-number", &answer).ok());
  EXPECT_FALSE(iterator->GetProperty("no such", &answer).ok());
}

// --- Random walks, compared with an ordered map

struct Walk {
  const char* name;
  const Comparator* comparator;
  bool bounds;
  bool prefix;
};

class SpillIteratorWalk : public ::testing::TestWithParam<Walk> {
 protected:
  std::uint64_t roll(std::uint64_t sides) { return random_() % sides; }

  // Few keys, so that each is used by every operation. Some are prefixes of others, and some have bytes above 127.
  std::string key() {
    std::string text;
    for (std::uint64_t i = 0, length = 1 + roll(3); i < length; ++i) text += "a\0b\xffz"[roll(5)];
    return text;
  }

  void fill(World& world, int operations) {
    for (int i = 0; i < operations; ++i) {
      const bool divert = roll(3) == 0;
      const std::uint64_t what = roll(20);
      if (what < 13) {
        world.put(key(), std::string(roll(20), 'v') + std::to_string(i), divert);
      } else if (what < 18) {
        world.remove(key(), divert);
      } else if (what < 19) {
        std::string begin = key();
        std::string end = key();
        if (GetParam().comparator->Compare(begin, end) > 0) begin.swap(end);
        world.remove_range(begin, end.substr(0, 2));
      } else if (roll(4) == 0) {
        world.next_generation();
      }
    }
  }

  void walk(Iterator& iterator, const Model& model, const ReadOptions& options, int steps);

  std::mt19937_64 random_{1};
};

// The map's entries in the order in which an iterator with these options visits them.
class Reference {
 public:
  Reference(const Model& model, const ReadOptions& options) : by_prefix_(options.prefix_same_as_start) {
    const Order order = model.key_comp();
    for (const auto& [key, value] : model) {
      if (options.iterate_lower_bound && order(key, options.iterate_lower_bound->ToString())) continue;
      if (options.iterate_upper_bound && !order(key, options.iterate_upper_bound->ToString())) continue;
      rows_.emplace_back(key, value);
    }
    order_ = order.comparator;
  }

  void seek_to_first() { stand(0, std::nullopt); }
  void seek_to_last() { stand(size() - 1, std::nullopt); }
  void seek(const std::string& target) {
    std::int64_t at = 0;
    while (at < size() && order_->Compare(rows_[at].first, target) < 0) ++at;
    stand(at, target[0]);
  }
  void seek_for_prev(const std::string& target) {
    std::int64_t at = size() - 1;
    while (at >= 0 && order_->Compare(rows_[at].first, target) > 0) --at;
    stand(at, target[0]);
  }
  void move(int by) { at_ += by; }
  bool valid() const {
    return at_ >= 0 && at_ < size() && (!by_prefix_ || !prefix_ || rows_[at_].first[0] == *prefix_);
  }
  const std::pair<std::string, std::string>& row() const { return rows_[at_]; }

 private:
  std::int64_t size() const { return static_cast<std::int64_t>(rows_.size()); }
  void stand(std::int64_t at, std::optional<char> prefix) {
    at_ = at;
    prefix_ = prefix;
    if (!prefix && at >= 0 && at < size()) prefix_ = rows_[at].first[0];
  }

  std::vector<std::pair<std::string, std::string>> rows_;
  const Comparator* order_ = nullptr;
  const bool by_prefix_;
  std::int64_t at_ = -1;
  std::optional<char> prefix_;
};

void SpillIteratorWalk::walk(Iterator& iterator, const Model& model, const ReadOptions& options, int steps) {
  Reference reference(model, options);
  const auto expect_same = [&](const std::string& step) {
    ASSERT_EQ(iterator.Valid(), reference.valid()) << step;
    ASSERT_TRUE(iterator.status().ok()) << step;
    if (!iterator.Valid()) return;
    ASSERT_EQ(iterator.key().ToString(true), Slice(reference.row().first).ToString(true)) << step;
    ASSERT_EQ(iterator.value().ToString(), reference.row().second) << step;
    ASSERT_EQ(iterator.columns().front().value(), reference.row().second) << step;
  };
  for (int i = 0; i < steps && !HasFatalFailure(); ++i) {
    const std::string target = key();
    switch (roll(4)) {
      case 0:
        iterator.SeekToFirst();
        reference.seek_to_first();
        break;
      case 1:
        iterator.SeekToLast();
        reference.seek_to_last();
        break;
      case 2:
        iterator.Seek(target);
        reference.seek(target);
        break;
      default:
        iterator.SeekForPrev(target);
        reference.seek_for_prev(target);
    }
    expect_same("seek " + Slice(target).ToString(true));
    int by = 1;
    for (std::uint64_t left = roll(30); left > 0 && iterator.Valid() && !HasFatalFailure(); --left) {
      if (roll(4) == 0) by = -by;
      if (by > 0) {
        iterator.Next();
      } else {
        iterator.Prev();
      }
      reference.move(by);
      expect_same(by > 0 ? "next" : "prev");
    }
  }
}

TEST_P(SpillIteratorWalk, AgreesWithAnOrderedMapNowAndThroughASnapshot) {
  for (int round = 0; round < 12 && !HasFatalFailure(); ++round) {
    SCOPED_TRACE(round);
    World world(GetParam().comparator);
    world.store().in_background = round % 2 == 1;
    fill(world, 20 << (round % 6));
    const SpillSnapshot snapshot(world.read_state());
    const Model then = world.model();
    fill(world, 100);

    for (int i = 0; i < 6; ++i) {
      ReadOptions options;
      const std::string lower = key();
      const std::string upper = key();
      const Slice bounds[] = {lower, upper};
      if (GetParam().bounds && roll(3) > 0) options.iterate_lower_bound = &bounds[0];
      if (GetParam().bounds && roll(3) > 0) options.iterate_upper_bound = &bounds[1];
      options.prefix_same_as_start = GetParam().prefix;
      if (i % 2 == 0) options.snapshot = &snapshot;
      walk(*world.iterator(options), i % 2 == 0 ? then : world.model(), options, 25);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Kinds, SpillIteratorWalk,
                         ::testing::Values(Walk{"plain", rocksdb::BytewiseComparator(), false, false},
                                           Walk{"bounds", rocksdb::BytewiseComparator(), true, false},
                                           Walk{"prefix", rocksdb::BytewiseComparator(), false, true},
                                           Walk{"backwards_with_bounds", rocksdb::ReverseBytewiseComparator(), true,
                                                false}),
                         [](const auto& test) { return std::string(test.param.name); });

}  // namespace
}  // namespace spillway::spill
