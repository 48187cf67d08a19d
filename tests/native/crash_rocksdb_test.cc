// The crash harness on plain RocksDB, which keeps its promises, and on broken stores, whose defects it must find.
#include <gtest/gtest.h>
#include <rocksdb/utilities/stackable_db.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "base/steps.h"
#include "crash_harness.h"

namespace spillway::crash {
namespace {

using Family = rocksdb::ColumnFamilyHandle*;
using rocksdb::Slice;
using rocksdb::Status;
using rocksdb::WriteBatch;
using rocksdb::WriteOptions;

std::string flush_now_and_then(Scene& scene) {
  std::this_thread::sleep_for(std::chrono::microseconds(scene.random() % 2000));
  rocksdb::FlushOptions options;
  options.wait = false;
  if (scene.random() % 4 == 0) scene.store.db->Flush(options).PermitUncheckedError();
  return {};
}

TEST(CrashRocksdb, KeepsItsPromisesWhenKilled) {
  const CrashReport report = run_crashes({.open = open_rocksdb, .stir = flush_now_and_then, .kills = 15, .seed = 11});
  EXPECT_EQ(report.failure, "");
  EXPECT_GE(report.kills, 15);
  EXPECT_GT(report.operations, 0);
}

TEST(CrashRocksdb, KeepsItsPromisesAfterALossOfPower) {
  const CrashReport report =
      run_crashes({.open = open_rocksdb, .stir = flush_now_and_then, .kills = 15, .seed = 12, .power_loss = true});
  EXPECT_EQ(report.failure, "");
  EXPECT_GT(report.lost, 0);  // otherwise the loss of power had no effect
}

// How a broken store writes.
using Defect = std::function<Status(rocksdb::DB& base, WriteOptions options, WriteBatch& batch)>;

class BrokenDb final : public rocksdb::StackableDB {
 public:
  BrokenDb(rocksdb::DB* base, Defect defect) : StackableDB(base), defect_(std::move(defect)) {}

  using StackableDB::Delete;
  using StackableDB::DeleteRange;
  using StackableDB::Merge;
  using StackableDB::Put;
  using StackableDB::SingleDelete;
  Status Put(const WriteOptions& options, Family family, const Slice& key, const Slice& value) override {
    return write(options, [&](WriteBatch& batch) { return batch.Put(family, key, value); });
  }
  Status Delete(const WriteOptions& options, Family family, const Slice& key) override {
    return write(options, [&](WriteBatch& batch) { return batch.Delete(family, key); });
  }
  Status SingleDelete(const WriteOptions& options, Family family, const Slice& key) override {
    return write(options, [&](WriteBatch& batch) { return batch.SingleDelete(family, key); });
  }
  Status Merge(const WriteOptions& options, Family family, const Slice& key, const Slice& value) override {
    return write(options, [&](WriteBatch& batch) { return batch.Merge(family, key, value); });
  }
  Status DeleteRange(const WriteOptions& options, Family family, const Slice& begin, const Slice& end) override {
    return write(options, [&](WriteBatch& batch) { return batch.DeleteRange(family, begin, end); });
  }
  Status Write(const WriteOptions& options, WriteBatch* batch) override { return defect_(*db_, options, *batch); }

 private:
  template <typename Fill>
  Status write(const WriteOptions& options, Fill fill) {
    WriteBatch batch;
    const Status status = fill(batch);
    return status.ok() ? defect_(*db_, options, batch) : status;
  }

  const Defect defect_;
};

Opener broken(const Defect& defect) {
  return [defect](const std::string& root, rocksdb::Env* env, Opened* opened) {
    const Status status = open_rocksdb(root, env, opened);
    if (status.ok()) opened->db = std::make_unique<BrokenDb>(opened->db.release(), defect);
    return status;
  };
}

// Writes the puts of a batch one after another, slowly.
class OneByOne final : public WriteBatch::Handler {
 public:
  OneByOne(rocksdb::DB& base, const WriteOptions& options, const std::vector<Family>& families)
      : base_(base), options_(options), families_(families) {}
  Status PutCF(std::uint32_t family, const Slice& key, const Slice& value) override {
    std::this_thread::sleep_for(std::chrono::microseconds(300));
    return base_.Put(options_, families_[family], key, value);
  }

