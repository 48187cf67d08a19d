#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <set>
#include <thread>
#include <vector>

#include "spill/transactions/lock_table.h"

namespace spillway::spill {
namespace {

using rocksdb::Status;
using std::chrono::microseconds;

const LockTable::Key kA{0, "a"};
const LockTable::Key kB{0, "b"};
const LockTable::Key kC{0, "c"};
constexpr microseconds kAtOnce{0};

bool never(rocksdb::TransactionID) { return false; }

Locker locker(rocksdb::TransactionID id) {
  Locker made;
  made.id = id;
  return made;
}

TEST(SpillLockTable, ALockIsSharedOrExclusiveAndMayBeAskedForAgain) {
  LockTable table({}, never);
  ASSERT_TRUE(table.lock(locker(1), kA, false, kAtOnce).ok());
  ASSERT_TRUE(table.lock(locker(2), kA, false, kAtOnce).ok());
  EXPECT_TRUE(table.lock(locker(3), kA, true, kAtOnce).IsTimedOut());
  EXPECT_TRUE(table.lock(locker(1), kA, true, kAtOnce).IsTimedOut());
  table.unlock(2, kA);
  ASSERT_TRUE(table.lock(locker(1), kA, true, kAtOnce).ok());
  ASSERT_TRUE(table.lock(locker(1), kA, false, kAtOnce).ok());
  EXPECT_TRUE(table.lock(locker(2), kA, false, kAtOnce).IsTimedOut());
  EXPECT_TRUE(table.lock(locker(2), {1, "a"}, true, kAtOnce).ok()) << "another column family";
  table.unlock(7, kA);  // not this transaction's lock
  EXPECT_EQ(table.locks().size(), 2U);
  table.unlock(1, kA);
  table.unlock(2, {1, "a"});
  EXPECT_TRUE(table.locks().empty());
}

TEST(SpillLockTable, ALimitOfLocksIsOfEachColumnFamily) {
  rocksdb::TransactionDBOptions options;
  options.max_num_locks = 2;
  LockTable table(options, never);
  ASSERT_TRUE(table.lock(locker(1), kA, true, kAtOnce).ok());
  ASSERT_TRUE(table.lock(locker(1), kB, true, kAtOnce).ok());
  EXPECT_EQ(table.lock(locker(1), kC, true, kAtOnce).subcode(), Status::SubCode::kLockLimit);
  EXPECT_TRUE(table.lock(locker(1), kA, true, kAtOnce).ok());
  EXPECT_TRUE(table.lock(locker(1), {1, "a"}, true, kAtOnce).ok());
  table.unlock(1, kA);
  EXPECT_TRUE(table.lock(locker(1), kC, true, kAtOnce).ok());
}

TEST(SpillLockTable, AWaiterGetsTheLockWhenItIsFree) {
  LockTable table({}, never);
  ASSERT_TRUE(table.lock(locker(1), kA, true, kAtOnce).ok());
  std::atomic<bool> is_free{false};
  std::thread waiter([&] {
    EXPECT_TRUE(table.lock(locker(2), kA, true, std::nullopt).ok());
    EXPECT_TRUE(is_free);
  });
  LockTable::Key key;
  while (table.waits_for(2, &key).empty()) std::this_thread::yield();
  EXPECT_EQ(key, kA);
  EXPECT_EQ(table.waits_for(2, &key), std::vector<rocksdb::TransactionID>{1});
  is_free = true;
  table.unlock(1, kA);
  waiter.join();
  EXPECT_TRUE(table.waits_for(2, &key).empty());
}

TEST(SpillLockTable, ACircleOfThreeIsADeadlockAndAChainIsNot) {
  LockTable table({}, never);
  ASSERT_TRUE(table.lock(locker(1), kA, true, kAtOnce).ok());
  ASSERT_TRUE(table.lock(locker(2), kB, true, kAtOnce).ok());
  ASSERT_TRUE(table.lock(locker(3), kC, true, kAtOnce).ok());
  LockTable::Key key;
  std::thread two([&] { EXPECT_TRUE(table.lock(locker(2), kA, true, std::nullopt).ok()); });
  while (table.waits_for(2, &key).empty()) std::this_thread::yield();
  Locker third = locker(3);
  third.detects_deadlocks = true;
  EXPECT_TRUE(table.lock(third, kB, true, kAtOnce).IsTimedOut()) << "a chain";
  std::thread three([&] { EXPECT_TRUE(table.lock(third, kB, true, std::nullopt).ok()); });
  while (table.waits_for(3, &key).empty()) std::this_thread::yield();
  Locker first = locker(1);
  first.detects_deadlocks = true;
  EXPECT_TRUE(table.lock(first, kC, true, std::nullopt).IsDeadlock());
  ASSERT_EQ(table.deadlocks().size(), 1U);
  EXPECT_EQ(table.deadlocks().front().path.size(), 3U);
  first.detect_depth = 1;
  EXPECT_TRUE(table.lock(first, kC, true, std::nullopt).IsDeadlock());
  EXPECT_TRUE(table.deadlocks().front().limit_exceeded);
  table.keep_deadlocks(1);
  EXPECT_EQ(table.deadlocks().size(), 1U);
  table.unlock(1, kA);
  two.join();
  table.unlock(2, kA);
  table.unlock(2, kB);
  three.join();
}

TEST(SpillLockTable, TheLocksOfAnExpiredTransactionAreTakenAllAtOnce) {
  std::set<rocksdb::TransactionID> asked;
  bool is_committing = true;
  LockTable table({}, [&](rocksdb::TransactionID id) {
    asked.insert(id);
    return !is_committing;
  });
  Locker expired = locker(1);
  expired.expires = std::chrono::steady_clock::now();
  ASSERT_TRUE(table.lock(expired, kA, true, kAtOnce).ok());
  ASSERT_TRUE(table.lock(expired, kB, true, kAtOnce).ok());
  ASSERT_TRUE(table.lock(locker(2), kC, true, kAtOnce).ok());
  EXPECT_TRUE(table.lock(locker(3), kA, true, kAtOnce).IsTimedOut());
  is_committing = false;
  EXPECT_TRUE(table.lock(locker(3), kA, true, kAtOnce).ok());
  EXPECT_TRUE(table.lock(locker(4), kB, true, kAtOnce).ok());
  EXPECT_TRUE(table.lock(locker(4), kC, true, kAtOnce).IsTimedOut());
  EXPECT_EQ(asked, std::set<rocksdb::TransactionID>{1});
}

}  // namespace
}  // namespace spillway::spill
