// Named steps: places in the code at which a test wants to do something, such as end the process or cut the power.
//
// Code that must survive a crash between two actions names the place between them:
//
//   steps::reached("spill.append.written");   // "layer.what.where"; where = what has just happened
//
// Without a watcher that is one load and a branch never taken. A name is a string literal, given at one place only, so
// that a test can go through all of them. The one global of the project: a step is reached deep inside of what a test
// started, often on a thread of RocksDB's, where no argument leads.
#pragma once

#include <atomic>
#include <string_view>

namespace spillway::steps {

// Called by whichever thread reaches a step, several at once; may not return (kill) or may block (hold a race open).
class Watcher {
 public:
  Watcher() = default;
  Watcher(const Watcher&) = delete;
  Watcher& operator=(const Watcher&) = delete;
  virtual ~Watcher() = default;
  virtual void reached(std::string_view step) = 0;
};

inline std::atomic<Watcher*> watcher{nullptr};  // set by watch() only

inline void reached(const char* step) {
  if (Watcher* const one = watcher.load(std::memory_order_acquire)) [[unlikely]] {
    one->reached(step);
  }
}

// REQUIRES: whoever is replaced (null at the start and at the end) is not being called, and `one` outlives its watch.
inline void watch(Watcher* one) { watcher.store(one, std::memory_order_release); }

}  // namespace spillway::steps
