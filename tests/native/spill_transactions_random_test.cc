// RocksDB's own transactions compared with spillway's, transfers between accounts by many threads, and kills.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "spill_metamorphic.h"
#include "spill_transactions.h"
#include "temporary_directory.h"

namespace spillway::clients {
namespace {

// The same random operations on both: every status and every value must be the same.
class TwoTransactionDatabases {
 public:
  using Begin = std::function<Transaction*(std::size_t side, bool set_snapshot)>;

  TwoTransactionDatabases(rocksdb::DB& plain, rocksdb::DB& ours, DB& spill, Begin begin, std::uint64_t seed,
                          bool pops_save_points = true)
      : databases_{&plain, &ours},
        spill_(spill),
        begin_(std::move(begin)),
        pops_save_points_(pops_save_points),
        random_(seed) {}

  void run(int steps) {
    for (int i = 0; i < steps && !::testing::Test::HasFailure(); ++i) {
      SCOPED_TRACE(i);
      if (below(20) == 0) spill_.SetDiversion(below(4) == 0 ? Diversion::never : Diversion::always);
      if (below(50) == 0) {
        EXPECT_TRUE(spill_.Rollback().ok());
      }
      step();
    }
    slots_ = {};
    for (int i = 0; i < kKeys; ++i) same([&](std::size_t side) { return value_in(*databases_[side], key(i)); });
  }

 private:
  static constexpr int kKeys = 6;
  using Slot = std::array<std::unique_ptr<Transaction>, 2>;

  int below(int n) { return static_cast<int>(random_() % static_cast<std::uint64_t>(n)); }
  static std::string key(int i) { return "key" + std::to_string(i); }
  template <typename Ask>
  void same(const Ask& ask) {
    const std::string plain = ask(std::size_t{0});
    EXPECT_EQ(plain, ask(std::size_t{1}));
  }
  static std::string told(const Status& status) {
    return std::to_string(static_cast<int>(status.code())) + "." + std::to_string(static_cast<int>(status.subcode()));
  }

  void step() {
    Slot& slot = slots_[static_cast<std::size_t>(below(static_cast<int>(slots_.size())))];
    if (slot[0] == nullptr) {
      const bool set_snapshot = below(3) == 0;
      for (std::size_t side = 0; side < 2; ++side) slot[side].reset(begin_(side, set_snapshot));
      return;
    }
    const std::string name = key(below(kKeys));
    const std::string value = std::to_string(++values_);
    const int operation = below(18);
    const bool exclusive = below(2) == 0;
    const auto with_both = [&](const std::function<std::string(Transaction&)>& act) {
      same([&](std::size_t side) { return std::to_string(operation) + ": " + act(*slot[side]); });
    };
    switch (operation) {
      case 0:
      case 1:
        return with_both([&](Transaction& one) { return told(one.Put(name, value)); });
      case 2:
        return with_both([&](Transaction& one) { return told(one.Delete(name)); });
      case 3:
        return with_both([&](Transaction& one) { return told(one.Merge(name, value)); });
      case 4:
        return with_both([&](Transaction& one) { return value_in(one, name); });
      case 5:
      case 6:
        return with_both([&](Transaction& one) {
          std::string read;
          const Status status = one.GetForUpdate(ReadOptions(), name, &read, exclusive);
          return told(status) + (status.ok() ? read : "");
        });
      case 7:
        return with_both([&](Transaction& one) {
          one.SetSavePoint();
          return std::to_string(one.GetNumKeys());
        });
      case 8:
        return with_both(
            [&](Transaction& one) { return told(one.RollbackToSavePoint()) + " " + std::to_string(one.GetNumKeys()); });
      case 9:
        if (!pops_save_points_) return;
        return with_both([&](Transaction& one) { return told(one.PopSavePoint()); });
      case 10:
        return with_both([&](Transaction& one) { return told(one.PutUntracked(name, value)); });
      case 11:
        return with_both([&](Transaction& one) {
          one.UndoGetForUpdate(name);
          return std::to_string(one.GetNumKeys());
        });
      case 12:
        return with_both([&](Transaction& one) {
          std::string all;
          const std::unique_ptr<rocksdb::Iterator> iterator(one.GetIterator(ReadOptions()));
          for (iterator->SeekToLast(); iterator->Valid(); iterator->Prev()) {
            all += iterator->key().ToString() + "=" + iterator->value().ToString() + " ";
          }
          return all;
        });
      case 13:
        return with_both([&](Transaction& one) {
          return std::to_string(one.GetNumPuts()) + "." + std::to_string(one.GetNumDeletes()) + "." +
                 std::to_string(one.GetNumMerges());
        });
      case 14:
        return same([&](std::size_t side) { return told(databases_[side]->Put(WriteOptions(), name, value)); });
      case 15:
        with_both([&](Transaction& one) { return told(one.Rollback()); });
        slot = {};
        return;
      default:
        with_both([&](Transaction& one) { return told(one.Commit()); });
        slot = {};
        return;
    }
  }

