// The binding record (binding_record.h) in a key-value namespace: the pair (0, 2).
#pragma once

#include <rocksdb/status.h>

#include <atomic>
#include <cstdint>
#include <string>

#include "base/mutex.h"
#include "spill/store/kv/kv_commands.h"

namespace spillway::spill {

// Thread-safe.
class KvBinding {
 public:
  // REQUIRES: `commands` outlives this
  explicit KvBinding(const KvCommands& commands) : commands_(commands) {}

  rocksdb::Status read(std::string* bytes);
  rocksdb::Status write(const std::string& bytes);  // durable when it returns OK
  // Writes the record again, so that it does not stay in the drive's oldest run and keep those after it from being
  // freed (kv_generations.h).
  void renew();
  // What the drive counts for the pair, as it was read or written last.
  std::uint64_t bytes() const { return bytes_.load(std::memory_order_acquire); }

 private:
  void keep(const std::string& bytes) REQUIRES(mutex_);

  const KvCommands& commands_;
  Mutex mutex_;
  std::string record_ GUARDED_BY(mutex_);
  std::atomic<std::uint64_t> bytes_{0};
};

}  // namespace spillway::spill
