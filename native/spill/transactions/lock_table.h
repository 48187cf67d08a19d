// Which transaction has locked which key. Locks are shared or exclusive; who waits for one may time out, and learns
// that he waits in a circle. As RocksDB's point locks: the same statuses, the same meaning of its options.
#pragma once

#include <rocksdb/utilities/transaction_db.h>

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace spillway::spill {

// Who asks for a lock.
struct Locker {
  rocksdb::TransactionID id = 0;
  std::chrono::steady_clock::time_point expires = std::chrono::steady_clock::time_point::max();
  bool detects_deadlocks = false;
  std::int64_t detect_depth = 50;
};

class LockTable {
 public:
  using TransactionID = rocksdb::TransactionID;
  using Key = std::pair<std::uint32_t, std::string>;  // column family, key

  // `steal` takes every lock from an expired transaction, or says that it cannot (any more).
  LockTable(const rocksdb::TransactionDBOptions& options, std::function<bool(TransactionID)> steal);

  // Waits for at most `timeout`; for ever without one. TimedOut, Busy(kDeadlock), or Busy(kLockLimit).
  // A holder may ask again, and for an exclusive lock in the place of his shared one.
  rocksdb::Status lock(const Locker& locker, const Key& key, bool exclusive,
                       std::optional<std::chrono::microseconds> timeout);
  void unlock(TransactionID id, const Key& key);

  std::unordered_multimap<std::uint32_t, rocksdb::KeyLockInfo> locks() const;
  std::vector<rocksdb::DeadlockPath> deadlocks() const;  // the newest first
  void keep_deadlocks(std::uint32_t count);
  // The transactions that this one waits for, and for which key; nothing if it does not wait.
  std::vector<TransactionID> waits_for(TransactionID id, Key* key) const;

 private:
  using Clock = std::chrono::steady_clock;
  struct Lock {
    bool exclusive = false;
    std::map<TransactionID, Clock::time_point> holders;  // and when they expire
  };
  struct Wait {
    Key key;
    bool exclusive = false;
    std::vector<TransactionID> holders;
  };

  // Takes the lock, or says who has it.
  std::vector<TransactionID> try_lock(const Locker& locker, const Key& key, bool exclusive);
  bool is_deadlock(const Locker& locker);
  void steal_expired(const Key& key, const Locker& locker, std::unique_lock<std::mutex>& lock);

  const std::int64_t max_locks_;  // of a column family; -1: any number
  const std::function<bool(TransactionID)> steal_;
  // One lock for all: it is held for a look into a map, and who waits for a key sleeps.
  mutable std::mutex mutex_;
  std::condition_variable released_;
  std::map<Key, Lock> locks_;
  std::unordered_map<std::uint32_t, std::int64_t> counts_;  // locked keys by column family
  std::unordered_map<TransactionID, Wait> waits_;
  std::deque<rocksdb::DeadlockPath> deadlocks_;
  std::size_t kept_deadlocks_;
};

}  // namespace spillway::spill
