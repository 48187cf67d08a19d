// When each key was last written, for optimistic transactions and for snapshots of pessimistic ones.
//
// A counter, the clock, grows with every write; each key's stripe keeps the clock of the newest write to a key of it.
// Two keys of one stripe look like one: a conflict may be found where there is none, and none is missed. While a write
// is under way it holds the locks of its keys' buckets, so that whoever holds a bucket sees every write to its keys as
// done or as not begun.
#pragma once

#include <rocksdb/status.h>
#include <rocksdb/write_batch.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <shared_mutex>
#include <string_view>
#include <vector>

namespace spillway::spill {

class KeyVersions {
 public:
  using Stamp = std::uint64_t;

  struct Seen {
    std::uint32_t stripe = 0;
    Stamp at = 0;  // the key must not have been written since
  };

  KeyVersions();

  static std::uint32_t stripe_of(std::uint32_t column_family, std::string_view key);

  // Every write that is over by now is not newer than this.
  Stamp now() const { return clock_.load(std::memory_order_seq_cst); }
  // Whether a key of the stripe was written since. False is certain only while no write to the key can be under way.
  bool is_written_since(std::uint32_t stripe, Stamp at) const;

  // Holds every key, for what may write any: nobody else writes meanwhile.
  class AnyKey {
   public:
    explicit AnyKey(KeyVersions& versions);
    ~AnyKey();
    AnyKey(const AnyKey&) = delete;
    AnyKey& operator=(const AnyKey&) = delete;
    void is_written();  // every key counts as written now

   private:
    KeyVersions& versions_;
    std::unique_lock<std::mutex> passing_;
    std::unique_lock<std::shared_mutex> held_;
  };

  // The locks of a write under way. One that has to wait before anything of it is anywhere lets go of them, so that
  // others go on, and takes them again.
  class Holding {
   public:
    Holding(KeyVersions& versions, const std::vector<std::uint32_t>& written, bool is_any,
            const std::vector<Seen>& seen);
    void let_go();
    rocksdb::Status take();  // Busy: a key was written since it was seen

   private:
    KeyVersions& versions_;
    const std::vector<Seen>& seen_;
    const bool is_any_;
    std::vector<std::uint32_t> buckets_;
    std::optional<AnyKey> any_key_;
    std::shared_lock<std::shared_mutex> some_keys_;
    std::vector<std::unique_lock<std::mutex>> held_;
  };

  // Runs `write`, which writes the batch, unless a key in `seen` was written since it was seen: then Busy.
  rocksdb::Status write(const rocksdb::WriteBatch& batch, const std::vector<Seen>& seen,
                        const std::function<rocksdb::Status(Holding&)>& write);

 private:
  // 8 MiB of stamps: with 1,000 writes between a transaction's begin and its commit, one key it depends on is taken for
  // written in a thousandth of all cases. Source: arithmetic (1,000 / 2^20).
  static constexpr std::uint32_t kStripeBits = 20;
  static constexpr std::uint32_t kStripes = 1U << kStripeBits;
  // Writes under way are as many as there are threads. Source: guess.
  static constexpr std::uint32_t kBuckets = 4096;

  std::shared_lock<std::shared_mutex> hold_some_keys();

  std::atomic<Stamp> clock_{1};
  std::unique_ptr<std::atomic<Stamp>[]> stamps_;
  std::atomic<Stamp> all_{0};  // the newest write that may have written any key
  // Such a write holds the first alone, and the second while it waits for that: later writes of some keys let it pass,
  // for a shared_mutex may prefer readers for ever.
  std::shared_mutex any_key_;
  std::mutex passing_;
  std::atomic<int> waiting_for_any_{0};
  std::array<std::mutex, kBuckets> buckets_;
};

}  // namespace spillway::spill
