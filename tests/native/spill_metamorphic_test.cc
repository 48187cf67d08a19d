// The same random operations on spillway::DB and on plain RocksDB give the same answers, wherever writes are diverted
// and whenever they are brought back.
//
// A few seconds with fixed seeds; spill_metamorphic.h says how to run it for longer, or one seed alone.
#include "spill_metamorphic.h"

#include <gtest/gtest.h>

#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <thread>

#include "spill_two_databases.h"

namespace spillway {
namespace {

using rocksdb::ColumnFamilyHandle;
using rocksdb::Iterator;
using rocksdb::ReadOptions;
using rocksdb::Slice;
using rocksdb::Status;
using rocksdb::WriteOptions;

struct HeldSnapshot {
  Both<const rocksdb::Snapshot*> of{};
};

// An iterator of each, with what their bounds point to.
struct HeldIterators {
  Both<std::unique_ptr<Iterator>> of;
  std::string lower;
  std::string upper;
  Slice lower_slice;
  Slice upper_slice;
  bool on_snapshot = false;
};

// Does one thing after another to both and compares. Of several at a time, each has keys of its own.
class Walker {
 public:
  Walker(TwoDatabases& databases, std::uint64_t seed, std::string own, bool alone)
      : databases_(databases), random_(seed), own_(std::move(own)), alone_(alone) {}
  ~Walker() { let_go(); }
  Walker(const Walker&) = delete;
  Walker& operator=(const Walker&) = delete;

  void run(int steps) {
    for (int i = 0; i < steps && !::testing::Test::HasFailure(); ++i) step();
    let_go();
    if (!::testing::Test::HasFailure()) return;
    std::string last;
    for (const std::string& one : history_) last += "\n  " + one;
    ADD_FAILURE() << "the last steps of " << own_ << ":" << last;
  }

 private:
  void step() {
    const std::uint64_t what = random_.below(1000);
    if (what < 250) return put();
    if (what < 310) return remove();
    if (what < 360) return put_or_delete_single();
    if (what < 420) return merge();
    if (what < 440) return remove_range();
    if (what < 530) return write_batch();
    if (what < 680) return get();
    if (what < 730) return multi_get();
    if (what < 830) return use_an_iterator();
    if (what < 890) return use_held_iterators();
    if (what < 930) return take_or_release_snapshot();
    if (what < 950) return divert();
    if (what < 960) return flush();
    if (what < 963) return compact();
    if (!alone_) return get();
    if (what < 970) return create_or_drop_family();
    if (what < 975) return reopen();
    get();
  }

  // --- Random things.

  // Few keys, so that everything happens to each of them, and some of all lengths.
  std::string key() {
    std::string text = own_;
    for (std::uint64_t i = 0, length = 1 + random_.below(3); i < length; ++i) text += "abc\xff"[random_.below(4)];
    return text;
  }
  std::string single_key() { return own_ + "\xff\xff\xff\xff" + std::to_string(random_.below(6)); }  // in no range
  std::string value() {
    const std::string number = std::to_string(++values_);
    return random_.one_in(40) ? std::string(3000, 'v') + number : std::string(random_.below(30), 'v') + number;
  }
  Family& family() { return databases_.families()[random_.below(databases_.families().size())]; }
  WriteOptions write_options() {
    WriteOptions options;
    options.sync = random_.one_in(20);
    options.disableWAL = random_.one_in(100);
    return options;
  }
  std::pair<std::string, std::string> range(const Family& of) {
    std::string begin = key();
    std::string end = key();
    if (of.comparator->Compare(begin, end) > 0) begin.swap(end);  // the other way round, RocksDB ends all writing
    return {begin, end};
  }

  // --- Both, and what they say.

  using Operation = std::function<Status(rocksdb::DB&, Side)>;

  void note(std::string what) {
    history_.push_back(std::move(what));
    if (history_.size() > 25) history_.pop_front();
  }

  // The thread sanitizer's list of what is RocksDB's own knows this name: the group's leader reads the batches of
  // others.
  [[gnu::noinline]] static Status by_plain_rocksdb(const Operation& operation, rocksdb::DB& db) {
    Status status = operation(db, kPlain);
    return status;
  }

