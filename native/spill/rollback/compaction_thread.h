// Runs work in one of RocksDB's compaction threads, so that no more compactions run than the user allows.
#pragma once

#include <rocksdb/env.h>

#include <cstdint>
#include <functional>

#include "base/mutex.h"

namespace spillway::spill {

// Thread-safe.
class CompactionThread {
 public:
  CompactionThread() = default;
  ~CompactionThread() { finish(); }
  CompactionThread(const CompactionThread&) = delete;
  CompactionThread& operator=(const CompactionThread&) = delete;

  // REQUIRES: not is_busy(). `env` outlives the work.
  void start(rocksdb::Env& env, std::function<void()> work);
  // Work was started and has not come to its end.
  bool is_busy() const;
  // The same, but a thread has begun with it.
  bool is_running() const;
  // Work for which no thread has become free will not run.
  void cancel();
  // The same, and waits for work that runs.
  void finish();

 private:
  enum class State : std::uint8_t { none, queued, running };

  static void begin(void* self);
  static void give_up(void* self);
  void enter(State state) EXCLUDES(mutex_);

  rocksdb::Env* env_ = nullptr;
  std::function<void()> work_;
  mutable Mutex mutex_;
  CondVar changed_;
  State state_ GUARDED_BY(mutex_) = State::none;
};

}  // namespace spillway::spill
