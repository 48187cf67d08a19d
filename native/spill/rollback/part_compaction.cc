#include "spill/rollback/part_compaction.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <utility>

#include "base/steps.h"

namespace spillway::spill {
namespace {

using Files = std::vector<rocksdb::SstFileMetaData>;

// Of what a level may be larger than the one above, which is what RocksDB rewrites for a byte that moves down by one
// level. What is left above is merged with the next run. Source: decision 0040
constexpr double kMostRatio = 0.5;

struct Bounds {
  std::string smallest;
  std::string largest;

  void widen(const rocksdb::SstFileMetaData& file, const rocksdb::Comparator& order) {
    if (order.Compare(file.smallestkey, smallest) < 0) smallest = file.smallestkey;
    if (order.Compare(file.largestkey, largest) > 0) largest = file.largestkey;
  }
  bool overlap(const rocksdb::SstFileMetaData& file, const rocksdb::Comparator& order) const {
    return order.Compare(file.smallestkey, largest) <= 0 && order.Compare(smallest, file.largestkey) <= 0;
  }
};

const Files& files_of(const rocksdb::ColumnFamilyMetaData& family, int level) {
  static const Files kNone;
  for (const rocksdb::LevelMetaData& one : family.levels) {
    if (one.level == level) return one.files;
  }
  return kNone;
}

// How long to wait for one of RocksDB's compaction threads. What is left in L0 is compacted with the next part. Source:
// guess
constexpr std::chrono::seconds kLongestWait{10};

std::uint64_t target_bytes_of(const rocksdb::ColumnFamilyOptions& options, int level) {
  const double bytes = static_cast<double>(options.target_file_size_base) *
                       std::pow(std::max(options.target_file_size_multiplier, 1), level - 1);
  return static_cast<std::uint64_t>(bytes);
}

}  // namespace

std::optional<PartCompaction> compaction_of_l0(const rocksdb::ColumnFamilyMetaData& family,
                                               const rocksdb::Comparator& order, const LevelLimits& limits) {
  const Files& l0 = files_of(family, 0);
  if (l0.empty()) return std::nullopt;
  PartCompaction compaction;
  Bounds bounds{l0.front().smallestkey, l0.front().largestkey};
  std::uint64_t bytes = 0;
  for (const auto& file : l0) {
    if (file.being_compacted) return std::nullopt;
    compaction.inputs.push_back(file.relative_filename);
    bounds.widen(file, order);
    bytes += file.size;
  }
  const double most = limits.most_ratio * static_cast<double>(bytes);
  std::uint64_t rewritten = 0;
  std::vector<std::string> inputs = compaction.inputs;
  for (int level = limits.base_level;
       level < std::min(static_cast<int>(family.levels.size()), limits.deepest_level + 1); ++level) {
    const Files& files = files_of(family, level);
    Bounds next = bounds;
    for (const auto& file : files) {
      if (!bounds.overlap(file, order)) continue;
      if (file.being_compacted) return compaction.output_level > 0 ? std::optional(compaction) : std::nullopt;
      inputs.push_back(file.relative_filename);
      next.widen(file, order);
      rewritten += file.size;
    }
    if (static_cast<double>(rewritten) > most) break;
    bounds = std::move(next);
    // An empty level is passed by, unless there is nothing below.
    if (!files.empty() || level == limits.base_level) {
      compaction.inputs = inputs;
      compaction.output_level = level;
    }
  }
  // Where nothing overlaps RocksDB moves files without rewriting them.
  const bool does_merge = compaction.inputs.size() > l0.size() || l0.size() > 1;
  return does_merge && compaction.output_level > 0 ? std::optional(compaction) : std::nullopt;
}

bool has_plain_levels(const rocksdb::ColumnFamilyOptions& options, const rocksdb::DBOptions& database) {
  return options.compaction_style == rocksdb::kCompactionStyleLevel && !options.disable_auto_compactions &&
         options.num_levels > 1 && options.cf_paths.size() <= 1 && database.db_paths.size() <= 1 &&
         options.preclude_last_level_data_seconds == 0;
}

bool has_plain_levels(rocksdb::DB& db, const ColumnFamily& family) {
  rocksdb::ColumnFamilyDescriptor descriptor;
  return family.handle->GetDescriptor(&descriptor).ok() && has_plain_levels(descriptor.options, db.GetDBOptions());
}

std::function<void()> l0_compaction(rocksdb::DB& db, UsedColumnFamily family, bool only_to_base) {
  rocksdb::ColumnFamilyDescriptor descriptor;
  if (!family.handle->GetDescriptor(&descriptor).ok()) return {};
  const rocksdb::ColumnFamilyOptions& options = descriptor.options;
  if (!has_plain_levels(options, db.GetDBOptions())) return {};
  std::uint64_t base = 0;
  if (!db.GetIntProperty(family.handle, rocksdb::DB::Properties::kBaseLevel, &base) || base == 0) return {};
  LevelLimits limits;
  limits.base_level = static_cast<int>(base);
  if (only_to_base) limits.deepest_level = limits.base_level;
  limits.most_ratio = kMostRatio * options.max_bytes_for_level_multiplier;
  rocksdb::ColumnFamilyMetaData now;
  db.GetColumnFamilyMetaData(family.handle, &now);
  const auto chosen = compaction_of_l0(now, *family.comparator, limits);
  if (!chosen) return {};
  rocksdb::CompactionOptions how;
  how.compression = rocksdb::kDisableCompressionOption;  // the level's own
  how.output_file_size_limit = target_bytes_of(options, chosen->output_level);
  // Not OK: RocksDB has begun to compact one of them, or closes, or its drive fails, which it says to who writes next.
  return [&db, family = std::move(family), chosen = *chosen, how] {
    db.CompactFiles(how, family.handle, chosen.inputs, chosen.output_level).PermitUncheckedError();
    steps::reached("spill.rollback.compacted");
  };
}

void InCompactionThread::start(rocksdb::Env& env, std::function<void()> work) {
  env_ = &env;
  work_ = std::move(work);
  enter(State::queued);
  env.Schedule(&begin, this, rocksdb::Env::LOW, this, &give_up);
}

void InCompactionThread::wait() {
  const auto until = std::chrono::steady_clock::now() + kLongestWait;
  MutexLock lock(mutex_);
  while (state_ == State::queued && std::chrono::steady_clock::now() < until) changed_.wait_until(mutex_, until);
  if (state_ == State::queued) {
    lock.unlock();
    env_->UnSchedule(this, rocksdb::Env::LOW);  // calls give_up(), unless it has just begun
    lock.lock();
  }
  while (state_ != State::none) changed_.wait(mutex_);
}

void InCompactionThread::begin(void* self) {
  auto& one = *static_cast<InCompactionThread*>(self);
  one.enter(State::running);
  std::exchange(one.work_, nullptr)();
  one.enter(State::none);
}

void InCompactionThread::give_up(void* self) {
  auto& one = *static_cast<InCompactionThread*>(self);
  one.work_ = nullptr;
  one.enter(State::none);
}

void InCompactionThread::enter(State state) {
  const MutexLock lock(mutex_);  // held while notifying: this may be gone as soon as wait() has seen the end
  state_ = state;
  changed_.notify_all();
}

}  // namespace spillway::spill
