#include "spill/key_versions.h"

#include <algorithm>
#include <optional>

namespace spillway::spill {
namespace {

using rocksdb::Slice;
using rocksdb::Status;

// The stripes of a batch's keys.
class Stripes final : public rocksdb::WriteBatch::Handler {
 public:
  Status PutCF(std::uint32_t family, const Slice& key, const Slice&) override { return add(family, key); }
  Status PutEntityCF(std::uint32_t family, const Slice& key, const Slice&) override { return add(family, key); }
  Status PutBlobIndexCF(std::uint32_t family, const Slice& key, const Slice&) override { return add(family, key); }
  Status DeleteCF(std::uint32_t family, const Slice& key) override { return add(family, key); }
  Status SingleDeleteCF(std::uint32_t family, const Slice& key) override { return add(family, key); }
  Status MergeCF(std::uint32_t family, const Slice& key, const Slice&) override { return add(family, key); }
  Status DeleteRangeCF(std::uint32_t, const Slice&, const Slice&) override {
    is_any_ = true;
    return {};
  }
  void LogData(const Slice&) override {}
  Status MarkBeginPrepare(bool) override { return {}; }
  Status MarkEndPrepare(const Slice&) override { return {}; }
  Status MarkNoop(bool) override { return {}; }
  Status MarkRollback(const Slice&) override { return {}; }
  Status MarkCommit(const Slice&) override { return {}; }
  Status MarkCommitWithTimestamp(const Slice&, const Slice&) override { return {}; }

  const std::vector<std::uint32_t>& stripes() const { return stripes_; }
  bool is_any() const { return is_any_; }

 private:
  Status add(std::uint32_t family, const Slice& key) {
    stripes_.push_back(KeyVersions::stripe_of(family, {key.data(), key.size()}));
    return {};
  }

  std::vector<std::uint32_t> stripes_;
  bool is_any_ = false;
};

}  // namespace

KeyVersions::KeyVersions() : stamps_(std::make_unique<std::atomic<Stamp>[]>(kStripes)) {}

std::uint32_t KeyVersions::stripe_of(std::uint32_t column_family, std::string_view key) {
  constexpr std::uint64_t kGolden = 0x9E3779B97F4A7C15;  // 2^64 divided by the golden ratio
  const std::uint64_t hash = std::hash<std::string_view>{}(key) ^ (column_family * kGolden);
  return static_cast<std::uint32_t>((hash * kGolden) >> (64 - kStripeBits));
}

bool KeyVersions::is_written_since(std::uint32_t stripe, Stamp at) const {
  return stamps_[stripe].load(std::memory_order_seq_cst) > at || all_.load(std::memory_order_seq_cst) > at;
}

// Holds every key.
class KeyVersions::AnyKey {
 public:
  explicit AnyKey(KeyVersions& versions) : waits_(versions.waiting_for_any_) {
    waits_.fetch_add(1, std::memory_order_seq_cst);
    passing_ = std::unique_lock(versions.passing_);
    held_ = std::unique_lock(versions.any_key_);
  }
  ~AnyKey() { waits_.fetch_sub(1, std::memory_order_seq_cst); }
  AnyKey(const AnyKey&) = delete;
  AnyKey& operator=(const AnyKey&) = delete;

 private:
  std::atomic<int>& waits_;
  std::unique_lock<std::mutex> passing_;
  std::unique_lock<std::shared_mutex> held_;
};

std::shared_lock<std::shared_mutex> KeyVersions::hold_some_keys() {
  if (waiting_for_any_.load(std::memory_order_seq_cst) > 0) const std::lock_guard let_it_pass(passing_);
  return std::shared_lock(any_key_);
}

Status KeyVersions::write(const rocksdb::WriteBatch& batch, const std::vector<Seen>& seen,
                          const std::function<Status()>& write) {
  Stripes written;
  if (Status status = batch.Iterate(&written); !status.ok()) return status;
  std::optional<AnyKey> any_key;
  std::shared_lock<std::shared_mutex> some_keys;
  std::vector<std::unique_lock<std::mutex>> held;
  if (written.is_any()) {
    any_key.emplace(*this);
  } else {
    some_keys = hold_some_keys();
    std::vector<std::uint32_t> buckets;
    buckets.reserve(written.stripes().size() + seen.size());
    for (const std::uint32_t stripe : written.stripes()) buckets.push_back(stripe % kBuckets);
    for (const Seen& one : seen) buckets.push_back(one.stripe % kBuckets);
    std::sort(buckets.begin(), buckets.end());  // one order for all: no two wait for each other
    buckets.erase(std::unique(buckets.begin(), buckets.end()), buckets.end());
    held.reserve(buckets.size());
    for (const std::uint32_t bucket : buckets) held.emplace_back(buckets_[bucket]);
  }
  for (const Seen& one : seen) {
    if (is_written_since(one.stripe, one.at)) return Status::Busy("a key was written since the transaction read it");
  }
  const Status status = write();
  // Also of a write that has failed, which may be there in part. After it can be seen: who took the clock before does
  // not have it in his view.
  const Stamp stamp = clock_.fetch_add(1, std::memory_order_seq_cst) + 1;
  for (const std::uint32_t stripe : written.stripes()) {
    Stamp before = stamps_[stripe].load(std::memory_order_relaxed);
    while (before < stamp && !stamps_[stripe].compare_exchange_weak(before, stamp, std::memory_order_seq_cst)) {
    }
  }
  if (written.is_any()) all_.store(stamp, std::memory_order_seq_cst);
  return status;
}

Status KeyVersions::write_any(const std::function<Status()>& write) {
  const AnyKey any_key(*this);
  const Status status = write();
  all_.store(clock_.fetch_add(1, std::memory_order_seq_cst) + 1, std::memory_order_seq_cst);
  return status;
}

}  // namespace spillway::spill
