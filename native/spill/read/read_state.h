// A consistent view of RocksDB and the spill store, and the user's snapshot of it.
//
// It keeps its generations and their log until it is released, even after they were brought back. Ingested data has a
// newer sequence number in RocksDB than the snapshot, so the snapshot does not see it there.
#pragma once

#include <rocksdb/snapshot.h>

#include <cstdint>
#include <memory>
#include <unordered_map>
#include <utility>

#include "base/mutex.h"
#include "spill/live/generation.h"

namespace spillway::spill {

struct ReadState {
  View view;
  std::shared_ptr<const rocksdb::Snapshot> main;  // released with its last owner
};

// RocksDB casts a snapshot to its own class without a check, and reads the first two members after the virtual table:
// the sequence number up to which it sees, and the smallest that may be uncommitted. RocksDB never gets this class
// through this library's DB, but it may get a snapshot that was taken before RocksDB itself was handed out (GetRootDB).
// Therefore this class begins with the same two members, and such a read uses RocksDB's side of the snapshot.
class SpillSnapshot final : public rocksdb::Snapshot {
 public:
  // `diverted`: the number of operations diverted in this opening before the snapshot, as in
  // DB::GetLatestSequenceNumber.
  explicit SpillSnapshot(ReadState state, Sequence diverted = 0)
      : main_number_(state.main->GetSequenceNumber()), state_(std::move(state)), diverted_(diverted) {}
  ~SpillSnapshot() override = default;

  const ReadState& state() const { return state_; }

  // RocksDB's sequence number plus the number of diverted operations. Orders snapshots and DB::GetLatestSequenceNumber,
  // and is not a sequence number of RocksDB.
  rocksdb::SequenceNumber GetSequenceNumber() const override { return main_number_ + diverted_; }
  std::int64_t GetUnixTime() const override { return state_.main->GetUnixTime(); }
  std::uint64_t GetTimestamp() const override { return state_.main->GetTimestamp(); }

 private:
  const rocksdb::SequenceNumber main_number_;
  // Source: RocksDB's value if every transaction is committed before it is written (kMinUnCommittedSeq).
  [[maybe_unused]] const rocksdb::SequenceNumber main_min_uncommitted_ = 1;
  const ReadState state_;
  const Sequence diverted_;
};

// The snapshots that the user has not yet released.
class Snapshots {
 public:
  const rocksdb::Snapshot* add(ReadState state, Sequence diverted) {
    auto made = std::make_unique<SpillSnapshot>(std::move(state), diverted);
    const SpillSnapshot* const snapshot = made.get();
    const MutexLock lock(mutex_);
    open_.emplace(snapshot, std::move(made));
    return snapshot;
  }
  bool contains(const rocksdb::Snapshot* snapshot) const {
    const MutexLock lock(mutex_);
    return open_.contains(snapshot);
  }
  // Whether it was one of them. False for null, which RocksDB's GetSnapshot may return.
  bool release(const rocksdb::Snapshot* snapshot) {
    std::unique_ptr<SpillSnapshot> gone;  // destroyed after the lock is released
    const MutexLock lock(mutex_);
    const auto found = open_.find(snapshot);
    if (found == open_.end()) return false;
    gone = std::move(found->second);
    open_.erase(found);
    return true;
  }
  // Called by a database that closes without waiting for their release. They would keep its spill store and its lock.
  void release_all() {
    const MutexLock lock(mutex_);
    open_.clear();
  }

 private:
  mutable Mutex mutex_;
  std::unordered_map<const rocksdb::Snapshot*, std::unique_ptr<SpillSnapshot>> open_ GUARDED_BY(mutex_);
};

}  // namespace spillway::spill
