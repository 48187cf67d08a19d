// SpillStatistics::waits and wait_us: every wait of a write is counted, wherever it occurs. Waits for a drive are
// tested in spill_kv_store_test.cc, waits for a rollback that will free space in spill_faults_test.cc.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <future>
#include <string>
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
  ASSERT_TRUE(put("later", "1").ok());
  EXPECT_EQ(db_->GetSpillStatistics().waits, 1U) << "nothing holds this one up";
}

}  // namespace
}  // namespace spillway::clients
