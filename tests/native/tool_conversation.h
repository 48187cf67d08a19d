// The output of a command of spillway-native, parsed as its caller does; and the small drive that its tests use.
#pragma once

#include <atomic>
#include <sstream>
#include <string>
#include <vector>

#include "tool/protocol/command.h"

namespace spillway::tool {

struct Outcome {
  Status status;
  std::vector<Json> events;

  const Json& last() const { return events.back(); }
  std::vector<Json> named(const std::string& name) const {
    std::vector<Json> result;
    for (const Json& event : events) {
      if (event["event"] == name) result.push_back(event);
    }
    return result;
  }
};

// Calls `command` with a stream for its events and the flag that ends it early. Returns its status and events.
template <typename Command>
Outcome outcome_of(Command command, bool stopped = false) {
  std::ostringstream out;
  Events events(out);
  const std::atomic<bool> stop{stopped};
  Outcome outcome{command(events, stop), {}};
  std::istringstream lines(out.str());
  for (std::string line; std::getline(lines, line);) outcome.events.push_back(Json::parse(line));
  return outcome;
}

// 64 MiB, spare factor 20 %.
inline Json small_drive(const std::string& write_cache) {
  return {{"set",
           {{"capacity.capacity_bytes", "64MiB"},
            {"capacity.spare_factor", "0.2"},
            {"geometry.channels", "2"},
            {"geometry.pages_per_block", "32"},
            {"write_cache.bytes", write_cache}}}};
}

inline Json simulated_target(const std::string& write_cache) {
  return {{"kind", "simulated"}, {"drive", small_drive(write_cache)}, {"initial", {{"kind", "steady"}}}};
}

}  // namespace spillway::tool