  const std::array<rocksdb::DB*, 2> databases_;
  DB& spill_;
  const Begin begin_;
  const bool pops_save_points_;
  std::mt19937_64 random_;
  std::array<Slot, 4> slots_;
  int values_ = 0;
};

constexpr Seeds kTransactions{.from = 1, .count = 10, .steps = 1000};

TEST(SpillMetamorphic, OptimisticTransactionsAreAnsweredAsByRocksdb) {
  for_each_seed(kTransactions, [](std::uint64_t seed, int steps) {
    SCOPED_TRACE(seed);
    const TemporaryDirectory directory;
    rocksdb::OptimisticTransactionDB* plain = nullptr;
    ASSERT_TRUE(rocksdb::OptimisticTransactionDB::Open(rocksdb_options(), directory.path("plain"), &plain).ok());
    const std::unique_ptr<rocksdb::OptimisticTransactionDB> owned_plain(plain);
    OptimisticTransactionDB* ours = nullptr;
    ASSERT_TRUE(OptimisticTransactionDB::Open(rocksdb_options(), spill_options(), directory.path("ours"), &ours).ok());
    const std::unique_ptr<OptimisticTransactionDB> owned_ours(ours);
    ours->GetSpillwayDB()->SetDiversion(Diversion::always);
    const auto begin = [&](std::size_t side, bool set_snapshot) {
      rocksdb::OptimisticTransactionOptions options;
      options.set_snapshot = set_snapshot;
      return side == 0 ? plain->BeginTransaction(WriteOptions(), options)
                       : ours->BeginTransaction(WriteOptions(), options);
    };
    TwoTransactionDatabases(*plain, *ours, *ours->GetSpillwayDB(), begin, seed).run(steps);
  });
}

TEST(SpillMetamorphic, PessimisticTransactionsAreAnsweredAsByRocksdb) {
  rocksdb::TransactionDBOptions at_once;
  at_once.transaction_lock_timeout = 0;
  at_once.default_lock_timeout = 0;
  for_each_seed(kTransactions, [&](std::uint64_t seed, int steps) {
    SCOPED_TRACE(seed);
    const TemporaryDirectory directory;
    rocksdb::TransactionDB* plain = nullptr;
    ASSERT_TRUE(rocksdb::TransactionDB::Open(rocksdb_options(), at_once, directory.path("plain"), &plain).ok());
    const std::unique_ptr<rocksdb::TransactionDB> owned_plain(plain);
    TransactionDB* ours = nullptr;
    ASSERT_TRUE(TransactionDB::Open(rocksdb_options(), at_once, spill_options(), directory.path("ours"), &ours).ok());
    const std::unique_ptr<TransactionDB> owned_ours(ours);
    ours->GetSpillwayDB()->SetDiversion(Diversion::always);
    const auto begin = [&](std::size_t side, bool set_snapshot) {
      rocksdb::TransactionOptions options;
      options.set_snapshot = set_snapshot;
      return side == 0 ? plain->BeginTransaction(WriteOptions(), options)
                       : ours->BeginTransaction(WriteOptions(), options);
    };
    // RocksDB 7.8.3 with assertions aborts in PopSavePoint (TrackedKeyInfo::Merge) for one seed in some thousands, so
    // it is called only with seeds that are known to work.
    const bool pops_save_points = seed <= static_cast<std::uint64_t>(kTransactions.count);
    TwoTransactionDatabases(*plain, *ours, *ours->GetSpillwayDB(), begin, seed, pops_save_points).run(steps);
  });
}

// --- Transfers between accounts

constexpr int kAccounts = 20;
constexpr int kStart = 1000;

std::string account(int i) { return "account" + std::to_string(i); }

int sum_of(rocksdb::DB& db) {
  int sum = 0;
  const std::unique_ptr<rocksdb::Iterator> iterator(db.NewIterator(ReadOptions()));
  for (iterator->SeekToFirst(); iterator->Valid(); iterator->Next()) sum += std::stoi(iterator->value().ToString());
  EXPECT_TRUE(iterator->status().ok());
  return sum;
}

void fill(rocksdb::DB& db) {
  rocksdb::WriteBatch batch;
  for (int i = 0; i < kAccounts; ++i) ASSERT_TRUE(batch.Put(account(i), std::to_string(kStart)).ok());
  ASSERT_TRUE(db.Write(WriteOptions(), &batch).ok());
}

// One transfer. Returns whether it was committed.
bool transfer(Transaction& transaction, std::mt19937_64& random) {
  const int from = static_cast<int>(random() % kAccounts);
  const int to = static_cast<int>(random() % kAccounts);
  if (from == to) return false;
  const int amount = static_cast<int>(random() % 10);
  std::string a;
  std::string b;
  if (!transaction.GetForUpdate(ReadOptions(), account(from), &a).ok()) return false;
  if (!transaction.GetForUpdate(ReadOptions(), account(to), &b).ok()) return false;
  if (!transaction.Put(account(from), std::to_string(std::stoi(a) - amount)).ok()) return false;
  if (!transaction.Put(account(to), std::to_string(std::stoi(b) + amount)).ok()) return false;
  return transaction.Commit().ok();
}

// Four threads transfer, one turns diversion on and off and brings back, and every reader always sees the same sum.
void expect_sum_stays(rocksdb::DB& db, DB& spill, const std::function<Transaction*()>& begin) {
  fill(db);
  std::atomic<int> committed{0};
  std::vector<std::thread> threads;
  for (std::uint64_t t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      std::mt19937_64 random(t);
      while (committed < 2000) {
        const std::unique_ptr<Transaction> transaction(begin());
        if (transfer(*transaction, random)) ++committed;
      }
    });
  }
  for (int i = 0; committed < 2000; ++i) {
    spill.SetDiversion(i % 3 == 2 ? Diversion::never : Diversion::always);
    if (i % 2 == 0) {
      EXPECT_TRUE(spill.Rollback().ok());
    }
    EXPECT_EQ(sum_of(db), kAccounts * kStart);
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(sum_of(db), kAccounts * kStart);
  EXPECT_GT(spill.GetSpillStatistics().diverted_writes, 0U);
}

TEST(SpillTransactions, OptimisticTransfersKeepTheSum) {
  const TemporaryDirectory directory;
  OptimisticTransactionDB* db = nullptr;
  ASSERT_TRUE(OptimisticTransactionDB::Open(rocksdb_options(), spill_options(), directory.path("db"), &db).ok());
  const std::unique_ptr<OptimisticTransactionDB> owned(db);
  expect_sum_stays(*db, *db->GetSpillwayDB(), [&] { return db->BeginTransaction(WriteOptions()); });
}

TEST(SpillTransactions, PessimisticTransfersKeepTheSum) {
  const TemporaryDirectory directory;
  TransactionDB* db = nullptr;
  ASSERT_TRUE(TransactionDB::Open(rocksdb_options(), rocksdb::TransactionDBOptions(), spill_options(),
                                  directory.path("db"), &db)
                  .ok());
  const std::unique_ptr<TransactionDB> owned(db);
  rocksdb::TransactionOptions options;
  options.deadlock_detect = true;
  options.lock_timeout = 10'000;
  expect_sum_stays(*db, *db->GetSpillwayDB(), [&] { return db->BeginTransaction(WriteOptions(), options); });
}

// A process transfers until it is killed: every transfer is there completely or not at all.
TEST(SpillTransactions, AKilledProcessLeavesCompleteTransactions) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "the thread sanitizer follows no fork of a process that has threads";
#endif
  const TemporaryDirectory directory;
  for (int round = 0; round < 3; ++round) {
    int told[2];
    ASSERT_EQ(pipe(told), 0);
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      TransactionDB* db = nullptr;
      if (!TransactionDB::Open(rocksdb_options(), rocksdb::TransactionDBOptions(), spill_options(),
                               directory.path("db"), &db)
               .ok()) {
        _exit(1);
      }
      db->GetSpillwayDB()->SetDiversion(Diversion::always);
      if (round == 0) fill(*db);
      std::mt19937_64 random(static_cast<std::uint64_t>(round));
      for (int i = 0;; ++i) {
        const std::unique_ptr<Transaction> transaction(db->BeginTransaction(WriteOptions()));
        if (transfer(*transaction, random) && write(told[1], "+", 1) != 1) _exit(1);
        if (i % 50 == 49) (void)db->GetSpillwayDB()->Rollback();
      }
    }
    close(told[1]);
    char byte = 0;
    for (int i = 0; i < 200; ++i) ASSERT_EQ(read(told[0], &byte, 1), 1);
    ASSERT_EQ(kill(child, SIGKILL), 0);
    int ended = 0;
    ASSERT_EQ(waitpid(child, &ended, 0), child);
    close(told[0]);
    DB* db = nullptr;
    const Status status = DB::Open(rocksdb_options(), spill_options(), directory.path("db"), &db);
    ASSERT_TRUE(status.ok()) << status.ToString();
    const std::unique_ptr<DB> owned(db);
    EXPECT_EQ(sum_of(*db), kAccounts * kStart) << round;
  }
}

}  // namespace
}  // namespace spillway::clients
