// Mutexes that say what they guard, so that clang checks it (-Wthread-safety, `make lint`); gcc ignores the attributes.
//
//   Mutex mutex_;
//   int waiting_ GUARDED_BY(mutex_) = 0;
//   void wake() REQUIRES(mutex_);
//
// std::mutex has no such attributes in libstdc++; these classes are std::mutex and std::condition_variable with them.
// Attributes: https://clang.llvm.org/docs/ThreadSafetyAnalysis.html
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>

#if defined(__clang__)
#define SPILLWAY_THREAD_ATTRIBUTE(x) __attribute__((x))
#else
#define SPILLWAY_THREAD_ATTRIBUTE(x)
#endif

#define CAPABILITY(name) SPILLWAY_THREAD_ATTRIBUTE(capability(name))
#define SCOPED_CAPABILITY SPILLWAY_THREAD_ATTRIBUTE(scoped_lockable)
#define GUARDED_BY(x) SPILLWAY_THREAD_ATTRIBUTE(guarded_by(x))
#define PT_GUARDED_BY(x) SPILLWAY_THREAD_ATTRIBUTE(pt_guarded_by(x))
#define ACQUIRED_BEFORE(...) SPILLWAY_THREAD_ATTRIBUTE(acquired_before(__VA_ARGS__))
#define REQUIRES(...) SPILLWAY_THREAD_ATTRIBUTE(requires_capability(__VA_ARGS__))
#define EXCLUDES(...) SPILLWAY_THREAD_ATTRIBUTE(locks_excluded(__VA_ARGS__))
#define ACQUIRE(...) SPILLWAY_THREAD_ATTRIBUTE(acquire_capability(__VA_ARGS__))
#define RELEASE(...) SPILLWAY_THREAD_ATTRIBUTE(release_capability(__VA_ARGS__))
#define TRY_ACQUIRE(...) SPILLWAY_THREAD_ATTRIBUTE(try_acquire_capability(__VA_ARGS__))
#define ASSERT_CAPABILITY(x) SPILLWAY_THREAD_ATTRIBUTE(assert_capability(x))
#define RETURN_CAPABILITY(x) SPILLWAY_THREAD_ATTRIBUTE(lock_returned(x))
#define NO_THREAD_SAFETY_ANALYSIS SPILLWAY_THREAD_ATTRIBUTE(no_thread_safety_analysis)

namespace spillway {

class CAPABILITY("mutex") Mutex {
 public:
  void lock() ACQUIRE() { mutex_.lock(); }
  void unlock() RELEASE() { mutex_.unlock(); }
  bool try_lock() TRY_ACQUIRE(true) { return mutex_.try_lock(); }

 private:
  friend class CondVar;
  std::mutex mutex_;
};

// Holds a mutex for a scope, or for parts of one.
class SCOPED_CAPABILITY MutexLock {
 public:
  explicit MutexLock(Mutex& mutex) ACQUIRE(mutex) : mutex_(mutex) { mutex_.lock(); }
  ~MutexLock() RELEASE() {
    if (is_held_) mutex_.unlock();
  }
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;

  void lock() ACQUIRE() {
    mutex_.lock();
    is_held_ = true;
  }
  void unlock() RELEASE() {
    is_held_ = false;
    mutex_.unlock();
  }

 private:
  Mutex& mutex_;
  bool is_held_ = true;
};

class CondVar {
 public:
  // Both may return without a notification: the caller looks at its condition again.
  void wait(Mutex& mutex) REQUIRES(mutex) {
    std::unique_lock<std::mutex> lock(mutex.mutex_, std::adopt_lock);
    wakes_.wait(lock);
    lock.release();
  }
  void wait_for(Mutex& mutex, std::chrono::nanoseconds time) REQUIRES(mutex) {
    std::unique_lock<std::mutex> lock(mutex.mutex_, std::adopt_lock);
    wakes_.wait_for(lock, time);
    lock.release();
  }
  void notify_one() { wakes_.notify_one(); }
  void notify_all() { wakes_.notify_all(); }

 private:
  std::condition_variable wakes_;
};

}  // namespace spillway
