#include "tool/run/arrivals_request.h"

#include <charconv>
#include <cmath>
#include <fstream>
#include <string_view>

#include "tool/protocol/fields.h"

namespace spillway::tool {
namespace {

constexpr double kMostSeconds = 365.0 * 86400;
constexpr double kMostRate = 1e9;  // same limit as for a phase

constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

// Reads one time in seconds per line, in ascending order. Skips blank lines and lines that begin with #.
Result<std::vector<std::int64_t>> read_trace(const std::string& path, const std::string& key) {
  std::ifstream file(path);
  if (!file) return Status::bad_input(key + ": " + path + " cannot be read; name a file of arrival times");
  std::vector<std::int64_t> times_ns;
  std::string line;
  for (int number = 1; std::getline(file, line); ++number) {
    if (number == 1 && line.starts_with(kByteOrderMark)) line.erase(0, kByteOrderMark.size());
    const std::size_t first = line.find_first_not_of(" \t\r");
    if (first == std::string::npos || line[first] == '#') continue;
    const std::string_view text = std::string_view(line).substr(first, line.find_last_not_of(" \t\r") + 1 - first);
    double seconds = 0;
    const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), seconds);
    const std::string where = key + ": " + path + ", line " + std::to_string(number) + ": ";
    if (failure != std::errc() || end != text.data() + text.size() || !(seconds >= 0 && seconds <= kMostSeconds)) {
      return Status::bad_input(where + "not a time in seconds since the phase's start");
    }
    const auto time_ns = static_cast<std::int64_t>(std::llround(seconds * 1e9));
    if (!times_ns.empty() && time_ns < times_ns.back()) {
      return Status::bad_input(where + "earlier than the time before it; sort the file");
    }
    times_ns.push_back(time_ns);
  }
  if (file.bad() || times_ns.empty()) return Status::bad_input(key + ": " + path + " has no arrival times");
  return times_ns;
}

}  // namespace

Result<load::ArrivalSpec> read_arrivals(const Json& json, const std::string& path, double rate_ops_s) {
  Fields fields(json, path);
  Status problem;
  load::ArrivalSpec spec;
  spec.rate_ops_s = rate_ops_s;
  spec.process = static_cast<load::ArrivalSpec::Process>(
      choice(fields, path, "process", {"constant", "poisson", "bursts", "trace"}, 0, problem));
  spec.burst_s = fields.number("burst_s", 0, 0, kMostSeconds);
  spec.gap_s = fields.number("gap_s", 0, 0, kMostSeconds);
  spec.gap_rate_ops_s = fields.number("gap_rate_ops_s", 0, 0, kMostRate);
  const std::string file = fields.text("file", "");
  if (Status status = fields.finish(); !status) return status;
  if (!problem) return problem;
  if (!file.empty()) {
    auto times_ns = read_trace(file, path + ".file");
    if (!times_ns) return times_ns.status();
    spec.times_ns = std::make_shared<const std::vector<std::int64_t>>(std::move(*times_ns));
  }
  if (const std::string why = load::find_problem(spec); !why.empty()) return Status::bad_input(path + why);
  return spec;
}

}  // namespace spillway::tool
