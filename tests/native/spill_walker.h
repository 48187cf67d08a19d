// Random operations on both databases, which must give the same answers.
#pragma once

#include <gtest/gtest.h>

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "spill_files_of_two.h"
#include "spill_two_databases.h"
#include "spill_two_iterators.h"

namespace spillway::clients {

struct HeldSnapshot {
  Both<const rocksdb::Snapshot*> of{};
};

// Does one random operation after another on both and compares. Several walkers at a time have separate keys.
class Walker {
 public:
  Walker(TwoDatabases& databases, std::uint64_t seed, std::string own, bool alone)
      : databases_(databases), random_(seed), own_(std::move(own)), alone_(alone) {}
  ~Walker() { release_all(); }
  Walker(const Walker&) = delete;
  Walker& operator=(const Walker&) = delete;

  void run(int steps) {
    for (int i = 0; i < steps && !::testing::Test::HasFailure(); ++i) step();
    release_all();
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
    if (what < 966) return ingest();
    if (!alone_) return get();
    if (what < 973) return create_or_drop_family();
    if (what < 978) return reopen();
    if (exports_ && what < 982) return export_one();
    get();
  }

  // --- Random choices

  // Few keys, so that each is used by every operation, and keys of all lengths.
  std::string key() {
    std::string text = own_;
    for (std::uint64_t i = 0, length = 1 + random_.below(3); i < length; ++i) text += "abc\xff"[random_.below(4)];
    return text;
  }
  std::string single_key() { return own_ + "\xff\xff\xff\xff" + std::to_string(random_.below(6)); }  // in no range
  std::string value() {
    const std::string number = std::to_string(++values_);
    if (random_.one_in(30)) return "";
    return random_.one_in(40) ? std::string(3000, 'v') + number : std::string(random_.below(30), 'v') + number;
  }
  Family& family() { return databases_.families()[random_.below(databases_.families().size())]; }
  rocksdb::WriteOptions write_options() {
    rocksdb::WriteOptions options;
    options.sync = random_.one_in(20);
    options.disableWAL = random_.one_in(100);
    return options;
  }
  std::pair<std::string, std::string> range(const Family& of) {
    std::string begin = key();
    std::string end = key();
    // With a reversed range RocksDB refuses all later writes.
    if (of.comparator->Compare(begin, end) > 0) begin.swap(end);
    return {begin, end};
  }

  // --- Both databases, and their answers

  using Operation = std::function<rocksdb::Status(rocksdb::DB&, Side)>;

  void note(std::string what) {
    history_.push_back(std::move(what));
    if (history_.size() > 25) history_.pop_front();
  }

  // scripts/tsan.suppressions names this function: RocksDB's group leader reads the batches of other writers.
  [[gnu::noinline]] static rocksdb::Status by_plain_rocksdb(const Operation& operation, rocksdb::DB& db) {
    rocksdb::Status status = operation(db, kPlain);
    return status;
  }

  bool same(const std::string& what, const Operation& operation) {
    note(what);
    Both<rocksdb::Status> said;
    said[kPlain] = by_plain_rocksdb(operation, databases_.of(kPlain));
    said[kSpill] = operation(databases_.of(kSpill), kSpill);
    EXPECT_TRUE(said[kPlain].code() == said[kSpill].code())
        << what << ": RocksDB says " << said[kPlain].ToString() << ", Spillway " << said[kSpill].ToString();
    return said[kPlain].ok();
  }

  static std::string shown(const rocksdb::Slice& text) { return text.ToString(/*hex=*/true); }

  // --- Writes

  void put() {
    Family& into = family();
    const std::string k = key();
    const std::string v = value();
    const rocksdb::WriteOptions options = write_options();
    same("put " + into.name + " " + shown(k),
         [&](rocksdb::DB& db, Side side) { return db.Put(options, into.handles[side], k, v); });
  }

  void remove() {
    Family& from = family();
    const std::string k = key();
    const rocksdb::WriteOptions options = write_options();
    same("delete " + from.name + " " + shown(k),
         [&](rocksdb::DB& db, Side side) { return db.Delete(options, from.handles[side], k); });
  }

