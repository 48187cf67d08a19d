// Every call of a rocksdb::DB that spillway::DB does not support returns NotSupported and its own name.
#include <gtest/gtest.h>
#include <rocksdb/trace_reader_writer.h>
#include <rocksdb/transaction_log.h>
#include <rocksdb/utilities/replayer.h>
#include <rocksdb/wide_columns.h>

#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "spillway/db.h"
#include "temporary_directory.h"

namespace spillway::clients {
namespace {

using rocksdb::PinnableSlice;
using rocksdb::ReadOptions;
using rocksdb::Slice;
using rocksdb::Status;
using rocksdb::WriteOptions;

class SpillRefused : public ::testing::TestWithParam<Diversion> {
 protected:
  void SetUp() override {
    rocksdb::Options options;
    options.create_if_missing = true;
    DB* db = nullptr;
    ASSERT_TRUE(DB::Open(options, SpillOptions(), directory_.path("db"), &db).ok());
    db_.reset(db);
    db_->SetDiversion(GetParam());
    ASSERT_TRUE(db_->Put(WriteOptions(), "k", "v").ok());
    family_ = db_->DefaultColumnFamily();
  }
  static void expect_refused(const char* name, const Status& status) {
    EXPECT_TRUE(status.IsNotSupported()) << name << ": " << status.ToString();
    EXPECT_NE(status.ToString().find(name), std::string::npos) << name << ": " << status.ToString();
  }

