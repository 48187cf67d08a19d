// Memory that is looked at in random order: of 2 MiB or more it is aligned so and asked to be of huge pages, which
// spares most such looks the walk through page tables. Measured by bench/spill_overheads.
#pragma once

#include <sys/mman.h>

#include <algorithm>
#include <cstddef>
#include <new>

namespace spillway::spill {

template <typename T>
struct HugePages {
  using value_type = T;
  static constexpr std::size_t kHugePage = std::size_t{2} << 20;  // of x86-64 and most others

  static constexpr std::size_t kLeast = alignof(std::max_align_t);

  HugePages() = default;
  template <typename U>
  explicit HugePages(const HugePages<U>& /*other*/) {}

  static std::align_val_t alignment(std::size_t count) {
    return std::align_val_t{count * sizeof(T) >= kHugePage ? kHugePage : std::max(alignof(T), kLeast)};
  }
  T* allocate(std::size_t count) {
    void* const memory = ::operator new(count * sizeof(T), alignment(count));
    if (count * sizeof(T) >= kHugePage) ::madvise(memory, count * sizeof(T), MADV_HUGEPAGE);  // a wish
    return static_cast<T*>(memory);
  }
  void deallocate(T* memory, std::size_t count) { ::operator delete(memory, alignment(count)); }

  friend bool operator==(const HugePages& /*a*/, const HugePages& /*b*/) { return true; }
};

}  // namespace spillway::spill
