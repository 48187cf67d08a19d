// WriteOptions and kinds of batches, compared with plain RocksDB, for diverted and other writes.
#include <gtest/gtest.h>
#include <rocksdb/merge_operator.h>
#include <rocksdb/rate_limiter.h>
#include <rocksdb/slice_transform.h>
#include <rocksdb/table.h>
#include <rocksdb/write_batch.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "spill_side_by_side.h"

namespace spillway::clients {
namespace {

using rocksdb::Env;
using rocksdb::ReadOptions;
using rocksdb::Status;
using rocksdb::WriteBatch;
using rocksdb::WriteOptions;

class SpillWriteOptions : public SideBySide {
 protected:
  static std::string get(Side& side, const std::string& key) {
    std::string value;
    const Status status = side.db->Get(ReadOptions(), key, &value);
    return status.ok() ? value : status.ToString();
  }
  // In the three states that a write can find: nothing diverted, everything diverted, and a write to RocksDB after a
  // diverted one.
  void in_each_state(const std::function<void()>& test) {
    for (const char* const state : {"to RocksDB", "diverted", "to RocksDB after a diverted one"}) {
      SCOPED_TRACE(state);
      open();
      const std::string name = state;
      if (name != "to RocksDB") {
        spill_db().SetDiversion(Diversion::always);
        same([&](Side& side) { return side.db->Put(WriteOptions(), "diverted", state); });
      }
      if (name != "diverted") spill_db().SetDiversion(Diversion::never);
      test();
      spill_db().SetDiversion(Diversion::automatic);
      const auto contents = [](Side& side) { return get(side, "a") + get(side, "b") + get(side, "c"); };
      // RocksDB accepts no more writes after one that it could not put into its memtables.
      const bool takes_writes = plain().db->Put(WriteOptions(), "probe", "").ok();
      EXPECT_TRUE(spill_db().Rollback().ok() || !takes_writes);
      same(contents);
      open();
      EXPECT_TRUE(spill_db().Rollback().ok());
      same(contents);
    }
  }
};

TEST_F(SpillWriteOptions, WhatRocksdbRefusesIsRefusedInItsWords) {
  in_each_state([&] {
    std::vector<WriteOptions> all(8);
    all[0].rate_limiter_priority = Env::IO_LOW;
    all[1].rate_limiter_priority = Env::IO_USER;
    all[2].rate_limiter_priority = Env::IO_USER;
    all[2].disableWAL = true;
    all[3].protection_bytes_per_key = 7;
    all[4].protection_bytes_per_key = 8;
    all[5].memtable_insert_hint_per_batch = true;
    all[6].sync = true;
    all[6].disableWAL = true;
    all[7].sync = true;
    for (std::size_t i = 0; i < all.size(); ++i) {
      SCOPED_TRACE(i);
      if (i != 3) same([&](Side& side) { return side.db->Put(all[i], "a", std::to_string(i)); });  // it asserts
      same([&](Side& side) {
        WriteBatch batch;
        EXPECT_TRUE(batch.Put("b", std::to_string(i)).ok());
        return side.db->Write(all[i], &batch);
      });
      same([](Side& side) { return get(side, "a") + get(side, "b"); });
    }
  });
}

// A write that could not be brought back is not acknowledged.
TEST_F(SpillWriteOptions, RangesAreNotDivertedWhereTablesHaveNoRangeDeletions) {
  families_.front().options.prefix_extractor.reset(rocksdb::NewFixedPrefixTransform(1));
  families_.front().options.table_factory.reset(rocksdb::NewPlainTableFactory());
  open();
  spill_db().SetDiversion(Diversion::always);
  ASSERT_TRUE(spill_db().Put(WriteOptions(), "a", "1").ok());
  const Status status = spill_db().DeleteRange(WriteOptions(), spill_db().DefaultColumnFamily(), "a", "b");
  EXPECT_TRUE(status.IsNotSupported()) << status.ToString();
  EXPECT_EQ(get(spill(), "a"), "1");
}

TEST_F(SpillWriteOptions, MissingFamiliesAreIgnoredWhereAsked) {
  in_each_state([&] {
    std::vector<WriteBatch> batches(2);
    std::vector<WriteBatch> only(2);
    for (std::size_t i = 0; i < 2; ++i) {
      Side& side = sides()[i];
      rocksdb::ColumnFamilyHandle* gone = nullptr;
      ASSERT_TRUE(side.db->CreateColumnFamily({}, "gone", &gone).ok());
      ASSERT_TRUE(batches[i].Put("a", "1").ok());
      ASSERT_TRUE(batches[i].Put(gone, "b", "1").ok());
      ASSERT_TRUE(batches[i].SingleDelete(gone, "b").ok());
      ASSERT_TRUE(batches[i].DeleteRange(gone, "b", "c").ok());
      ASSERT_TRUE(batches[i].Put("c", "1").ok());
      ASSERT_TRUE(only[i].Put(gone, "b", "1").ok());
      ASSERT_TRUE(side.db->DropColumnFamily(gone).ok());
      ASSERT_TRUE(side.db->DestroyColumnFamilyHandle(gone).ok());
    }
    const auto write = [&](const WriteOptions& options, std::vector<WriteBatch>& of_side) {
      same([&](Side& side) { return side.db->Write(options, &of_side[&side == &plain() ? 0 : 1]); });
    };
    WriteOptions ignore;
    ignore.ignore_missing_column_families = true;
    write(ignore, batches);
    write(ignore, only);
    write(WriteOptions(), only);
    same([](Side& side) { return get(side, "a") + get(side, "b") + get(side, "c"); });
  });
}

// The mark that says what a write follows takes room in its batch.
TEST_F(SpillWriteOptions, ABatchAtItsLimitIsWritten) {
  in_each_state([&] {
    for (std::size_t room = 0; room < 64; ++room) {
      WriteBatch measured;
      ASSERT_TRUE(measured.Put("a", std::to_string(room)).ok());
      same([&](Side& side) {
        WriteBatch batch(0, measured.GetDataSize() + room);
        EXPECT_TRUE(batch.Put("a", std::to_string(room)).ok());
        return side.db->Write(WriteOptions(), &batch);
      });
      same([](Side& side) { return get(side, "a"); });
      // After this the diverted write that it follows is unsynced again.
      if (room % 8 != 0) continue;
      const bool diverts = spill_db().GetSpillStatistics().diverting;
      if (diverts || spill_db().GetSpillStatistics().live_entries == 0) continue;
      spill_db().SetDiversion(Diversion::always);
      same([&](Side& side) { return side.db->Put(WriteOptions(), "diverted", std::to_string(room)); });
      spill_db().SetDiversion(Diversion::never);
    }
  });
}

TEST_F(SpillWriteOptions, SavepointsAndContentsOfABatchStay) {
  in_each_state([&] {
    std::vector<std::string> data;
    for (Side& side : sides()) {
      for (const std::size_t protection : {std::size_t{0}, std::size_t{8}}) {
        WriteBatch batch(0, 0, protection, 0);
        ASSERT_TRUE(batch.Put("a", "1").ok());
        batch.SetSavePoint();
        ASSERT_TRUE(batch.Put("b", "1").ok());
        batch.SetSavePoint();
        ASSERT_TRUE(batch.Put("c", "1").ok());
        ASSERT_TRUE(side.db->Write(WriteOptions(), &batch).ok());
        EXPECT_EQ(batch.Count(), 3U);
        EXPECT_EQ(batch.GetProtectionBytesPerKey(), protection);
        ASSERT_TRUE(batch.RollbackToSavePoint().ok());
        EXPECT_EQ(batch.Count(), 2U);
        ASSERT_TRUE(side.db->Write(WriteOptions(), &batch).ok());
        ASSERT_TRUE(batch.RollbackToSavePoint().ok());
        EXPECT_EQ(batch.Count(), 1U);
        EXPECT_TRUE(batch.RollbackToSavePoint().IsNotFound());
        data.push_back(batch.Data().substr(8));  // after the sequence number
        ASSERT_TRUE(side.db->Write(WriteOptions(), &batch).ok());
      }
    }
    EXPECT_EQ(data[0], data[2]);
    EXPECT_EQ(data[1], data[3]);
  });
}

TEST_F(SpillWriteOptions, ADamagedProtectedBatchIsRefused) {
  in_each_state([&] {
    same([](Side& side) {
      WriteBatch batch(0, 0, 8, 0);
      EXPECT_TRUE(batch.Put("a", "right").ok());
      // In its memory, like a program that writes to a wrong address.
      const_cast<char&>(batch.Data()[batch.Data().size() - 1]) ^= 1;  // NOLINT
      return std::string(side.db->Write(WriteOptions(), &batch).IsCorruption() ? "Corruption" : "taken");
    });
  });
}

TEST_F(SpillWriteOptions, ADivertedWriteIsChargedToTheRateLimiter) {
  options_.rate_limiter.reset(
      rocksdb::NewGenericRateLimiter(std::int64_t{1} << 30, 100'000, 10, rocksdb::RateLimiter::Mode::kAllIo));
  open();
  spill_db().SetDiversion(Diversion::always);
  WriteOptions options;
  ASSERT_TRUE(spill_db().Put(options, "a", "1").ok());
  const std::int64_t before = options_.rate_limiter->GetTotalBytesThrough(Env::IO_USER);
  options.rate_limiter_priority = Env::IO_USER;
  ASSERT_TRUE(spill_db().Put(options, "a", std::string(1000, '2')).ok());
  EXPECT_GE(options_.rate_limiter->GetTotalBytesThrough(Env::IO_USER), before + 1000);
}

TEST_F(SpillWriteOptions, LowPriorityIsNotDivertedUnlessItHasTo) {
  open();
  WriteOptions low;
  low.low_pri = true;
  spill_db().SetDiversion(Diversion::always);
  ASSERT_TRUE(spill_db().Put(low, "a", "main").ok());
  EXPECT_EQ(spill_db().GetSpillStatistics().diverted_writes, 0U);
  ASSERT_TRUE(spill_db().Put(WriteOptions(), "b", "diverted").ok());
  ASSERT_TRUE(spill_db().Put(low, "b", "where its key lies").ok());
  EXPECT_EQ(spill_db().GetSpillStatistics().diverted_writes, 2U);
  EXPECT_EQ(get(spill(), "b"), "where its key lies");
}

// Compactions are behind, but there is no stall.
TEST_F(SpillWriteOptions, LowPriorityIsThrottledAsByRocksdb) {
  rocksdb::ColumnFamilyOptions& family = families_.front().options;
  family.disable_auto_compactions = true;
  family.level0_file_num_compaction_trigger = 1;
  open();
  for (const char* const key : {"a", "b"}) {
    same([&](Side& side) { return side.db->Put(WriteOptions(), key, "1"); });
    same([&](Side& side) { return side.db->Flush({}); });
  }
  WriteOptions low;
  low.low_pri = true;
  low.no_slowdown = true;
  const auto put = [&](Side& side) { return side.db->Put(low, "c", std::string(50'000, 'v')); };
  EXPECT_EQ(same(put), "Result incomplete: Low priority write stall");
  low.no_slowdown = false;
  same(put);
  const SpillStatistics statistics = spill_db().GetSpillStatistics();
  EXPECT_EQ(statistics.diverted_writes, 0U);
  EXPECT_EQ(statistics.stalls_diverted, 0U);
  EXPECT_EQ(statistics.last_resort, 0U);
  low.no_slowdown = true;
  // A write whose key is in the spill store need not wait for RocksDB.
  spill_db().SetDiversion(Diversion::always);
  ASSERT_TRUE(spill_db().Put(WriteOptions(), "d", "1").ok());
  EXPECT_TRUE(spill_db().Put(low, "d", "2").ok());
}

}  // namespace
}  // namespace spillway::clients
