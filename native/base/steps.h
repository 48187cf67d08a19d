// Named steps: places in the code at which a test acts, for example ends the process or cuts the power.
//
// Code that must survive a crash between two actions names the place between them:
//
//   steps::reached("spill.append.written");   // "layer.what.where"; where = what has just happened
//
// Without a watcher a step costs one load and a branch that is never taken. A name is a string literal and is used at
// one place only, so that a test can enumerate all of them. This is the project's only global variable: a step is often
// reached on a thread of RocksDB, to which no argument can be passed.
#pragma once

#include <atomic>
#include <string_view>

namespace spillway::steps {

// Called by each thread that reaches a step, concurrently. May not return (kill) or may block (to hold a race open).
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

// REQUIRES: the replaced watcher (null at the start and at the end) is not being called, and `one` outlives its watch.
inline void watch(Watcher* one) { watcher.store(one, std::memory_order_release); }

}  // namespace spillway::steps
