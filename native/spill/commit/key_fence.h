// Prevents a write to RocksDB and a diverted write from overlapping if they have a key in common.
//
// A write reads the key index without a lock to choose its store. Between that read and the write, another thread may
// divert the same key. Therefore both sides first announce their keys and then check for the other side (sequentially
// consistent), so at least one of the two sees the other:
//
//   a write to RocksDB    announces its keys; if one is announced as diverted, it backs off and reads the index again
//   a diverted write      announces its keys; waits until no write to RocksDB has one of them; commits; withdraws them
//
// The base of a diverted merge therefore does not change until the result is in the index. Keys are announced by hash,
// in stripes: two keys of one stripe may wait for each other unnecessarily.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

namespace spillway::spill {

class KeyFence {
 public:
  using Stripe = std::uint16_t;

  static Stripe stripe_of(std::uint32_t column_family, std::string_view key) {
    constexpr std::uint64_t kGolden = 0x9E3779B97F4A7C15;  // 2^64 divided by the golden ratio
    const std::uint64_t hash = std::hash<std::string_view>{}(key) ^ (column_family * kGolden);
    return static_cast<Stripe>((hash * kGolden) >> (64 - kStripeBits));
  }

  // The announced keys of one write to RocksDB. The destructor withdraws them.
  class MainKeys {
   public:
    explicit MainKeys(KeyFence& fence) : fence_(fence) {}
    ~MainKeys() { withdraw(); }
    MainKeys(const MainKeys&) = delete;
    MainKeys& operator=(const MainKeys&) = delete;

    // False: a diverted write has announced a key of this stripe. The caller backs off.
    bool announce(Stripe stripe) {
      fence_.stripes_[stripe].main.fetch_add(1, std::memory_order_seq_cst);
      if (count_++ == 0) {
        first_ = stripe;
      } else {
        more_.push_back(stripe);
      }
      return fence_.stripes_[stripe].diverted.load(std::memory_order_seq_cst) == 0;
    }
    void withdraw() {
      if (std::exchange(count_, 0) > 0) fence_.stripes_[first_].main.fetch_sub(1, std::memory_order_release);
      for (const Stripe stripe : more_) fence_.stripes_[stripe].main.fetch_sub(1, std::memory_order_release);
      more_.clear();
    }

   private:
    KeyFence& fence_;
    std::size_t count_ = 0;
    Stripe first_ = 0;  // most writes have one key and need no allocation
    std::vector<Stripe> more_;
  };

  // The announced keys of one group of diverted writes. The destructor withdraws them.
  class DivertedKeys {
   public:
    explicit DivertedKeys(KeyFence& fence) : fence_(fence) { fence_.groups_.fetch_add(1, std::memory_order_seq_cst); }
    ~DivertedKeys() {
      for (const Stripe stripe : announced_) fence_.stripes_[stripe].diverted.fetch_sub(1, std::memory_order_release);
      fence_.groups_.fetch_sub(1, std::memory_order_release);
    }
    DivertedKeys(const DivertedKeys&) = delete;
    DivertedKeys& operator=(const DivertedKeys&) = delete;

    void announce(Stripe stripe) {
      fence_.stripes_[stripe].diverted.fetch_add(1, std::memory_order_seq_cst);
      announced_.push_back(stripe);
    }
    // Returns when no write to RocksDB has one of these keys. REQUIRES: no writer that has one waits for the caller.
    void wait_for_main() const {
      for (const Stripe stripe : announced_) {
        while (fence_.stripes_[stripe].main.load(std::memory_order_seq_cst) != 0) std::this_thread::yield();
      }
    }

   private:
    KeyFence& fence_;
    std::vector<Stripe> announced_;
  };

  // Whether a group of diverted writes is being committed. If so, writes to RocksDB announce their keys.
  bool has_groups() const { return groups_.load(std::memory_order_seq_cst) != 0; }

 private:
  static constexpr unsigned kStripeBits = 12;  // many times the threads that write at once. Source: guess
  static constexpr std::size_t kStripes = std::size_t{1} << kStripeBits;
  struct Counts {
    std::atomic<std::uint32_t> main{0};
    std::atomic<std::uint32_t> diverted{0};
  };

  using Stripes = std::array<Counts, kStripes>;

  std::unique_ptr<Stripes> owned_ = std::make_unique<Stripes>();
  Stripes& stripes_ = *owned_;
  std::atomic<int> groups_{0};
};

}  // namespace spillway::spill
