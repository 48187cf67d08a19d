#include "tool/protocol/events.h"

namespace spillway::tool {
namespace {

constexpr int kContractMajor = 1;
constexpr int kContractMinor = 7;

}  // namespace

void Events::line(const std::string& name, const Json& fields) {
  Json event = {{"event", name}};
  event.update(fields);
  // Invalid bytes of a path that is not UTF-8 are replaced, because an exception would end the output.
  out_ << event.dump(-1, ' ', false, Json::error_handler_t::replace) << std::endl;
  if (!out_ && reader_gone_ != nullptr) reader_gone_->store(true);
}

void Events::started(const std::string& command, const Json& drive, const Json& more) {
  Json fields = {{"contract", {kContractMajor, kContractMinor}}, {"command", command}, {"version", version()}};
  if (!drive.is_null()) fields["drive"] = drive;
  fields.update(more);
  line("started", fields);
}

void Events::progress(const std::string& phase, double done, double total, const std::string& unit, double rate_per_s) {
  line("progress", {{"phase", phase},
                    {"done", done},
                    {"total", total < 0 ? Json(nullptr) : Json(total)},
                    {"unit", unit},
                    {"rate_per_s", rate_per_s}});
}

void Events::event(const std::string& name, const Json& fields) { line(name, fields); }

void Events::result(Json fields, bool complete) {
  fields["complete"] = complete;
  line("result", fields);
}

void Events::error(const Status& status) {
  line("error", {{"message", status.message()}, {"fault", name_of(status.fault())}});
}

std::string version() { return SPILLWAY_VERSION; }

}  // namespace spillway::tool
