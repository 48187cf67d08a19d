// A serialised part that serves in turns: who waits when a turn begins is served in it, one after the other, and shares
// the turn's own costs. With those at 0 it is a lock in the order of arrival, which each leaves when it has been
// served. A turn with a cost of its own is work done for all in it at once (a commit), and they leave together when it
// ends.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace spillway::device {

class BatchServer {
 public:
  struct Request {
    std::uint32_t slot = 0;
    std::int64_t turn_ns = 0;   // what a turn with this one in it costs, once
    std::int64_t wake_ns = 0;   // and once more when it had to be waited for
    std::int64_t serve_ns = 0;  // what this one costs in it
  };

  // Waits for the next turn. True when the caller must begin one now.
  bool join(const Request& wait) {
    waiting_.push_back(wait);
    return in_batch_ == 0;
  }

  // Begins a turn, `waited` for or not: calls leaves(slot, time) for each that waited, in order; each of them then
  // calls left(). REQUIRES: someone waits and no turn is going on
  template <class Leaves>
  void serve(std::int64_t now, bool waited, Leaves leaves) {
    serving_.swap(waiting_);
    waiting_.clear();
    in_batch_ = serving_.size();
    std::int64_t at = now;
    for (const Request& one : serving_) at = std::max(at, now + one.turn_ns + (waited ? one.wake_ns : 0));
    bool together = false;
    for (const Request& one : serving_) together = together || one.turn_ns > 0;
    if (together) {
      for (const Request& one : serving_) at += one.serve_ns;
      for (const Request& one : serving_) leaves(one.slot, at);
    } else {
      for (const Request& one : serving_) leaves(one.slot, at += one.serve_ns);
    }
  }

  // One of the turn has left. True when it was the last and others wait: the caller must begin the next turn.
  bool leave() { return --in_batch_ == 0 && !waiting_.empty(); }

 private:
  std::vector<Request> waiting_;
  std::vector<Request> serving_;
  std::size_t in_batch_ = 0;
};

}  // namespace spillway::device
