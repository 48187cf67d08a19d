// Writes into memory that is shared with a file and outlives the process.
#pragma once

#include <atomic>

namespace spillway {

// What precedes it in this thread is in the file when this is; the processor's own order is the killed process's.
template <typename T>
void store_last(T* where, T value) {
  std::atomic_ref<T>(*where).store(value, std::memory_order_release);
}

}  // namespace spillway
