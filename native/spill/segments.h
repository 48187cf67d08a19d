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
    const std::size_t segment = place_of(index).segment;
    if (heads_[segment].load(std::memory_order_relaxed) != nullptr) return 0;
    const std::size_t count = kFirst << segment;
    owned_[segment] = std::make_unique<T[]>(count);
    heads_[segment].store(owned_[segment].get(), std::memory_order_release);
    return count * sizeof(T);
  }

 private:
  static constexpr std::uint64_t kFirst = 64;
  static constexpr std::size_t kSegments = 40;  // 2^46 in all
  struct Place {
    std::size_t segment;
    std::uint64_t at;
  };
  static Place place_of(std::uint64_t index) {
    const std::size_t segment = std::bit_width(index / kFirst + 1) - 1;
    return {segment, index - kFirst * ((std::uint64_t{1} << segment) - 1)};
  }

  std::array<std::unique_ptr<T[]>, kSegments> owned_;
  std::array<std::atomic<T*>, kSegments> heads_{};
};

}  // namespace spillway::spill
