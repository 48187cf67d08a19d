// The logs of the software region, one a generation, as readers see them, and how many bytes they hold.
#pragma once

#include <rocksdb/file_system.h>
#include <rocksdb/status.h>

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "spill/store/region/durable_ends.h"
#include "spill/store/region/log_frame.h"
#include "spill/store/store.h"

namespace spillway::spill {

// The log of one generation.
struct RegionLog {
  LogName name;
  std::string base;  // of its path, without the suffix
  std::unique_ptr<rocksdb::FSRandomAccessFile> reader;
  std::atomic<std::uint64_t> bytes{0};  // that can be read: whole frames, and the header before them
  std::uint64_t last_record = 0;        // offset of the last that was recovered
  std::atomic<bool> is_dropped{false};
  std::atomic<bool> is_drop_durable{false};

  std::string path() const;
};

rocksdb::Status no_such_generation(GenerationId generation);
rocksdb::Status damaged(const RegionLog& log, std::uint64_t offset);

// Thread-safe. A removed log exists until its last reader is done.
class RegionLogs {
 public:
  std::shared_ptr<RegionLog> find(GenerationId generation) const;  // null: there is none
  std::shared_ptr<RegionLog> newest() const;                       // null: there is none
  std::vector<std::shared_ptr<RegionLog>> all() const;             // oldest first
  // Where each log ends that was not dropped and has a header, oldest first.
  std::vector<DurableEnd> ends() const;

  // Replaces the one of its generation, if there is one.
  void put(std::shared_ptr<RegionLog> log);
  // `is_freed`: its file was removed. Otherwise its bytes still count as used.
  void remove(const RegionLog& log, bool is_freed);

  // Sets the current length of `log`.
  void resize(RegionLog& log, std::uint64_t bytes);
  // A log that was dropped counts as held until it is removed.
  void set_dropped(RegionLog& log, bool is_dropped);
  std::uint64_t used_bytes() const { return used_.load(std::memory_order_acquire); }
  std::uint64_t held_bytes() const { return held_.load(std::memory_order_acquire); }

 private:
  mutable SharedMutex mutex_;
  std::map<GenerationId, std::shared_ptr<RegionLog>> logs_ GUARDED_BY(mutex_);
  std::atomic<std::uint64_t> used_{0};
  std::atomic<std::uint64_t> held_{0};
};

}  // namespace spillway::spill