  bool same(const std::string& what, const Operation& operation) {
    note(what);
    Both<Status> said;
    said[kPlain] = by_plain_rocksdb(operation, databases_.of(kPlain));
    said[kSpill] = operation(databases_.of(kSpill), kSpill);
    EXPECT_TRUE(said[kPlain].code() == said[kSpill].code())
        << what << ": RocksDB says " << said[kPlain].ToString() << ", Spillway " << said[kSpill].ToString();
    return said[kPlain].ok();
  }

  static std::string shown(const Slice& text) { return text.ToString(/*hex=*/true); }

  // --- Writes.

  void put() {
    Family& into = family();
    const std::string k = key();
    const std::string v = value();
    const WriteOptions options = write_options();
    same("put " + into.name + " " + shown(k),
         [&](rocksdb::DB& db, Side side) { return db.Put(options, into.handles[side], k, v); });
  }

  void remove() {
    Family& from = family();
    const std::string k = key();
    const WriteOptions options = write_options();
    same("delete " + from.name + " " + shown(k),
         [&](rocksdb::DB& db, Side side) { return db.Delete(options, from.handles[side], k); });
  }

  // As RocksDB demands: of keys that were put once since they were last deleted, and by nothing else.
  void put_or_delete_single() {
    Family& of = family();
    const std::string k = single_key();
    const std::string v = value();
    const WriteOptions options = write_options();
    std::set<std::string>& there = singles_[of.name];
    if (there.contains(k)) {
      if (same("single delete " + of.name + " " + shown(k),
               [&](rocksdb::DB& db, Side side) { return db.SingleDelete(options, of.handles[side], k); })) {
        there.erase(k);
      }
    } else if (same("put to delete " + of.name + " " + shown(k),
                    [&](rocksdb::DB& db, Side side) { return db.Put(options, of.handles[side], k, v); })) {
      there.insert(k);
    }
  }

  void merge() {
    Family& into = family();
    const std::string k = key();
    const std::string v = std::to_string(++values_);
    const WriteOptions options = write_options();
    same("merge " + into.name + " " + shown(k),
         [&](rocksdb::DB& db, Side side) { return db.Merge(options, into.handles[side], k, v); });
  }

  void remove_range() {
    Family& from = family();
    const auto keys = range(from);
    const WriteOptions options = write_options();
    same("delete range " + from.name + " " + shown(keys.first) + " " + shown(keys.second),
         [&](rocksdb::DB& db, Side side) {
           return db.DeleteRange(options, from.handles[side], keys.first, keys.second);
         });
  }

  void write_batch() {
    Both<rocksdb::WriteBatch> batches;
    std::string what = "batch";
    for (std::uint64_t left = random_.below(8); left > 0; --left) what += add_to(batches);
    const WriteOptions options = write_options();
    same(what, [&](rocksdb::DB& db, Side side) { return db.Write(options, &batches[side]); });
  }

  std::string add_to(Both<rocksdb::WriteBatch>& batches) {
    Family& in = family();
    const std::string k = key();
    const std::string v = value();
    const auto [begin, end] = range(in);
    const std::uint64_t what = random_.below(12);
    for (const Side side : {kPlain, kSpill}) {
      ColumnFamilyHandle* const handle = in.handles[side];
      rocksdb::WriteBatch& batch = batches[side];
      Status status;
      if (what < 6) {
        status = batch.Put(handle, k, v);
      } else if (what < 8) {
        status = batch.Delete(handle, k);
      } else if (what < 10) {
        status = batch.Merge(handle, k, std::to_string(values_));
      } else if (what < 11) {
        status = batch.DeleteRange(handle, begin, end);
      } else {
        status = batch.PutLogData("of no consequence");
      }
      EXPECT_TRUE(status.ok());
    }
    return " " + std::to_string(what) + " " + in.name + " " + shown(k);
  }

  // --- Reads.

  ReadOptions read_options(Side side, const HeldSnapshot* snapshot) const {
    ReadOptions options;
    if (snapshot) options.snapshot = snapshot->of[side];
    return options;
  }
  const HeldSnapshot* any_snapshot() {
    return snapshots_.empty() || random_.one_in(2) ? nullptr : &snapshots_[random_.below(snapshots_.size())];
  }

