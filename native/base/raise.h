// Atomic numbers that only grow.
#pragma once

#include <atomic>
#include <cstdint>

namespace spillway {

// Raises `to` to at least `value` (release). A thread that reads the value with acquire sees what was done before.
inline void raise_to(std::atomic<std::uint64_t>& to, std::uint64_t value) {
  std::uint64_t before = to.load(std::memory_order_relaxed);
  while (before < value && !to.compare_exchange_weak(before, value, std::memory_order_release)) {
  }
}

}  // namespace spillway
