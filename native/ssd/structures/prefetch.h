// A prefetch hint that gcc does not remove. gcc takes a function that only prefetches for one without effect and
// removes calls to it. The empty assembly statement counts as an effect.
#pragma once

namespace spillway::ssd {

inline void prefetch(const void* address) {
  __builtin_prefetch(address);
  asm volatile("");
}

}  // namespace spillway::ssd
