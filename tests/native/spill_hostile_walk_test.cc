// Random calls of a client that combines what other tests try alone, against a model of what every handle, snapshot and
// iterator has to see: families that are created, dropped without space to bring them back, and read on through their
// handles; batches over several families; range deletions and merges; snapshots and iterators of every age; rollbacks
// that end in the middle; checkpoints; pauses of background work; processes that are killed.
#include <gtest/gtest.h>
#include <rocksdb/env.h>
#include <rocksdb/merge_operator.h>
#include <rocksdb/write_batch.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "device_small_drive.h"
#include "faults/file_system.h"
#include "spill/compat/db_out.h"
#include "spill/store/kv/kv_store.h"
#include "spill_metamorphic.h"
#include "spillway/db.h"
#include "temporary_directory.h"

namespace spillway::faults {
namespace {

using rocksdb::ColumnFamilyHandle;
using rocksdb::IOStatus;
using rocksdb::Status;

class JoinOperator final : public rocksdb::AssociativeMergeOperator {
 public:
  bool Merge(const rocksdb::Slice&, const rocksdb::Slice* existing, const rocksdb::Slice& operand, std::string* result,
             rocksdb::Logger*) const override {
    *result = (existing != nullptr ? existing->ToString() + "," : "") + operand.ToString();
    return true;
  }
  const char* Name() const override { return "Join"; }
};

using WalkModel = std::map<std::string, std::string>;

struct WalkedFamily {
  std::string name;
  ColumnFamilyHandle* handle = nullptr;
  bool is_dropped = false;
  WalkModel model;
};
using WalkedFamilies = std::vector<std::shared_ptr<WalkedFamily>>;

struct WalkPast {
  const rocksdb::Snapshot* snapshot = nullptr;
  std::map<std::shared_ptr<WalkedFamily>, WalkModel> models;  // of each family of then
  std::vector<std::pair<std::shared_ptr<rocksdb::Iterator>, std::shared_ptr<WalkedFamily>>> iterators;  // of now, then
};

class HostileWalk {
 public:
  HostileWalk(std::uint64_t seed, bool has_kv_store, std::uint64_t put_back_bytes)
      : random_(seed), has_kv_store_(has_kv_store) {
    options_.create_if_missing = true;
    options_.write_buffer_size = 64 << 10;
    options_.target_file_size_base = 64 << 10;
    options_.merge_operator = std::make_shared<JoinOperator>();
    options_.compression = rocksdb::kNoCompression;
    options_.max_manifest_file_size = below(3) == 0 ? 2000 : 1 << 30;
    spill_.generation_bytes = 4 << 10;
    spill_.capacity_bytes = 8 << 20;
    spill_.put_back_bytes = put_back_bytes;
    spill_.rollback = below(2) == 0 ? RollbackPolicy::off : RollbackPolicy::eager;
    spill_.poll_ms = 5;
    open({rocksdb::kDefaultColumnFamilyName});
  }
  ~HostileWalk() { close(); }
  HostileWalk(const HostileWalk&) = delete;
  HostileWalk& operator=(const HostileWalk&) = delete;

  void run(int steps) {
    for (int step = 0; step < steps && !::testing::Test::HasFailure(); ++step) {
      SCOPED_TRACE("step " + std::to_string(step) + ": " + last_);
      take_step();
      if (step % 8 == 0) expect_all();
    }
    if (!::testing::Test::HasFailure()) expect_all();
    if (!::testing::Test::HasFailure()) kill_and_open();
    if (!::testing::Test::HasFailure()) expect_all();
  }

  int unreturned_drops() const { return unreturned_drops_; }

 private:
  std::uint64_t below(std::uint64_t end) { return random_() % end; }
  std::string path() const { return scratch_.path("root") + "/db"; }

