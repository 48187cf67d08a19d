// Something to do when the process exits with an object still there, as with one that a program never deletes.
#pragma once

#include <unistd.h>

#include <cstdlib>
#include <functional>
#include <map>
#include <memory>
#include <utility>

#include "base/mutex.h"

namespace spillway {

// While it lives, `action` is to run in exit(), and in a return from main, before any static object is destroyed that
// was there when the process made its first AtExit. Not in a forked child, which has no thread of the parent's but one.
// The destructor waits for an action that runs; an action must not end an AtExit.
class AtExit {
 public:
  explicit AtExit(std::function<void()> action) {
    Registry& all = registry();
    const MutexLock lock(all.mutex);
    const pid_t process = getpid();
    // A child of a fork has the parent's handler too, which runs later than this one.
    if (std::exchange(all.registered_in, process) != process) std::atexit([] { run_all(); });
    all.actions.emplace(this, Action{process, std::move(action)});
  }
  ~AtExit() {
    Registry& all = registry();
    const MutexLock lock(all.mutex);
    all.actions.erase(this);
  }
  AtExit(const AtExit&) = delete;
  AtExit& operator=(const AtExit&) = delete;

 private:
  struct Action {
    pid_t process = 0;
    std::function<void()> run;
  };
  struct Registry {
    Mutex mutex;
    pid_t registered_in GUARDED_BY(mutex) = 0;
    std::map<const AtExit*, Action> actions GUARDED_BY(mutex);
  };

  // Never destroyed: objects that outlive it are erased from it.
  static Registry& registry() {
    static Registry* const made = std::make_unique<Registry>().release();
    return *made;
  }

  static void run_all() {
    Registry& all = registry();
    const MutexLock lock(all.mutex);
    for (auto& [owner, action] : all.actions) {
      if (std::exchange(action.process, 0) == getpid()) action.run();
    }
  }
};

}  // namespace spillway
