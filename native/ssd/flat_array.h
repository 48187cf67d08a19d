// A large array of plain values that starts as zeros and costs memory only where it is touched.
//
// A 512 GiB drive has two arrays of half a gigabyte and more, read at random. Anonymous pages come zeroed and are
// committed at first touch, so an empty drive of any size is made at once; huge pages keep address translation out of
// the way of random look-ups.
#pragma once

#include <sys/mman.h>

#include <cassert>
#include <cstddef>
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
    void* memory = mmap(nullptr, bytes(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) throw std::bad_alloc();
    data_ = static_cast<T*>(memory);
    madvise(memory, bytes(), MADV_HUGEPAGE);  // advice: a kernel without huge pages is slower, not wrong
  }
  ~FlatArray() {
    if (data_ != nullptr) munmap(data_, bytes());
  }
  FlatArray(FlatArray&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}
  FlatArray& operator=(FlatArray&& other) noexcept {
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
  T* data() { return data_; }
  const T* data() const { return data_; }
  std::size_t size() const { return size_; }
  std::size_t bytes() const { return size_ * sizeof(T); }

 private:
  T* data_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace spillway::ssd
