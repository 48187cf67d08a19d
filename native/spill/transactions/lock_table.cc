#include "spill/transactions/lock_table.h"

#include <algorithm>

namespace spillway::spill {

using rocksdb::Status;

namespace {

// Interval between attempts to take the locks of an expired transaction. Source: guess.
constexpr std::chrono::milliseconds kRetry{1};

}  // namespace

LockTable::LockTable(const rocksdb::TransactionDBOptions& options, std::function<bool(TransactionID)> steal)
    : max_locks_(options.max_num_locks), steal_(std::move(steal)), kept_deadlocks_(options.max_num_deadlocks) {}

std::vector<LockTable::TransactionID> LockTable::try_lock(const Locker& locker, const Key& key, bool exclusive) {
  const auto [at, is_new] = locks_.try_emplace(key);
  Lock& lock = at->second;
  std::vector<TransactionID> others;
  for (const auto& [id, expires] : lock.holders) {
    if (id != locker.id) others.push_back(id);
  }
  if (!others.empty() && (exclusive || lock.exclusive)) return others;
  lock.exclusive = lock.exclusive || exclusive;
  lock.holders[locker.id] = locker.expires;
  if (is_new) ++counts_[key.first];
  return {};
}

// Searches depth-first through the waits, from the requester on. The requester comes first in the path.
bool LockTable::is_deadlock(const Locker& locker) {
  std::vector<rocksdb::DeadlockInfo> path;
  std::int64_t steps = 0;
  bool limit_exceeded = false;
  const std::function<bool(TransactionID)> leads_back = [&](TransactionID id) REQUIRES(mutex_) {
    const auto wait = waits_.find(id);
    if (wait == waits_.end()) return false;
    if (++steps > locker.detect_depth) {
      limit_exceeded = true;
      return true;
    }
    path.push_back({id, wait->second.key.first, wait->second.exclusive, wait->second.key.second});
    for (const TransactionID holder : wait->second.holders) {
      if (holder == locker.id || leads_back(holder)) return true;
    }
    path.pop_back();
    return false;
  };
  if (!leads_back(locker.id)) return false;
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  const std::int64_t seconds = std::chrono::duration_cast<std::chrono::seconds>(now).count();
  deadlocks_.push_front(limit_exceeded ? rocksdb::DeadlockPath(seconds, true)
                                       : rocksdb::DeadlockPath(std::move(path), seconds));
  if (deadlocks_.size() > kept_deadlocks_) deadlocks_.pop_back();
  return true;
}

// Runs without the lock, because a transaction that loses its locks releases them through this table.
void LockTable::steal_expired(const Key& key, const Locker& locker) {
  std::vector<TransactionID> expired;
  const auto found = locks_.find(key);
  if (found == locks_.end()) return;
  for (const auto& [id, expires] : found->second.holders) {
    if (id != locker.id && expires <= Clock::now()) expired.push_back(id);
  }
  if (expired.empty()) return;
  mutex_.unlock();
  std::erase_if(expired, [&](TransactionID id) { return !steal_(id); });
  mutex_.lock();
  for (auto at = locks_.begin(); !expired.empty() && at != locks_.end();) {
    for (const TransactionID id : expired) at->second.holders.erase(id);
    if (at->second.holders.empty()) {
      --counts_[at->first.first];
      at = locks_.erase(at);
    } else {
      ++at;
    }
  }
  released_.notify_all();
}

Status LockTable::lock(const Locker& locker, const Key& key, bool exclusive,
                       std::optional<std::chrono::microseconds> timeout) {
  const auto gives_up = timeout ? Clock::now() + *timeout : Clock::time_point::max();
  const MutexLock lock(mutex_);
  if (max_locks_ > 0 && !locks_.contains(key) && counts_[key.first] >= max_locks_) {
    return Status::Busy(Status::SubCode::kLockLimit);
  }
  const auto stops_waiting = [&](const Status& status) REQUIRES(mutex_) {
    waits_.erase(locker.id);
    return status;
  };
  for (;;) {
    steal_expired(key, locker);
    const std::vector<TransactionID> holders = try_lock(locker, key, exclusive);
    if (holders.empty()) return stops_waiting(Status());
    if (timeout && Clock::now() >= gives_up) return stops_waiting(Status::TimedOut(Status::SubCode::kLockTimeout));
    waits_[locker.id] = {key, exclusive, holders};
    if (locker.detects_deadlocks && is_deadlock(locker)) {
      return stops_waiting(Status::Busy(Status::SubCode::kDeadlock));
    }
    auto wakes = gives_up;
    for (const TransactionID holder : holders) {
      // A holder that has expired, and from which locks cannot be taken, is about to end.
      wakes = std::min(wakes, std::max(locks_[key].holders[holder], Clock::now() + kRetry));
    }
    if (wakes == Clock::time_point::max()) {
      released_.wait(mutex_);
    } else {
      released_.wait_until(mutex_, wakes);
    }
  }
}

void LockTable::unlock(TransactionID id, const Key& key) {
  const MutexLock lock(mutex_);
  const auto found = locks_.find(key);
  if (found == locks_.end() || found->second.holders.erase(id) == 0) return;
  if (found->second.holders.empty()) {
    --counts_[key.first];
    locks_.erase(found);
  }
  released_.notify_all();
}

std::unordered_multimap<std::uint32_t, rocksdb::KeyLockInfo> LockTable::locks() const {
  const MutexLock lock(mutex_);
  std::unordered_multimap<std::uint32_t, rocksdb::KeyLockInfo> all;
  for (const auto& [key, held] : locks_) {
    rocksdb::KeyLockInfo info;
    info.key = key.second;
    info.exclusive = held.exclusive;
    for (const auto& [id, expires] : held.holders) info.ids.push_back(id);
    all.emplace(key.first, std::move(info));
  }
  return all;
}

std::vector<rocksdb::DeadlockPath> LockTable::deadlocks() const {
  const MutexLock lock(mutex_);
  return {deadlocks_.begin(), deadlocks_.end()};
}

void LockTable::keep_deadlocks(std::uint32_t count) {
  const MutexLock lock(mutex_);
  kept_deadlocks_ = count;
  while (deadlocks_.size() > kept_deadlocks_) deadlocks_.pop_back();
}

std::vector<LockTable::TransactionID> LockTable::waits_for(TransactionID id, Key* key) const {
  const MutexLock lock(mutex_);
  const auto found = waits_.find(id);
  if (found == waits_.end()) return {};
  *key = found->second.key;
  return found->second.holders;
}

}  // namespace spillway::spill
