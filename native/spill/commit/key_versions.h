// When each key was last written, for optimistic transactions and for snapshots of pessimistic ones.
//
// The clock is a counter that grows with every write. Each stripe of keys stores the clock of its newest write. Keys of
// one stripe are not distinguished: a conflict may be reported where there is none, and none is missed. A write in
// flight holds the locks of its keys' buckets. The holder of a bucket therefore sees each write to its keys as
// completed or as not begun.
#pragma once

#include <rocksdb/status.h>
#include <rocksdb/write_batch.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "base/mutex.h"

namespace spillway::spill {

class KeyVersions {
 public:
  using Stamp = std::uint64_t;

  struct Seen {
    std::uint32_t stripe = 0;
    Stamp at = 0;  // the stripe must not have been written after this
  };

  KeyVersions();

  static std::uint32_t stripe_of(std::uint32_t column_family, std::string_view key);

  // No write that has completed is newer than this.
  Stamp now() const { return clock_.load(std::memory_order_seq_cst); }
  // Whether a key of the stripe was written after `at`. False is certain only while no write to the key can be in
  // flight.
  bool is_written_since(std::uint32_t stripe, Stamp at) const;

  // Locks all keys, for an operation that may write any of them. It excludes all writes.
  class SCOPED_CAPABILITY AnyKey {
   public:
    explicit AnyKey(KeyVersions& versions) ACQUIRE(versions.passing_, versions.any_key_);
    ~AnyKey() RELEASE();
    AnyKey(const AnyKey&) = delete;
    AnyKey& operator=(const AnyKey&) = delete;
    void is_written();  // stamps every key as written now

   private:
    KeyVersions& versions_;
  };

  // The locks of a write in flight. A write that has to wait before any part of it is stored releases them, so that
  // other writes can proceed, and then takes them again.
  //
  // clang does not follow these locks: their number is known at run time only. They guard no member; stamps are atomic.
  class Holding {
   public:
    Holding(KeyVersions& versions, const std::vector<std::uint32_t>& written, bool is_any,
            const std::vector<Seen>& seen);
    ~Holding();
    Holding(const Holding&) = delete;
    Holding& operator=(const Holding&) = delete;
    void release() NO_THREAD_SAFETY_ANALYSIS;
    rocksdb::Status take() NO_THREAD_SAFETY_ANALYSIS;  // Busy: a key was written after it was read
    // How long take() has waited for other writes, since this was last called.
    std::chrono::nanoseconds waited() { return std::exchange(waited_, std::chrono::nanoseconds{0}); }

   private:
    KeyVersions& versions_;
    const std::vector<Seen>& seen_;
    const bool is_any_;
    std::vector<std::uint32_t> buckets_;  // in the order in which they are locked
    std::optional<AnyKey> any_key_;
    bool has_buckets_ = false;  // their locks are held, and any_key_ of `versions_`, shared
    std::chrono::nanoseconds waited_{0};
  };

  // Runs `write`, which writes the batch. Busy: a key in `seen` was written after it was read, and `write` was not run.
  rocksdb::Status write(const rocksdb::WriteBatch& batch, const std::vector<Seen>& seen,
                        const std::function<rocksdb::Status(Holding&)>& write);

 private:
  // 8 MiB of stamps: with 1,000 writes between a transaction's begin and its commit, a key that it depends on is
  // reported as written falsely with a probability of 1/1000. Source: arithmetic (1,000 / 2^20).
  static constexpr std::uint32_t kStripeBits = 20;
  static constexpr std::uint32_t kStripes = 1U << kStripeBits;
  // There are as many writes in flight as threads. Source: guess.
  static constexpr std::uint32_t kBuckets = 4096;

  // Locks any_key_ shared, after an AnyKey that waits for it. Returns how long that took, if it had to wait.
  std::chrono::nanoseconds lock_some_keys() NO_THREAD_SAFETY_ANALYSIS;

  std::atomic<Stamp> clock_{1};
  std::unique_ptr<std::atomic<Stamp>[]> stamps_;
  std::atomic<Stamp> all_{0};  // the newest write that may have written any key
  // An AnyKey holds both, the second exclusively. While it waits for that, later writes wait for the first: a
  // SharedMutex may prefer readers for ever.
  Mutex passing_ ACQUIRED_BEFORE(any_key_);
  SharedMutex any_key_;  // shared: by a write that holds buckets
  std::atomic<int> waiting_for_any_{0};
  std::array<Mutex, kBuckets> buckets_;
};

}  // namespace spillway::spill
