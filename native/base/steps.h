// Named steps: places in the code at which a test acts, for example ends the process or cuts the power.
//
// Code that must survive a crash between two actions names the place between them:
//
//   steps::reached("spill.append.written");   // "layer.what.where"; where = what has just happened
//
// Without a watcher a step costs one load and a branch that is never taken. A name is a string literal and is used at
// one place only, so that a test can enumerate all of them. These are the project's only global variables: a step is
// often reached on a thread of RocksDB, to which no argument can be passed.
#pragma once

#include <atomic>
#include <string_view>
#include <thread>

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
inline std::atomic<int> calls{0};               // threads that have seen a watcher and may be in it

[[gnu::noinline]] inline void call_watcher(const char* step) {
  calls.fetch_add(1);
  if (Watcher* const one = watcher.load()) one->reached(step);
  calls.fetch_sub(1);
}

[[gnu::always_inline]] inline void reached(const char* step) {
  if (watcher.load(std::memory_order_relaxed) != nullptr) [[unlikely]]
    call_watcher(step);
}

// Null ends the watch: on return no thread is in the watcher, which must not be the caller. REQUIRES: a watcher that is
// replaced by another is not being called, and `one` outlives its watch.
inline void watch(Watcher* one) {
  watcher.store(one);
  while (one == nullptr && calls.load() > 0) std::this_thread::yield();
}

}  // namespace spillway::steps
