// The visitor of batches: every kind of operation, in order, and how a visit ends.
#include <gtest/gtest.h>
#include <rocksdb/write_batch.h>

#include <string>
#include <vector>

#include "spill/store/batch_visitor.h"

namespace spillway::spill {
namespace {

using rocksdb::Slice;
using rocksdb::Status;
using rocksdb::WriteBatch;

// A copy of an operation that outlives its batch.
struct Seen {
  OperationKind kind = OperationKind::put;
  std::uint32_t family = 0;
  std::string key;
  std::string value;
  friend bool operator==(const Seen&, const Seen&) = default;
};

Seen seen(const BatchOperation& operation) {
  return {operation.kind, operation.family, operation.key.ToString(), operation.value.ToString()};
}

Status visit(const WriteBatch& batch, std::vector<Seen>* all) {
  return visit_batch(batch, [all](const BatchOperation& operation) {
    all->push_back(seen(operation));
    return Status();
  });
}

// A batch as in a log: 8 bytes of sequence, 4 of count, the operations.
WriteBatch batch_of(char count, const std::string& operations) {
  std::string bytes(12, '\0');
  bytes[8] = count;
  return WriteBatch(bytes + operations);
}

// Tags of RocksDB's write-ahead log (db/dbformat.h, ValueType) that no public call of WriteBatch writes.
constexpr char kBeginPrepare = 0x9;
constexpr char kEndPrepare = 0xA;
constexpr char kCommit = 0xB;
constexpr char kRollback = 0xC;
constexpr char kNoop = 0xD;
constexpr char kFamilyBlobIndex = 0x10;
constexpr char kCommitWithTimestamp = 0x15;

std::string prefixed(const std::string& bytes) { return static_cast<char>(bytes.size()) + bytes; }

TEST(BatchVisitor, VisitsEveryKindOfWriteInOrder) {
  WriteBatch batch;
  ASSERT_TRUE(batch.Put("a", "1").ok());
  ASSERT_TRUE(batch.Delete("b").ok());
  ASSERT_TRUE(batch.SingleDelete("c").ok());
  ASSERT_TRUE(batch.PutLogData("note").ok());
  ASSERT_TRUE(batch.Merge("d", "2").ok());
  ASSERT_TRUE(batch.DeleteRange("e", "f").ok());
  std::vector<Seen> all;
  ASSERT_TRUE(visit(batch, &all).ok());
  EXPECT_EQ(all, (std::vector<Seen>{{OperationKind::put, 0, "a", "1"},
                                    {OperationKind::remove, 0, "b", ""},
                                    {OperationKind::single_remove, 0, "c", ""},
                                    {OperationKind::log_data, 0, "", "note"},
                                    {OperationKind::merge, 0, "d", "2"},
                                    {OperationKind::remove_range, 0, "e", "f"}}));
}

TEST(BatchVisitor, VisitsColumnFamiliesEntitiesAndBlobIndexes) {
  std::vector<Seen> all;
  ASSERT_TRUE(
      visit(batch_of(1, std::string(1, kFamilyBlobIndex) + '\7' + prefixed("key") + prefixed("index")), &all).ok());
  EXPECT_EQ(all, (std::vector<Seen>{{OperationKind::blob_index, 7, "key", "index"}}));
  all.clear();
  constexpr char kFamilyPut = 0x5;
  constexpr char kFamilyEntity = 0x17;
  ASSERT_TRUE(visit(batch_of(2, std::string(1, kFamilyPut) + '\3' + prefixed("k") + prefixed("v") + kFamilyEntity +
                                    '\4' + prefixed("w") + prefixed("columns")),
                    &all)
                  .ok());
  EXPECT_EQ(all,
            (std::vector<Seen>{{OperationKind::put, 3, "k", "v"}, {OperationKind::put_entity, 4, "w", "columns"}}));
}

TEST(BatchVisitor, VisitsTheMarkersOfTwoPhaseCommitAndSkipsANoop) {
  std::vector<Seen> all;
  const std::string markers = std::string(1, kNoop) + kBeginPrepare + kEndPrepare + prefixed("id") + kCommit +
                              prefixed("id") + kRollback + prefixed("id") + kCommitWithTimestamp +
                              prefixed("12345678") + prefixed("id");
  ASSERT_TRUE(visit(batch_of(0, markers), &all).ok());
  const Seen marker{OperationKind::transaction_marker, 0, "", ""};
  EXPECT_EQ(all,
            (std::vector<Seen>{marker, marker, marker, marker, Seen{OperationKind::timestamped_commit, 0, "", ""}}));
}

TEST(BatchVisitor, EndsAtTheFirstErrorOfTheCallerAndReturnsIt) {
  WriteBatch batch;
  for (const char* key : {"a", "b", "c"}) ASSERT_TRUE(batch.Put(key, "v").ok());
  int visited = 0;
  const Status status = visit_batch(batch, [&](const BatchOperation& operation) {
    ++visited;
    return operation.key == "b" ? Status::Aborted("at b") : Status();
  });
  EXPECT_TRUE(status.IsAborted()) << status.ToString();
  EXPECT_EQ(visited, 2);
}

// RocksDB's callback for log data returns nothing.
TEST(BatchVisitor, AnErrorAtLogDataEndsItToo) {
  WriteBatch batch;
  ASSERT_TRUE(batch.Put("a", "v").ok());
  ASSERT_TRUE(batch.PutLogData("bad").ok());
  ASSERT_TRUE(batch.Put("b", "v").ok());
  std::vector<std::string> keys;
  const auto fails_at_log_data = [&](const BatchOperation& operation) {
    if (operation.kind == OperationKind::log_data) return Status::Aborted(operation.value);
    keys.push_back(operation.key.ToString());
    return Status();
  };
  Status status = visit_batch(batch, fails_at_log_data);
  EXPECT_TRUE(status.IsAborted()) << status.ToString();
  EXPECT_EQ(keys, std::vector<std::string>{"a"});

  WriteBatch last;
  ASSERT_TRUE(last.PutLogData("bad").ok());
  status = visit_batch(last, fails_at_log_data);
  EXPECT_TRUE(status.IsAborted()) << status.ToString();
}

TEST(BatchVisitor, AMalformedBatchIsCorruption) {
  WriteBatch whole;
  ASSERT_TRUE(whole.Put("key", "value").ok());
  const std::string bytes = whole.Data();
  std::vector<Seen> all;
  for (std::size_t size = 0; size < bytes.size(); ++size) {  // cut at any byte, also right after the header
    EXPECT_TRUE(visit(WriteBatch(bytes.substr(0, size)), &all).IsCorruption()) << size;
  }
  EXPECT_TRUE(all.empty());
  EXPECT_TRUE(visit(batch_of(2, bytes.substr(12)), &all).IsCorruption());  // fewer operations than its header says
  EXPECT_EQ(all.size(), 1U);
  EXPECT_TRUE(visit(batch_of(1, "\x7f"), &all).IsCorruption());  // an unknown tag
  EXPECT_TRUE(visit(WriteBatch(), &all).ok());
  EXPECT_EQ(all.size(), 1U);
}

BatchOperation operation_of(OperationKind kind) { return {kind, 0, {}, {}}; }

TEST(BatchVisitor, OperationsOfOneKeyAreThoseThatNameIt) {
  for (const auto kind : {OperationKind::put, OperationKind::remove, OperationKind::single_remove, OperationKind::merge,
                          OperationKind::put_entity, OperationKind::blob_index}) {
    EXPECT_TRUE(operation_of(kind).has_key());
  }
  for (const auto kind : {OperationKind::remove_range, OperationKind::log_data, OperationKind::transaction_marker,
                          OperationKind::timestamped_commit}) {
    EXPECT_FALSE(operation_of(kind).has_key());
  }
  EXPECT_TRUE(unknown_operation(operation_of(OperationKind::put_entity)).IsNotSupported());
  EXPECT_TRUE(unknown_operation(operation_of(OperationKind::transaction_marker)).IsInvalidArgument());
}

}  // namespace
}  // namespace spillway::spill
