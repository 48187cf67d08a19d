// Which page leaves a buffer pool next. A policy is pure: it knows frames and their uses, but no pages and no device.
//
// It keeps the resident frames in eviction order: the order in which they would be evicted if none were used meanwhile.
// A pool that writes several dirty pages back at once needs more of that order than the next victim (ACE; PIO section
// 3.1, P22).
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/result.h"

namespace spillway::pool {

using Frame = std::uint32_t;

// Why a page came into its frame. Prefetched pages that were not requested yet are evicted first.
enum class Arrival : std::uint8_t { demanded, prefetched };

class Policy {
 public:
  // Whether a frame may be evicted now. A pinned frame may not.
  using IsEvictable = std::function<bool(Frame)>;
  // Called with one frame after another. Returns false to end the walk.
  using Visit = std::function<bool(Frame)>;

  virtual ~Policy() = default;

  // A page came into the frame, which joins the order. REQUIRES: the frame is not in the order
  virtual void loaded(Frame frame, Arrival arrival) = 0;
  // The page in the frame was used. REQUIRES: the frame is in the order
  virtual void used(Frame frame) = 0;
  // Walks the eviction order without changing it.
  virtual void visit_in_order(const Visit& visit) const = 0;
  // Removes from the order the first evictable frame; none if there is no such frame. If all are evictable, it is the
  // first that visit_in_order() visits, and a second call returns the second.
  virtual std::optional<Frame> evict(const IsEvictable& is_evictable) = 0;
};

// A clock hand takes the first frame whose use count is 0, and subtracts 1 from the count of each frame that it passes.
// A use adds 1, up to most_uses.
std::unique_ptr<Policy> make_clock_sweep(Frame frames, std::uint8_t most_uses);
// Source: PostgreSQL's clock sweep counts up to 5
inline constexpr std::uint8_t kMostUses = 5;

// Least recently used first.
std::unique_ptr<Policy> make_lru(Frame frames);

// "clock-sweep" or "lru".
Result<std::unique_ptr<Policy>> make_policy(const std::string& name, Frame frames);

}  // namespace spillway::pool
