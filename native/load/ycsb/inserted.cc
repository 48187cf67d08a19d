#include "load/ycsb/inserted.h"

namespace spillway::load::ycsb {

void InsertedRecords::acknowledge(std::uint64_t record) {
  const std::lock_guard lock(mutex_);
  std::uint64_t last = last_.load(std::memory_order_relaxed);
  if (record != last + 1) {
    ahead_.insert(record);
    return;
  }
  ++last;
  while (!ahead_.empty() && *ahead_.begin() == last + 1) {
    ahead_.erase(ahead_.begin());
    ++last;
  }
  last_.store(last, std::memory_order_release);
}

}  // namespace spillway::load::ycsb
