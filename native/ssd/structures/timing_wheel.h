// A timing wheel (Varghese & Lauck, SOSP 1987): pending events (time, payload) in order of time. Events of the same
// time keep the order in which they were added.
//
// Nearly all events are within one erase time of the present. They are kept in a ring of narrow buckets, each a short
// sorted list, with a bitmap of the buckets in use: adding an event and taking the next one take constant time. Later
// events wait in a heap.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cassert>
#include <cstdint>
#include <limits>
#include <queue>
#include <vector>

namespace spillway::ssd {

class TimingWheel {
 public:
  static constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();

  // `longest`: most events are at most this far ahead, in ns.
  explicit TimingWheel(std::int64_t longest) {
    while (longest >> shift_ >= std::int64_t{kBuckets}) ++shift_;
  }

  std::int64_t next_time() const { return next_time_; }
  // The payload that take() would return. REQUIRES: next_time() != kNever
  std::uint32_t next() const { return next_is_far() ? far_.top().payload : heads_[next_bucket_]; }

  // REQUIRES: now <= time, no event before `now` is pending, and `payload` is not pending
  void push(std::int64_t now, std::int64_t time, std::uint32_t payload) {
    present_ = now >> shift_;
    const std::int64_t bucket = time >> shift_;
    if (bucket - present_ >= std::int64_t{kBuckets}) {
      far_.push({time, ++order_, payload});
      next_time_ = std::min(next_time_, time);
      return;
    }
    if (payload >= nodes_.size()) nodes_.resize(payload + std::size_t{1});
    nodes_[payload].time = time;
    nodes_[payload].order = ++order_;
    insert(static_cast<std::uint32_t>(bucket % kBuckets), payload);
    if (time < near_time_) {
      near_time_ = time;
      next_bucket_ = static_cast<std::uint32_t>(bucket % kBuckets);
      next_time_ = std::min(next_time_, time);
    }
  }

  // REQUIRES: next_time() != kNever
  std::uint32_t take() {
    assert(next_time_ != kNever);
    present_ = next_time_ >> shift_;
    std::uint32_t payload;
    if (next_is_far()) {
      payload = far_.top().payload;
      far_.pop();
    } else {
      payload = heads_[next_bucket_];
      heads_[next_bucket_] = nodes_[payload].next;
      if (nodes_[payload].next == kNone) clear_used_bit(next_bucket_);
      find_near();
    }
    next_time_ = far_.empty() ? near_time_ : std::min(near_time_, far_.top().time);
    return payload;
  }

 private:
  // The buckets in use are in a bitmap of two levels of 64-bit words.
  static constexpr std::uint32_t kBuckets = 64 * 64;
  static constexpr std::uint32_t kNone = ~std::uint32_t{0};

  struct Node {
    std::int64_t time = 0;
    std::uint32_t order = 0;
    std::uint32_t next = kNone;  // in its bucket
  };
  struct Far {
    std::int64_t time;
    std::uint32_t order;
    std::uint32_t payload;
    bool operator<(const Far& other) const {  // the top of a std::priority_queue is its largest
      return time != other.time ? time > other.time : comes_before(other.order, order);
    }
  };

  // Orders wrap after 2^32 events. Only the orders of events that are pending together are compared.
  static bool comes_before(std::uint32_t a, std::uint32_t b) { return static_cast<std::int32_t>(a - b) < 0; }

  bool next_is_far() const {
    if (far_.empty() || far_.top().time > near_time_) return false;
    return far_.top().time < near_time_ || comes_before(far_.top().order, nodes_[heads_[next_bucket_]].order);
  }

  // Inserts it after the last event of the bucket that is not later.
  void insert(std::uint32_t bucket, std::uint32_t payload) {
    std::uint32_t* link = &heads_[bucket];
    if ((used_[bucket / 64] >> (bucket % 64) & 1) == 0) {
      used_[bucket / 64] |= std::uint64_t{1} << (bucket % 64);
      used_words_ |= std::uint64_t{1} << (bucket / 64);
      *link = kNone;
    }
    while (*link != kNone && nodes_[*link].time <= nodes_[payload].time) link = &nodes_[*link].next;
    nodes_[payload].next = *link;
    *link = payload;
  }

  void clear_used_bit(std::uint32_t bucket) {
    used_[bucket / 64] &= ~(std::uint64_t{1} << (bucket % 64));
    if (used_[bucket / 64] == 0) used_words_ &= ~(std::uint64_t{1} << (bucket / 64));
  }

  // Finds the first used bucket at or after the present one, around the ring.
  void find_near() {
    if (used_words_ == 0) {
      near_time_ = kNever;
      return;
    }
    const auto from = static_cast<std::uint32_t>(present_ % kBuckets);
    std::uint32_t word = from / 64;
    std::uint64_t bits = used_[word] & (~std::uint64_t{0} << (from % 64));
    if (bits == 0) {
      // Words after this one first, then around from the beginning; this one's lower bits come last of all.
      const std::uint64_t after = word == 63 ? 0 : used_words_ & (~std::uint64_t{0} << (word + 1));
      word = static_cast<std::uint32_t>(std::countr_zero(after != 0 ? after : used_words_));
      bits = used_[word];
    }
    next_bucket_ = word * 64 + static_cast<std::uint32_t>(std::countr_zero(bits));
    near_time_ = nodes_[heads_[next_bucket_]].time;
  }

  int shift_ = 0;  // a bucket is 2^shift_ ns wide
  std::int64_t present_ = 0;
  std::int64_t next_time_ = kNever;
  std::int64_t near_time_ = kNever;  // of the earliest event in the ring
  std::uint32_t next_bucket_ = 0;    // its bucket
  std::uint32_t order_ = 0;
  std::uint64_t used_words_ = 0;
  std::array<std::uint64_t, kBuckets / 64> used_{};
  std::array<std::uint32_t, kBuckets> heads_{};  // valid for used buckets
  std::vector<Node> nodes_;                      // by payload
  std::priority_queue<Far> far_;
};

}  // namespace spillway::ssd
