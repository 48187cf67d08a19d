// A hint to the processor that survives the compiler: gcc takes a function that only prefetches for one without effect
// and drops the calls to it. The empty assembly is an effect it cannot see through.
#pragma once

namespace spillway::ssd {

inline void prefetch(const void* address) {
  __builtin_prefetch(address);
  asm volatile("");
}

}  // namespace spillway::ssd
