// The detector over a real RocksDB whose L0 a test fills and empties: what it reports of a stall, when, and to whom
// first.
#include <gtest/gtest.h>
#include <rocksdb/db.h>

#include <atomic>
#include <chrono>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "spill/compat/db_out.h"
#include "spill/stall/detector.h"
#include "temporary_directory.h"

namespace spillway::spill {
namespace {

using namespace std::chrono_literals;

constexpr DivertPolicy kAtThreeL0Files{.divert_l0_files = 3, .resume_l0_files = 2};
constexpr auto kNever = 24h;  // it polls only on request

ColumnFamily family_of(rocksdb::ColumnFamilyHandle* handle, int l0_stop_trigger) {
  ColumnFamily family;
  family.id = handle->GetID();
  family.handle = handle;
  family.comparator = rocksdb::BytewiseComparator();
  family.limits.l0_compaction_trigger = 2;  // no threshold may be below it
  family.limits.l0_stop_trigger = l0_stop_trigger;
  return family;
}

class DetectorTest : public ::testing::Test {
 protected:
  DetectorTest() {
    rocksdb::Options options;
    options.create_if_missing = true;
    options.disable_auto_compactions = true;
    rocksdb::DB* db = nullptr;
    EXPECT_TRUE(rocksdb::DB::Open(options, directory_.path("db"), spill::DbOut(&db)).ok());
    db_.reset(db);
    add_family(db_->DefaultColumnFamily(), /*l0_stop_trigger=*/36);
  }
  ~DetectorTest() override {
    for (rocksdb::ColumnFamilyHandle* one : handles_) EXPECT_TRUE(db_->DestroyColumnFamilyHandle(one).ok());
  }

  void add_family(rocksdb::ColumnFamilyHandle* handle, int l0_stop_trigger) {
    families_.add(family_of(handle, l0_stop_trigger));
  }
  void flush_one(rocksdb::ColumnFamilyHandle* family = nullptr) {
    if (family == nullptr) family = db_->DefaultColumnFamily();
    ASSERT_TRUE(db_->Put({}, family, "k", "v").ok());
    ASSERT_TRUE(db_->Flush({}, family).ok());
  }

  // What the detector reported, in order.
  struct Said {
    int l0_files = 0;
    Route before = Route::main;
    Route now = Route::main;
    Route route_then = Route::main;  // the route for writers at that time
    friend bool operator==(const Said&, const Said&) = default;
  };
  Detector::OnPoll listen(const Detector& detector) {
    return [this, &detector](const Signals& signals, Route before, Route now) {
      {
        const std::lock_guard lock(said_mutex_);
        said_.push_back({signals.l0_files, before, now, detector.route()});
      }
      ++looks_;
    };
  }
  void look(Detector& detector) {
    const int before = looks_;
    detector.poll_now();
    while (looks_ == before) std::this_thread::yield();
  }
  void wait_for_looks(int looks) const {
    while (looks_ < looks) std::this_thread::yield();
  }
  std::vector<Said> said() {
    const std::lock_guard lock(said_mutex_);
    return std::exchange(said_, {});
  }

  TemporaryDirectory directory_;
  std::unique_ptr<rocksdb::DB> db_;
  std::vector<rocksdb::ColumnFamilyHandle*> handles_;
  ColumnFamilies families_;
  std::atomic<int> looks_ = 0;

