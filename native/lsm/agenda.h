// What is to happen when in virtual time, besides the drive's events; and how busy the processor is.
#pragma once

#include <algorithm>
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
  enum class What : std::uint8_t { lane, writer, sample, query };
  struct Item {
    Nanos at = 0;
    std::uint64_t number = 0;  // items of one time come in the order in which they were added
    What what = What::lane;
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

// Threads that compute share the cores evenly. A slice of work takes as long as the load at its start says. A thread
// that waits for part of its time (a delayed writer) is a part of a load.
class Processor {
 public:
  explicit Processor(double cores) : cores_(cores) {}
  void enter(double load = 1) { busy_ += load; }
  void leave(double load = 1) { busy_ = std::max(0.0, busy_ - load); }
  // How much longer work takes, for one that is among the busy ones.
  double slowdown() const { return std::max(1.0, busy_ / cores_); }

 private:
  double cores_;
  double busy_ = 0;
};

}  // namespace spillway::lsm
