// The role of the thread that holds the commit queue (commit/commit_queue.h), as a capability that clang checks.
//
// One thread at a time has it in each database. A function that needs it says REQUIRES(in_commit_queue), a member that
// only such functions touch says GUARDED_BY(in_commit_queue), and a lambda that is run in the queue is written
// `[&]() REQUIRES(in_commit_queue) { … }`.
#pragma once

#include "base/mutex.h"

namespace spillway::spill {

class CAPABILITY("role") CommitRole {
 public:
  // Tells clang that this thread has the role where it cannot see that. Checks nothing.
  void assume_held() const ASSERT_CAPABILITY(this) {}
};
inline constexpr CommitRole in_commit_queue;  // NOLINT(readability-identifier-naming): read as a mutex is

}  // namespace spillway::spill
