#include "engine/rocksdb/level_statistics.h"

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

}  // namespace

void add_level_statistics(rocksdb::DB& db, std::map<std::string, std::uint64_t>& figures) {
  std::map<std::string, std::string> seen;
  if (!db.GetMapProperty(rocksdb::DB::Properties::kCFStats, &seen)) return;
  for (int level = 0; level < db.NumberLevels(); ++level) {
    for (const Figure& figure : kFigures) {
      const auto at = seen.find("compaction.L" + std::to_string(level) + "." + std::string(figure.rocksdbs));
      if (at == seen.end()) continue;
      const double value = std::strtod(at->second.c_str(), nullptr) * figure.factor;
      figures["rocksdb.level" + std::to_string(level) + "." + std::string(figure.ours)] =
          static_cast<std::uint64_t>(std::llround(value));
    }
  }
}

}  // namespace spillway::engine
