// A consistent view of RocksDB and the spill store, and the snapshot that a user holds of it.
//
// It keeps its generations and their log until it is released, even after they were brought back: ingested data has a
// newer sequence number in RocksDB than the snapshot, so the snapshot does not see it there.
#pragma once

#include <rocksdb/snapshot.h>

#include <cstdint>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <utility>

#include "spill/live/generation.h"

namespace spillway::spill {

struct ReadState {
  View view;
  std::shared_ptr<const rocksdb::Snapshot> main;  // released with its last holder
};

// RocksDB casts a snapshot to its own class without a check, and reads the first two members of that behind the virtual
// table: the sequence number up to which it sees, and the smallest that may be uncommitted. Through our DB it never
// meets this class, but a snapshot taken before RocksDB itself was handed out gets there (GetRootDB). So these two come
// first here as well, and such a read is of RocksDB's side of the snapshot.
class SpillSnapshot final : public rocksdb::Snapshot {
 public:
  // `diverted`: operations diverted in this opening before the snapshot, as in DB::GetLatestSequenceNumber.
  explicit SpillSnapshot(ReadState state, Sequence diverted = 0)
      : main_number_(state.main->GetSequenceNumber()), state_(std::move(state)), diverted_(diverted) {}
  ~SpillSnapshot() override = default;

  const ReadState& state() const { return state_; }

  // RocksDB's sequence number plus the diverted operations: orders snapshots and DB::GetLatestSequenceNumber, and means
  // nothing to RocksDB.
  rocksdb::SequenceNumber GetSequenceNumber() const override { return main_number_ + diverted_; }
  std::int64_t GetUnixTime() const override { return state_.main->GetUnixTime(); }
  std::uint64_t GetTimestamp() const override { return state_.main->GetTimestamp(); }

 private:
  const rocksdb::SequenceNumber main_number_;
  // Source: RocksDB's value where no transaction is written before it is committed (kMinUnCommittedSeq).
  [[maybe_unused]] const rocksdb::SequenceNumber main_min_uncommitted_ = 1;
  const ReadState state_;
  const Sequence diverted_;
};

// The snapshots that the user has not released.
class Snapshots {
 public:
  const rocksdb::Snapshot* add(ReadState state, Sequence diverted) {
    auto made = std::make_unique<SpillSnapshot>(std::move(state), diverted);
    const SpillSnapshot* const snapshot = made.get();
    const std::lock_guard lock(mutex_);
    open_.emplace(snapshot, std::move(made));
    return snapshot;
  }
  bool contains(const rocksdb::Snapshot* snapshot) const {
    const std::lock_guard lock(mutex_);
    return open_.contains(snapshot);
  }
  // Returns whether it was one of them. Null, which RocksDB's GetSnapshot may return, is not.
  bool release(const rocksdb::Snapshot* snapshot) {
    std::unique_ptr<SpillSnapshot> gone;  // behind the lock
    const std::lock_guard lock(mutex_);
    const auto found = open_.find(snapshot);
    if (found == open_.end()) return false;
    gone = std::move(found->second);
    open_.erase(found);
    return true;
  }
  // Called by a database that closes without waiting for them: they would keep its spill store and its lock.
  void release_all() {
    const std::lock_guard lock(mutex_);
    open_.clear();
  }

 private:
  mutable std::mutex mutex_;
  std::unordered_map<const rocksdb::Snapshot*, std::unique_ptr<SpillSnapshot>> open_;
};

}  // namespace spillway::spill
