// Operations of a thread since the last sample, taken without stopping the thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "base/histogram.h"

namespace spillway::load {

// Finished operations and their latencies. The number of operations is the histograms' count.
struct Tally {
  Histogram read_latency;
  Histogram write_latency;
  Histogram start_lag;                   // open loop: how late an idle thread woke up for an operation
  std::uint64_t pairs_read = 0;          // found by a get, or seen by a scan
  std::uint64_t not_found = 0;           // gets of absent keys, and scans that saw no pair
  std::uint64_t user_bytes_written = 0;  // keys and values of acknowledged writes
  std::uint64_t user_bytes_read = 0;
  std::vector<Histogram> kind_latency;  // by Outcome::kind; empty if the workload has no kinds

  std::uint64_t reads() const { return read_latency.count(); }
  std::uint64_t writes() const { return write_latency.count(); }
  std::uint64_t operations() const { return reads() + writes(); }

  Histogram& of_kind(std::size_t kind) {
    if (kind_latency.size() <= kind) kind_latency.resize(kind + 1);
    return kind_latency[kind];
  }

  void merge(const Tally& other) {
    read_latency.merge(other.read_latency);
    write_latency.merge(other.write_latency);
    start_lag.merge(other.start_lag);
    pairs_read += other.pairs_read;
    not_found += other.not_found;
    user_bytes_written += other.user_bytes_written;
    user_bytes_read += other.user_bytes_read;
    for (std::size_t kind = 0; kind < other.kind_latency.size(); ++kind) of_kind(kind).merge(other.kind_latency[kind]);
  }
  void clear() { *this = Tally(); }
};

// The worker records into one buffer; the recorder takes it by swapping it with a second one.
//
// The lock is held for one record or one swap of pointers, so the worker finds it held at most once in an interval.
// Without a lock the recorder would have to wait until the worker has noticed the swap, and a worker in a stalled put
// does not notice it for seconds. bench/runner_overhead measures the cost.
class DoubleBufferedTally {
 public:
  // By the worker. Calls update(Tally&) with the buffer of this interval.
  template <typename Update>
  void record(const Update& update) {
    const Guard guard(locked_);
    update(*active_);
  }

  // By the recorder. Adds what was recorded since the last take() to `into`.
  void take(Tally& into) {
    {
      const Guard guard(locked_);
      std::swap(active_, spare_);
    }
    into.merge(*spare_);
    spare_->clear();
  }

 private:
  class Guard {
   public:
    explicit Guard(std::atomic_flag& locked) : locked_(locked) {
      while (locked_.test_and_set(std::memory_order_acquire)) std::this_thread::yield();
    }
    ~Guard() { locked_.clear(std::memory_order_release); }
    Guard(const Guard&) = delete;
    Guard& operator=(const Guard&) = delete;

   private:
    std::atomic_flag& locked_;
  };

  std::atomic_flag locked_;
  std::unique_ptr<Tally> active_ = std::make_unique<Tally>();
  std::unique_ptr<Tally> spare_ = std::make_unique<Tally>();
};

}  // namespace spillway::load
