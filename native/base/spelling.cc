#include "base/spelling.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <numeric>

namespace spillway {
namespace {

struct Unit {
  const char* name;
  double bytes;
};

constexpr std::array<Unit, 14> kUnits = {{{"", 1},
                                          {"B", 1},
                                          {"kB", 1e3},
                                          {"KB", 1e3},
                                          {"MB", 1e6},
                                          {"GB", 1e9},
                                          {"TB", 1e12},
                                          {"KiB", 1024.0},
                                          {"MiB", 1024.0 * 1024},
                                          {"GiB", 1024.0 * 1024 * 1024},
                                          {"TiB", 1024.0 * 1024 * 1024 * 1024},
                                          {"k", 1024.0},
                                          {"m", 1024.0 * 1024},
                                          {"g", 1024.0 * 1024 * 1024}}};

// Levenshtein distance: single-character insertions, deletions and substitutions from one word to the other.
std::size_t edit_distance(const std::string& a, const std::string& b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t substituted = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, substituted});
    }
  }
  return row.back();
}

}  // namespace

Result<std::uint64_t> parse_size(const std::string& text) {
  const auto refuse = [&text] {
    return Status::bad_input("\"" + text +
                             "\" is not a size: write a number of bytes or a unit, like 4096, 512MiB or 1.5TB");
  };
  double number = 0;
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc() || !std::isfinite(number) || number < 0) return refuse();

  // Whole bytes below 2^64 are parsed digit by digit, because a double would round them.
  std::uint64_t whole = 0;
  const auto [whole_end, whole_error] = std::from_chars(text.data(), end, whole);
  if (whole_error == std::errc() && whole_end == end) return whole;

  std::string unit(rest, end);
  unit.erase(0, unit.find_first_not_of(' '));
  const auto* const known =
      std::find_if(kUnits.begin(), kUnits.end(), [&unit](const Unit& u) { return unit == u.name; });
  if (known == kUnits.end()) return refuse();
  const double bytes = number * known->bytes;
  if (bytes != std::floor(bytes) || bytes >= 0x1p63) return refuse();
  return static_cast<std::uint64_t>(bytes);
}

Result<std::vector<std::pair<std::string, std::string>>> parse_entries(const std::string& text) {
  std::vector<std::pair<std::string, std::string>> entries;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find(';', begin), text.size());
    const std::string entry = text.substr(begin, end - begin);
    begin = end + 1;
    if (entry.empty()) continue;
    const std::size_t equals = entry.find('=');
    if (equals == std::string::npos) return Status::bad_input("'" + entry + "' is not of the form KEY=VALUE");
    entries.emplace_back(entry.substr(0, equals), entry.substr(equals + 1));
  }
  return entries;
}

std::string nearest(const std::string& text, const std::vector<std::string>& candidates) {
  std::string best;
  // If more than a third of the word differs, it is taken for another word, not for a typing error.
  std::size_t best_distance = std::max<std::size_t>(2, text.size() / 3) + 1;
  for (const auto& candidate : candidates) {
    const std::size_t distance = edit_distance(text, candidate);
    if (distance < best_distance) {
      best_distance = distance;
      best = candidate;
    }
  }
  return best;
}

}  // namespace spillway