  // As RocksDB requires: only keys that were put once since their last deletion, and changed in no other way.
  void put_or_delete_single() {
    Family& of = family();
    const std::string k = single_key();
    const std::string v = value();
    const rocksdb::WriteOptions options = write_options();
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
    const rocksdb::WriteOptions options = write_options();
    same("merge " + into.name + " " + shown(k),
         [&](rocksdb::DB& db, Side side) { return db.Merge(options, into.handles[side], k, v); });
  }

  void remove_range() {
    Family& from = family();
    const auto keys = range(from);
    const rocksdb::WriteOptions options = write_options();
    same("delete range " + from.name + " " + shown(keys.first) + " " + shown(keys.second),
         [&](rocksdb::DB& db, Side side) {
           return db.DeleteRange(options, from.handles[side], keys.first, keys.second);
         });
  }

  void write_batch() {
    Both<rocksdb::WriteBatch> batches;
    std::string what = "batch";
    for (std::uint64_t left = random_.below(8); left > 0; --left) what += add_to(batches);
    const rocksdb::WriteOptions options = write_options();
    same(what, [&](rocksdb::DB& db, Side side) { return db.Write(options, &batches[side]); });
  }

  std::string add_to(Both<rocksdb::WriteBatch>& batches) {
    Family& in = family();
    const std::string k = key();
    const std::string v = value();
    const auto [begin, end] = range(in);
    const std::uint64_t what = random_.below(12);
    for (const Side side : {kPlain, kSpill}) {
      rocksdb::ColumnFamilyHandle* const handle = in.handles[side];
      rocksdb::WriteBatch& batch = batches[side];
      rocksdb::Status status;
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

  // --- Reads

  rocksdb::ReadOptions read_options(Side side, const HeldSnapshot* snapshot) const {
    rocksdb::ReadOptions options;
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
    const std::vector<rocksdb::Slice> slices(keys.begin(), keys.end());
    const HeldSnapshot* snapshot = any_snapshot();
    note("multi get");
    Both<std::vector<rocksdb::Status>> statuses;
    Both<std::vector<std::string>> values;
    for (const Side side : {kPlain, kSpill}) {
      std::vector<rocksdb::ColumnFamilyHandle*> handles;
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

  std::unique_ptr<TwoIterators> make_iterators() {
    Family& of = family();
    TwoIterators::Wish wish;
    const HeldSnapshot* snapshot = any_snapshot();
    wish.has_snapshots = snapshot != nullptr;
    if (snapshot) wish.snapshots = snapshot->of;
    const bool is_backwards = of.comparator != rocksdb::BytewiseComparator();
    // The keys of this walker, or a part of them.
    wish.lower = is_backwards ? own_ + "\xff\xff\xff\xff\xff" : own_;
    wish.upper = is_backwards ? own_ : own_ + "\xff\xff\xff\xff\xff";
    if (wish.lower.empty() || random_.one_in(3)) wish.lower = key();
    if (wish.upper.empty() || random_.one_in(3)) wish.upper = key();
    wish.has_bounds = !alone_ || random_.one_in(2);
    return std::make_unique<TwoIterators>(databases_, of, std::move(wish), random_, note_);
  }

  void use_an_iterator() {
    auto held = make_iterators();
    walk(*held);
    if (random_.one_in(3)) held_.push_back(std::move(held));
    if (held_.size() > 3) held_.pop_front();
  }

  void use_held_iterators() {
    if (held_.empty()) return use_an_iterator();
    TwoIterators& held = *held_[random_.below(held_.size())];
    if (random_.one_in(5)) {
      note("refresh");
      held.refresh();
    }
    note("an iterator of before");
    walk(held);
  }

  void walk(TwoIterators& held) {
    for (std::uint64_t left = 1 + random_.below(3); left > 0 && !::testing::Test::HasFailure(); --left) {
      held.walk(key(), random_, note_);
    }
  }

  void take_or_release_snapshot() {
    if (snapshots_.size() < 3 && random_.one_in(2)) {
      note("take a snapshot");
      HeldSnapshot taken;
      for (const Side side : {kPlain, kSpill}) taken.of[side] = databases_.of(side).GetSnapshot();
      snapshots_.push_back(taken);
    } else if (!snapshots_.empty()) {
      note("release a snapshot");
      // RocksDB's iterators use the snapshot until they are destroyed.
      std::erase_if(held_, [](const auto& one) { return one->is_on_snapshots(); });
      const std::size_t which = random_.below(snapshots_.size());
      release(snapshots_[which]);
      snapshots_.erase(snapshots_.begin() + static_cast<std::ptrdiff_t>(which));
    }
  }

  void release(const HeldSnapshot& snapshot) {
    for (const Side side : {kPlain, kSpill}) databases_.of(side).ReleaseSnapshot(snapshot.of[side]);
  }

  void release_all() {
    held_.clear();
    for (const HeldSnapshot& snapshot : snapshots_) release(snapshot);
    snapshots_.clear();
  }

  // --- Other operations

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

  TableContents::Rows some_rows(const Family& of) {
    TableContents::Rows rows(TableContents::Order{of.comparator});
    for (std::uint64_t left = 1 + random_.below(8); left > 0; --left) {
      rows[key()] = random_.one_in(4) ? std::nullopt : std::optional(value());
    }
    return rows;
  }

  rocksdb::Options options_of(const Family& family) const { return {{}, databases_.options_of(family)}; }

  void ingest() {
    Family& into = family();
    const std::string file = TableContents::write(options_of(into), some_rows(into), databases_.new_path("table"));
    rocksdb::IngestExternalFileOptions options;
    options.write_global_seqno = !exports_;
    same("ingest into " + into.name, [&](rocksdb::DB& db, Side side) {
      // RocksDB refuses it with TryAgain while a flush or a compaction is just ending.
      rocksdb::Status status = rocksdb::Status::TryAgain();
      for (int i = 0; i < 100 && status.IsTryAgain(); ++i) {
        status = db.IngestExternalFile(into.handles[side], {file}, options);
      }
      return status;
    });
  }

  // The files keep their sequence numbers, which may be larger than the database's. An older snapshot sees those of
  // them that its number allows.
  void import(Family& fresh) {
    const auto files = export_new(options_of(fresh), some_rows(fresh), random_.below(5000),
                                  databases_.new_path("source"), databases_.new_path("export"));
    ASSERT_NE(files, nullptr);
    release_all();
    same("import " + fresh.name, [&](rocksdb::DB& db, Side side) {
      return db.CreateColumnFamilyWithImport(databases_.options_of(fresh), fresh.name, {}, *files,
                                             &fresh.handles[side]);
    });
  }

  void export_one() {
    Family& of = family();
    // RocksDB 7.8.3 imports a table with the bounds of its keys, without those of its range tombstones.
    release_all();
    rocksdb::CompactRangeOptions all;
    all.bottommost_level_compaction = rocksdb::BottommostLevelCompaction::kForce;
    same("compact all of " + of.name,
         [&](rocksdb::DB& db, Side side) { return db.CompactRange(all, of.handles[side], nullptr, nullptr); });
    for (std::uint64_t left = random_.below(4); left > 0; --left) {
      const std::string fresh = key();
      const std::string what = value();
      same("put for an export " + shown(fresh),
           [&](rocksdb::DB& db, Side side) { return db.Put({}, of.handles[side], fresh, what); });
    }
    note("export " + of.name);
    expect_same_exports(databases_.options_of(of), {&databases_.of(kPlain), &databases_.of(kSpill)}, of.handles,
                        {databases_.new_path("export"), databases_.new_path("export")}, databases_.new_path("import"));
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
    if (random_.one_in(2)) {
      import(fresh);
    } else {
      same("create " + fresh.name, [&](rocksdb::DB& db, Side side) {
        return db.CreateColumnFamily(databases_.options_of(fresh), fresh.name, &fresh.handles[side]);
      });
    }
    families.push_back(fresh);
  }

  void reopen() {
    note("reopen");
    release_all();
    databases_.reopen();
  }

  TwoDatabases& databases_;
  Random random_;
  const std::string own_;
  const bool alone_;
  const bool exports_ = random_.one_in(2);  // RocksDB 7.8.3 cannot import a table into which it wrote a sequence number
  std::uint64_t values_ = 0;
  std::map<std::string, std::set<std::string>> singles_;  // for each family: own keys for SingleDelete that exist
  std::vector<HeldSnapshot> snapshots_;
  std::deque<std::unique_ptr<TwoIterators>> held_;
  std::deque<std::string> history_;
  const TwoIterators::Note note_ = [this](std::string what) { note(std::move(what)); };
};

}  // namespace spillway::clients
