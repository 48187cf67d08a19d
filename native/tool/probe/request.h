// The input lines of the probe, read and checked as far as that is possible without the target.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>

#include "base/result.h"
#include "device/direct/direct_file.h"
#include "probe/target.h"
#include "tool/protocol/events.h"

namespace spillway::tool {

struct ProbeRequest {
  std::uint64_t seed = 1;
  std::variant<probe::EmulatedSpec, device::DirectFileSpec> target;
};

struct ResetToSteadyCommand {
  double share = 1;
};
struct EndCommand {};
using ProbeLine = std::variant<probe::Point, probe::Preparation, ResetToSteadyCommand, EndCommand>;

Result<ProbeRequest> read_probe_request(const Json& json);

// `number`: the line's number, for messages about lines without an id.
Result<ProbeLine> read_probe_line(const std::string& text, int number);

}  // namespace spillway::tool
