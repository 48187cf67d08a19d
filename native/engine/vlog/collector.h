// Garbage collection of a value log (WiscKey, section 3.3.3): the records of a segment that the tree still refers to
// are appended at the head, and the segment is removed when the tree's tables no longer need it. WiscKey frees the tail
// of one file; here each segment is a file, so any can go, and cold data at the tail hold up nothing.
//
// When. LevelDB does not say what its compactions drop, so garbage is known only by asking the tree about a segment's
// first records. With each segment that the log begins, the tail is looked at, and one more segment, in turn; from
// `garbage_ratio` on it is collected. Where the drive runs short (`free_ratio`) all are looked at, and the eighth with
// the most garbage is collected until there is space. Writers wait as soon as less than two segments are free, but no
// longer than there is garbage: then the drive is full of data, and the write itself says so.
//
// Thread-safe.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/result.h"
#include "engine/vlog/record_reader.h"
#include "engine/vlog/store.h"

namespace spillway::engine::vlog {

struct CollectorOptions {
  bool on = true;
  // A load of as many random puts as there are keys leaves 1 - 1/e = 63 % at the tail; below that, garbage goes with
  // overwrites. Source: guess, between the two.
  double garbage_ratio = 0.8;
  double free_ratio = 0.1;
};

struct FreeSpace {
  std::uint64_t free_bytes = 0;
  // Of an emulated drive. 0: the host's, which others fill too; there only the reserve counts, not `free_ratio`.
  std::uint64_t capacity_bytes = 0;
};

class Collector {
 public:
  // REQUIRES: `store` outlives it. `space` is asked by any thread.
  Collector(Store& store, CollectorOptions options, std::function<FreeSpace()> space);
  ~Collector() { stop(); }
  Collector(const Collector&) = delete;
  Collector& operator=(const Collector&) = delete;

  void start();
  // Returns when its thread has ended; what it had begun is begun anew at the next start.
  void stop();

  // After a write. Cheap.
  void note_write();
  // Whether the next write has to wait for space, and the wait itself.
  bool writers_must_wait() const { return writers_must_wait_.load(std::memory_order_relaxed); }
  void wait_for_space();

  // Returns when nothing is to be collected, or soon after `stop` is set, with what has gone wrong. Where the drive is
  // full, the collector tries again later; any other error ends it.
  Status settle(const std::atomic<bool>& stop);
  // The error that has ended it, if any.
  Status failure() const;

  void add_statistics(std::map<std::string, std::uint64_t>& figures) const;
  bool is_collecting() const { return is_collecting_; }
  // Of the segment that was looked at last, in thousandths.
  std::uint64_t garbage_permille() const { return garbage_permille_; }

 private:
  struct Retired {  // collected, and needed until the tree's tables are as new as `moved_to`
    std::uint32_t segment = 0;
    Position moved_to;
  };

  void run();
  void wait_to_retry(std::unique_lock<std::mutex>& lock);
  // False: there is nothing to do at the moment.
  Result<bool> step();
  Result<bool> step_short_of_space();
  // All that may be collected, oldest first: not the head, and not what was collected already.
  std::vector<std::shared_ptr<Segment>> candidates() const;
  std::shared_ptr<Segment> next_to_sample();
  Result<double> sample(const std::shared_ptr<Segment>& segment);
  // Moves what is live, and has the segment removed as soon as that can be.
  Status collect(const std::shared_ptr<Segment>& segment);
  Status relocate_live(const std::shared_ptr<Segment>& segment);
  Status relocate_chunk(const std::vector<LocatedRecord>& chunk);
  Result<std::vector<std::size_t>> find_live(const std::vector<LocatedRecord>& chunk) const;
  void release();
  bool is_short_of_space() const;
  void note_no_gain();
  void check_space();

  Store& store_;
  const CollectorOptions options_;
  const std::function<FreeSpace()> space_;

  mutable std::mutex mutex_;
  std::condition_variable work_;  // for the thread
  std::condition_variable done_;  // for who waits for it
  bool wake_requested_ = false;   // guarded by mutex_
  bool retry_now_ = false;        // guarded by mutex_
  bool stopping_ = false;         // guarded by mutex_
  bool idle_ = true;              // guarded by mutex_
  Status failed_;                 // of the last step; guarded by mutex_

  // Of the thread alone.
  std::chrono::milliseconds retry_after_{0};
  std::deque<Retired> retired_;
  std::uint32_t newest_seen_ = 0;  // segment, when looks were last granted
  std::size_t samples_left_ = 0;   // left until the log begins a further segment
  bool tail_is_next_ = true;
  std::uint32_t cursor_ = 0;  // the segment that was looked at last, of those in turn

  std::atomic<bool> sample_all_{false};
  std::atomic<bool> stop_now_{false};
  std::atomic<bool> writers_must_wait_{false};
  std::atomic<bool> no_gain_{false};                // a lap has freed nothing
  std::atomic<std::uint64_t> no_gain_at_{0};        // bytes that had been appended then
  std::atomic<std::uint64_t> space_checked_at_{0};  // as much was appended at the last look at the space
  std::atomic<std::uint64_t> segments_seen_{0};
  std::atomic<bool> is_collecting_{false};
  std::atomic<std::uint64_t> garbage_permille_{0};
  std::atomic<std::uint64_t> read_bytes_{0};
  std::atomic<std::uint64_t> removed_bytes_{0};
  std::atomic<std::uint64_t> removed_segments_{0};
  std::thread thread_;
};

}  // namespace spillway::engine::vlog
