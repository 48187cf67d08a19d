// The value log: segments, of which the last one grows. The newest is the head, where everything is appended, the
// oldest the tail, where most of the garbage is.
//
// A segment says where the one before it ended, so that recovery notices when a loss of power took the end of one and
// left the beginning of the next: the log ends at the first record that is not there. Where a later header, or the mark
// of a clean close, says that more was synced, the log is damaged and is not opened.
//
// append(), roll() and close() are called by one thread at a time, the rest by any.
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

// What recovery finds, in the log's order.
struct Replay {
  std::function<void(const LocatedRecord& located)> take;  // of a batch that may not be whole
  std::function<Status(Position end)> commit;              // it is: the batch ends here
  std::function<void()> discard;                           // it is not
};

class ValueLog {
 public:
  using Segments = std::map<std::uint32_t, std::shared_ptr<Segment>>;

  ValueLog(SegmentPlace place, std::uint64_t segment_bytes)
      : place_(std::move(place)), segment_bytes_(segment_bytes), segments_(std::make_shared<Segments>()) {}

  // Whether the directory has a value log.
  static bool exists(const std::string& directory);
  // Opens what is there, and hands out what stands behind `begin`, once it is durable.
  Status open(Position begin, const Replay& replay);

  // Has room for `bytes` behind one another; returns where they will stand.
  Result<Position> prepare(std::uint64_t bytes);
  Status append(std::string_view bytes);
  Position end() const;

  // Everything before `to` is durable when this returns.
  Status sync(Position to);
  Position synced() const;

  // Marks the end as synced, for the next open.
  Status close();

  // Holds them: none is removed while somebody has this.
  std::shared_ptr<const Segments> segments() const;
  // Removes a segment, as soon as nobody holds it.
  void remove(std::uint32_t number);
  // How many were removed. Who looks into the tree and then asks for segments() misses one only if this changed.
  std::uint64_t removals() const { return removals_; }
  std::uint64_t bytes() const;
  std::uint64_t segment_bytes() const { return segment_bytes_; }

 private:
  struct Found {
    std::shared_ptr<Segment> segment;
    std::optional<Header> header;
  };
  using AllFound = std::map<std::uint32_t, Found>;
  // The segments of one log that recovery reads, oldest first.
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
  std::shared_ptr<const Segments> segments_;        // a copy for each change; guarded by mutex_
  std::shared_ptr<Segment> head_;                   // null: the next record begins a segment; guarded by mutex_
  std::vector<std::shared_ptr<Segment>> unsynced_;  // guarded by mutex_
  bool new_names_ = false;                          // not synced in the directory yet; guarded by mutex_
  Position end_;                                    // guarded by mutex_
  Position synced_;                                 // guarded by mutex_
  std::uint32_t next_number_ = 1;
  std::atomic<std::uint64_t> removals_{0};
  Status failed_;  // nothing can be appended any more; guarded by mutex_
};

}  // namespace spillway::engine::vlog
