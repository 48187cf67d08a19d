// The keys that transactions have locked. Locks are shared or exclusive. A wait may time out, and deadlocks are
// detected. Statuses and options are those of RocksDB's point locks.
#pragma once

#include <rocksdb/utilities/transaction_db.h>

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/mutex.h"

namespace spillway::spill {

// The transaction that requests a lock.
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

  // `steal` takes all locks from an expired transaction, or returns false if it cannot.
  LockTable(const rocksdb::TransactionDBOptions& options, std::function<bool(TransactionID)> steal);

  // Waits for at most `timeout`, or without limit. Returns TimedOut, Busy(kDeadlock), or Busy(kLockLimit).
  // A holder may lock a key again, and may upgrade a shared lock to an exclusive one.
  rocksdb::Status lock(const Locker& locker, const Key& key, bool exclusive,
                       std::optional<std::chrono::microseconds> timeout) EXCLUDES(mutex_);
  void unlock(TransactionID id, const Key& key) EXCLUDES(mutex_);

  std::unordered_multimap<std::uint32_t, rocksdb::KeyLockInfo> locks() const;
  std::vector<rocksdb::DeadlockPath> deadlocks() const;  // newest first
  void keep_deadlocks(std::uint32_t count);
  // The transactions that this one waits for, and the key; empty if it does not wait.
  std::vector<TransactionID> waits_for(TransactionID id, Key* key) const;

 private:
  using Clock = std::chrono::steady_clock;
  struct Lock {
    bool exclusive = false;
    std::map<TransactionID, Clock::time_point> holders;  // with the time at which each expires
  };
  struct Wait {
    Key key;
    bool exclusive = false;
    std::vector<TransactionID> holders;
  };

  // Takes the lock, or returns its holders without taking it.
  std::vector<TransactionID> try_lock(const Locker& locker, const Key& key, bool exclusive) REQUIRES(mutex_);
  bool is_deadlock(const Locker& locker) REQUIRES(mutex_);
  void steal_expired(const Key& key, const Locker& locker) REQUIRES(mutex_);  // releases the mutex for a while

  const std::int64_t max_locks_;  // of one column family; -1: no limit
  const std::function<bool(TransactionID)> steal_;
  // One mutex for all keys. It is held only during look-ups; a waiter for a key releases it.
  mutable Mutex mutex_;
  CondVar released_;
  std::map<Key, Lock> locks_ GUARDED_BY(mutex_);
  std::unordered_map<std::uint32_t, std::int64_t> counts_ GUARDED_BY(mutex_);  // locked keys by column family
  std::unordered_map<TransactionID, Wait> waits_ GUARDED_BY(mutex_);
  std::deque<rocksdb::DeadlockPath> deadlocks_ GUARDED_BY(mutex_);
  std::size_t kept_deadlocks_ GUARDED_BY(mutex_);
};

}  // namespace spillway::spill