  TemporaryDirectory directory_;
  std::unique_ptr<DB> db_;
  rocksdb::ColumnFamilyHandle* family_ = nullptr;
};

TEST_P(SpillRefused, EveryCallWithATimestampIsNotSupported) {
  const std::string ts(8, '\0');
  std::string value;
  std::string timestamp;
  PinnableSlice pinned;
  expect_refused("Put", db_->Put(WriteOptions(), family_, "k", ts, "v"));
  expect_refused("Put", db_->Put(WriteOptions(), Slice("k"), ts, "v"));
  expect_refused("Delete", db_->Delete(WriteOptions(), family_, "k", ts));
  expect_refused("Delete", db_->Delete(WriteOptions(), Slice("k"), ts));
  expect_refused("SingleDelete", db_->SingleDelete(WriteOptions(), family_, "k", ts));
  expect_refused("SingleDelete", db_->SingleDelete(WriteOptions(), Slice("k"), ts));
  expect_refused("DeleteRange", db_->DeleteRange(WriteOptions(), family_, "k", "l", ts));
  expect_refused("Merge", db_->Merge(WriteOptions(), family_, "k", ts, "v"));
  expect_refused("Get", db_->Get(ReadOptions(), family_, "k", &value, &timestamp));
  expect_refused("Get", db_->Get(ReadOptions(), family_, "k", &pinned, &timestamp));
  expect_refused("Get", db_->Get(ReadOptions(), "k", &value, &timestamp));
  expect_refused("IncreaseFullHistoryTsLow", db_->IncreaseFullHistoryTsLow(family_, ts));
  expect_refused("GetFullHistoryTsLow", db_->GetFullHistoryTsLow(family_, &timestamp));
}

TEST_P(SpillRefused, EveryMultiGetWithTimestampsIsNotSupported) {
  const std::vector<Slice> keys{"k", "l"};
  std::vector<std::string> values;
  std::vector<std::string> timestamps;
  for (const Status& status : db_->MultiGet(ReadOptions(), {family_, family_}, keys, &values, &timestamps)) {
    expect_refused("MultiGet", status);
  }
  for (const Status& status : db_->MultiGet(ReadOptions(), keys, &values, &timestamps)) {
    expect_refused("MultiGet", status);
  }
  std::vector<PinnableSlice> pinned(2);
  std::vector<Status> statuses(2);
  timestamps.resize(2);
  db_->MultiGet(ReadOptions(), family_, 2, keys.data(), pinned.data(), timestamps.data(), statuses.data());
  for (const Status& status : statuses) expect_refused("MultiGet", status);
  statuses.assign(2, Status());
  std::vector<rocksdb::ColumnFamilyHandle*> families{family_, family_};
  db_->MultiGet(ReadOptions(), 2, families.data(), keys.data(), pinned.data(), timestamps.data(), statuses.data());
  for (const Status& status : statuses) expect_refused("MultiGet", status);
}

TEST_P(SpillRefused, KindsOfValuesThatTheSpillStoreDoesNotKeepSaySo) {
  rocksdb::PinnableWideColumns columns;
  PinnableSlice operand;
  rocksdb::GetMergeOperandsOptions operands;
  operands.expected_max_number_of_operands = 1;
  int count = 0;
  expect_refused("PutEntity", db_->PutEntity(WriteOptions(), family_, "k", rocksdb::WideColumns{{"a", "1"}}));
  expect_refused("GetEntity", db_->GetEntity(ReadOptions(), family_, "k", &columns));
  expect_refused("GetMergeOperands", db_->GetMergeOperands(ReadOptions(), family_, "k", &operand, &operands, &count));
}

TEST_P(SpillRefused, CallsOnRocksdbsLogAreNotSupported) {
  std::unique_ptr<rocksdb::TransactionLogIterator> updates;
  expect_refused("GetUpdatesSince", db_->GetUpdatesSince(0, &updates, {}));
  expect_refused("LockWAL", db_->LockWAL());
  expect_refused("UnlockWAL", db_->UnlockWAL());
  std::unique_ptr<rocksdb::TraceWriter> writer;
  ASSERT_TRUE(rocksdb::NewFileTraceWriter(db_->GetEnv(), {}, directory_.path("trace"), &writer).ok());
  expect_refused("StartTrace", db_->StartTrace(rocksdb::TraceOptions(), std::move(writer)));
  expect_refused("EndTrace", db_->EndTrace());
  std::unique_ptr<rocksdb::Replayer> replayer;
  expect_refused("NewDefaultReplayer", db_->NewDefaultReplayer({family_}, nullptr, &replayer));
}

TEST_P(SpillRefused, TheRestIsNotSupported) {
  expect_refused("TryCatchUpWithPrimary", db_->TryCatchUpWithPrimary());
  ReadOptions tailing;
  tailing.tailing = true;
  const std::unique_ptr<rocksdb::Iterator> iterator(db_->NewIterator(tailing, family_));
  expect_refused("tailing", iterator->status());
  std::vector<rocksdb::Iterator*> iterators;
  expect_refused("tailing", db_->NewIterators(tailing, {family_}, &iterators));
  std::string value;
  ASSERT_TRUE(db_->Get(ReadOptions(), "k", &value).ok());  // the call had no effect
  EXPECT_EQ(value, "v");
}

// With these a store would take nothing, and each write would wait for what cannot come.
TEST(SpillRefusedOptions, SizesOfNothingAreRefusedByOpenAndNothingIsMade) {
  const TemporaryDirectory directory;
  rocksdb::Options options;
  options.create_if_missing = true;
  const auto refused_by = [&](const char* name, const std::function<void(SpillOptions&)>& change) {
    SpillOptions spill;
    change(spill);
    DB* db = nullptr;
    const Status status = DB::Open(options, spill, directory.path("db"), &db);
    const std::unique_ptr<DB> opened(db);
    EXPECT_TRUE(status.IsInvalidArgument()) << name << ": " << status.ToString();
    EXPECT_NE(status.ToString().find(name), std::string::npos) << status.ToString();
    EXPECT_FALSE(std::filesystem::exists(directory.path("db"))) << name;
  };
  refused_by("index_bytes", [](SpillOptions& spill) { spill.index_bytes = 0; });
  refused_by("generation_bytes", [](SpillOptions& spill) { spill.generation_bytes = 0; });
  refused_by("capacity_bytes", [](SpillOptions& spill) { spill.capacity_bytes = 0; });
  refused_by("capacity_bytes", [](SpillOptions& spill) { spill.capacity_bytes = spill.generation_bytes - 1; });
  refused_by("poll_ms", [](SpillOptions& spill) { spill.poll_ms = 0; });
}

INSTANTIATE_TEST_SUITE_P(WhereverWritesGo, SpillRefused, ::testing::Values(Diversion::never, Diversion::always),
                         [](const auto& one) { return one.param == Diversion::never ? "Never" : "Always"; });

}  // namespace
}  // namespace spillway::clients
