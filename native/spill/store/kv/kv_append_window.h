// Appended records that the drive does not have yet: gathered into pairs, submitted in order on one queue, a bounded
// number at a time, and readable from memory meanwhile.
//
// A record is copied behind those before it, into a pair in staging (kv_staging.h); from then on it survives a killed
// process. A pair is submitted when the next record does not fit into it: the drive's core takes as long for a pair of
// two records as for one of one record (core_pair_ns), so a writer waits for it half as often, if at all. A
// thread of this class submits pairs, so that a writer who need not wait for the drive does not. wait() returns when
// the drive has stored everything; hand_on() submits a pair that is not full.
//
// The drive may store the pairs of a generation in any order: their positions are consecutive, and recovery ends at the
// first that is missing. Pairs of a later generation are submitted when all earlier ones are stored. When a pair fails,
// it and all behind it stay here, readable, until they are stored again.
//
// A full drive has not failed: the pair that it refused, and all behind it, stay here, and resume() submits them again
// when there may be free bytes. The drive's merges need free bytes for a while, too.
//
// One thread at a time appends; others may read, wait, or hand on meanwhile.
#pragma once

#include <rocksdb/slice.h>
#include <rocksdb/status.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "base/mutex.h"
#include "device/kv/kv_namespace.h"
#include "spill/store/append_wait.h"
#include "spill/store/kv/kv_pairs.h"
#include "spill/store/kv/kv_staging.h"
#include "spill/store/kv/kv_staging_pace.h"
#include "spill/store/store.h"

namespace spillway::spill {

// Two values of 4 KiB with what frames them: the core takes half of the time for each, and a value is read with at most
// one before it. Source: docs/decisions/0055
inline constexpr std::uint32_t kPairBytes = 17 * 512;
// Slots of staging, 17 MiB: half of it for what comes in while the drive stores nothing (kv_staging_pace.h).
inline constexpr std::uint32_t kStagedPairs = 2048;

class KvAppendWindow {
 public:
  KvAppendWindow(device::KvNamespace& kv_namespace, std::uint32_t pair_bytes, KvStaging& staging);
  // What was not handed over stays in staging.
  ~KvAppendWindow();
  KvAppendWindow(const KvAppendWindow&) = delete;
  KvAppendWindow& operator=(const KvAppendWindow&) = delete;

  // From now on appends are of this generation.
  void begin(GenerationId generation);
  // Takes the records, and waits while there is no room for them. An error: a pair before them failed, or the drive
  // takes no commands; nothing of them is here, or what is begins at tail().
  // `survives`: the death of the process, from when this returns; else when the drive has them.
  rocksdb::Status append(std::span<const rocksdb::Slice> records, std::span<std::uint64_t> offsets, bool survives);
  // How long append() has waited for room.
  std::chrono::nanoseconds append_wait() const { return wait_.total(); }
  // Any thread: fewer, the less room there is.
  std::uint64_t most_group_bytes() const;
  // Behind what was appended.
  std::uint64_t tail() const { return tail_; }
  // Hands over what was not full, too.
  void hand_on();
  // Until the drive has all that was appended before. The error of the first that failed.
  rocksdb::Status wait();
  // Submits what failed and everything after it again, and waits. REQUIRES: wait() has just failed
  rocksdb::Status store_again();
  // The drive was full at the last attempt.
  bool is_full() const;
  // Submits again what a full drive refused. Called by any thread.
  void resume();
  // Drops what is here of a generation that no thread reads any more.
  void discard(GenerationId generation);
  // Drops what failed and everything after it. Appends continue where the last one began. The caller clears its part of
  // staging. REQUIRES: wait() has just failed
  void drop_failed();

  // The first `most_bytes` of the pair, or as many as there are. False: it is not here.
  bool read(Position wanted, std::uint64_t most_bytes, std::string* bytes) const;
  bool has(GenerationId generation) const;
  // A pair as it is now.
  struct Held {
    Position position;
    std::string bytes;
  };
  std::vector<Held> held(GenerationId generation) const;  // in order
  // Something did not reach the drive, and not because that is full.
  bool has_failed() const;
  // Whether append() finds out whether there is room before it takes anything: of more it may have taken a part.
  bool takes_all_or_none(std::span<const rocksdb::Slice> records) const;
  // What the drive will count for what is here, some of which it may count already.
  std::uint64_t bytes() const { return bytes_.load(std::memory_order_acquire); }

