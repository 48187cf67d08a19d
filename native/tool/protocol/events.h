// What a command says while it works: JSON lines, in the order of contract/README.md.
#pragma once

#include <atomic>
#include <nlohmann/json.hpp>
#include <ostream>
#include <string>

#include "base/result.h"

namespace spillway::tool {

using Json = nlohmann::ordered_json;  // the order in which fields are written is the order in which they are read

class Events {
 public:
  // Each line is flushed: whoever reads the pipe follows the work. `nobody_reads` is set where a line cannot be
  // written any more; null: nobody asks.
  explicit Events(std::ostream& out, std::atomic<bool>* nobody_reads = nullptr)
      : out_(out), nobody_reads_(nobody_reads) {}

  // `drive`: the resolved drive, or null where a command has none.
  // `more`: further fields.
  void started(const std::string& command, const Json& drive, const Json& more = Json::object());
  // `total` < 0: not known.
  void progress(const std::string& phase, double done, double total, const std::string& unit, double rate_per_s);
  // sample, stall, phase.
  void event(const std::string& name, const Json& fields);
  void result(Json fields, bool complete);
  void error(const Status& status);

 private:
  void line(const std::string& name, const Json& fields);

  std::ostream& out_;
  std::atomic<bool>* nobody_reads_;
};

std::string version();

}  // namespace spillway::tool
