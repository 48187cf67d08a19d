// Garbage collection of a value log (WiscKey, section 3.3.3). The records of a segment that the tree still refers to
// are appended at the head, and the segment is removed when the tree's tables no longer need it. WiscKey frees the tail
// of one file. Here each segment is a file, so any segment can be removed, and cold data at the tail blocks nothing.
//
// When. LevelDB does not report what its compactions drop, so the garbage of a segment is estimated by checking its
// first records in the tree. For each segment that the log begins, the tail and one more segment, in turn, are sampled.
// A segment with at least `gc_garbage_ratio` is collected. When the drive is short of space (`gc_free_ratio`) all
// segments are sampled, and the eighth of them with the most garbage is collected until there is space. Writers wait
// while less than two segments, or a segment and 256 KiB, are free, unless there is no garbage: then the drive is full
// of data, and the write itself returns that.
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
  bool gc = true;
  // A load of as many random puts as there are keys leaves 1 - 1/e = 63 % garbage at the tail. At a lower ratio,
  // segments would be collected whose garbage still grows with overwrites. Source: guess, between 63 % and 1.
  double gc_garbage_ratio = 0.8;
  double gc_free_ratio = 0.1;
};

// Of the drive or the file system that the store is on.
struct StoreSpace {
  std::uint64_t free_bytes = 0;
  // Of an emulated drive. 0: the host's, which other programs fill too; then only the reserve counts, not
  // `gc_free_ratio`.
  std::uint64_t capacity_bytes = 0;
};

class Collector {
 public:
  // REQUIRES: `store` outlives it. `space` is called by any thread.
  Collector(Store& store, CollectorOptions options, std::function<StoreSpace()> space);
  ~Collector() { stop(); }
  Collector(const Collector&) = delete;
  Collector& operator=(const Collector&) = delete;

  void start();
  // Returns when its thread has ended. An interrupted collection is repeated after the next start.
  void stop();

  // Called after each write. Cheap.
  void note_write();
  // Whether the next write has to wait for space; and the wait.
  bool writers_must_wait() const { return writers_must_wait_.load(std::memory_order_relaxed); }
  void wait_for_space();

  // Returns when nothing is left to collect, or soon after `stop` is set, with the last error. If the drive is full,
  // the collector retries later. Any other error ends it.
  Status settle(const std::atomic<bool>& stop);
  // The error that has ended it; OK if none.
  Status failure() const;

  void add_statistics(std::map<std::string, std::uint64_t>& figures) const;
  bool is_collecting() const { return is_collecting_; }
  // Of the last sampled segment, in thousandths.
  std::uint64_t garbage_permille() const { return garbage_permille_; }

 private:
  struct Retired {  // collected, and kept until the tree's tables include `moved_to`
    std::uint32_t segment = 0;
    Position moved_to;
  };

  void run();
  void wait_to_retry(std::unique_lock<std::mutex>& lock);
  // False: nothing to do at the moment.
  Result<bool> step();
  Result<bool> step_short_of_space();
  // All that may be collected, oldest first: without the head and without retired segments.
  std::vector<std::shared_ptr<Segment>> candidates() const;
  std::shared_ptr<Segment> next_to_sample();
  Result<double> sample(const std::shared_ptr<Segment>& segment);
  // Moves the live records, and has the segment removed as soon as possible.
  Status collect(const std::shared_ptr<Segment>& segment);
  Status relocate_live(const std::shared_ptr<Segment>& segment);
  Status relocate_chunk(const std::vector<LocatedRecord>& chunk);
  Result<std::vector<std::size_t>> find_live(const std::vector<LocatedRecord>& chunk) const;
  void release();
  std::uint64_t reserve_bytes() const;
  bool is_short_of_space() const;
  void note_no_gain();
  void check_space();

  Store& store_;
  const CollectorOptions options_;
  const std::function<StoreSpace()> space_;

  mutable std::mutex mutex_;
  std::condition_variable work_;  // wakes the thread
  std::condition_variable done_;  // wakes threads that wait for it
  bool wake_requested_ = false;   // guarded by mutex_
  bool retry_now_ = false;        // guarded by mutex_
  bool stopping_ = false;         // guarded by mutex_
  bool idle_ = true;              // guarded by mutex_
  Status failed_;                 // of the last step; guarded by mutex_

  // Used by the thread only.
  std::chrono::milliseconds retry_after_{0};
  std::deque<Retired> retired_;
  std::uint32_t newest_seen_ = 0;  // the newest segment when samples_left_ was last refilled
  std::size_t samples_left_ = 0;   // until the log begins another segment
  bool tail_is_next_ = true;
  std::uint32_t cursor_ = 0;  // the last segment that was sampled in turn

  std::atomic<bool> sample_all_{false};
  std::atomic<bool> stop_now_{false};
  std::atomic<bool> writers_must_wait_{false};
  std::atomic<bool> no_gain_{false};                // a pass over all segments has freed nothing
  std::atomic<std::uint64_t> no_gain_at_{0};        // appended bytes at that time
  std::atomic<std::uint64_t> space_checked_at_{0};  // appended bytes at the last check of the free space
  std::atomic<std::uint64_t> segments_seen_{0};
  std::atomic<bool> is_collecting_{false};
  std::atomic<std::uint64_t> garbage_permille_{0};
  std::atomic<std::uint64_t> read_bytes_{0};
  std::atomic<std::uint64_t> removed_bytes_{0};
  std::atomic<std::uint64_t> removed_segments_{0};
  std::thread thread_;
};

}  // namespace spillway::engine::vlog
