// What a loss of power leaves of the software region, whichever unsynced writes and names survive.
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "faults/file_system.h"
#include "faults/power_loss.h"
#include "spill/store/region/region_store.h"
#include "temporary_directory.h"

namespace spillway::spill {
namespace {

using faults::Action;
using faults::FileFault;
using faults::FileOperation;
using rocksdb::IOStatus;
using rocksdb::Slice;
using rocksdb::Status;

constexpr std::uint64_t kSeeds = 16;  // seeds of what a loss of power leaves

using ReadRecords = std::vector<std::pair<GenerationId, std::string>>;

class RegionPower : public ::testing::Test {
 protected:
  ~RegionPower() override { store_.reset(); }

  void open() {
    store_.reset();
    system_ = *faults::FaultyFileSystem::open(root_);
    const Status status = open_region_store({system_, root_ + "/spill", 8 << 20}, &store_);
    ASSERT_TRUE(status.ok()) << status.ToString();
  }
  // Runs `fill` on an empty store in a new directory for each seed, loses power, and runs `look`.
  void lose_power_after(const std::function<void()>& fill, const std::function<void()>& look) {
    for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
      SCOPED_TRACE("seed " + std::to_string(seed));
      root_ = scratch_.path("before-" + std::to_string(seed));
      open();
      EXPECT_EQ(recover(), ReadRecords());
      fill();
      system_->cut_power();
      store_.reset();
      const std::string left = scratch_.path("after-" + std::to_string(seed));
      const spillway::Status status = faults::power_loss(root_, left, {.seed = seed});
      ASSERT_TRUE(status) << status.message();
      root_ = left;
      open();
      look();
    }
  }
  ReadRecords recover() {
    ReadRecords records;
    const Status status = store_->recover([&](const StoredRecord& record) {
      records.emplace_back(record.generation, record.bytes.ToString());
      return Status::OK();
    });
    EXPECT_TRUE(status.ok()) << status.ToString();
    return records;
  }
  Status append(const std::string& record, std::uint64_t* offset = nullptr) {
    const Slice slice(record);
    std::uint64_t at = 0;
    const Status status = store_->append({&slice, 1}, {&at, 1});
    if (offset != nullptr) *offset = at;
    return status;
  }
  // Runs `what` once, during a sync of a log.
  void during_sync(std::function<void()> what) {
    const auto next = std::make_shared<std::function<void()>>(std::move(what));
    system_->set_fault_rule([next](const FileOperation& operation) {
      if (operation.action == Action::sync && operation.name.ends_with(".spill")) {
        if (const auto once = std::exchange(*next, nullptr)) once();
      }
      return FileFault();
    });
  }

