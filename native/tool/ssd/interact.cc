// `spillway-native ssd-interact`: a drive in virtual time for a program that submits I/Os and waits for them.
#include <limits>
#include <memory>
#include <string>
#include <utility>

#include "device/counters_json.h"
#include "tool/protocol/drive_request.h"
#include "tool/protocol/fields.h"
#include "tool/ssd/commands.h"
#include "tool/ssd/held_drive.h"

namespace spillway::tool {
namespace {

struct InteractRequest {
  device::Drive drive;
  device::InitialState initial;
  std::uint64_t seed = 1;
  bool threads = false;
};

Result<InteractRequest> read_interact_request(const std::string& text) {
  const Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (json.is_discarded()) {
    return Status::bad_input(
        "standard input: its first line is not a JSON document; give the request of ssd-interact on it");
  }
  Fields fields(json, "");
  const Json& drive_field = fields.inner("drive");
  const Json& initial_field = fields.inner("initial");
  InteractRequest request;
  request.seed = fields.whole("seed", 1, 0, std::numeric_limits<std::uint64_t>::max());
  request.threads = fields.flag("threads", false);
  if (Status status = fields.finish(); !status) return status;
  auto drive = read_drive(drive_field);
  if (!drive) return drive.status();
  request.drive = std::move(*drive);
  auto initial = read_initial(initial_field);
  if (!initial) return initial.status();
  request.initial = std::move(*initial);
  return request;
}

// As in probe/target.h: written data is contiguous from the drive's start, unless the initial state is a file.
Json ready_fields(const device::DriveModel& drive, const device::InitialState& initial) {
  const std::uint64_t capacity = drive.capacity_bytes();
  const std::uint64_t held = drive.mapped_units() * drive.mapping_unit_bytes();
  const bool is_file = initial.kind == device::InitialState::Kind::file;
  return {{"kind", "simulated"},
          {"size_bytes", capacity},
          {"range_bytes", held == 0 || is_file ? capacity : held},
          {"lba_bytes", drive.lba_bytes()},
          {"direct", false},
          {"writable", true},
          {"preset", drive.name()},
          {"path", ""},
          {"time_scale", 0.0},
          {"fill", static_cast<double>(held) / static_cast<double>(capacity)},
          {"written_bytes", held},
          {"complete", true}};
}

Json completion_fields(HeldDrive& drive, const std::vector<device::Done>& done) {
  Json io = Json::array();
  Json submitted_ns = Json::array();
  Json completed_ns = Json::array();
  for (const device::Done& each : done) {
    io.push_back(each.tag);
    submitted_ns.push_back(each.submitted);
    completed_ns.push_back(each.completed);
  }
  return {{"now_ns", drive.now()},
          {"in_flight", drive.in_flight()},
          {"io", std::move(io)},
          {"submitted_ns", std::move(submitted_ns)},
          {"completed_ns", std::move(completed_ns)}};
}

Json result_fields(HeldDrive& drive) {
  const device::Nanos ended = drive.finish();
  const ssd::Counters counters = drive.counters();
  const auto programmed = static_cast<double>(counters.nand_bytes_programmed_total());
  const std::uint64_t written = counters.host_bytes_written;
  return {{"ios", drive.submitted()},
          {"simulated_seconds", static_cast<double>(ended) / 1e9},
          {"host_bytes_read", counters.host_bytes_read},
          {"host_bytes_written", written},
          {"nand_bytes_programmed", device::by_flash_cause(counters.nand_bytes_programmed)},
          {"wa_device", written > 0 ? Json(programmed / static_cast<double>(written)) : Json(nullptr)},
          {"unmapped_reads", counters.unmapped_reads},
          {"counters", device::to_json(counters)}};
}

// Answers one line after another. False: a signal ended it before the input did.
Result<bool> converse(HeldDrive& drive, LineReader& lines, Events& events, const std::atomic<bool>& stop) {
  while (const auto text = lines.next(stop)) {
    auto line = read_held_drive_line(*text, lines.number());
    if (!line) return line.status();
    if (line->end) return true;
    auto done = drive.perform(*line);
    if (!done) return done.status();
    events.event("completions", completion_fields(drive, *done));
  }
  return !stop;
}

// Brings the drive to its initial state and answers lines until the end.
Status hold_drive(const InteractRequest& request, LineReader& lines, Events& events, const std::atomic<bool>& stop) {
  events.started("ssd-interact", shown(request.drive));
  const double began = cpu_seconds();
  device::DriveModel model(request.drive, request.seed);
  auto prepared = prepare(model, request.initial, request.seed, events, stop);
  if (!prepared) return prepared.status();
  model.reset_counters();
  if (*prepared) events.event("ready", ready_fields(model, request.initial));
  const double setup_ended = cpu_seconds();
  HeldDrive drive(std::move(model), request.threads);
  auto complete = *prepared ? converse(drive, lines, events, stop) : Result<bool>(false);
  if (!complete) return complete.status();
  Json result = result_fields(drive);
  result["setup_cpu_seconds"] = setup_ended - began;
  result["cpu_seconds"] = cpu_seconds() - setup_ended;
  result["peak_rss_bytes"] = peak_rss_bytes();
  events.result(std::move(result), *complete);
  return {};
}

}  // namespace

Status ssd_interact(LineReader& lines, Events& events, const std::atomic<bool>& stop) {
  const auto first = lines.next(stop);
  if (!first && stop) {
    events.result({{"ios", 0}, {"simulated_seconds", 0.0}, {"host_bytes_read", 0}, {"host_bytes_written", 0}}, false);
    return {};
  }
  auto request = read_interact_request(first.value_or(""));
  if (!request) return request.status();
  return hold_drive(*request, lines, events, stop);
}

}  // namespace spillway::tool