  void open(const std::vector<std::string>& names) {
    auto system = FaultyFileSystem::open(scratch_.path("root"));
    ASSERT_TRUE(system);
    system_ = *system;
    env_ = rocksdb::NewCompositeEnv(system_);
    options_.env = env_.get();
    std::vector<rocksdb::ColumnFamilyDescriptor> descriptors;
    descriptors.reserve(names.size());
    for (const std::string& name : names) descriptors.emplace_back(name, options_);
    std::vector<ColumnFamilyHandle*> handles;
    DB* db = nullptr;
    spill_.store = has_kv_store_ ? open_store() : nullptr;
    const Status status = DB::Open(options_, spill_, path(), descriptors, &handles, &db);
    spill_.store = nullptr;
    ASSERT_TRUE(status.ok()) << status.ToString();
    db_.reset(db);
    for (std::size_t i = 0; i < names.size(); ++i) {
      const auto known =
          std::ranges::find_if(families_, [&](const auto& one) { return one->name == names[i] && !one->is_dropped; });
      auto& family = known == families_.end() ? families_.emplace_back(std::make_shared<WalkedFamily>()) : *known;
      family->name = names[i];
      family->handle = handles[i];
    }
  }
  std::shared_ptr<spill::Store> open_store() {
    ssd::SsdConfig config = device::small_drive();
    config.namespaces.kv_share = 0.25;
    config.namespaces.memtable_bytes = 256 * 1024;
    drive_ = device::make_simulated(ssd::Ssd(config, 1));
    std::unique_ptr<spill::Store> store;
    constexpr std::uint32_t kStaged = 32;
    const Status status = open_kv_store({drive_.get(), 0, scratch_.path("kv"), nullptr, kStaged}, &store);
    EXPECT_TRUE(status.ok()) << status.ToString();
    return store;
  }
  void forget_pasts() {
    while (!pasts_.empty()) forget(pasts_.size() - 1);
  }
  void forget(std::size_t index) {
    if (pasts_[index].snapshot != nullptr) db_->ReleaseSnapshot(pasts_[index].snapshot);
    pasts_.erase(pasts_.begin() + static_cast<std::ptrdiff_t>(index));
  }
  void close() {
    if (db_ == nullptr) return;
    forget_pasts();
    for (const auto& family : families_) (void)db_->DestroyColumnFamilyHandle(family->handle);
    db_.reset();
    drive_.reset();
    std::erase_if(families_, [](const auto& one) { return one->is_dropped; });
  }
  void kill_and_open() {
    resume();
    system_->set_fault_rule({});
    if (below(3) > 0) system_->cut_power();  // what was written is there, as after a kill
    close();
    std::vector<std::string> names;
    ASSERT_TRUE(rocksdb::DB::ListColumnFamilies({}, path(), &names).ok());
    std::erase_if(names, [](const std::string& name) { return name.size() > 12; });  // the guard
    std::vector<std::string> known;
    for (const auto& family : families_) known.push_back(family->name);
    std::sort(names.begin(), names.end());
    std::sort(known.begin(), known.end());
    ASSERT_EQ(names, known);
    std::swap(names.front(), *std::ranges::find(names, rocksdb::kDefaultColumnFamilyName));
    open(names);
  }

  // --- What a client does

