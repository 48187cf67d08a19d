// SpillStatistics::waits and wait_us: every wait of a write is counted, wherever it occurs. Waits for a drive are
// tested in spill_kv_store_test.cc, waits for a rollback that will free space in spill_faults_test.cc.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <future>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "at_each_step.h"
#include "spill_main_only.h"

namespace spillway::clients {
namespace {

using rocksdb::Status;

class SpillWaits : public MainOnly {};

// A list of files is made while commits are held. A write during that is counted as one that waits, with its time.
TEST_F(SpillWaits, AWriteThatACallHoldsUpIsCountedAsOneThatWaits) {
  constexpr std::chrono::milliseconds kHeld{150};
  db_->SetDiversion(Diversion::always);
  std::future<Status> late;
  {
    const AtStep held("spill.bind.unguarded", [&] {
      std::atomic<bool> is_routed = false;
      late = std::async(std::launch::async, [&] {
        is_routed = true;
        return put("late", "1");
      });
      while (!is_routed) std::this_thread::yield();
      std::this_thread::sleep_for(kHeld);
    });
    std::vector<std::string> files;
    std::uint64_t manifest_bytes = 0;
    ASSERT_TRUE(db_->GetLiveFiles(files, &manifest_bytes, /*flush_memtable=*/false).ok());
    ASSERT_TRUE(held.was_reached());
  }
  EXPECT_TRUE(late.get().ok());
  const SpillStatistics statistics = db_->GetSpillStatistics();
  EXPECT_EQ(statistics.diverted_writes, 1U);
  EXPECT_EQ(statistics.waits, 1U);
  EXPECT_GT(statistics.wait_us, 0U);
  // Nothing holds these up. One whose thread does not get its turn for long counts nevertheless, by the clock.
  const auto adds_a_wait = [&] {
    const std::uint64_t before = db_->GetSpillStatistics().waits;
    EXPECT_TRUE(put("later", "1").ok());
    return db_->GetSpillStatistics().waits > before;
  };
  int tries = 100;
  while (tries > 0 && adds_a_wait()) --tries;
  EXPECT_GT(tries, 0);
}

// What takes long while commits wait, of whatever writer or call.
class SpillWaitsBehind : public SpillWaits, public ::testing::WithParamInterface<const char*> {
 protected:
  static constexpr std::chrono::milliseconds kHeld{200};
};

TEST_P(SpillWaitsBehind, IsCountedAsAWaitOfTheWritersBehindIt) {
  db_->SetDiversion(Diversion::always);
  for (int i = 0; i < 64; ++i) ASSERT_TRUE(put("key" + std::to_string(i), std::string(4096, 'v')).ok());
  const SpillStatistics before = db_->GetSpillStatistics();
  std::future<Status> behind;
  {
    const AtStep held(GetParam(), [&] {
      std::atomic<bool> is_routed = false;
      behind = std::async(std::launch::async, [&] {
        is_routed = true;
        return put("behind", "1");
      });
      while (!is_routed) std::this_thread::yield();
      std::this_thread::sleep_for(kHeld);
    });
    rocksdb::WriteOptions syncs;
    syncs.sync = true;
    ASSERT_TRUE(db_->Put(syncs, "first", std::string(64 << 10, 'v')).ok());
    ASSERT_TRUE(put("second", "1").ok());
    ASSERT_TRUE(db_->Rollback().ok());
    ASSERT_TRUE(held.was_reached());
  }
  EXPECT_TRUE(behind.get().ok());
  const SpillStatistics after = db_->GetSpillStatistics();
  EXPECT_GT(after.waits, before.waits);
  EXPECT_GT(after.wait_commits_us - before.wait_commits_us,
            static_cast<std::uint64_t>(std::chrono::microseconds(kHeld).count() / 4));
}

INSTANTIATE_TEST_SUITE_P(Steps, SpillWaitsBehind,
                         ::testing::Values("spill.commit.announced", "spill.commit.before_append",
                                           "spill.commit.generation_begun", "spill.commit.appended",
                                           "spill.commit.synced", "spill.commit.added", "spill.rollback.dropped",
                                           "spill.rollback.published"));

// A call that needs everything durable makes most of it so before it holds commits up.
TEST_F(SpillWaits, ACheckpointSyncsWhatWasDivertedWhileWritersGoOn) {
  db_->SetDiversion(Diversion::always);
  for (int i = 0; i < 64; ++i) ASSERT_TRUE(put("key" + std::to_string(i), std::string(4096, 'v')).ok());
  std::future<Status> meanwhile;
  bool is_written = false;
  {
    const AtStep syncing("spill.commit.synced", [&] {
      meanwhile = std::async(std::launch::async, [&] { return put("meanwhile", "1"); });
      is_written = meanwhile.wait_for(std::chrono::seconds(5)) == std::future_status::ready;
    });
    ASSERT_TRUE(db_->CreateCheckpoint(directory_.path("copy")).ok());
    ASSERT_TRUE(syncing.was_reached());
  }
  EXPECT_TRUE(is_written) << "it waited for the sync";
  EXPECT_TRUE(meanwhile.get().ok());
}

// To release the place of a generation takes the drive, for which neither a reader nor a writer waits.
TEST_F(SpillWaits, ThePlaceOfAGenerationIsReleasedByNoReader) {
  db_->SetDiversion(Diversion::always);
  for (int i = 0; i < 64; ++i) ASSERT_TRUE(put("key" + std::to_string(i), std::string(4096, 'v')).ok());
  std::atomic<int> by_others{0};
  std::atomic<int> by_reader{0};
  const auto reader = std::this_thread::get_id();
  const AtSteps released([&](std::string_view step) {
    if (step == "spill.region.release.removed") ++(std::this_thread::get_id() == reader ? by_reader : by_others);
  });
  std::unique_ptr<rocksdb::Iterator> iterator(db_->NewIterator({}));
  iterator->SeekToFirst();
  ASSERT_TRUE(iterator->Valid());
  ASSERT_TRUE(db_->Rollback().ok());
  EXPECT_EQ(by_others, 0) << "it is still read";
  EXPECT_GT(db_->GetSpillStatistics().store_used_bytes, 0U);
  iterator.reset();
  for (int i = 0; i < 1000 && by_others + by_reader == 0; ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  EXPECT_GT(by_others, 0);
  EXPECT_EQ(by_reader, 0);
}

}  // namespace
}  // namespace spillway::clients
