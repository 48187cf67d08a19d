// Writes to memory that is mapped from a file and outlives the process.
#pragma once

#include <atomic>

namespace spillway {

// If the file has this value after a kill, it also has everything that the thread wrote before: the release store keeps
// the compiler from moving earlier writes after it, and a kill loses no write that the processor has executed.
template <typename T>
void store_last(T* where, T value) {
  std::atomic_ref<T>(*where).store(value, std::memory_order_release);
}

}  // namespace spillway