  const TemporaryDirectory scratch_{memory_path()};
  std::string root_;
  std::shared_ptr<faults::FaultyFileSystem> system_;
  std::unique_ptr<Store> store_;
};

TEST_F(RegionPower, WhatWasSyncedIsThereWithTheNameOfItsLog) {
  const auto fill = [&] {
    for (GenerationId generation = 1; generation <= 2; ++generation) {
      ASSERT_TRUE(store_->begin(generation).ok());
      ASSERT_TRUE(append("a").ok());
      ASSERT_TRUE(store_->sync().ok());
    }
  };
  lose_power_after(fill, [&] { EXPECT_EQ(recover(), (ReadRecords{{1, "a"}, {2, "a"}})); });
}

// Earlier logs are made durable concurrently with appends, and may not be durable yet.
TEST_F(RegionPower, ASyncMakesTheLogsBeforeItsOwnDurable) {
  const auto fill = [&] {
    for (GenerationId generation = 1; generation <= 3; ++generation) {
      ASSERT_TRUE(store_->begin(generation).ok());
      ASSERT_TRUE(append("a").ok());
    }
    ASSERT_TRUE(store_->sync().ok());
  };
  lose_power_after(fill, [&] { EXPECT_EQ(recover(), (ReadRecords{{1, "a"}, {2, "a"}, {3, "a"}})); });
}

// Also for a log that was durable when it was begun, and so does not record what must precede it.
TEST_F(RegionPower, WhatWasCutStaysCut) {
  const auto fill = [&] {
    std::uint64_t second = 0;
    ASSERT_TRUE(store_->begin(1).ok());
    ASSERT_TRUE(append("a").ok());
    ASSERT_TRUE(append("b", &second).ok());
    for (GenerationId generation = 2; generation <= 3; ++generation) {
      ASSERT_TRUE(store_->sync().ok());
      ASSERT_TRUE(store_->begin(generation).ok());
      ASSERT_TRUE(append("c").ok());
    }
    ASSERT_TRUE(store_->close().ok());
    open();
    EXPECT_EQ(recover().size(), 4U);
    ASSERT_TRUE(store_->cut(1, second).ok());
  };
  lose_power_after(fill, [&] { EXPECT_EQ(recover(), (ReadRecords{{1, "a"}})); });
}

// A log is closed as durable only when all of it is known to be durable. The next log then states that.
TEST_F(RegionPower, APreparedDropIsDurable) {
  const auto fill = [&] {
    ASSERT_TRUE(store_->begin(1).ok());
    ASSERT_TRUE(append("one").ok());
    ASSERT_TRUE(store_->sync().ok());
    store_->end();
    store_->prepare_drop(1);
  };
  lose_power_after(fill, [&] { EXPECT_EQ(recover(), ReadRecords()); });
}

TEST_F(RegionPower, WhatMayStillBeAppendedToIsNotPreparedForADrop) {
  const auto fill = [&] {
    ASSERT_TRUE(store_->begin(1).ok());
    ASSERT_TRUE(append("one").ok());
    store_->prepare_drop(1);
    ASSERT_TRUE(append("two").ok());
    ASSERT_TRUE(store_->sync().ok());
  };
  lose_power_after(fill, [&] { EXPECT_EQ(recover(), (ReadRecords{{1, "one"}, {1, "two"}})); });
}

TEST_F(RegionPower, WhatWasAppendedDuringASyncIsNotTakenForDurable) {
  const auto fill = [&] {
    ASSERT_TRUE(store_->begin(1).ok());
    ASSERT_TRUE(append("a").ok());
    during_sync([&] { ASSERT_TRUE(append("b").ok()); });
    ASSERT_TRUE(store_->sync().ok());
    ASSERT_TRUE(store_->begin(2).ok());
    ASSERT_TRUE(append("c").ok());
    ASSERT_TRUE(store_->sync().ok());
  };
  lose_power_after(fill, [&] { EXPECT_EQ(recover(), (ReadRecords{{1, "a"}, {1, "b"}, {2, "c"}})); });
}

// After a failed write a copy replaces the log.
TEST_F(RegionPower, WhatWasSyncedIsThereAfterAWriteThatFailed) {
  const auto fill = [&] {
    ASSERT_TRUE(store_->begin(1).ok());
    ASSERT_TRUE(append("a").ok());
    ASSERT_TRUE(store_->sync().ok());
    const auto is_record = [](const FileOperation& operation) {
      return operation.action == Action::write && operation.name.ends_with(".spill");
    };
    system_->set_fault_rule(faults::fail_nth(is_record, 1, IOStatus::IOError("injected")));
    ASSERT_FALSE(append("b").ok());
    ASSERT_TRUE(store_->begin(2).ok());
  };
  lose_power_after(fill, [&] { EXPECT_EQ(recover(), (ReadRecords{{1, "a"}})); });
}

// Even if no further log can be begun, with which the copy's name would become durable, too.
TEST_F(RegionPower, WhatIsSyncedAfterASyncThatFailedIsThere) {
  const auto fill = [&] {
    ASSERT_TRUE(store_->begin(1).ok());
    ASSERT_TRUE(append("a").ok());
    const auto fails = [](const FileOperation& operation) {
      return operation.name.ends_with("1.spill") ? operation.action == Action::sync
                                                 : operation.name.ends_with("2.spill");
    };
    system_->set_fault_rule([fails](const FileOperation& operation) {
      return fails(operation) ? FileFault{.status = IOStatus::IOError("injected")} : FileFault();
    });
    ASSERT_FALSE(store_->sync().ok());
    ASSERT_FALSE(store_->begin(2).ok());
    ASSERT_TRUE(store_->sync().ok());
  };
  lose_power_after(fill, [&] { EXPECT_EQ(recover(), (ReadRecords{{1, "a"}})); });
}

// The opening makes durable what RocksDB has of later writes. A killed process leaves part of a record.
TEST_F(RegionPower, WhatARecoveryHasFoundIsDurableThoughTheLogIsTorn) {
  const auto fill = [&] {
    const auto is_record = [](const FileOperation& operation) {
      return operation.action == Action::write && operation.name.ends_with(".spill");
    };
    for (GenerationId generation = 1; generation <= 2; ++generation) {
      ASSERT_TRUE(store_->begin(generation).ok());
      ASSERT_TRUE(append("a").ok());
    }
    system_->set_fault_rule([is_record](const FileOperation& operation) {
      return is_record(operation) ? FileFault{.status = IOStatus::IOError("injected"), .written_first = 10}
                                  : FileFault();
    });
    ASSERT_FALSE(append("b").ok());
    open();
    EXPECT_EQ(recover(), (ReadRecords{{1, "a"}, {2, "a"}}));
  };
  lose_power_after(fill, [&] { EXPECT_EQ(recover(), (ReadRecords{{1, "a"}, {2, "a"}})); });
}

TEST_F(RegionPower, TheBindingRecordIsCompleteAndTheLastOneWritten) {
  const std::string record(1000, 'r');
  const auto fill = [&] {
    ASSERT_TRUE(store_->write_binding(record + "1").ok());
    ASSERT_TRUE(store_->write_binding(record + "2").ok());
  };
  lose_power_after(fill, [&] {
    std::string found;
    ASSERT_TRUE(store_->read_binding(&found).ok());
    EXPECT_EQ(found, record + "2");
  });
}

}  // namespace
}  // namespace spillway::spill
