// Appends on their way into the drive: gathered into pairs, handed over in order on one queue, so many at most, and
// readable from memory until the drive has them.
//
// A record is copied behind those before it, into a pair in staging (kv_staging.h), and with that it is safe from the
// death of the process. A pair goes to the drive when the next record does not fit into it: the drive's core takes as
// long for one with four records as for one with one (K16), so a writer waits for it a quarter as often, if at all.
// A thread of its own hands pairs over, so that a writer who does not wait for the drive never meets it. Whoever needs
// the drive to have a record asks for it: wait(). What no further record fills goes with hand_on().
//
// The drive may take pairs of a generation in any order: they follow one another without a gap in their positions, so
// recovery ends at the first that it did not take. A later generation's go when it has all of those before. When one
// fails, it and all behind it stay here, readable, until they are stored again.
//
// A drive that says that it is full has not failed: what it refused, and all behind it, stays here, nothing more is
// taken, and resume() hands it over once more when there may be space. The drive's merges need space for a while, too.
//
// One thread at a time appends; others read meanwhile, wait, or hand on.
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
#include "spill/store/kv/kv_pairs.h"
#include "spill/store/kv/kv_staging.h"
#include "spill/store/store.h"

namespace spillway::spill {

// Of one command, and on their way at once unless somebody waits for all: enough that the drive's core has the next
// when it is done with one; few, because the core serves one line, and reads stand in it. Source: guess, some 70 us of
// the core of a Cosmos+ board for a command (K16).
inline constexpr std::uint32_t kPairsACommand = 4;
inline constexpr std::uint32_t kPairsOnTheirWay = 2 * kPairsACommand;
// Pairs there is room for, 17 MiB. A drive whose flash is busy takes nothing for some 60 ms at a time, and a writer who
// is faster than it has to wait sooner or later. From a sixteenth of the room on he pauses, for what the drive takes in
// a few milliseconds, and seldom, so that fewer than one write in a hundred does; what is left is for the time in which
// the drive takes nothing. Source: runs of workload A (docs/decisions/0011).
inline constexpr std::uint32_t kStagedPairs = 1024;
inline constexpr std::chrono::milliseconds kLongestPause{5};

class KvAppendWindow {
 public:
  KvAppendWindow(device::KvNamespace& space, std::uint32_t pair_bytes, KvStaging& staging);
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
  // Behind what was appended.
  std::uint64_t tail() const { return tail_; }
  // Hands over what was not full, too.
  void hand_on();
  // Until the drive has all that was appended before. The error of the first that failed.
  rocksdb::Status wait();
  // Hands over what failed and all behind it once more, and waits. REQUIRES: wait() has just failed
  rocksdb::Status store_again();
  // The drive said that it was full, and was not asked again since.
  bool is_full() const;
  // Hands over again what a full drive refused. By any thread.
  void resume();
  // Lets go of what is here of a generation that nobody reads any more.
  void discard(GenerationId generation);
  // Lets go of what failed, and of all behind it; appends go on where the last one began. What is in staging of it is
  // for the caller to clear. REQUIRES: wait() has just failed
  void give_up();

  // The first `most_bytes` of the pair, or what there is of them. False: it is not here.
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

  // The list as whoever holds mutex_ may read it: it is changed with both locks held.
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
  bool is_over(std::uint64_t last) const REQUIRES(mutex_);
  void hand_over_again() REQUIRES(mutex_);
  void run();
  bool has_ready() const REQUIRES(mutex_);
  bool is_in_order(std::size_t index) const REQUIRES(mutex_);
  void drive() REQUIRES(drive_mutex_);
  void gather(std::vector<device::KvIo>& ios) REQUIRES(mutex_);
  void take(std::span<const device::KvDone> done) REQUIRES(mutex_);
  void pop_front() REQUIRES(mutex_);

  device::KvNamespace& space_;
  const std::uint32_t pair_bytes_;
  KvStaging& staging_;

  // Of the queue. Held while the drive is waited for, and never waited for by an append.
  Mutex drive_mutex_ ACQUIRED_BEFORE(mutex_);
  mutable Mutex mutex_;
  CondVar ready_;                                    // for the thread: there is something to hand over
  CondVar changed_;                                  // for others: the drive has taken something, or failed
  CondVar room_;                                     // for who appends: there is as much as he wants, or it failed
  std::size_t wanted_slots_ GUARDED_BY(mutex_) = 0;  // to be free; 0: nobody waits for them
  rocksdb::Status failure_ GUARDED_BY(mutex_);
  GenerationId generation_ GUARDED_BY(mutex_) = 0;
  std::atomic<std::uint64_t> tail_{0};
  Position end_ GUARDED_BY(mutex_);  // of the last record, of whichever generation
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
  std::size_t waiting_ GUARDED_BY(mutex_) = 0;  // for all
  bool is_stopping_ GUARDED_BY(mutex_) = false;

  mutable SharedMutex pairs_mutex_;  // held alone by readers of a pair, who do not take mutex_
  std::deque<std::unique_ptr<Pair>> pairs_ GUARDED_BY(pairs_mutex_);
  std::atomic<std::uint64_t> bytes_{0};

  std::vector<device::KvDone> reaped_ GUARDED_BY(drive_mutex_);
  std::unique_ptr<device::KvQueue> queue_;  // goes before the pairs: until then what it was handed is read
  std::thread thread_;
};

}  // namespace spillway::spill
