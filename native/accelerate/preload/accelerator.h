// Whether a call of RocksDB is to be accelerated, and by whom.
#pragma once

#include "accelerate/databases/opener.h"

namespace spillway::accelerate {

// While there is one in a thread, the thread's calls are RocksDB's own, or the accelerator's, and go to RocksDB.
class Inside {
 public:
  Inside() { ++depth; }
  ~Inside() { --depth; }
  Inside(const Inside&) = delete;
  Inside& operator=(const Inside&) = delete;
  static bool is_inside() { return depth > 0; }

 private:
  static thread_local int depth;
};

// For a call from the code at `caller`. Null: the call goes to RocksDB, because it comes from RocksDB or from the
// accelerator, or because this process goes on without acceleration, which was said once on stderr.
Opener* opener_for(const void* caller);

// Whether calls of this process are accelerated at all. If not, that was said.
bool is_accelerated();

// The calls of rocksdb::DB::Open and its kin in this thread, those by RocksDB included.
int calls_in_thread();

// One line on stderr, each text once.
void say(const char* text);

}  // namespace spillway::accelerate
