// An iterator of each of the two databases. They are moved alike and must be at the same entries.
#pragma once

#include <gtest/gtest.h>
#include <rocksdb/iterator.h>

#include <functional>
#include <memory>
#include <string>

#include "spill/compat/rocksdb_version.h"
#include "spill_two_databases.h"

namespace spillway::clients {

class TwoIterators {
 public:
  // Their options; what is not given is random.
  struct Wish {
    std::string lower;
    std::string upper;
    bool has_bounds = false;
    Both<const rocksdb::Snapshot*> snapshots{};
    bool has_snapshots = false;
  };
  using Note = std::function<void(std::string)>;

  TwoIterators(TwoDatabases& databases, const Family& family, Wish wish, Random& random, const Note& note)
      : wish_(std::move(wish)), lower_(wish_.lower), upper_(wish_.upper) {
    rocksdb::ReadOptions options;
    options.pin_data = random.one_in(4);
    if (wish_.has_bounds) options.iterate_lower_bound = &lower_;
    if (wish_.has_bounds) options.iterate_upper_bound = &upper_;
    if (databases.has_prefix_filters()) choose_mode(options, random);
    for (const Side side : {kPlain, kSpill}) {
      options.snapshot = wish_.snapshots[side];
      of_[side].reset(databases.of(side).NewIterator(options, family.handles[side]));
    }
    note("iterator over " + family.name + (wish_.has_snapshots ? " of a snapshot" : "") +
         (wish_.has_bounds ? " from " + shown(lower_) + " to " + shown(upper_) : "") +
         (options.total_order_seek ? " total order" : "") + (options.auto_prefix_mode ? " auto prefix" : "") +
         (options.prefix_same_as_start ? " one prefix" : ""));
  }

  bool is_on_snapshots() const { return wish_.has_snapshots; }

  void refresh() {
    const rocksdb::Status plain = of_[kPlain]->Refresh();
    const rocksdb::Status spill = of_[kSpill]->Refresh();
    EXPECT_TRUE(plain.code() == spill.code()) << plain.ToString() << " and " << spill.ToString();
  }

  // Seeks and moves in both directions.
  void walk(const std::string& target, Random& random, const Note& note) {
    const std::uint64_t how = only_seeks_ ? 2 + random.below(2) : random.below(4);
    const char* const names[] = {"to first", "to last", "seek ", "seek for prev "};
    note(names[how] + (how >= 2 ? shown(target) : ""));
    for (const auto& iterator : of_) {
      if (how == 0) iterator->SeekToFirst();
      if (how == 1) iterator->SeekToLast();
      if (how == 2) iterator->Seek(target);
      if (how == 3) iterator->SeekForPrev(target);
    }
    bool is_forward = how % 2 == 0;
    std::uint64_t moves = random.below(random.one_in(5) ? 200 : 12);
    while (same_place() && moves-- > 0) {
      if (random.one_in(6)) is_forward = !is_forward;
      note(is_forward ? "next" : "prev");
      for (const auto& iterator : of_) is_forward ? iterator->Next() : iterator->Prev();
    }
  }

 private:
  static std::string shown(const rocksdb::Slice& text) { return text.ToString(/*hex=*/true); }

  // RocksDB defines what is beyond the prefix of a seek, and what is first or last, only in these modes.
  void choose_mode(rocksdb::ReadOptions& options, Random& random) {
    const std::uint64_t mode = random.below(4);
    options.total_order_seek = mode < 2;
    // RocksDB's iterators with both are wrong from 9.8 on, see spill_prefix_iterator_test.cc.
    options.prefix_same_as_start = mode == 2 || (mode == 1 && !SPILLWAY_ROCKSDB_AT_LEAST(9, 8));
    options.auto_prefix_mode = mode == 3;
    only_seeks_ = mode == 2;
  }

  // Whether they are at an entry. A difference is a failure.
  bool same_place() const {
    const rocksdb::Iterator& plain = *of_[kPlain];
    const rocksdb::Iterator& spill = *of_[kSpill];
    EXPECT_TRUE(plain.status().code() == spill.status().code()) << spill.status().ToString();
    EXPECT_EQ(plain.Valid(), spill.Valid()) << "at " << (plain.Valid() ? shown(plain.key()) : "no key") << " and "
                                            << (spill.Valid() ? shown(spill.key()) : "no key");
    if (!plain.Valid() || !spill.Valid()) return false;
    EXPECT_EQ(shown(plain.key()), shown(spill.key()));
    EXPECT_EQ(plain.value(), spill.value()) << "of " << shown(plain.key());
    return !::testing::Test::HasFailure();
  }

  const Wish wish_;
  const rocksdb::Slice lower_;
  const rocksdb::Slice upper_;
  bool only_seeks_ = false;
  Both<std::unique_ptr<rocksdb::Iterator>> of_;
};

}  // namespace spillway::clients
