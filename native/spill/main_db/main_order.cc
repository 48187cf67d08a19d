#include "spill/main_db/main_order.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <string_view>
#include <utility>

#include "spill/store/batch_visitor.h"

namespace spillway::spill {

using rocksdb::Slice;
using rocksdb::Status;
using rocksdb::WriteBatch;

namespace {

// If RocksDB's Open fails after it has begun a compaction, it waits for that compaction, and calls no listener.
constexpr std::chrono::minutes kLongestHold{1};
// Between two looks whether a held compaction is still wanted. Source: guess
constexpr std::chrono::milliseconds kLookAgain{20};

// Batches may have log data of the user's. The last character is the version.
constexpr std::string_view kMagic = "spillway.mark.1";
constexpr std::size_t kMarkBytes = kMagic.size() + 2 * sizeof(std::uint64_t);

void append_u64(std::uint64_t value, std::string* out) {
  for (int shift = 0; shift < 64; shift += 8) out->push_back(static_cast<char>(value >> shift));
}

std::uint64_t u64_at(const char* bytes) {
  std::uint64_t value = 0;
  for (int i = 7; i >= 0; --i) value = value << 8 | static_cast<unsigned char>(bytes[i]);
  return value;
}

// Whether every mark in the batch's log data names a write that has survived. An error: the batch is malformed.
Status find_lost_mark(const WriteBatch& batch, const Survivors& survivors, bool* all_survive) {
  *all_survive = true;
  return visit_batch(batch, [&](const BatchOperation& operation) {
    if (operation.kind != OperationKind::log_data) return Status();
    const auto mark = decode_mark(operation.value);
    *all_survive = *all_survive && (!mark || survives(*mark, survivors));
    return Status();
  });
}

}  // namespace

std::string encode(const Mark& mark) {
  std::string bytes;
  bytes.reserve(kMarkBytes);
  bytes.append(kMagic);
  append_u64(mark.generation, &bytes);
  append_u64(mark.sequence, &bytes);
  return bytes;
}

std::optional<Mark> decode_mark(const Slice& log_data) {
  if (log_data.size() != kMarkBytes || !log_data.starts_with(Slice(kMagic.data(), kMagic.size()))) return std::nullopt;
  const char* const numbers = log_data.data() + kMagic.size();
  return Mark{u64_at(numbers), u64_at(numbers + sizeof(std::uint64_t))};
}

bool survives(const Mark& mark, const Survivors& survivors) {
  return mark.sequence <= survivors.last || !survivors.generations.contains(mark.generation);
}

// A record of the log is what one group of writers wrote together, and is replayed as a whole or not at all. That is
// safe for a sync write in it: the write was acknowledged only after everything that the log's marks name was durable.
class MainOrder::Filter final : public rocksdb::WalFilter {
 public:
  explicit Filter(Survivors survivors) : survivors_(std::move(survivors)) {}

  WalProcessingOption LogRecordFound(unsigned long long, const std::string&, const WriteBatch& batch, WriteBatch*,
                                     bool*) override {
    bool all_survive = true;
    if (!find_lost_mark(batch, survivors_, &all_survive).ok()) {
      return WalProcessingOption::kContinueProcessing;  // RocksDB reports the error itself
    }
    if (!all_survive) return WalProcessingOption::kStopReplay;
    // The first eight bytes of a batch in the log are the sequence of its first operation.
    replayed_ = u64_at(batch.Data().data()) + static_cast<std::uint64_t>(batch.Count()) - 1;
    return WalProcessingOption::kContinueProcessing;
  }
  std::uint64_t replayed() const { return replayed_; }
  const char* Name() const override { return "spillway.MainOrder"; }

 private:
  const Survivors survivors_;
  std::uint64_t replayed_ = 0;
};

std::uint64_t MainOrder::replayed() const { return filter_ ? filter_->replayed() : 0; }

MainOrder::MainOrder() = default;
MainOrder::~MainOrder() = default;

rocksdb::WalFilter* MainOrder::filter(Survivors survivors) {
  filter_ = std::make_unique<Filter>(std::move(survivors));
  return filter_.get();
}

void MainOrder::start(std::function<void()> before_flush) {
  const MutexLock lock(mutex_);
  before_flush_ = std::move(before_flush);
}

void MainOrder::stop() { start(nullptr); }

// RocksDB 7.8 has chosen the memtables to flush, or for atomic flushes the last one. Therefore their contents, and
// everything that the contents' marks name, were written before.
void MainOrder::OnFlushBegin(rocksdb::DB*, const rocksdb::FlushJobInfo&) {
  const MutexLock lock(mutex_);
  if (before_flush_) before_flush_();
}

void MainOrder::hold_compactions(Until until) {
  const MutexLock lock(held_mutex_);
  held_until_ |= static_cast<unsigned>(until);
}

void MainOrder::let_compactions_run(Until until) {
  {
    const MutexLock lock(held_mutex_);
    held_until_ &= ~static_cast<unsigned>(until);
  }
  released_.notify_all();
}

void MainOrder::let_compactions_run() {
  for (const Until until : {Until::opened, Until::ingested, Until::note_taken}) let_compactions_run(until);
}

void MainOrder::OnCompactionBegin(rocksdb::DB*, const rocksdb::CompactionJobInfo&) { (void)await_compactions(); }

bool MainOrder::await_compactions(const std::atomic<bool>* is_wanted) {
  const auto until = std::chrono::steady_clock::now() + kLongestHold;
  const MutexLock lock(held_mutex_);
  while (held_until_ != 0) {
    const std::chrono::nanoseconds left = until - std::chrono::steady_clock::now();
    if (left <= std::chrono::nanoseconds::zero() || (is_wanted != nullptr && !*is_wanted)) return false;
    released_.wait_for(held_mutex_, is_wanted == nullptr ? left : std::min<std::chrono::nanoseconds>(left, kLookAgain));
  }
  return is_wanted == nullptr || *is_wanted;
}

}  // namespace spillway::spill
