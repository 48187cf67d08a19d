// The contents of a disk's write cache that are not on the medium yet: runs of bytes that do not touch each other.
//
// Stores places and ages, not data. Bytes written again while they wait take no additional room.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "ssd/ssd.h"

namespace spillway::device {

class DirtyExtents {
 public:
  struct Extent {
    std::uint64_t begin = 0;
    std::uint64_t end = 0;  // one past the last byte
    ssd::Nanos since = 0;   // when its oldest byte was written
  };

  bool empty() const { return extents_.empty(); }
  std::size_t size() const { return extents_.size(); }
  std::uint64_t bytes() const { return bytes_; }
  // REQUIRES: !empty()
  ssd::Nanos oldest() const { return by_age_.begin()->first; }
  std::uint64_t oldest_begin() const { return by_age_.begin()->second; }

  // How many bytes of [begin, end) are not in it: the room that writing them takes.
  std::uint64_t missing(std::uint64_t begin, std::uint64_t end) const;

  // Adds [begin, end), and merges it with all extents that it touches. REQUIRES: begin < end
  void add(std::uint64_t begin, std::uint64_t end, ssd::Nanos now);

  // Removes up to `most_bytes` from the begin of the extent at `begin`. REQUIRES: there is one; most_bytes > 0
  Extent take(std::uint64_t begin, std::uint64_t most_bytes);

  // Calls visit(extent) for up to `most` extents in the order of their places, beginning with the first one at or after
  // `place` and continuing from the start of the disk.
  template <typename Visit>
  void visit_from(std::uint64_t place, std::size_t most, const Visit& visit) const {
    auto next = extents_.lower_bound(place);
    for (std::size_t left = most < size() ? most : size(); left > 0; --left, ++next) {
      if (next == extents_.end()) next = extents_.begin();
      visit(Extent{next->first, next->second.end, next->second.since});
    }
  }

 private:
  struct Tail {
    std::uint64_t end;
    ssd::Nanos since;
  };
  using Extents = std::map<std::uint64_t, Tail>;  // by begin

  void insert(const Extent& extent);
  Extents::iterator erase(Extents::iterator extent);
  Extents::const_iterator first_behind(std::uint64_t place) const;  // the first whose end is after `place`

  Extents extents_;
  std::set<std::pair<ssd::Nanos, std::uint64_t>> by_age_;  // since, begin
  std::uint64_t bytes_ = 0;
};

}  // namespace spillway::device