  void get() {
    Family& from = family();
    const std::string k = random_.one_in(6) ? single_key() : key();
    const HeldSnapshot* snapshot = any_snapshot();
    Both<std::string> found;
    same("get " + from.name + " " + shown(k) + (snapshot ? " of a snapshot" : ""), [&](rocksdb::DB& db, Side side) {
      return db.Get(read_options(side, snapshot), from.handles[side], k, &found[side]);
    });
    EXPECT_EQ(found[kPlain], found[kSpill]) << shown(k);
  }

  void multi_get() {
    std::vector<std::string> keys;
    std::vector<Family*> from;
    for (std::uint64_t left = 1 + random_.below(10); left > 0; --left) {
      keys.push_back(key());
      from.push_back(&family());
    }
    const std::vector<Slice> slices(keys.begin(), keys.end());
    const HeldSnapshot* snapshot = any_snapshot();
    note("multi get");
    Both<std::vector<Status>> statuses;
    Both<std::vector<std::string>> values;
    for (const Side side : {kPlain, kSpill}) {
      std::vector<ColumnFamilyHandle*> handles;
      handles.reserve(from.size());
      for (const Family* one : from) handles.push_back(one->handles[side]);
      statuses[side] = databases_.of(side).MultiGet(read_options(side, snapshot), handles, slices, &values[side]);
    }
    for (std::size_t i = 0; i < keys.size(); ++i) {
      EXPECT_EQ(statuses[kPlain][i].code(), statuses[kSpill][i].code()) << shown(keys[i]);
      if (!statuses[kPlain][i].ok()) continue;
      EXPECT_EQ(values[kPlain][i], values[kSpill][i]) << shown(keys[i]);
    }
  }

  std::unique_ptr<HeldIterators> make_iterators() {
    auto held = std::make_unique<HeldIterators>();
    Family& of = family();
    const HeldSnapshot* snapshot = any_snapshot();
    held->on_snapshot = snapshot != nullptr;
    const bool is_backwards = of.comparator != rocksdb::BytewiseComparator();
    // The keys of this walker, and of them a part.
    held->lower = is_backwards ? own_ + "\xff\xff\xff\xff\xff" : own_;
    held->upper = is_backwards ? own_ : own_ + "\xff\xff\xff\xff\xff";
    if (random_.one_in(3)) held->lower = key();
    if (random_.one_in(3)) held->upper = key();
    held->lower_slice = held->lower;
    held->upper_slice = held->upper;
    const bool is_pinned = random_.one_in(4);
    const bool has_bounds = !alone_ || random_.one_in(2);
    for (const Side side : {kPlain, kSpill}) {
      ReadOptions options = read_options(side, snapshot);
      options.pin_data = is_pinned;
      if (has_bounds) options.iterate_lower_bound = &held->lower_slice;
      if (has_bounds) options.iterate_upper_bound = &held->upper_slice;
      held->of[side].reset(databases_.of(side).NewIterator(options, of.handles[side]));
    }
    note("iterator over " + of.name + (snapshot ? " of a snapshot" : "") + " from " + shown(held->lower) + " to " +
         shown(held->upper) + (has_bounds ? "" : " without bounds"));
    return held;
  }

  void use_an_iterator() {
    auto held = make_iterators();
    walk(*held);
    if (random_.one_in(3)) held_.push_back(std::move(held));
    if (held_.size() > 3) held_.pop_front();
  }

  void use_held_iterators() {
    if (held_.empty()) return use_an_iterator();
    HeldIterators& held = *held_[random_.below(held_.size())];
    if (random_.one_in(5)) {
      note("refresh");
      EXPECT_EQ(held.of[kPlain]->Refresh().code(), held.of[kSpill]->Refresh().code());
    }
    note("an iterator of before");
    walk(held);
  }

