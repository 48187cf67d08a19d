// Which page leaves a buffer pool next. A policy is pure: it knows frames and how they were used, no page, no device.
//
// It keeps the resident frames in an order, the eviction order: the one in which they would go if none were used
// meanwhile. A pool that writes several dirty pages back at once asks for more of that order than its next victim
// (ACE; PIO section 5, P22).
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/result.h"

namespace spillway::pool {

using Frame = std::uint32_t;

// Why a page came into its frame. What nobody asked for yet is the first to go.
enum class Arrival : std::uint8_t { demanded, prefetched };

class Policy {
 public:
  // Whether a frame may be evicted now; a pinned one may not.
  using IsEvictable = std::function<bool(Frame)>;
  // Told frame after frame; false ends the walk.
  using Visit = std::function<bool(Frame)>;

  virtual ~Policy() = default;

  // A page came into the frame, which joins the order. REQUIRES: it is not in it
  virtual void loaded(Frame frame, Arrival arrival) = 0;
  // The page in the frame was used. REQUIRES: the frame is in the order
  virtual void used(Frame frame) = 0;
  // Walks the eviction order and changes nothing.
  virtual void visit_in_order(const Visit& visit) const = 0;
  // Takes out of the order the first frame that may go; nothing when none may. Where all may, it is the first that
  // visit_in_order() visits, and a second call gives the second.
  virtual std::optional<Frame> evict(const IsEvictable& is_evictable) = 0;
};

// A hand goes round and takes the first frame whose use count is 0, and 1 off the count of each that it passes. A use
// adds 1, up to most_uses.
std::unique_ptr<Policy> make_clock_sweep(Frame frames, std::uint8_t most_uses);
// Source: PostgreSQL's clock-sweep counts up to 5
inline constexpr std::uint8_t kMostUses = 5;

// Least recently used first.
std::unique_ptr<Policy> make_lru(Frame frames);

// "clock-sweep" or "lru".
Result<std::unique_ptr<Policy>> make_policy(const std::string& name, Frame frames);

}  // namespace spillway::pool
