// Which range deletion over a key is the newest. Ranges that do not overlap, each with the sequence of the newest one
// over it: a new one cuts off what it covers of the others, so n deletions are at most 2n ranges, and both to add one
// and to look up a key take O(log n).
#pragma once

#include <rocksdb/comparator.h>

#include <cstddef>
#include <map>
#include <string>
#include <string_view>

#include "spill/store/record.h"

namespace spillway::spill {

class NewestRanges {
 public:
  explicit NewestRanges(const rocksdb::Comparator* order) : ranges_(Before{order}), order_(order) {}

  // Adds [begin, end). REQUIRES: its sequence is larger than all before it
  void add(std::string_view begin, std::string_view end, Sequence sequence);
  // The sequence of the newest over the key, or 0.
  Sequence newest(std::string_view key) const;
  std::size_t ranges() const { return ranges_.size(); }

 private:
  struct Before {
    using is_transparent = void;
    bool operator()(std::string_view a, std::string_view b) const { return order->Compare(a, b) < 0; }
    const rocksdb::Comparator* order;
  };
  struct Range {
    std::string end;
    Sequence sequence = 0;
  };
  bool before(std::string_view a, std::string_view b) const { return order_->Compare(a, b) < 0; }
  void split(std::string_view at);

  std::map<std::string, Range, Before> ranges_;  // by where they begin
  const rocksdb::Comparator* order_;
};

}  // namespace spillway::spill
