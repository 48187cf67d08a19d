// Which generations a key-value namespace has: the last that was dropped, as the pair (0, 0) says, and those begun
// behind it, as the pair (0, 1) lists them. Where a drive that is full does not take that a generation was dropped, the
// head of staging says so (kv_durable.h).
//
// No pair of these stays where it was written first: in the oldest run it would keep a drive that compacts nothing from
// freeing the runs after it, whose tombstones hide what that one has. So both move on with each generation begun.
#pragma once

#include <rocksdb/status.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "spill/store/kv/kv_commands.h"
#include "spill/store/kv/kv_pairs.h"
#include "spill/store/kv/kv_staging.h"
#include "spill/store/store.h"

namespace spillway::spill {

// Used by the appending thread; prepare_drop(), dropped() and bytes() by any.
class KvGenerations {
 public:
  // REQUIRES: both outlive this
  KvGenerations(const KvCommands& commands, KvStaging& staging) : commands_(commands), staging_(staging) {}

  // What the process before has left. The space of what was dropped is free when this returns.
  rocksdb::Status recover();
  // Something of this generation was found.
  void add_found(GenerationId generation) { newest_ = std::max(newest_, generation); }
  // Later generations are about to be forgotten; none up to this one can be begun.
  void cut(GenerationId last) { newest_ = std::max<GenerationId>(last, dropped_); }

  // Durable when it returns. InvalidArgument: it is not newer than all before it. NoSpace: the drive is full.
  rocksdb::Status begin(GenerationId generation);
  // The drive learns now of a generation that has not begun, so that who begins it does not wait for that: 80 ms where
  // the drive's memtable waits for its flash.
  void announce(GenerationId next);
  // The drive says from now on that all up to this one were dropped, unless it cannot be told. By any thread, but not
  // beside drop_to().
  void prepare_drop(GenerationId generation);
  // All up to this one were dropped, durably, when this returns, though the drive be full.
  rocksdb::Status drop_to(GenerationId generation);
  // The same of one in which nothing is.
  rocksdb::Status drop_empty(GenerationId generation);

  std::vector<GenerationId> begun() const;  // and not dropped, oldest first; perhaps also the next
  GenerationId newest() const { return newest_; }
  GenerationId dropped() const { return dropped_.load(std::memory_order_acquire); }
  // What the drive counts for the two pairs.
  std::uint64_t bytes() const { return bytes_of_pair_[0] + bytes_of_pair_[1]; }

 private:
  rocksdb::Status read_list(Position where, std::vector<GenerationId>* ids);
  rocksdb::Status write_list(Position where, std::span<const GenerationId> ids);
  void count(Position where, std::uint64_t value_bytes);
  void finish_announcement();

  const KvCommands& commands_;
  KvStaging& staging_;
  std::vector<GenerationId> begun_;
  GenerationId newest_ = 0;
  std::atomic<GenerationId> dropped_{0};
  GenerationId prepared_ = 0;  // what the drive says was dropped, or less
  std::array<std::atomic<std::uint64_t>, 2> bytes_of_pair_{};
  struct {
    GenerationId generation = 0;  // on the drive among those begun, or on its way there
    const PositionBytes key = bytes_of({0, 1});
    std::string value;
    std::unique_ptr<device::KvQueue> queue;  // goes before what it was handed
  } announced_;
};

}  // namespace spillway::spill
