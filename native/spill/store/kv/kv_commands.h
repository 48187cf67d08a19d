// Commands to a drive's key-value namespace. A queue serves one thread at a time; those that are free are kept for the
// next thread.
#pragma once

#include <rocksdb/status.h>

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/mutex.h"
#include "device/kv/kv_namespace.h"
#include "spill/store/kv/kv_pairs.h"

namespace spillway::spill {

struct PositionRange {
  Position begin;
  Position end;  // generation 0: to the last pair
};

// Thread-safe.
class KvCommands {
 public:
  // REQUIRES: `kv_namespace` outlives this
  explicit KvCommands(device::KvNamespace& kv_namespace) : namespace_(kv_namespace) {}

  device::KvNamespace& kv_namespace() const { return namespace_; }

  // The pair is durable when this returns.
  rocksdb::Status store(Position position, std::string_view bytes) const;
  // At most `most_bytes` of the pair; empty if there is none.
  rocksdb::Status retrieve(Position position, std::uint32_t most_bytes, std::string* bytes) const;
  // Removes the pairs, durably when this returns.
  rocksdb::Status reset(PositionRange range) const;
  // The pairs of a range in order, until `each` returns false.
  rocksdb::Status scan(PositionRange range, const std::function<bool(Position, std::string_view)>& each) const;

 private:
  // A queue, and the keys and parts of its pending commands, for which no thread may wait any more.
  struct Lane {
    std::vector<PositionBytes> keys;
    std::vector<device::KvViewPart> parts;
    std::unique_ptr<device::KvQueue> queue;  // destroyed before its keys and parts
  };

 public:
  // A queue for one thread, until this goes. What is pending in it then is left to the drive.
  class Lease {
   public:
    explicit Lease(const KvCommands& commands) : commands_(commands), lane_(commands.take_lane()) {}
    ~Lease();
    Lease(const Lease&) = delete;
    Lease& operator=(const Lease&) = delete;
    device::KvQueue& queue() const { return *lane_.queue; }
    // Memory for keys and parts of commands, which outlives them.
    std::vector<PositionBytes>& keys() { return lane_.keys; }
    std::vector<device::KvViewPart>& parts() { return lane_.parts; }

   private:
    const KvCommands& commands_;
    Lane lane_;
  };

 private:
  Lane take_lane() const;
  rocksdb::Status perform(const device::KvIo& io, device::KvDone* done) const;

  device::KvNamespace& namespace_;
  mutable Mutex mutex_;
  mutable std::deque<Lane> idle_ GUARDED_BY(mutex_);
  mutable std::deque<Lane> abandoned_ GUARDED_BY(mutex_);  // with something pending, the oldest first
};

// What is pending in the queue, each at its tag, which is below `count`.
std::vector<device::KvDone> reap_all(device::KvQueue& queue, std::size_t count);

}  // namespace spillway::spill
