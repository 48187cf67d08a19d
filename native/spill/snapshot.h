// A snapshot of both stores: RocksDB's, and what the spill store held at the same moment.
//
// It keeps its generations, and with them their log, until it is released, also when they were brought back meanwhile:
// what is ingested has a newer sequence number in RocksDB than its snapshot and is not seen through it.
#pragma once

#include <rocksdb/snapshot.h>

#include <cstdint>
#include <utility>

#include "spill/generation.h"

namespace spillway::spill {

class SpillSnapshot final : public rocksdb::Snapshot {
 public:
  // REQUIRES: both of one moment, taken while no write enters either store. Whoever destroys this releases `main`.
  SpillSnapshot(View view, const rocksdb::Snapshot* main) : view_(std::move(view)), main_(main) {}
  ~SpillSnapshot() override = default;

  // What ReadOptions.snapshot points to; null if it is none of ours, such as one taken of the RocksDB beneath.
  static const SpillSnapshot* of(const rocksdb::Snapshot* snapshot) {
    return dynamic_cast<const SpillSnapshot*>(snapshot);
  }

  const View& view() const { return view_; }
  const rocksdb::Snapshot* main() const { return main_; }

  // RocksDB's own: of use to compare snapshots taken while nothing was diverted between them, and no further.
  rocksdb::SequenceNumber GetSequenceNumber() const override { return main_->GetSequenceNumber(); }
  std::int64_t GetUnixTime() const override { return main_->GetUnixTime(); }
  std::uint64_t GetTimestamp() const override { return main_->GetTimestamp(); }

 private:
  const View view_;
  const rocksdb::Snapshot* const main_;
};

}  // namespace spillway::spill
