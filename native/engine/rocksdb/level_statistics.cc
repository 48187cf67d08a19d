#include "engine/rocksdb/level_statistics.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <string_view>

namespace spillway::engine {
namespace {

constexpr double kGiB = 1073741824;  // which RocksDB calls GB
constexpr double kMicros = 1e6;

// RocksDB's figure of a level, ours, and the factor between them.
struct Figure {
  std::string_view rocksdbs;
  std::string_view ours;
  double factor = 1;
};
constexpr std::array kFigures = {Figure{"NumFiles", "files"},
                                 Figure{"SizeBytes", "bytes"},
                                 Figure{"ReadGB", "read.bytes", kGiB},
                                 Figure{"WriteGB", "written.bytes", kGiB},
                                 Figure{"CompCount", "jobs"},
                                 Figure{"CompSec", "micros", kMicros},
                                 Figure{"CompMergeCPU", "cpu.micros", kMicros}};

// RocksDB's figure of a level. 0: it has none of a level that has never held a file.
double figure_of(const std::map<std::string, std::string>& seen, int level, std::string_view name) {
  const auto at = seen.find("compaction.L" + std::to_string(level) + "." + std::string(name));
  return at == seen.end() ? 0 : std::strtod(at->second.c_str(), nullptr);
}

// As many as RocksDB has by default. Gauges have literals for names.
constexpr std::array kBytesOfLevel = {"level0_bytes", "level1_bytes", "level2_bytes", "level3_bytes",
                                      "level4_bytes", "level5_bytes", "level6_bytes"};

}  // namespace

void add_level_bytes(rocksdb::DB& db, Observation& seen) {
  std::map<std::string, std::string> stats;
  (void)db.GetMapProperty(rocksdb::DB::Properties::kCFStats, &stats);
  for (int level = 0; level < std::min<int>(db.NumberLevels(), kBytesOfLevel.size()); ++level) {
    seen.set(kBytesOfLevel.at(static_cast<std::size_t>(level)),
             static_cast<std::uint64_t>(figure_of(stats, level, "SizeBytes")));
  }
}

void add_level_statistics(rocksdb::DB& db, std::map<std::string, std::uint64_t>& figures) {
  std::map<std::string, std::string> seen;
  if (!db.GetMapProperty(rocksdb::DB::Properties::kCFStats, &seen)) return;
  for (int level = 0; level < db.NumberLevels(); ++level) {
    for (const Figure& figure : kFigures) {
      if (!seen.contains("compaction.L" + std::to_string(level) + "." + std::string(figure.rocksdbs))) continue;
      const double value = figure_of(seen, level, figure.rocksdbs) * figure.factor;
      figures["rocksdb.level" + std::to_string(level) + "." + std::string(figure.ours)] =
          static_cast<std::uint64_t>(std::llround(value));
    }
  }
}

}  // namespace spillway::engine
