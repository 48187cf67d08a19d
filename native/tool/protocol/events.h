// Writes the events of a command as JSON lines, in the order of contract/README.md.
#pragma once

#include <atomic>
#include <nlohmann/json.hpp>
#include <ostream>
#include <string>

#include "base/result.h"

namespace spillway::tool {

using Json = nlohmann::ordered_json;  // fields are written in the order in which they were added

class Events {
 public:
  // Flushes each line, so that a reader of the pipe sees it at once. Sets `reader_gone` when a line cannot be written
  // any more; null: not reported.
  explicit Events(std::ostream& out, std::atomic<bool>* reader_gone = nullptr) : out_(out), reader_gone_(reader_gone) {}

  // `drive`: the resolved drive; null for a command without one.
  // `more`: additional fields.
  void started(const std::string& command, const Json& drive, const Json& more = Json::object());
  // `total` < 0: unknown.
  void progress(const std::string& phase, double done, double total, const std::string& unit, double rate_per_s);
  // Writes a sample, a stall, or a phase.
  void event(const std::string& name, const Json& fields);
  void result(Json fields, bool complete);
  void error(const Status& status);

 private:
  void line(const std::string& name, const Json& fields);

  std::ostream& out_;
  std::atomic<bool>* reader_gone_;
};

std::string version();

}  // namespace spillway::tool
