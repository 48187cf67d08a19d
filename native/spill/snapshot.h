// RocksDB and the spill store as of one moment, and the snapshot that a user holds of it.
//
// It keeps its generations, and with them their log, until it is released, also when they were brought back meanwhile:
// what is ingested has a newer sequence number in RocksDB than its snapshot and is not seen through it.
#pragma once

#include <rocksdb/snapshot.h>

#include <cstdint>
#include <memory>
#include <utility>

#include "spill/generation.h"

namespace spillway::spill {

struct Moment {
  View view;
  std::shared_ptr<const rocksdb::Snapshot> main;  // released with its last holder
};

class SpillSnapshot final : public rocksdb::Snapshot {
 public:
  explicit SpillSnapshot(Moment moment) : moment_(std::move(moment)) {}
  ~SpillSnapshot() override = default;

  const Moment& moment() const { return moment_; }

  // RocksDB's own: of use to compare snapshots taken while nothing was diverted between them, and no further.
  rocksdb::SequenceNumber GetSequenceNumber() const override { return moment_.main->GetSequenceNumber(); }
  std::int64_t GetUnixTime() const override { return moment_.main->GetUnixTime(); }
  std::uint64_t GetTimestamp() const override { return moment_.main->GetTimestamp(); }

 private:
  const Moment moment_;
};

}  // namespace spillway::spill
