// Which records exist: those of the load, and those that the run has inserted.
//
// YCSB's acknowledged counter. Threads that insert take numbers from one sequence. A record may be chosen by the others
// once its insert and all inserts before it have ended, so that no request goes to a record that does not exist.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <set>

namespace spillway::load::ycsb {

class InsertedRecords {
 public:
  // REQUIRES: first_free > 0; the records [0, first_free) exist.
  explicit InsertedRecords(std::uint64_t first_free) : next_(first_free), last_(first_free - 1) {}

  // The number of the next record to insert. Each is handed out once.
  std::uint64_t take() { return next_.fetch_add(1, std::memory_order_relaxed); }
  // The insert of `record`, a number from take(), has ended.
  void acknowledge(std::uint64_t record);
  // The highest number up to which all records exist.
  std::uint64_t last() const { return last_.load(std::memory_order_acquire); }

 private:
  std::atomic<std::uint64_t> next_;
  std::atomic<std::uint64_t> last_;
  std::mutex mutex_;
  std::set<std::uint64_t> ahead_;  // guarded by mutex_: acknowledged, while an earlier one is not
};

}  // namespace spillway::load::ycsb
