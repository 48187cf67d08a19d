// What is to happen when in virtual time, besides the drive's events and the processor's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <queue>
#include <vector>

#include "ssd/interface/command.h"

namespace spillway::lsm {

using ssd::Nanos;

class Agenda {
 public:
  enum class What : std::uint8_t { writer, sample };
  struct Item {
    Nanos at = 0;
    std::uint64_t number = 0;  // items of one time come in the order in which they were added
    What what = What::writer;
    std::uint64_t id = 0;
  };

  void add(Nanos at, What what, std::uint64_t id) {
    items_.push({at, number_++, what, id});
    if (what != What::sample) ++deeds_;
  }
  std::optional<Nanos> next() const { return items_.empty() ? std::nullopt : std::optional<Nanos>(items_.top().at); }
  // REQUIRES: next()
  Item pop() {
    const Item item = items_.top();
    items_.pop();
    if (item.what != What::sample) --deeds_;
    return item;
  }
  // Nothing is left but to look at what there is.
  bool only_samples() const { return deeds_ == 0; }

 private:
  struct Later {
    bool operator()(const Item& a, const Item& b) const { return a.at != b.at ? a.at > b.at : a.number > b.number; }
  };
  std::priority_queue<Item, std::vector<Item>, Later> items_;
  std::uint64_t number_ = 0;
  std::size_t deeds_ = 0;  // items that are not samples
};

}  // namespace spillway::lsm
