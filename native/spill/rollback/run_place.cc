#include "spill/rollback/run_place.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>
#include <utility>

#include "base/steps.h"

namespace spillway::spill {
namespace {

// Of what an ingestion into L0 costs, below which another place is worth its trouble. Source: guess
constexpr double kWorthIt = 0.9;
// Of the run, and in bytes, what may be compacted before it: neither a pause of background work nor a close ends that
// compaction. Source: guess, seconds on a slow drive
constexpr double kMostInTheWay = 2;
constexpr double kMostBytesInTheWay = 1 << 30;
// Of the first level's target. L0 is made for smaller runs. Source: guess
constexpr double kLeastRun = 0.5;
// Each file is made durable by itself, which takes a drive as long as some megabytes. Source: guess
constexpr std::uint64_t kLeastFileBytes = 16 << 20;

using Levels = std::vector<LevelBytes>;

double most_in_the_way(double run_bytes) { return std::min(kMostInTheWay * run_bytes, kMostBytesInTheWay); }

int last_of(const Levels& levels) { return static_cast<int>(levels.size()) - 1; }

LevelBytes& at(Levels& levels, int level) { return levels[static_cast<std::size_t>(level)]; }
const LevelBytes& at(const Levels& levels, int level) { return levels[static_cast<std::size_t>(level)]; }

// Of L0 and what RocksDB uses below it.
int next_level(int level, int base) { return level == 0 ? base : level + 1; }

double bytes_down_to(const Levels& levels, int base, int level) {
  double bytes = 0;
  for (int above = 0; above <= level; above = next_level(above, base)) bytes += at(levels, above).there;
  return bytes;
}

// What is beyond a level's target, with what it overlaps below. RocksDB moves a file that overlaps nothing.
double moved_down(Levels& levels, int from) {
  double moved = 0;
  for (int level = from; level < last_of(levels); ++level) {
    LevelBytes& upper = at(levels, level);
    LevelBytes& lower = at(levels, level + 1);
    const double beyond = upper.there - upper.target;
    if (beyond <= 0) break;
    if (lower.there > 0) moved += beyond + lower.there * (beyond / upper.there);
    lower.there += beyond;
    upper.there = upper.target;
  }
  return moved;
}

bool overlap(const rocksdb::Comparator& order, const rocksdb::SstFileMetaData& file, const KeyRange& range) {
  return order.Compare(file.smallestkey, range.end) <= 0 && order.Compare(range.begin, file.largestkey) <= 0;
}

Levels levels_of(const rocksdb::ColumnFamilyMetaData& family, const rocksdb::Comparator& order, const KeyRange& range,
                 const rocksdb::ColumnFamilyOptions& options, int base) {
  Levels levels(static_cast<std::size_t>(options.num_levels));
  auto target = static_cast<double>(options.max_bytes_for_level_base);
  for (int level = base; level <= last_of(levels); ++level) {
    at(levels, level).target = target;
    target *= options.max_bytes_for_level_multiplier;
    const auto more = static_cast<std::size_t>(level - 1);
    const auto& additional = options.max_bytes_for_level_multiplier_additional;
    if (!options.level_compaction_dynamic_level_bytes && more < additional.size()) target *= additional[more];
  }
  levels.back().target = std::numeric_limits<double>::infinity();
  for (const rocksdb::LevelMetaData& level : family.levels) {
    if (level.level > last_of(levels)) continue;
    for (const auto& file : level.files) {
      if (overlap(order, file, range)) at(levels, level.level).there += static_cast<double>(file.size);
    }
  }
  return levels;
}

std::uint64_t target_file_bytes(const rocksdb::ColumnFamilyOptions& options, int level) {
  const double bytes = static_cast<double>(options.target_file_size_base) *
                       std::pow(std::max(options.target_file_size_multiplier, 1), level - 1);
  return static_cast<std::uint64_t>(bytes);
}

}  // namespace

double bytes_in_the_way(const Levels& levels, int base, int level) {
  if (level == 0) return 0;
  const double above = bytes_down_to(levels, base, level);
  if (above <= 0) return 0;
  return level == last_of(levels) ? std::numeric_limits<double>::infinity() : above + at(levels, level + 1).there;
}

double bytes_rewritten(Levels levels, int base, int level, double run_bytes) {
  double rewritten = bytes_in_the_way(levels, base, level);
  if (level > 0) {
    if (rewritten > 0 && level < last_of(levels)) {
      at(levels, level + 1).there = rewritten;
      for (int above = 0; above <= level; above = next_level(above, base)) at(levels, above).there = 0;
    }
    at(levels, level).there += run_bytes;
    return rewritten + moved_down(levels, level);
  }
  const double merged = at(levels, 0).there + run_bytes + at(levels, base).there;
  if (merged > run_bytes) rewritten += merged;
  at(levels, 0).there = 0;
  at(levels, base).there = merged;
  return rewritten + moved_down(levels, base);
}

int cheapest_level(const Levels& levels, int base, double run_bytes) {
  if (run_bytes < kLeastRun * at(levels, base).target) return 0;
  const double most = most_in_the_way(run_bytes);
  double least = kWorthIt * bytes_rewritten(levels, base, 0, run_bytes);
  int cheapest = 0;
  for (int level = base; level <= last_of(levels); ++level) {
    if (bytes_in_the_way(levels, base, level) > most) break;  // deeper, it is more
    const double rewritten = bytes_rewritten(levels, base, level, run_bytes);
    if (rewritten >= least) continue;
    least = rewritten;
    cheapest = level;
  }
  return cheapest;
}

bool has_plain_levels(const rocksdb::ColumnFamilyOptions& options, const rocksdb::DBOptions& database) {
  return options.compaction_style == rocksdb::kCompactionStyleLevel && !options.disable_auto_compactions &&
         options.num_levels > 1 && options.cf_paths.size() <= 1 && database.db_paths.size() <= 1 &&
         options.preclude_last_level_data_seconds == 0 && !database.allow_ingest_behind;
}

std::optional<RunPlace> choose_place(rocksdb::DB& db, const ColumnFamily& family, const KeyRange& range,
                                     std::uint64_t run_bytes) {
  rocksdb::ColumnFamilyDescriptor descriptor;
  if (!family.handle->GetDescriptor(&descriptor).ok()) return {};
  const rocksdb::ColumnFamilyOptions& options = descriptor.options;
  if (!has_plain_levels(options, db.GetDBOptions())) return {};
  std::uint64_t base = 0;
  if (!db.GetIntProperty(family.handle, rocksdb::DB::Properties::kBaseLevel, &base) || base == 0) return {};
  rocksdb::ColumnFamilyMetaData now;
  db.GetColumnFamilyMetaData(family.handle, &now);
  RunPlace place{.column_family = family.id, .range = range, .base_level = static_cast<int>(base)};
  const Levels levels = levels_of(now, *family.comparator, range, options, place.base_level);
  place.level = cheapest_level(levels, place.base_level, static_cast<double>(run_bytes));
  if (place.level == 0) return {};
  place.most_compacted = static_cast<std::uint64_t>(most_in_the_way(static_cast<double>(run_bytes)));
  if (in_the_way(now, *family.comparator, place).compacted_bytes > place.most_compacted) return {};
  place.file_bytes = std::max(target_file_bytes(options, place.level), kLeastFileBytes);
  return place;
}

InTheWay in_the_way(const rocksdb::ColumnFamilyMetaData& family, const rocksdb::Comparator& order,
                    const RunPlace& place) {
  InTheWay result;
  std::optional<KeyRange> taken;
  for (const rocksdb::LevelMetaData& level : family.levels) {
    if (level.level > place.level + 1) break;
    const auto is_of_run = [&](const rocksdb::SstFileMetaData& file) {
      return level.level <= place.level && overlap(order, file, place.range);
    };
    const auto is_taken = [&](const rocksdb::SstFileMetaData& file) {
      return is_of_run(file) || (level.level > 0 && taken && overlap(order, file, *taken));
    };
    const auto first = std::ranges::find_if(level.files, is_taken);
    if (first == level.files.end()) continue;
    auto end = level.files.end();  // L0's files are there from the newest on
    if (level.level > 0) {
      while (!is_taken(*(end - 1))) --end;
    }
    for (const rocksdb::SstFileMetaData& file : std::span(first, end)) {
      if (is_of_run(file)) result.files.push_back(file.relative_filename);
      result.compacted_bytes += file.size;
      result.is_being_compacted = result.is_being_compacted || file.being_compacted;
      if (!taken) taken = {file.smallestkey, file.largestkey};
      if (order.Compare(file.smallestkey, taken->begin) < 0) taken->begin = file.smallestkey;
      if (order.Compare(file.largestkey, taken->end) > 0) taken->end = file.largestkey;
    }
  }
  if (result.files.empty()) return {};
  return result;
}

std::function<void()> emptying(rocksdb::DB& db, UsedColumnFamily family, const RunPlace& place,
                               std::vector<std::string> files) {
  rocksdb::ColumnFamilyDescriptor descriptor;
  if (!family.handle->GetDescriptor(&descriptor).ok()) return {};
  rocksdb::CompactionOptions how;
  how.compression = rocksdb::kDisableCompressionOption;  // the level's own
  how.output_file_size_limit = target_file_bytes(descriptor.options, place.level + 1);
  return [&db, family = std::move(family), files = std::move(files), how, into = place.level + 1] {
    // Not OK: RocksDB has begun to compact one of them, or closes, or its drive fails, which it says to who writes
    // next.
    db.CompactFiles(how, family.handle, files, into).PermitUncheckedError();
    steps::reached("spill.rollback.emptied");
  };
}

}  // namespace spillway::spill
