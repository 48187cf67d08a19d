// Mutexes with attributes for clang's thread-safety analysis (-Wthread-safety, `make lint`). gcc ignores the
// attributes.
//
//   Mutex mutex_;
//   int waiting_ GUARDED_BY(mutex_) = 0;
//   void wake() REQUIRES(mutex_);
//
// libstdc++'s classes have no such attributes; these are std::mutex, std::shared_mutex and std::condition_variable with
// them.
// Attributes: https://clang.llvm.org/docs/ThreadSafetyAnalysis.html
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <shared_mutex>

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
#define REQUIRES_SHARED(...) SPILLWAY_THREAD_ATTRIBUTE(requires_shared_capability(__VA_ARGS__))
#define EXCLUDES(...) SPILLWAY_THREAD_ATTRIBUTE(locks_excluded(__VA_ARGS__))
#define ACQUIRE(...) SPILLWAY_THREAD_ATTRIBUTE(acquire_capability(__VA_ARGS__))
#define ACQUIRE_SHARED(...) SPILLWAY_THREAD_ATTRIBUTE(acquire_shared_capability(__VA_ARGS__))
#define RELEASE(...) SPILLWAY_THREAD_ATTRIBUTE(release_capability(__VA_ARGS__))
#define RELEASE_SHARED(...) SPILLWAY_THREAD_ATTRIBUTE(release_shared_capability(__VA_ARGS__))
#define TRY_ACQUIRE(...) SPILLWAY_THREAD_ATTRIBUTE(try_acquire_capability(__VA_ARGS__))
#define TRY_ACQUIRE_SHARED(...) SPILLWAY_THREAD_ATTRIBUTE(try_acquire_shared_capability(__VA_ARGS__))
#define ASSERT_CAPABILITY(x) SPILLWAY_THREAD_ATTRIBUTE(assert_capability(x))
#define RETURN_CAPABILITY(x) SPILLWAY_THREAD_ATTRIBUTE(lock_returned(x))
#define NO_THREAD_SAFETY_ANALYSIS SPILLWAY_THREAD_ATTRIBUTE(no_thread_safety_analysis)

namespace spillway {

class CAPABILITY("mutex") Mutex {
 public:
  void lock() ACQUIRE() { mutex_.lock(); }
  void unlock() RELEASE() { mutex_.unlock(); }
  bool try_lock() TRY_ACQUIRE(true) { return mutex_.try_lock(); }
  // Tells clang that the mutex is held where it cannot see that. Checks nothing.
  void assume_held() const ASSERT_CAPABILITY(this) {}

 private:
  friend class CondVar;
  std::mutex mutex_;
};

// Holds a mutex for a scope, or for parts of one.
class SCOPED_CAPABILITY MutexLock {
 public:
  explicit MutexLock(Mutex& mutex) ACQUIRE(mutex) : mutex_(mutex) { mutex_.lock(); }
  MutexLock(Mutex& mutex, std::adopt_lock_t) REQUIRES(mutex) : mutex_(mutex) {}  // which the caller has locked
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

// Held by one writer, or by any number of readers.
class CAPABILITY("shared mutex") SharedMutex {
 public:
  void lock() ACQUIRE() { mutex_.lock(); }
  void unlock() RELEASE() { mutex_.unlock(); }
  void lock_shared() ACQUIRE_SHARED() { mutex_.lock_shared(); }
  void unlock_shared() RELEASE_SHARED() { mutex_.unlock_shared(); }
  bool try_lock_shared() TRY_ACQUIRE_SHARED(true) { return mutex_.try_lock_shared(); }

 private:
  std::shared_mutex mutex_;
};

// Holds a SharedMutex for a scope, as its writer or as one of its readers.
class SCOPED_CAPABILITY ExclusiveLock {
 public:
  explicit ExclusiveLock(SharedMutex& mutex) ACQUIRE(mutex) : mutex_(mutex) { mutex_.lock(); }
  ~ExclusiveLock() RELEASE() { mutex_.unlock(); }
  ExclusiveLock(const ExclusiveLock&) = delete;
  ExclusiveLock& operator=(const ExclusiveLock&) = delete;

 private:
  SharedMutex& mutex_;
};
class SCOPED_CAPABILITY SharedLock {
 public:
  explicit SharedLock(SharedMutex& mutex) ACQUIRE_SHARED(mutex) : mutex_(mutex) { mutex_.lock_shared(); }
  ~SharedLock() RELEASE() { mutex_.unlock_shared(); }
  SharedLock(const SharedLock&) = delete;
  SharedLock& operator=(const SharedLock&) = delete;

 private:
  SharedMutex& mutex_;
};

class CondVar {
 public:
  // Each may return without a notification, so the caller checks its condition again.
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
  void wait_until(Mutex& mutex, std::chrono::steady_clock::time_point end) REQUIRES(mutex) {
    std::unique_lock<std::mutex> lock(mutex.mutex_, std::adopt_lock);
    wakes_.wait_until(lock, end);
    lock.release();
  }
  void notify_one() { wakes_.notify_one(); }
  void notify_all() { wakes_.notify_all(); }

 private:
  std::condition_variable wakes_;
};

}  // namespace spillway
