// Stalls of an engine whose writers themselves can be seen to wait: each tells when it is held back, and when it goes
// on.
//
// The engine as a whole is stalled from the moment a first writer is held until none is, and the cause is the first
// one's. Stalls that follow one another at once, as where each write is put off for a moment, are one: see `Joins`.
//
// Thread-safe.
#pragma once

#include <cstdint>
#include <mutex>
#include <vector>

#include "engine/engine.h"

namespace spillway::engine {

// std::chrono::steady_clock, ns.
std::int64_t steady_now_ns();

class WriterStalls {
 public:
  // Two stalls of one state and cause with less than this between them are one. 0: each stands for itself.
  struct Joins {
    std::int64_t delayed_ns = 0;
    std::int64_t stopped_ns = 0;
  };
  explicit WriterStalls(Joins joins) : joins_(joins) {}

  // A writer is held back from now on. REQUIRES: the same thread calls end() before it calls begin() again.
  void begin(StallState state, StallCause cause) { begin_at(steady_now_ns(), state, cause); }
  void end() { end_at(steady_now_ns()); }
  // The same with the time given, which never decreases.
  void begin_at(std::int64_t now_ns, StallState state, StallCause cause);
  void end_at(std::int64_t now_ns);

  StallState state() const;
  StallCause cause() const;
  // Oldest first; one that goes on, or that the next may still join, ends now.
  std::vector<Stall> stalls() const { return stalls_at(steady_now_ns()); }
  std::vector<Stall> stalls_at(std::int64_t now_ns) const;

 private:
  // REQUIRES: mutex_ is held.
  bool may_join(const Stall& ended, std::int64_t now_ns) const;

  const Joins joins_;
  mutable std::mutex mutex_;
  std::uint32_t held_ = 0;  // writers
  Stall present_;           // REQUIRES: held_ > 0
  std::vector<Stall> ended_;
};

}  // namespace spillway::engine
