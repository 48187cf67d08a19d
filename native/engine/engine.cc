#include "engine/engine.h"

#include <algorithm>

namespace spillway::engine {

const char* name_of(StallState state) {
  switch (state) {
    case StallState::normal:
      return "normal";
    case StallState::delayed:
      return "delayed";
    case StallState::stopped:
      return "stopped";
  }
  return "?";
}

void Observation::set(const char* name, std::uint64_t value) {
  const auto found = std::find_if(gauges.begin(), gauges.end(),
                                  [&](const Gauge& gauge) { return std::string_view(gauge.name) == name; });
  if (found == gauges.end()) {
    gauges.push_back({name, value});
  } else {
    found->value = value;
  }
}

std::uint64_t Observation::gauge(std::string_view name) const {
  const auto found = std::find_if(gauges.begin(), gauges.end(), [&](const Gauge& gauge) { return gauge.name == name; });
  return found == gauges.end() ? 0 : found->value;
}

}  // namespace spillway::engine