 private:
  rocksdb::DB& base_;
  const WriteOptions options_;
  const std::vector<Family>& families_;
};

// The verdict depends on the time of death: a memtable of one family may have been flushed and the other's not.
bool noticed(const CrashReport& report, const std::vector<std::string>& verdicts) {
  return std::any_of(verdicts.begin(), verdicts.end(),
                     [&](const std::string& verdict) { return report.failure.find(verdict) != std::string::npos; });
}

// Most kills until the defect must have been found: a single kill may come at a time at which it has no effect.
constexpr unsigned kChances = 60;

TEST(CrashHarness, NoticesThatAnAcknowledgedWriteIsLost) {
  const auto open = broken([](rocksdb::DB& base, WriteOptions options, WriteBatch& batch) {
    options.disableWAL = !options.sync;
    return base.Write(options, &batch);
  });
  const CrashReport report = run_crashes({.open = open, .kinds = {.sync_share = 0}, .kills = kChances, .seed = 21});
  EXPECT_TRUE(noticed(report, {"promised to survive", "no number of its operations"})) << report.failure;
}

TEST(CrashHarness, NoticesThatASyncIsLeftOut) {
  const auto open = broken([](rocksdb::DB& base, WriteOptions options, WriteBatch& batch) {
    options.sync = false;
    return base.Write(options, &batch);
  });
  const CrashReport report =
      run_crashes({.open = open, .kills = kChances, .seed = 22, .power_loss = true, .also_kills = false});
  EXPECT_TRUE(noticed(report, {"promised to survive", "no number of its operations"})) << report.failure;
}

TEST(CrashHarness, NoticesHalfABatch) {
  const Opener open = [](const std::string& root, rocksdb::Env* env, Opened* opened) {
    return broken([opened](rocksdb::DB& base, const WriteOptions& options, WriteBatch& batch) {
      if (batch.Count() == 1 || batch.HasDelete()) return base.Write(options, &batch);
      OneByOne one_by_one(base, options, opened->families);
      return batch.Iterate(&one_by_one);
    })(root, env, opened);
  };
  const Kinds kinds{.single_remove = false, .merge = false, .remove_range = false};
  const CrashReport report = run_crashes({.open = open, .kinds = kinds, .kills = kChances, .seed = 23});
  EXPECT_TRUE(noticed(report, {"no number of its operations"})) << report.failure;
}

TEST(CrashHarness, NoticesThatWhatWasDeletedReturns) {
  const auto open = broken([](rocksdb::DB& base, WriteOptions options, WriteBatch& batch) {
    options.disableWAL = batch.HasDelete();
    options.sync = options.sync && !options.disableWAL;
    return base.Write(options, &batch);
  });
  const CrashReport report = run_crashes({.open = open, .kills = kChances, .seed = 24});
  EXPECT_TRUE(noticed(report, {"promised to survive", "no number of its operations"})) << report.failure;
}

TEST(CrashHarness, NoticesThatALaterWriteOutlivesAnEarlierOne) {
  // Like two stores without an order between them: one thread's writes are in a log, another's are not.
  const auto open = broken([](rocksdb::DB& base, WriteOptions options, WriteBatch& batch) {
    options.disableWAL = batch.Data().find("0/") != std::string::npos;
    return base.Write(options, &batch);
  });
  const Kinds kinds{.batches = false, .sync_share = 0, .value_bytes = 20};
  CrashPlan plan{.open = open,
                 .kinds = kinds,
                 .kills = kChances,
                 .seed = 25,
                 .power_loss = true,
                 .also_kills = false,
                 .most_ms = 1};
  CrashReport report = run_crashes(plan);
  for (int tries = 0; tries < 5 && report.failure.empty(); ++tries) {  // on a slow machine little is written in 1 ms
    plan.most_ms *= 2;
    report = run_crashes(plan);
  }
  EXPECT_TRUE(noticed(report, {"is lost, but operation"})) << report.failure;
}

TEST(CrashHarness, DiesAtANamedStepAndRecordsAllSteps) {
  const auto open = broken([](rocksdb::DB& base, const WriteOptions& options, WriteBatch& batch) {
    steps::reached("test.before_write");
    const Status status = base.Write(options, &batch);
    steps::reached("test.written");
    return status;
  });
  const CrashReport report = run_crashes({.open = open, .kills = 4, .seed = 26, .step = "test.written"});
  EXPECT_EQ(report.failure, "");
  EXPECT_EQ(report.at_step, report.kills);
  EXPECT_EQ(report.steps, (std::set<std::string>{"test.before_write", "test.written"}));
}

}  // namespace
}  // namespace spillway::crash
