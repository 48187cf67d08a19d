// A list that grows without moving what it holds: segments that double in size. One thread grows it; others read what
// they know to be there.
#pragma once

#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>

namespace spillway::spill {

template <typename T>
class Segments {
 public:
  // Null where it has not grown so far.
  T* find(std::uint64_t index) const {
    const Place place = place_of(index);
    T* const segment = heads_[place.segment].load(std::memory_order_acquire);
    return segment == nullptr ? nullptr : segment + place.at;
  }
  // REQUIRES: the list has grown that far, and the caller knows it by something acquired.
  T& operator[](std::uint64_t index) const { return *find(index); }

  // Makes room for `index`; by one thread at a time. Returns how many bytes it took.
  std::size_t grow(std::uint64_t index) {
    const Place place = place_of(index);
    const std::size_t segment = place.segment;
    if (heads_[segment].load(std::memory_order_relaxed) != nullptr) return 0;
    const std::size_t count = kFirst * place.firsts;
    owned_[segment] = std::make_unique<T[]>(count);
    heads_[segment].store(owned_[segment].get(), std::memory_order_release);
    return count * sizeof(T);  // NOLINT(bugprone-sizeof-expression): T may well be a pointer
  }

 private:
  static constexpr std::uint64_t kFirst = 64;
  static constexpr std::size_t kSegments = 40;  // 2^46 in all
  struct Place {
    std::size_t segment;
    std::uint64_t firsts;  // how many times as large as the first it is
    std::uint64_t at;
  };
  static Place place_of(std::uint64_t index) {
    const std::uint64_t firsts = std::bit_floor(index / kFirst + 1);
    return {static_cast<std::size_t>(std::countr_zero(firsts)), firsts, index - kFirst * (firsts - 1)};
  }

  std::array<std::unique_ptr<T[]>, kSegments> owned_;
  std::array<std::atomic<T*>, kSegments> heads_{};
};

}  // namespace spillway::spill
