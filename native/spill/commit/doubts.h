// Writes in doubt: their calls returned an error, and the failed spill store may hold them nevertheless. Keeps their
// keys and deleted ranges.
#pragma once

#include <rocksdb/write_batch.h>

#include <atomic>
#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "spill/live/column_families.h"

namespace spillway::spill {

// Thread-safe.
class Doubts {
 public:
  void add(const rocksdb::WriteBatch& batch);
  void clear();
  bool has_any() const { return has_any_.load(std::memory_order_seq_cst); }
  bool has(std::uint32_t family, std::string_view key, const ColumnFamilies& families) const;

 private:
  struct Range {
    std::uint32_t family = 0;
    std::string begin;
    std::string end;
  };

  std::atomic<bool> has_any_{false};
  mutable Mutex mutex_;
  std::set<std::pair<std::uint32_t, std::string>> keys_ GUARDED_BY(mutex_);
  std::vector<Range> ranges_ GUARDED_BY(mutex_);
};

}  // namespace spillway::spill
