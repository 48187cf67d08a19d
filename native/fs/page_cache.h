// The modelled page cache: which 4 KiB pages of which files are in memory. Holds names of pages, never their contents.
//
// Replacement is second-chance (clock): what Linux' two-list reclaim comes to when pages are touched once or often.
// Thread-safe.
#pragma once

#include <cstdint>
#include <mutex>
#include <unordered_map>
#include <vector>

namespace spillway::fs {

class PageCache {
 public:
  explicit PageCache(std::uint64_t pages) : capacity_(pages) {}

  bool enabled() const { return capacity_ > 0; }
  // True, and the page marked as used, when it is cached.
  bool touch(std::uint64_t file, std::uint64_t page);
  void insert(std::uint64_t file, std::uint64_t first_page, std::uint64_t pages);
  void drop(std::uint64_t file, std::uint64_t first_page, std::uint64_t pages);

 private:
  struct Key {
    std::uint64_t file = 0;
    std::uint64_t page = 0;
    bool operator==(const Key&) const = default;
  };
  struct Hash {
    std::size_t operator()(const Key& key) const {
      // Files are numbered from 1 and pages run on, so one multiplication by an odd constant spreads them well.
      // Source: Fibonacci hashing, 2^64 / golden ratio (Knuth, TAOCP 6.4).
      return ((key.file << 40) + key.page) * 0x9E3779B97F4A7C15ULL;
    }
  };
  struct Slot {
    Key key;
    bool used = false;  // since the hand passed
    bool holds = false;
  };

  std::size_t free_slot();

  const std::uint64_t capacity_;
  std::mutex mutex_;
  std::unordered_map<Key, std::size_t, Hash> index_;
  std::vector<Slot> slots_;
  std::size_t hand_ = 0;
};

}  // namespace spillway::fs
