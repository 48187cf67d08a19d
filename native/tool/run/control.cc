#include "tool/run/control.h"

#include <nlohmann/json.hpp>
#include <string>

namespace spillway::tool {

RunControl::RunControl(LineReader& lines, std::size_t phases)
    : phases_(phases), reader_([this, &lines] { read(lines); }) {}

RunControl::~RunControl() {
  is_over_ = true;
  reader_.join();
}

Status RunControl::status() const {
  const std::lock_guard lock(mutex_);
  return status_;
}

void RunControl::read(LineReader& lines) {
  while (const auto line = lines.next(is_over_)) {
    Status status = execute(*line, lines.number());
    if (status) continue;
    const std::lock_guard lock(mutex_);
    status_ = std::move(status);
    has_failed_.store(true, std::memory_order_release);
    return;
  }
}

Status RunControl::execute(const std::string& line, int number) {
  const auto json = nlohmann::json::parse(line, nullptr, /*allow_exceptions=*/false);
  const std::string where = "standard input, line " + std::to_string(number) + ": ";
  if (!json.is_object() || json.size() != 1 || !json.contains("end_phase") || !json["end_phase"].is_number_unsigned()) {
    return Status::bad_input(where + R"(not a command of a run; one is {"end_phase": INDEX})");
  }
  const auto index = json["end_phase"].get<std::uint64_t>();
  if (index >= phases_) {
    return Status::bad_input(where + "end_phase is " + std::to_string(index) + ", and the run has " +
                             std::to_string(phases_) + " phases, counted from 0");
  }
  last_ended_.store(static_cast<std::int64_t>(index), std::memory_order_release);
  return {};
}

}  // namespace spillway::tool