  std::string key() { return "key" + std::to_string(100 + below(60)); }
  std::string value() { return std::to_string(++written_) + std::string(below(100) == 0 ? 9000 : below(200), 'v'); }
  std::shared_ptr<WalkedFamily> live_family() {
    WalkedFamilies live;
    std::ranges::copy_if(families_, std::back_inserter(live), [](const auto& one) { return !one->is_dropped; });
    return live[below(live.size())];
  }
  void divert_some() {
    constexpr Diversion kAll[] = {Diversion::always, Diversion::always, Diversion::never, Diversion::automatic};
    db_->SetDiversion(kAll[below(4)]);
  }
  void write() {
    divert_some();
    rocksdb::WriteBatch batch;
    std::map<std::shared_ptr<WalkedFamily>, WalkModel> after;
    for (std::uint64_t i = 0, count = below(3) == 0 ? 1 + below(12) : 1; i < count; ++i) {
      const auto family = live_family();
      WalkModel& model = after.try_emplace(family, family->model).first->second;
      const std::string name = key();
      switch (below(10)) {
        case 0:
          ASSERT_TRUE(batch.Delete(family->handle, name).ok());
          model.erase(name);
          break;
        case 1: {
          const std::string end = key();
          if (end < name) break;
          ASSERT_TRUE(batch.DeleteRange(family->handle, name, end).ok());
          model.erase(model.lower_bound(name), model.lower_bound(end));
          break;
        }
        case 2: {
          const std::string operand = std::to_string(++written_);
          ASSERT_TRUE(batch.Merge(family->handle, name, operand).ok());
          std::string& merged = model[name];
          merged = merged.empty() ? operand : merged + "," + operand;
          break;
        }
        default:
          model[name] = value();
          ASSERT_TRUE(batch.Put(family->handle, name, model[name]).ok());
      }
    }
    rocksdb::WriteOptions options;
    options.sync = below(6) == 0;
    const Status status = db_->Write(options, &batch);
    ASSERT_TRUE(status.ok()) << status.ToString();
    for (auto& [family, model] : after) family->model = std::move(model);
  }
  void look() {
    if (pasts_.size() > 6) return forget(below(pasts_.size()));
    WalkPast& past = pasts_.emplace_back();
    if (below(2) == 0) past.snapshot = db_->GetSnapshot();
    for (const auto& family : families_) {
      past.models[family] = family->model;
      if (past.snapshot == nullptr) past.iterators.emplace_back(db_->NewIterator({}, family->handle), family);
    }
  }
  void create() {
    if (families_.size() > 5) return;
    auto family = std::make_shared<WalkedFamily>();
    family->name = "f" + std::to_string(++created_);
    const Status status = db_->CreateColumnFamily(options_, family->name, &family->handle);
    ASSERT_TRUE(status.ok()) << status.ToString();
    families_.push_back(family);
  }
  void drop() {
    const auto family = live_family();
    if (family == families_.front()) return;
    const Status status = db_->DropColumnFamily(family->handle);
    ASSERT_TRUE(status.ok()) << status.ToString();
    family->is_dropped = true;
    unreturned_drops_ += db_->GetSpillStatistics().live_entries > 0 ? 1 : 0;
  }
  void destroy() {
    const auto gone = std::ranges::find_if(families_, [](const auto& one) { return one->is_dropped; });
    if (gone == families_.end()) return;
    for (WalkPast& past : pasts_) past.models.erase(*gone);
    for (WalkPast& past : pasts_) std::erase_if(past.iterators, [&](const auto& one) { return one.second == *gone; });
    ASSERT_TRUE(db_->DestroyColumnFamilyHandle((*gone)->handle).ok());
    families_.erase(gone);
  }
  // From the n-th on no sorted file is made: what comes back ends in between.
  void change_space() {
    if (below(2) == 0) return system_->set_fault_rule({});
    const std::uint64_t most = below(4);
    const auto made = std::make_shared<std::atomic<std::uint64_t>>(0);
    system_->set_fault_rule([=](const FileOperation& operation) {
      const bool is_sorted = operation.name.find("/spill/") != std::string::npos && operation.name.ends_with(".sst");
      if (!is_sorted || operation.action != Action::create || ++*made <= most) return FileFault();
      return FileFault{.status = IOStatus::NoSpace("no (injected)")};
    });
  }
  void resume() {
    if (is_paused_) {
      EXPECT_TRUE(db_->ContinueBackgroundWork().ok());
    }
    is_paused_ = false;
  }
  void pause_or_resume() {
    if (is_paused_) return resume();
    ASSERT_TRUE(db_->PauseBackgroundWork().ok());
    is_paused_ = true;
    pause_left_ = 20;
  }
  void compact() {
    if (is_paused_) return;
    const auto family = live_family();
    if (below(2) == 0) {
      ASSERT_TRUE(db_->Flush({}, family->handle).ok());
    } else {
      (void)db_->CompactRange({}, family->handle, nullptr, nullptr);
    }
  }
  void copy() {
    const std::string to = scratch_.path("root") + "/copy" + std::to_string(++copies_);
    const Status status = db_->CreateCheckpoint(to);
    if (!status.ok()) {
      ASSERT_TRUE(status.IsNoSpace() || status.IsAborted()) << status.ToString();
      return;
    }
    std::vector<std::string> names;
    ASSERT_TRUE(rocksdb::DB::ListColumnFamilies({}, to, &names).ok());
    std::vector<rocksdb::ColumnFamilyDescriptor> descriptors;
    descriptors.reserve(names.size());
    for (const std::string& name : names) descriptors.emplace_back(name, options_);
    std::vector<ColumnFamilyHandle*> handles;
    rocksdb::DB* opened = nullptr;
    const Status is_open = rocksdb::DB::Open(options_, to, descriptors, &handles, spill::DbOut(&opened));
    ASSERT_TRUE(is_open.ok()) << is_open.ToString();
    const std::unique_ptr<rocksdb::DB> plain(opened);
    std::size_t there = 0;
    for (const auto& family : families_) {
      if (family->is_dropped) continue;
      ++there;
      const auto at = std::ranges::find(names, family->name) - names.begin();
      ASSERT_LT(static_cast<std::size_t>(at), names.size()) << family->name;
      const std::unique_ptr<rocksdb::Iterator> pairs(plain->NewIterator({}, handles[static_cast<std::size_t>(at)]));
      EXPECT_TRUE(all(*pairs) == family->model) << "the copy's " << family->name;
    }
    EXPECT_EQ(names.size(), there);
    for (ColumnFamilyHandle* handle : handles) (void)plain->DestroyColumnFamilyHandle(handle);
  }
  void take_step() {
    if (is_paused_ && --pause_left_ == 0) resume();  // RocksDB stops when its memtables are full
    const std::uint64_t choice = below(100);
    auto is = [&, from = std::uint64_t{0}](const char* what, std::uint64_t share) mutable {
      const bool it_is = choice >= from && choice < from + share;
      from += share;
      if (it_is) last_ = what;
      return it_is;
    };
    if (is("write", 68)) return write();
    if (is("look", 8)) return look();
    if (is("create", 3)) return create();
    if (is("drop", 3)) return drop();
    if (is("destroy", 2)) return destroy();
    if (is("space", 4)) return change_space();
    if (is("rollback", 4)) return is_paused_ ? expect_all() : (void)db_->Rollback();  // it waits for the end of a pause
    if (is("compact", 3)) return compact();
    if (is("pause", 2)) return pause_or_resume();
    if (is("copy", 1)) return copy();
    if (is("kill", 1)) return kill_and_open();
    expect_all();
  }

