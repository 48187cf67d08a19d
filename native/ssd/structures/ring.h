// A FIFO in one growing array: it allocates only when it grows.
#pragma once

#include <cassert>
#include <cstddef>
#include <vector>

namespace spillway::ssd {

template <typename T>
class Ring {
 public:
  bool empty() const { return head_ == tail_; }
  std::size_t size() const { return tail_ - head_; }
  T& front() {
    assert(!empty());
    return items_[head_ & (items_.size() - 1)];
  }
  const T& front() const {
    assert(!empty());
    return items_[head_ & (items_.size() - 1)];
  }
  // The item `ahead` places behind the front. REQUIRES: ahead < size()
  const T& peek(std::size_t ahead) const {
    assert(ahead < size());
    return items_[(head_ + ahead) & (items_.size() - 1)];
  }
  void pop() { ++head_; }
  void push(const T& item) {
    if (size() == items_.size()) grow();
    items_[tail_++ & (items_.size() - 1)] = item;
  }

 private:
  void grow() {
    std::vector<T> larger(items_.size() * 2);
    const std::size_t count = size();
    for (std::size_t i = 0; i < count; ++i) larger[i] = items_[(head_ + i) & (items_.size() - 1)];
    items_.swap(larger);
    head_ = 0;
    tail_ = count;
  }

  std::vector<T> items_ = std::vector<T>(16);  // the size stays a power of two
  std::size_t head_ = 0;
  std::size_t tail_ = 0;
};

}  // namespace spillway::ssd
