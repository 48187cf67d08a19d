#include "tool/probe/request.h"

#include <array>
#include <limits>
#include <utility>
#include <vector>

#include "base/spelling.h"
#include "tool/protocol/drive_request.h"
#include "tool/protocol/fields.h"

namespace spillway::tool {
namespace {

using device::DirectFileSpec;
using probe::Engine;
using probe::Pattern;
using probe::Point;
using probe::Preparation;

constexpr std::uint64_t kMostCount = std::numeric_limits<std::uint64_t>::max();
constexpr double kMostSeconds = 1e6;     // eleven days
constexpr double kMostCapacities = 1e3;  // more than any drive's endurance is worth
constexpr double kLeast = 1e-9;          // lower limit of values that must be above 0
constexpr double kMostTimeScale = 1e6;   // as in a request of `run`

template <class Value, std::size_t kSize>
using Words = std::array<std::pair<const char*, Value>, kSize>;

// The value that `word` names. Errors go through `fields`, which knows the key's full name.
template <class Value, std::size_t kSize>
Value value_of(const std::string& word, const Words<Value, kSize>& words, const std::string& key, Fields& fields) {
  std::vector<std::string> names;
  std::string all;
  for (const auto& [name, value] : words) {
    if (word == name) return value;
    names.emplace_back(name);
    all += (all.empty() ? "" : ", ") + names.back();
  }
  const std::string near = nearest(word, names);
  fields.refuse(key, "one of " + all + (near.empty() ? "" : "; did you mean " + near + "?"));
  return words.front().second;
}

enum class Kind : std::uint8_t { simulated, paced, file, directory, device };
constexpr Words<Kind, 5> kKinds = {{{"simulated", Kind::simulated},
                                    {"paced", Kind::paced},
                                    {"file", Kind::file},
                                    {"directory", Kind::directory},
                                    {"device", Kind::device}}};
constexpr Words<Pattern, 3> kPatterns = {
    {{"random", Pattern::random}, {"sequential", Pattern::sequential}, {"staggered", Pattern::staggered}}};
constexpr Words<Engine, 2> kEngines = {{{"io_uring", Engine::io_uring}, {"sync", Engine::sync}}};
constexpr Words<Preparation::Kind, 2> kPreparations = {
    {{"sequential", Preparation::Kind::sequential}, {"random", Preparation::Kind::random}}};

DirectFileSpec::Kind real_kind(Kind kind) {
  if (kind == Kind::directory) return DirectFileSpec::Kind::directory;
  return kind == Kind::device ? DirectFileSpec::Kind::device : DirectFileSpec::Kind::file;
}

Status read_emulated(const Json& drive, const Json& initial, std::optional<double> time_scale, ProbeRequest& request) {
  auto resolved = read_drive(drive);
  if (!resolved) return resolved.status();
  auto state = read_initial(initial);
  if (!state) return state.status();
  request.target = probe::EmulatedSpec{std::move(*resolved), std::move(*state), time_scale, request.seed};
  return {};
}

Status read_target(const Json& json, ProbeRequest& request) {
  Fields fields(json, "target");
  const std::string kind_name = fields.text("kind", "");
  const Json& drive = fields.inner("drive");
  const Json& initial = fields.inner("initial");
  const double time_scale = fields.number("time_scale", 1, kLeast, kMostTimeScale);
  DirectFileSpec real;
  real.path = fields.text("path", "");
  real.size_bytes = fields.optional_whole("size_bytes", 1, std::uint64_t{1} << 62);
  real.destroy_data = fields.flag("destroy_data", false);
  const Kind kind = value_of(kind_name, kKinds, "kind", fields);
  const bool emulated = kind == Kind::simulated || kind == Kind::paced;
  if (!emulated && real.path.empty()) fields.refuse("path", "the path of the " + kind_name + " to measure");
  if (kind == Kind::device && real.size_bytes) fields.refuse("size_bytes", "null for a device; use range in a point");
  if (Status status = fields.finish(); !status) return status;
  if (emulated) {
    return read_emulated(drive, initial, kind == Kind::paced ? std::optional(time_scale) : std::nullopt, request);
  }
  real.kind = real_kind(kind);
  request.target = std::move(real);
  return {};
}

Result<ProbeLine> read_point(const Json& json, int number) {
  const Json& id = json["id"];
  if (!id.is_number_unsigned() && !(id.is_number_integer() && id.get<std::int64_t>() >= 0)) {
    return Status::bad_input("line " + std::to_string(number) + ": id is " + id.dump() +
                             "; it takes a whole number of 0 or more");
  }
  Point point;
  point.id = id.get<std::uint64_t>();
  Fields fields(json, "");
  static_cast<void>(fields.inner("id"));
  point.pattern = value_of(fields.text("pattern", "random"), kPatterns, "pattern", fields);
  point.read_share = fields.number("read_share", 1, 0, 1);
  point.bs_bytes = fields.whole("bs_bytes", 4096, 1, probe::kMostBsBytes);
  point.numjobs = static_cast<std::uint32_t>(fields.whole("numjobs", 1, 1, probe::kMostJobs));
  point.iodepth = static_cast<std::uint32_t>(fields.whole("iodepth", 1, 1, probe::kMostIodepth));
  point.engine = value_of(fields.text("engine", "io_uring"), kEngines, "engine", fields);
  point.ios = fields.optional_whole("ios", 1, kMostCount);
  point.seconds = fields.optional_number("seconds", kLeast, kMostSeconds);
  point.ramp_s = fields.number("ramp_s", 0, 0, kMostSeconds);
  point.ramp_ios = fields.whole("ramp_ios", 0, 0, kMostCount);
  point.range = fields.number("range", 1, kLeast, 1);
  if (Status status = fields.finish(); !status) {
    return Status::bad_input("point " + std::to_string(point.id) + ": " + status.message());
  }
  return ProbeLine(point);
}

Result<ProbeLine> read_command(const Json& json) {
  Fields fields(json, "");
  const Json& preparation = fields.inner("prepare");
  const bool fills = json.contains("fill");
  const double share = fields.number("fill", 1, 0, 1);
  const bool ends = fields.flag("end", false);
  if (Status status = fields.finish(); !status) return status;
  if (json.size() != 1) return Status::bad_input("one command to a line: a point with its id, prepare, fill, or end");
  if (fills) return ProbeLine(ResetToSteadyCommand{share});
  if (preparation.is_null()) {
    return ends ? Result<ProbeLine>(ProbeLine(EndCommand{}))
                : Status::bad_input("a line takes a point with its id, prepare, fill, or \"end\": true");
  }
  Fields inner(preparation, "prepare");
  Preparation result;
  result.kind = value_of(inner.text("kind", ""), kPreparations, "kind", inner);
  result.capacities = inner.number("capacities", 1, kLeast, kMostCapacities);
  result.seconds = inner.optional_number("seconds", kLeast, kMostSeconds);
  if (Status status = inner.finish(); !status) return status;
  return ProbeLine(result);
}

}  // namespace

Result<ProbeRequest> read_probe_request(const Json& json) {
  Fields fields(json, "");
  Result<ProbeRequest> request{ProbeRequest()};
  request->seed = fields.whole("seed", 1, 0, kMostCount);
  const Json& target = fields.inner("target");
  if (Status status = fields.finish(); !status) return status;
  if (Status status = read_target(target, *request); !status) return status;
  return request;
}

Result<ProbeLine> read_probe_line(const std::string& text, int number) {
  const std::string where = "line " + std::to_string(number) + ": ";
  const Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) return Status::bad_input(where + "not a JSON object; each line is one command, whole");
  if (json.contains("id")) return read_point(json, number);
  auto command = read_command(json);
  if (!command) return Status::bad_input(where + command.status().message());
  return command;
}

}  // namespace spillway::tool