 private:
  std::mutex said_mutex_;
  std::vector<Said> said_;
};

// The listener is notified of a diversion before the first write is diverted, and of its end when writes go to RocksDB
// again.
TEST_F(DetectorTest, DivertsAtItsThresholdAndReturnsBelowTheLowerOne) {
  Detector detector(kAtThreeL0Files, kNever);
  EXPECT_EQ(detector.route(), Route::main);
  detector.start(db_.get(), &families_, listen(detector));
  wait_for_looks(1);
  EXPECT_EQ(said(), (std::vector<Said>{{0, Route::main, Route::main, Route::main}}));
  for (int i = 0; i < 2; ++i) flush_one();
  look(detector);
  EXPECT_EQ(said(), (std::vector<Said>{{2, Route::main, Route::main, Route::main}}));
  flush_one();
  look(detector);
  EXPECT_EQ(said(), (std::vector<Said>{{3, Route::main, Route::spill, Route::main}}));
  while (detector.route() != Route::spill) std::this_thread::yield();
  EXPECT_EQ(detector.signals().l0_files, 3);
  ASSERT_TRUE(db_->CompactRange({}, nullptr, nullptr).ok());
  look(detector);
  EXPECT_EQ(said(), (std::vector<Said>{{0, Route::spill, Route::main, Route::main}}));
  EXPECT_EQ(detector.route(), Route::main);
  detector.stop();
}

// A notification or a refusal of RocksDB counts at once, in the thread that got it. The next poll corrects it.
TEST_F(DetectorTest, AStallNotificationDivertsAtOnceUntilTheNextPoll) {
  for (const bool is_refused : {true, false}) {
    SCOPED_TRACE(is_refused);
    Detector detector(kAtThreeL0Files, kNever);
    detector.start(db_.get(), &families_, listen(detector));
    wait_for_looks(1);
    said();
    looks_ = 0;
    if (is_refused) {
      detector.report_refusal();
    } else {
      rocksdb::WriteStallInfo info;
      info.condition.cur = rocksdb::WriteStallCondition::kStopped;
      detector.OnStallConditionsChanged(info);
    }
    wait_for_looks(2);  // the second is the detector's own, which finds no stall
    detector.stop();
    std::vector<Said> changes = said();
    std::erase_if(changes, [](const Said& one) { return one.before == one.now; });
    EXPECT_EQ(changes, (std::vector<Said>{{0, Route::main, Route::spill, Route::main},
                                          {0, Route::spill, Route::main, Route::main}}));
  }
}

TEST_F(DetectorTest, TheEndOfAStallIsVerifiedByAPoll) {
  for (int i = 0; i < 3; ++i) flush_one();
  Detector detector(kAtThreeL0Files, kNever);
  detector.start(db_.get(), &families_, listen(detector));
  wait_for_looks(1);
  rocksdb::WriteStallInfo info;
  info.condition.cur = rocksdb::WriteStallCondition::kNormal;
  detector.OnStallConditionsChanged(info);
  wait_for_looks(2);
  detector.stop();
  EXPECT_EQ(said(), (std::vector<Said>{{3, Route::main, Route::spill, Route::main},
                                       {3, Route::spill, Route::spill, Route::spill}}));
  EXPECT_EQ(detector.route(), Route::spill);
}

TEST_F(DetectorTest, PollsAtEachIntervalUntilItIsStopped) {
  Detector detector(kAtThreeL0Files, 1ms);
  detector.start(db_.get(), &families_, listen(detector));
  wait_for_looks(5);
  detector.stop();
  const int looks = looks_;
  detector.report_refusal();  // stopped: nothing is reported any more
  EXPECT_EQ(looks_, looks);
  EXPECT_EQ(detector.route(), Route::spill);
}

TEST_F(DetectorTest, EndsItsPollsForAnExitAndCanBeStoppedThen) {
  Detector detector(kAtThreeL0Files, 1ms);
  detector.start(db_.get(), &families_, listen(detector));
  wait_for_looks(5);
  detector.end_polls(1min);
  const int looks = looks_;
  std::this_thread::sleep_for(20ms);
  EXPECT_EQ(looks_, looks);
  detector.stop();
}

// As where a listener calls exit().
TEST_F(DetectorTest, EndsItsPollsFromOneOfThem) {
  Detector detector(kAtThreeL0Files, 1ms);
  std::promise<void> ended;
  detector.start(db_.get(), &families_, [&, is_first = true](const Signals&, Route, Route) mutable {
    if (!std::exchange(is_first, false)) return;
    detector.end_polls(1min);
    ended.set_value();
  });
  EXPECT_EQ(ended.get_future().wait_for(30s), std::future_status::ready);
  detector.stop();
}

// Without an interval and without a stall: the end of the flush that adds the third file, and of the compaction that
// takes them away.
TEST(DetectorOfJobs, PollsWhenAFlushOrACompactionEnds) {
  const TemporaryDirectory directory;
  const auto detector = std::make_shared<Detector>(kAtThreeL0Files, kNever);
  rocksdb::Options options;
  options.create_if_missing = true;
  options.disable_auto_compactions = true;
  options.listeners.push_back(detector);
  rocksdb::DB* opened = nullptr;
  ASSERT_TRUE(rocksdb::DB::Open(options, directory.path("db"), spill::DbOut(&opened)).ok());
  const std::unique_ptr<rocksdb::DB> db(opened);
  ColumnFamilies families;
  families.add(family_of(db->DefaultColumnFamily(), /*l0_stop_trigger=*/36));
  detector->start(db.get(), &families, [](const Signals&, Route, Route) {});
  const auto is_at = [&](Route route) {
    const auto end = std::chrono::steady_clock::now() + 30s;
    while (detector->route() != route && std::chrono::steady_clock::now() < end) std::this_thread::sleep_for(1ms);
    return detector->route() == route;
  };
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(db->Put({}, "k", "v").ok());
    ASSERT_TRUE(db->Flush({}).ok());
  }
  EXPECT_TRUE(is_at(Route::spill));
  ASSERT_TRUE(db->CompactRange({}, nullptr, nullptr).ok());
  EXPECT_TRUE(is_at(Route::main));
  detector->stop();
}

// Files relative to their own limit, not the largest number of files.
TEST_F(DetectorTest, SignalsAreThoseOfTheFamilyNearestToItsLimits) {
  rocksdb::ColumnFamilyOptions options;
  options.disable_auto_compactions = true;
  for (const char* name : {"near", "far"}) {
    rocksdb::ColumnFamilyHandle* handle = nullptr;
    ASSERT_TRUE(db_->CreateColumnFamily(options, name, &handle).ok());
    handles_.push_back(handle);
    add_family(handle, name == std::string("near") ? 8 : 36);
  }
  for (int i = 0; i < 5; ++i) flush_one(handles_[0]);
  for (int i = 0; i < 9; ++i) flush_one(handles_[1]);
  const Signals signals = signals_of(*db_, families_, {}, Route::main);
  EXPECT_EQ(signals.l0_files, 5);
  EXPECT_EQ(signals.l0_stop_trigger, 8);
  EXPECT_FALSE(signals.is_stalled);
}

}  // namespace
}  // namespace spillway::spill