  void walk(HeldIterators& held) {
    for (std::uint64_t left = 1 + random_.below(3); left > 0 && !::testing::Test::HasFailure(); --left) {
      const std::string target = key();
      const std::uint64_t how = random_.below(4);
      const char* const names[] = {"to first", "to last", "seek ", "seek for prev "};
      note(names[how] + (how >= 2 ? shown(target) : ""));
      for (const auto& iterator : held.of) {
        if (how == 0) iterator->SeekToFirst();
        if (how == 1) iterator->SeekToLast();
        if (how == 2) iterator->Seek(target);
        if (how == 3) iterator->SeekForPrev(target);
      }
      bool is_forward = how % 2 == 0;
      std::uint64_t moves = random_.below(random_.one_in(5) ? 200 : 12);
      while (same_place(held) && moves-- > 0) {
        if (random_.one_in(6)) is_forward = !is_forward;
        note(is_forward ? "next" : "prev");
        for (const auto& iterator : held.of) is_forward ? iterator->Next() : iterator->Prev();
      }
    }
  }

  // Whether they are at an entry. Where they differ it is a failure.
  bool same_place(const HeldIterators& held) {
    const Iterator& plain = *held.of[kPlain];
    const Iterator& spill = *held.of[kSpill];
    EXPECT_EQ(plain.status().code(), spill.status().code()) << spill.status().ToString();
    EXPECT_EQ(plain.Valid(), spill.Valid()) << "at " << (plain.Valid() ? shown(plain.key()) : "no key") << " and "
                                            << (spill.Valid() ? shown(spill.key()) : "no key");
    if (!plain.Valid() || !spill.Valid()) return false;
    EXPECT_EQ(shown(plain.key()), shown(spill.key()));
    EXPECT_EQ(plain.value(), spill.value()) << "of " << shown(plain.key());
    return !::testing::Test::HasFailure();
  }

  void take_or_release_snapshot() {
    if (snapshots_.size() < 3 && random_.one_in(2)) {
      note("take a snapshot");
      HeldSnapshot taken;
      for (const Side side : {kPlain, kSpill}) taken.of[side] = databases_.of(side).GetSnapshot();
      snapshots_.push_back(taken);
    } else if (!snapshots_.empty()) {
      note("release a snapshot");
      std::erase_if(held_, [](const auto& one) { return one->on_snapshot; });  // RocksDB's look at it to the end
      const std::size_t which = random_.below(snapshots_.size());
      release(snapshots_[which]);
      snapshots_.erase(snapshots_.begin() + static_cast<std::ptrdiff_t>(which));
    }
  }

  void release(const HeldSnapshot& snapshot) {
    for (const Side side : {kPlain, kSpill}) databases_.of(side).ReleaseSnapshot(snapshot.of[side]);
  }

  void let_go() {
    held_.clear();
    for (const HeldSnapshot& snapshot : snapshots_) release(snapshot);
    snapshots_.clear();
  }

  // --- The rest.

  void divert() {
    const auto how =
        random_.of<Diversion>({Diversion::always, Diversion::always, Diversion::never, Diversion::automatic});
    note("divert " + std::to_string(static_cast<int>(how)));
    databases_.spill().SetDiversion(how);
  }

  void flush() {
    Family& of = family();
    same("flush " + of.name, [&](rocksdb::DB& db, Side side) { return db.Flush({}, of.handles[side]); });
  }

  void compact() {
    Family& of = family();
    same("compact " + of.name,
         [&](rocksdb::DB& db, Side side) { return db.CompactRange({}, of.handles[side], nullptr, nullptr); });
  }

  void create_or_drop_family() {
    std::vector<Family>& families = databases_.families();
    held_.clear();
    if (families.size() > 2) {
      Family last = families.back();
      families.pop_back();
      same("drop " + last.name, [&](rocksdb::DB& db, Side side) { return db.DropColumnFamily(last.handles[side]); });
      singles_.erase(last.name);
      same("destroy the handle of " + last.name,
           [&](rocksdb::DB& db, Side side) { return db.DestroyColumnFamilyHandle(last.handles[side]); });
      return;
    }
    Family fresh{"more", rocksdb::BytewiseComparator()};
    if (random_.one_in(2)) fresh = {"more backwards", rocksdb::ReverseBytewiseComparator()};
    same("create " + fresh.name, [&](rocksdb::DB& db, Side side) {
      return db.CreateColumnFamily(TwoDatabases::options_of(fresh), fresh.name, &fresh.handles[side]);
    });
    families.push_back(fresh);
  }

