#include "engine/rocksdb/values.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <limits>
#include <sstream>
#include <string_view>

#include "base/spelling.h"

namespace spillway::engine {

namespace {

// RocksDB 7.8.3 does not hold values to these: beyond them it takes another value in silence (SanitizeOptions in
// db/column_family.cc and db/db_impl/db_impl_open.cc), works by one that has no meaning, or ends the process.
struct Bounds {
  const char* name;
  double low;
  double high;
};
constexpr double kMostInt = std::numeric_limits<int>::max();
// Of one kind. Source: guess, as many as a run may have; beyond some ten thousand the system has no more.
constexpr double kMostThreads = 1024;
// Source: doubled so often, a byte is more than a 64-bit size can say.
constexpr double kMostLevels = 64;
constexpr std::array kBounds = {
    Bounds{"num_levels", 1, kMostLevels},
    Bounds{"max_background_jobs", 1, kMostThreads},
    Bounds{"max_background_compactions", -1, kMostThreads},
    Bounds{"max_background_flushes", -1, kMostThreads},
    Bounds{"max_subcompactions", 1, kMostThreads},
    Bounds{"max_file_opening_threads", 1, kMostThreads},
    Bounds{"max_open_files", -1, kMostInt},
    Bounds{"max_write_buffer_number", 2, kMostInt},
    Bounds{"level0_file_num_compaction_trigger", 0, kMostInt},
    Bounds{"max_bytes_for_level_multiplier", 1, kMostInt},
    Bounds{"memtable_prefix_bloom_size_ratio", 0, 0.25},
    Bounds{"blob_garbage_collection_age_cutoff", 0, 1},
    Bounds{"blob_garbage_collection_force_threshold", 0, 1},
};

template <typename Number>
std::optional<Number> parse(std::string_view text) {
  Number number{};
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (failure != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

// A whole number as RocksDB's options have it, with a binary unit of one letter behind it or none; or a size as the
// rest of a plan has it. Exact up to 2^64: long double has as many bits.
std::optional<long double> parse_whole(std::string_view text) {
  constexpr std::string_view kUnits = "kmgt";
  long double unit = 1;
  std::string_view digits = text;
  if (!text.empty()) {
    const auto place = kUnits.find(static_cast<char>(std::tolower(static_cast<unsigned char>(text.back()))));
    if (place != std::string_view::npos) {
      unit = std::ldexp(1.0L, 10 * (static_cast<int>(place) + 1));
      digits.remove_suffix(1);
    }
  }
  if (const auto number = parse<std::int64_t>(digits)) return static_cast<long double>(*number) * unit;
  if (const auto number = parse<std::uint64_t>(digits)) return static_cast<long double>(*number) * unit;
  auto size = parse_size(std::string(text));
  return size ? std::optional(static_cast<long double>(*size)) : std::nullopt;
}

}  // namespace

std::optional<std::string> out_of_bounds(const std::string& name, const std::string& value) {
  const auto* const bounds =
      std::find_if(kBounds.begin(), kBounds.end(), [&](const Bounds& each) { return name == each.name; });
  if (bounds == kBounds.end()) return std::nullopt;
  auto number = parse<double>(value);
  if (!number) number = parse_whole(value);
  if (!number || (*number >= bounds->low && *number <= bounds->high)) return std::nullopt;  // or RocksDB's to refuse
  std::ostringstream takes;
  takes.precision(10);
  takes << "it takes " << bounds->low << " to " << bounds->high;
  return takes.str();
}

std::optional<std::string> misread(const std::string& value, const std::string& written) {
  if (parse<std::int64_t>(written) || parse<std::uint64_t>(written)) {
    const auto given = parse_whole(value);
    if (given && *given == *parse_whole(written)) return std::nullopt;
    return "it takes a whole number, and would read this one as " + written;
  }
  if (const auto number = parse<double>(written)) {
    if (std::isfinite(*number) && parse<double>(value)) return std::nullopt;
    return "it takes a finite number, and would read this one as " + written;
  }
  const bool is_passed_over = written.empty() && !value.empty() && value != "nullptr";
  if (is_passed_over) return "it would pass it over";
  return std::nullopt;
}

}  // namespace spillway::engine
