// One job of a point: the addresses of its I/Os, and whether any are left. Deterministic in the seed.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>

#include "device/device.h"
#include "probe/point.h"
#include "ssd/structures/random.h"

namespace spillway::probe {

class Job {
 public:
  // REQUIRES: check(point, …) passed, range_bytes is its range, index < point.numjobs
  Job(const Point& point, std::uint64_t range_bytes, std::uint32_t index, std::uint64_t seed)
      : pattern_(point.pattern),
        read_share_(point.read_share),
        bs_bytes_(point.bs_bytes),
        index_(index),
        directions_(stream_of(point, 2 * index + 1, seed)),
        places_random_(stream_of(point, point.pattern == Pattern::staggered ? 0 : 2 * index, seed)) {
    const std::uint64_t all = range_bytes / bs_bytes_;
    places_ = pattern_ == Pattern::sequential ? all / point.numjobs : all;
    // A staggered job's distance from job 0 at the same step.
    first_ = pattern_ == Pattern::random ? 0 : all * index / point.numjobs;
    if (pattern_ == Pattern::sequential) first_ = places_ * index;
    if (pattern_ == Pattern::staggered && point.ios) {
      left_ = *point.ios / point.numjobs + (index < *point.ios % point.numjobs ? 1 : 0);
    }
  }

  std::uint32_t index() const { return index_; }

  // Whether I/Os are left. Only staggered jobs end by themselves; the others always have more.
  bool has_more() const { return left_ > 0; }

  // REQUIRES: has_more()
  device::Io next() {
    --left_;
    device::Io io;
    const bool is_read = read_share_ >= 1 || (read_share_ > 0 && directions_.uniform() < read_share_);
    io.op = is_read ? device::Opcode::read : device::Opcode::write;
    io.offset_bytes = place() * bs_bytes_;
    io.length_bytes = bs_bytes_;
    io.tag = std::uint64_t{index_} << 1 | (is_read ? 1 : 0);
    return io;
  }

  static bool is_read(std::uint64_t tag) { return (tag & 1) != 0; }
  static std::uint32_t index_of(std::uint64_t tag) { return static_cast<std::uint32_t>(tag >> 1); }

 private:
  // The seed of one random stream of one point. Each number is hashed before the next is added: in a sum, job 1 of a
  // point would draw the places of job 0 of a later point. Reads would then visit pages in the order in which an
  // earlier point wrote them, several of one die in a row, and dies would stand idle.
  static std::uint64_t stream_of(const Point& point, std::uint64_t stream, std::uint64_t seed) {
    return ssd::mix(ssd::mix(ssd::mix(seed) + point.id) + stream);
  }

  std::uint64_t place() {
    switch (pattern_) {
      case Pattern::random:
        return places_random_.below(places_);
      case Pattern::staggered:
        return (places_random_.below(places_) + first_) % places_;
      case Pattern::sequential:
        break;
    }
    const std::uint64_t here = cursor_;
    cursor_ = cursor_ + 1 == places_ ? 0 : cursor_ + 1;
    return first_ + here;
  }

  Pattern pattern_;
  double read_share_;
  std::uint64_t bs_bytes_;
  std::uint32_t index_;
  std::uint64_t places_ = 0;  // number of aligned addresses to choose from
  std::uint64_t first_ = 0;
  std::uint64_t cursor_ = 0;
  std::uint64_t left_ = std::numeric_limits<std::uint64_t>::max();
  ssd::Random directions_;
  ssd::Random places_random_;
};

}  // namespace spillway::probe
