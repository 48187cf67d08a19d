#include "spill/commit/key_versions.h"

#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>

#include "spill/store/batch_visitor.h"

namespace spillway::spill {
namespace {

using rocksdb::Status;

// What a batch writes: the stripes of its keys, or any key, where it deletes a range.
struct Written {
  std::vector<std::uint32_t> stripes;
  bool is_any = false;
};

Status find_written(const rocksdb::WriteBatch& batch, Written* written) {
  return visit_batch(batch, [&](const BatchOperation& operation) {
    if (operation.has_key()) {
      const std::string_view key(operation.key.data(), operation.key.size());
      written->stripes.push_back(KeyVersions::stripe_of(operation.family, key));
    } else if (operation.kind == OperationKind::remove_range) {
      written->is_any = true;
    }
    return Status();
  });
}

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

KeyVersions::AnyKey::AnyKey(KeyVersions& versions) : versions_(versions) {
  versions.waiting_for_any_.fetch_add(1, std::memory_order_seq_cst);
  versions.passing_.lock();
  versions.any_key_.lock();
}

KeyVersions::AnyKey::~AnyKey() {
  versions_.waiting_for_any_.fetch_sub(1, std::memory_order_seq_cst);
  versions_.any_key_.unlock();
  versions_.passing_.unlock();
}

void KeyVersions::AnyKey::is_written() {
  versions_.all_.store(versions_.clock_.fetch_add(1, std::memory_order_seq_cst) + 1, std::memory_order_seq_cst);
}

std::chrono::nanoseconds KeyVersions::lock_some_keys() {
  const bool lets_pass = waiting_for_any_.load(std::memory_order_seq_cst) > 0;
  if (!lets_pass && any_key_.try_lock_shared()) return {};
  const auto began = std::chrono::steady_clock::now();
  if (lets_pass) const MutexLock let_it_pass(passing_);
  any_key_.lock_shared();
  return std::chrono::steady_clock::now() - began;
}

KeyVersions::Holding::Holding(KeyVersions& versions, const std::vector<std::uint32_t>& written, bool is_any,
                              const std::vector<Seen>& seen)
    : versions_(versions), seen_(seen), is_any_(is_any) {
  if (is_any) return;
  buckets_.reserve(written.size() + seen.size());
  for (const std::uint32_t stripe : written) buckets_.push_back(stripe % kBuckets);
  for (const Seen& one : seen) buckets_.push_back(one.stripe % kBuckets);
  std::sort(buckets_.begin(), buckets_.end());  // one order for all writers avoids deadlock
  buckets_.erase(std::unique(buckets_.begin(), buckets_.end()), buckets_.end());
}

KeyVersions::Holding::~Holding() { release(); }

Status KeyVersions::Holding::take() {
  if (is_any_) {
    const auto began = std::chrono::steady_clock::now();
    any_key_.emplace(versions_);
    waited_ += std::chrono::steady_clock::now() - began;
  } else {
    waited_ += versions_.lock_some_keys();
    for (const std::uint32_t bucket : buckets_) {
      Mutex& mutex = versions_.buckets_[bucket];
      if (mutex.try_lock()) continue;
      const auto began = std::chrono::steady_clock::now();
      mutex.lock();
      waited_ += std::chrono::steady_clock::now() - began;
    }
    has_buckets_ = true;
  }
  for (const Seen& one : seen_) {
    if (versions_.is_written_since(one.stripe, one.at)) {
      return Status::Busy("a key was written since the transaction read it");
    }
  }
  return {};
}

void KeyVersions::Holding::release() {
  any_key_.reset();
  if (!std::exchange(has_buckets_, false)) return;
  for (const std::uint32_t bucket : buckets_) versions_.buckets_[bucket].unlock();
  versions_.any_key_.unlock_shared();
}

Status KeyVersions::write(const rocksdb::WriteBatch& batch, const std::vector<Seen>& seen,
                          const std::function<Status(Holding&)>& write) {
  Written written;
  if (Status status = find_written(batch, &written); !status.ok()) return status;
  Holding holding(*this, written.stripes, written.is_any, seen);
  if (Status status = holding.take(); !status.ok()) return status;
  const Status status = write(holding);
  // A failed write is stamped too, because parts of it may be stored. The stamp is taken after the write is visible: a
  // reader that took an earlier clock value may not have seen it.
  const Stamp stamp = clock_.fetch_add(1, std::memory_order_seq_cst) + 1;
  for (const std::uint32_t stripe : written.stripes) {
    Stamp before = stamps_[stripe].load(std::memory_order_relaxed);
    while (before < stamp && !stamps_[stripe].compare_exchange_weak(before, stamp, std::memory_order_seq_cst)) {
    }
  }
  if (written.is_any) all_.store(stamp, std::memory_order_seq_cst);
  return status;
}

}  // namespace spillway::spill
