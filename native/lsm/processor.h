// The host's processor: threads that compute share its cores evenly, at every moment.
//
//   rate = min(1, cores / busy)      of each thread that computes; it changes whenever one begins or ends
//
// All have the same rate, so pieces of work end in the order of: service given so far when they began, plus their own.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <queue>
#include <vector>

#include "ssd/interface/command.h"

namespace spillway::lsm {

using ssd::Nanos;

class Processor {
 public:
  explicit Processor(double cores) : cores_(cores) {}

  // A thread begins a piece of work that takes so long alone. REQUIRES: `now` never decreases, in any call
  void begin(Nanos now, double alone_ns, std::uint32_t id);
  // When the next piece of work is done, if nothing begins or ends before.
  std::optional<Nanos> next_done() const { return next_done_; }
  // Appends the ids of the pieces that are done; the earliest first.
  void take_done(Nanos now, std::vector<std::uint32_t>& ids);

  // A thread that computes without an end, or for a part of its time. REQUIRES: enter() before leave()
  void enter(Nanos now, double load);
  void leave(Nanos now, double load);

  // How much longer work takes than alone, for a thread that adds `more` to those that compute. It is the same as long
  // as changes() is.
  double slowdown(double more = 0) const;
  std::uint64_t changes() const { return changes_; }

 private:
  struct Work {
    double until = 0;  // service
    std::uint64_t number = 0;
    std::uint32_t id = 0;
    bool operator>(const Work& other) const {
      return until != other.until ? until > other.until : number > other.number;
    }
  };

  void serve(Nanos now);
  void change_load(double by);

  double cores_;
  double busy_ = 0;
  double served_ns_ = 0;  // to each thread that has computed all the time
  Nanos at_ = 0;
  std::uint64_t begun_ = 0;
  std::uint64_t changes_ = 0;
  std::optional<Nanos> next_done_;
  std::priority_queue<Work, std::vector<Work>, std::greater<>> work_;
};

}  // namespace spillway::lsm
