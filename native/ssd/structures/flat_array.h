// A large array of plain values that starts as zeros and costs memory only where it is touched.
//
// A 512 GiB drive has two arrays of half a gigabyte and more, read at random. Anonymous pages are zeroed and are
// committed at first touch, so an empty drive of any size is created at once. Huge pages reduce TLB misses of random
// look-ups.
#pragma once

#include <sys/mman.h>

#include <cassert>
#include <cstddef>
#include <cstdint>
#include <new>
#include <type_traits>
#include <utility>

namespace spillway::ssd {

template <typename T>
class FlatArray {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  FlatArray() = default;
  explicit FlatArray(std::size_t size) : size_(size) {
    if (size == 0) return;
    // A huge page must start at a multiple of its size, so take one more than needed.
    mapped_bytes_ = size * sizeof(T) + kHugePage;
    mapped_ = mmap(nullptr, mapped_bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (mapped_ == MAP_FAILED) throw std::bad_alloc();
    const auto start = (reinterpret_cast<std::uintptr_t>(mapped_) + kHugePage - 1) / kHugePage * kHugePage;
    data_ = reinterpret_cast<T*>(start);
    madvise(data_, bytes(), MADV_HUGEPAGE);  // advice: a kernel without huge pages is slower, not wrong
  }
  ~FlatArray() {
    if (mapped_ != nullptr) munmap(mapped_, mapped_bytes_);
  }
  FlatArray(FlatArray&& other) noexcept
      : mapped_(std::exchange(other.mapped_, nullptr)),
        mapped_bytes_(std::exchange(other.mapped_bytes_, 0)),
        data_(std::exchange(other.data_, nullptr)),
        size_(std::exchange(other.size_, 0)) {}
  FlatArray& operator=(FlatArray&& other) noexcept {
    std::swap(mapped_, other.mapped_);
    std::swap(mapped_bytes_, other.mapped_bytes_);
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    return *this;
  }
  FlatArray(const FlatArray&) = delete;
  FlatArray& operator=(const FlatArray&) = delete;

  T& operator[](std::size_t i) {
    assert(i < size_);
    return data_[i];
  }
  const T& operator[](std::size_t i) const {
    assert(i < size_);
    return data_[i];
  }
  T* begin() { return data_; }
  T* end() { return data_ + size_; }
  T* data() { return data_; }
  const T* data() const { return data_; }
  std::size_t size() const { return size_; }
  std::size_t bytes() const { return size_ * sizeof(T); }

 private:
  static constexpr std::size_t kHugePage = std::size_t{2} << 20;

  void* mapped_ = nullptr;
  std::size_t mapped_bytes_ = 0;
  T* data_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace spillway::ssd
