#include "spill/commit/doubts.h"

#include <algorithm>

namespace spillway::spill {

using rocksdb::Slice;
using rocksdb::Status;

class Doubts::Adder final : public rocksdb::WriteBatch::Handler {
 public:
  explicit Adder(Doubts& doubts) : doubts_(doubts) {}
  Status PutCF(std::uint32_t family, const Slice& key, const Slice&) override { return add(family, key); }
  Status DeleteCF(std::uint32_t family, const Slice& key) override { return add(family, key); }
  Status SingleDeleteCF(std::uint32_t family, const Slice& key) override { return add(family, key); }
  Status MergeCF(std::uint32_t family, const Slice& key, const Slice&) override { return add(family, key); }
  Status DeleteRangeCF(std::uint32_t family, const Slice& begin, const Slice& end) override {
    doubts_.ranges_.push_back({family, begin.ToString(), end.ToString()});
    return {};
  }
  void LogData(const Slice&) override {}
  Status MarkNoop(bool) override { return {}; }

 private:
  Status add(std::uint32_t family, const Slice& key) {
    doubts_.keys_.emplace(family, key.ToString());
    return {};
  }
  Doubts& doubts_;
};

void Doubts::add(const rocksdb::WriteBatch& batch) {
  const std::lock_guard lock(mutex_);
  Adder adder(*this);
  (void)batch.Iterate(&adder);  // it was prepared, so nothing else is in it
  has_any_.store(true, std::memory_order_seq_cst);
}

void Doubts::clear() {
  const std::lock_guard lock(mutex_);
  has_any_.store(false, std::memory_order_seq_cst);
  keys_.clear();
  ranges_.clear();
}

bool Doubts::has(std::uint32_t family, std::string_view key, const ColumnFamilies& families) const {
  const std::lock_guard lock(mutex_);
  if (keys_.contains({family, std::string(key)})) return true;
  const rocksdb::Comparator& order = *families.comparator(family);
  const Slice slice(key.data(), key.size());
  return std::any_of(ranges_.begin(), ranges_.end(), [&](const Range& range) {
    return range.family == family && order.Compare(range.begin, slice) <= 0 && order.Compare(slice, range.end) < 0;
  });
}

}  // namespace spillway::spill
