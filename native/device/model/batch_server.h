// A server of batches. The requests that wait when a batch begins are served in it, one after another, and share the
// batch's fixed cost. A preset calls a batch a *turn*. Without a fixed cost it is a lock in the order of arrival, and
// each request leaves when it has been served. With a fixed cost it is a group commit, and all leave when the batch
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
    std::int64_t turn_ns = 0;   // fixed cost of its batch; the largest in the batch counts
    std::int64_t wake_ns = 0;   // added to it if the batch had to wait for the one before
    std::int64_t serve_ns = 0;  // cost of this request within the batch
  };

  // Adds the request to the next batch. True if no batch is being served: the caller then calls serve().
  bool join(const Request& request) {
    waiting_.push_back(request);
    return in_batch_ == 0;
  }

  // Serves all that wait: calls leaves(slot, time) for each, in order. The caller calls leave() for each at that time.
  // `waited`: another batch was served before. REQUIRES: a request waits; no batch is being served
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

  // A request has left. True if it was the last of its batch and others wait: the caller then calls serve().
  bool leave() { return --in_batch_ == 0 && !waiting_.empty(); }

 private:
  std::vector<Request> waiting_;
  std::vector<Request> serving_;
  std::size_t in_batch_ = 0;
};

}  // namespace spillway::device