  void reopen() {
    note("reopen");
    let_go();
    databases_.reopen();
  }

  TwoDatabases& databases_;
  Random random_;
  const std::string own_;
  const bool alone_;
  std::uint64_t values_ = 0;
  std::map<std::string, std::set<std::string>> singles_;  // of each family, own keys for SingleDelete that are there
  std::vector<HeldSnapshot> snapshots_;
  std::deque<std::unique_ptr<HeldIterators>> held_;
  std::deque<std::string> history_;
};

void expect_same_contents(rocksdb::DB& plain, ColumnFamilyHandle* plain_family, rocksdb::DB& spill,
                          ColumnFamilyHandle* spill_family) {
  const std::unique_ptr<Iterator> expected(plain.NewIterator({}, plain_family));
  const std::unique_ptr<Iterator> found(spill.NewIterator({}, spill_family));
  found->SeekToFirst();
  for (expected->SeekToFirst(); expected->Valid(); expected->Next(), found->Next()) {
    ASSERT_TRUE(found->Valid()) << "without " << expected->key().ToString(true);
    ASSERT_EQ(expected->key().ToString(true), found->key().ToString(true));
    ASSERT_EQ(expected->value(), found->value()) << "of " << expected->key().ToString(true);
  }
  EXPECT_FALSE(found->Valid());
  EXPECT_TRUE(found->status().ok()) << found->status().ToString();
}

void expect_same_checkpoints(TwoDatabases& databases) {
  Both<TwoDatabases::Handles> handles;
  const auto copies = databases.open_checkpoints(handles);
  for (std::size_t i = 0; i < handles[kPlain].size() && !::testing::Test::HasFailure(); ++i) {
    expect_same_contents(*copies[kPlain], handles[kPlain][i], *copies[kSpill], handles[kSpill][i]);
  }
  for (const Side side : {kPlain, kSpill}) {
    for (ColumnFamilyHandle* handle : handles[side]) {
      EXPECT_TRUE(copies[side]->DestroyColumnFamilyHandle(handle).ok());
    }
  }
}

// One walker that does everything, or several at once, which leave the databases open and their families as they are.
void run(std::uint64_t seed, int walkers, int steps) {
  SCOPED_TRACE("seed " + std::to_string(seed) + ", walkers " + std::to_string(walkers));
  TwoDatabases databases(seed);
  if (::testing::Test::HasFailure()) return;
  {
    std::vector<std::thread> threads;
    std::optional<RollbackThread> rollback;
    if (seed % 3 != 0) rollback.emplace(databases, seed);
    threads.reserve(static_cast<std::size_t>(walkers));
    for (int i = 0; i < walkers; ++i) {
      threads.emplace_back([&, i] {
        const std::string own = walkers == 1 ? "" : "walker " + std::to_string(i) + ": ";
        Walker(databases, seed + static_cast<std::uint64_t>(i) * 1000, own, walkers == 1).run(steps);
      });
    }
    for (std::thread& one : threads) one.join();
  }
  if (::testing::Test::HasFailure()) return;
  EXPECT_GT(databases.diverted(), 0U);
  for (const Family& each : databases.families()) {
    expect_same_contents(databases.of(kPlain), each.handles[kPlain], databases.of(kSpill), each.handles[kSpill]);
  }
  if (!::testing::Test::HasFailure()) expect_same_checkpoints(databases);
}

TEST(SpillMetamorphic, OneThreadIsAnsweredAsByRocksdb) {
  for_each_seed({.from = 1, .count = 7, .steps = 600}, [](std::uint64_t seed, int steps) { run(seed, 1, steps); });
}

TEST(SpillMetamorphic, ThreadsWithKeysOfTheirOwnAreAnsweredAsByRocksdb) {
  for_each_seed({.from = 1, .count = 2, .steps = 400}, [](std::uint64_t seed, int steps) { run(seed, 3, steps); });
}

}  // namespace
}  // namespace spillway
