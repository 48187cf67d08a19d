#include "spill/rollback/compaction_thread.h"

#include <utility>

namespace spillway::spill {

void CompactionThread::start(rocksdb::Env& env, std::function<void()> work) {
  env_ = &env;
  work_ = std::move(work);
  enter(State::queued);
  env.Schedule(&begin, this, rocksdb::Env::LOW, this, &give_up);
}

bool CompactionThread::is_busy() const {
  const MutexLock lock(mutex_);
  return state_ != State::none;
}

bool CompactionThread::is_running() const {
  const MutexLock lock(mutex_);
  return state_ == State::running;
}

void CompactionThread::cancel() {
  {
    const MutexLock lock(mutex_);
    if (state_ != State::queued) return;
  }
  env_->UnSchedule(this, rocksdb::Env::LOW);  // calls give_up(), unless it has just begun
}

void CompactionThread::finish() {
  cancel();
  const MutexLock lock(mutex_);
  while (state_ != State::none) changed_.wait(mutex_);
}

void CompactionThread::begin(void* self) {
  auto& one = *static_cast<CompactionThread*>(self);
  one.enter(State::running);
  std::exchange(one.work_, nullptr)();
  one.enter(State::none);
}

void CompactionThread::give_up(void* self) {
  auto& one = *static_cast<CompactionThread*>(self);
  one.work_ = nullptr;
  one.enter(State::none);
}

void CompactionThread::enter(State state) {
  const MutexLock lock(mutex_);  // held while notifying: this may be gone as soon as finish() has seen the end
  state_ = state;
  changed_.notify_all();
}

}  // namespace spillway::spill