 private:
  struct Pair {
    Position position;
    std::uint32_t slot = 0;
    std::atomic<std::uint32_t> bytes{0};
    PositionBytes key{};
    std::vector<device::KvView> command;  // that it is the first pair of
    bool is_full = false;                 // takes no more records
    bool is_stored = false;
  };

  // The list for readers that hold mutex_. It is changed with both locks held.
  const std::deque<std::unique_ptr<Pair>>& all_pairs() const REQUIRES(mutex_) NO_THREAD_SAFETY_ANALYSIS {
    return pairs_;
  }

  std::uint32_t new_pairs_of(std::span<const rocksdb::Slice> records) const REQUIRES(mutex_);
  rocksdb::Status make_room(std::uint32_t pairs) REQUIRES(mutex_);
  bool has_room() const REQUIRES(mutex_) { return wanted_slots_ == 0 || !failure_.ok(); }
  rocksdb::Status append_one(const rocksdb::Slice& record, std::uint64_t* offset, bool survives) REQUIRES(mutex_);
  Pair& open_pair(std::uint64_t offset, bool of_one_record) REQUIRES(mutex_);
  void grow(Pair& pair, std::uint64_t bytes, bool survives) REQUIRES(mutex_);
  void close_pair() REQUIRES(mutex_);
  rocksdb::Status wait_for_all() REQUIRES(mutex_);
  rocksdb::Status empty_window() REQUIRES(mutex_);  // for an append that needs all of it
  bool is_over(std::uint64_t last) const REQUIRES(mutex_);
  void hand_over_again() REQUIRES(mutex_);
  void give_way(bool to_writers) REQUIRES(mutex_);
  void run();
  bool has_ready() const REQUIRES(mutex_);
  bool is_in_order(std::size_t index) const REQUIRES(mutex_);
  void drive() REQUIRES(drive_mutex_);
  void gather(std::vector<device::KvIo>& ios) REQUIRES(mutex_);
  void take(std::span<const device::KvDone> done) REQUIRES(mutex_);
  void pop_front() REQUIRES(mutex_);

  device::KvNamespace& namespace_;
  const std::uint32_t pair_bytes_;
  KvStaging& staging_;

  // Held during a wait for the drive. An append never waits for it.
  Mutex drive_mutex_ ACQUIRED_BEFORE(mutex_);
  mutable Mutex mutex_;
  CondVar ready_;    // for the thread: there is something to submit
  CondVar changed_;  // for others: the drive has taken something, or failed
  CondVar room_;     // for the appending thread: there is enough room, or it failed
  AppendWait wait_;
  std::size_t wanted_slots_ GUARDED_BY(mutex_) = 0;  // to be free; 0: no thread waits for them
  rocksdb::Status failure_ GUARDED_BY(mutex_);
  GenerationId generation_ GUARDED_BY(mutex_) = 0;
  std::atomic<std::uint64_t> tail_{0};
  Position end_ GUARDED_BY(mutex_);  // of the last record, in any generation
  struct Ends {
    std::uint64_t tail = 0;
    Position end;
  };
  Ends before_ GUARDED_BY(mutex_);               // the last append
  std::uint32_t opened_ GUARDED_BY(mutex_) = 0;  // pairs, since a writer last waited or paused
  std::vector<std::uint32_t> free_slots_ GUARDED_BY(mutex_);
  std::uint64_t first_ GUARDED_BY(mutex_) = 0;    // number of the pair at the front: the tag of its command
  std::size_t submitted_ GUARDED_BY(mutex_) = 0;  // of the pairs: handed to the drive
  std::size_t in_flight_ GUARDED_BY(mutex_) = 0;
  std::size_t most_in_flight_ GUARDED_BY(mutex_) = kPairsInFlight;
  std::size_t waiting_ GUARDED_BY(mutex_) = 0;  // for all
  bool is_stopping_ GUARDED_BY(mutex_) = false;
  bool gives_way_ GUARDED_BY(mutex_) = false;

  mutable SharedMutex pairs_mutex_;  // held alone by readers of a pair, who do not take mutex_
  std::deque<std::unique_ptr<Pair>> pairs_ GUARDED_BY(pairs_mutex_);
  std::atomic<std::uint64_t> bytes_{0};

  std::vector<device::KvDone> reaped_ GUARDED_BY(drive_mutex_);
  // Destroyed before the pairs: until then it reads what it was handed.
  std::unique_ptr<device::KvQueue> queue_ GUARDED_BY(drive_mutex_);
  std::thread thread_;
};

}  // namespace spillway::spill
