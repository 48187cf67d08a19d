// The value log: a sequence of segments. The newest is the head, to which everything is appended. The oldest is the
// tail, which has most of the garbage.
//
// A segment states where the previous one ended. So recovery notices if a loss of power removed the end of one segment
// and kept the beginning of the next: the log ends at the first missing record. If a later header, or the closing
// record of a clean close, states that more was synced, the log is damaged and is not opened.
//
// append(), roll() and close() are called by one thread at a time, the other methods by any thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "engine/vlog/record_reader.h"
#include "engine/vlog/segment.h"

namespace spillway::engine::vlog {

// Receives what recovery finds, in the log's order.
struct Replay {
  std::function<void(const LocatedRecord& located)> take;  // a record of a batch that may be incomplete
  std::function<Status(Position end)> commit;              // the batch is complete and ends here
  std::function<void()> discard;                           // the batch is incomplete
};

class ValueLog {
 public:
  using Segments = std::map<std::uint32_t, std::shared_ptr<Segment>>;

  ValueLog(SegmentPlace place, std::uint64_t segment_bytes)
      : place_(std::move(place)), segment_bytes_(segment_bytes), segments_(std::make_shared<Segments>()) {}

  // Whether the directory has a value log.
  static bool exists(const std::string& directory);
  // Opens the existing segments, and replays what is after `begin` once it is durable.
  Status open(Position begin, const Replay& replay);

  // Ensures contiguous room for `bytes`. Returns their position.
  Result<Position> prepare(std::uint64_t bytes);
  Status append(std::string_view bytes);
  Position end() const;

  // Returns when everything before `to` is durable.
  Status sync(Position to);
  Position synced() const;

  // Marks the end as synced, for the next open.
  Status close();

  // No segment of the result is removed while the caller holds it.
  std::shared_ptr<const Segments> segments() const;
  // Removes a segment as soon as its last user is done.
  void remove(std::uint32_t number);
  // The number of removed segments. A caller that reads the tree and then segments() misses one only if this has
  // changed.
  std::uint64_t removals() const { return removals_; }
  std::uint64_t bytes() const;
  std::uint64_t segment_bytes() const { return segment_bytes_; }

 private:
  struct Found {
    std::shared_ptr<Segment> segment;
    std::optional<Header> header;
  };
  using AllFound = std::map<std::uint32_t, Found>;
  // The segments that recovery reads, oldest first.
  using Chain = std::vector<std::shared_ptr<Segment>>;

  Result<AllFound> find_segments() const;
  static void set_ends(const AllFound& all);
  // REQUIRES: `all` has the segment of `begin`, unless that is 0
  static Chain chain_from(Position begin, const AllFound& all);
  static Result<Position> known_synced(const AllFound& all);
  Status scan(const Chain& chain, Position begin, const Replay& replay, Position* end);
  Status roll();
  void publish(const std::function<void(Segments&)>& change);
  Status sync_directory();

  const SegmentPlace place_;
  const std::uint64_t segment_bytes_;

  std::mutex sync_mutex_;  // one sync at a time
  mutable std::mutex mutex_;
  std::shared_ptr<const Segments> segments_;        // replaced by a copy on each change; guarded by mutex_
  std::shared_ptr<Segment> head_;                   // null: the next record begins a segment; guarded by mutex_
  std::vector<std::shared_ptr<Segment>> unsynced_;  // guarded by mutex_
  bool new_names_ = false;                          // the directory needs a sync for them; guarded by mutex_
  Position end_;                                    // guarded by mutex_
  Position synced_;                                 // guarded by mutex_
  std::uint32_t next_number_ = 1;
  std::atomic<std::uint64_t> removals_{0};
  Status failed_;  // nothing can be appended any more; guarded by mutex_
};

}  // namespace spillway::engine::vlog
