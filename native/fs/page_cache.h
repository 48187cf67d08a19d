// The model of the page cache: which 4 KiB pages of which files are in memory. Stores no contents.
//
// Replacement is second-chance (clock). Linux's two-list reclaim behaves the same for pages that are used once or
// often. Thread-safe.
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
  // Whether the page is cached. If so, marks it as used.
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
      // Files are numbered from 1 and page numbers are consecutive, so multiplication by one odd constant spreads them
      // well.
      // Source: Fibonacci hashing, 2^64 / golden ratio (Knuth, TAOCP 6.4).
      return ((key.file << 40) + key.page) * 0x9E3779B97F4A7C15ULL;
    }
  };
  struct Slot {
    Key key;
    bool used = false;  // since the clock hand passed
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