  // --- What it has to see

  static WalkModel all(rocksdb::Iterator& pairs) {
    WalkModel found;
    for (pairs.SeekToFirst(); pairs.Valid(); pairs.Next()) found[pairs.key().ToString()] = pairs.value().ToString();
    EXPECT_TRUE(pairs.status().ok()) << pairs.status().ToString();
    WalkModel backwards;
    for (pairs.SeekToLast(); pairs.Valid(); pairs.Prev()) backwards[pairs.key().ToString()] = pairs.value().ToString();
    EXPECT_TRUE(backwards == found);
    return found;
  }
  void expect(const WalkedFamily& family, const WalkModel& model, const rocksdb::Snapshot* snapshot) {
    rocksdb::ReadOptions options;
    options.snapshot = snapshot;
    const std::string where = family.name + (family.is_dropped ? ", dropped" : "") +
                              (snapshot != nullptr ? ", by a snapshot" : "") + (is_paused_ ? ", paused" : "");
    const std::unique_ptr<rocksdb::Iterator> pairs(db_->NewIterator(options, family.handle));
    EXPECT_TRUE(all(*pairs) == model) << where;
    std::vector<std::string> names(6);
    for (std::string& name : names) name = key();
    const std::vector<rocksdb::Slice> slices(names.begin(), names.end());
    std::vector<std::string> values;
    const std::vector<ColumnFamilyHandle*> handles(names.size(), family.handle);
    const std::vector<Status> statuses = db_->MultiGet(options, handles, slices, &values);
    for (std::size_t i = 0; i < names.size(); ++i) {
      const auto known = model.find(names[i]);
      const std::string wanted = known == model.end() ? "NotFound: " : known->second;
      EXPECT_EQ(statuses[i].ok() ? values[i] : statuses[i].ToString(), wanted) << where << ", MultiGet " << names[i];
      std::string value;
      const Status got = db_->Get(options, family.handle, names[i], &value);
      EXPECT_EQ(got.ok() ? value : got.ToString(), wanted) << where << ", Get " << names[i];
    }
  }
  void expect_all() {
    for (const auto& family : families_) expect(*family, family->model, nullptr);
    for (const WalkPast& past : pasts_) {
      if (past.snapshot == nullptr) {
        for (const auto& [pairs, family] : past.iterators) {
          EXPECT_TRUE(all(*pairs) == past.models.at(family)) << "an iterator of " << family->name;
        }
        continue;
      }
      for (const auto& family : families_) {
        const auto then = past.models.find(family);
        expect(*family, then == past.models.end() ? WalkModel() : then->second, past.snapshot);
      }
    }
  }

  const TemporaryDirectory scratch_{memory_path()};
  rocksdb::Options options_;
  SpillOptions spill_;
  std::shared_ptr<FaultyFileSystem> system_;
  std::unique_ptr<rocksdb::Env> env_;
  std::unique_ptr<device::EmulatedDevice> drive_;
  std::unique_ptr<DB> db_;
  std::mt19937_64 random_;
  const bool has_kv_store_;
  WalkedFamilies families_;
  std::vector<WalkPast> pasts_;
  std::string last_;
  bool is_paused_ = false;
  int pause_left_ = 0;  // steps
  int written_ = 0;
  int created_ = 0;
  int copies_ = 0;
  int unreturned_drops_ = 0;
};

TEST(SpillHostileWalk, EveryHandleSnapshotAndIteratorSeesWhatItHasTo) {
  int unreturned_drops = 0;
  clients::for_each_seed({.from = 1, .count = 3, .steps = 400}, [&](std::uint64_t seed, int steps) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    HostileWalk walk(seed, seed % 2 == 0, seed % 3 == 0 ? 8 << 10 : 0);
    walk.run(steps);
    unreturned_drops += walk.unreturned_drops();
  });
  EXPECT_GT(unreturned_drops, 0) << "no family was dropped that could not be brought back";
}

}  // namespace
}  // namespace spillway::faults
