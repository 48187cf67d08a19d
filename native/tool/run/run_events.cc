#include "tool/run/run_events.h"

#include "device/counters_json.h"
#include "load/ycsb/requests.h"
#include "tool/protocol/drive_request.h"

namespace spillway::tool {
namespace {

double seconds(std::int64_t ns) { return static_cast<double>(ns) * 1e-9; }

Json by_stall_cause(const load::StallTime& time, std::span<const char* const> causes) {
  Json json = Json::object();
  for (std::size_t i = 1; i < causes.size(); ++i) json[causes[i]] = seconds(time.ns[i]);
  return json;
}

void put_operations(Json& json, const load::Tally& tally) {
  json["reads"] = tally.reads();
  json["writes"] = tally.writes();
  json["read_latency_us"] = latency_us(tally.read_latency);
  json["write_latency_us"] = latency_us(tally.write_latency);
  json["user_bytes_written"] = tally.user_bytes_written;
  json["user_bytes_read"] = tally.user_bytes_read;
}

// YCSB's operations by kind. Adds nothing for workloads that have only reads and writes.
void put_kinds(Json& json, const load::Tally& tally) {
  if (tally.kind_latency.empty()) return;
  Json kinds = Json::object();
  for (std::size_t kind = 0; kind < tally.kind_latency.size(); ++kind) {
    if (tally.kind_latency[kind].count() == 0) continue;
    kinds[load::ycsb::name_of(static_cast<load::ycsb::Kind>(kind))] = latency_us(tally.kind_latency[kind]);
  }
  json["kind_latency_us"] = std::move(kinds);
}

Json shown(const load::DriveInterval& drive) {
  return {{"host_bytes_written", drive.growth.host_bytes_written},
          {"host_bytes_read", drive.growth.host_bytes_read},
          {"host_bytes_written_by_cause", device::by_host_cause(drive.growth.host_bytes_written_by_cause)},
          {"nand_bytes_programmed", device::by_flash_cause(drive.growth.nand_bytes_programmed)},
          {"erases", drive.growth.erases},
          {"die_busy", drive.die_busy},
          {"channel_busy", drive.channel_busy},
          {"link_write_utilisation", drive.link_write_utilisation},
          {"link_read_utilisation", drive.link_read_utilisation}};
}

Json shown(const engine::Observation& observed, const load::StallTime& stall_time,
           std::span<const char* const> causes) {
  Json json = {{"stall_state", engine::name_of(observed.stall_state)},
               {"stall_cause", causes[observed.stall_cause]},
               {"stall_s", by_stall_cause(stall_time, causes)}};
  for (const engine::Gauge& gauge : observed.gauges) json[gauge.name] = gauge.value;
  return json;
}

Json shown(const SpillStatistics& spill) {
  Json json;
  for_each_statistic(spill, [&](std::string_view name, auto value) { json[std::string(name)] = value; });
  return json;
}

}  // namespace

void RunEvents::on_progress(const load::Progress& progress) {
  const char* const unit = progress.unit == load::Progress::Unit::operations ? "operations" : "seconds";
  events_.progress(progress.phase->name, progress.done, progress.total.value_or(-1), unit, progress.operations_per_s);
}

void RunEvents::on_sample(const load::PhaseSpec& phase, const load::Sample& sample) {
  Json json = {{"t_s", seconds(sample.end_ns)},
               {"dt_s", seconds(sample.end_ns - sample.begin_ns)},
               {"phase", phase.name},
               {"measured", phase.measured}};
  put_operations(json, *sample.tally);
  if (sample.drive) {
    json["drive"] = shown(*sample.drive);
  } else if (files_.directory_drive != nullptr) {
    json["drive"] = files_.directory_drive->take_interval(phase.measured);
  }
  json["engine"] = shown(sample.engine, sample.stall_time, causes_);
  if (sample.engine.spill) {
    json["spill"] = shown(growth_since(last_spill_, *sample.engine.spill));
    last_spill_ = *sample.engine.spill;
  }
  json["space_bytes"] = sample.space_bytes;
  json["cpu_s"] = sample.cpu_s;
  events_.event("sample", json);
}

void RunEvents::on_stall(const engine::Stall& stall) {
  events_.event("stall", {{"t_s", seconds(stall.begin_ns)},
                          {"duration_s", seconds(stall.end_ns - stall.begin_ns)},
                          {"state", engine::name_of(stall.state)},
                          {"cause", causes_[stall.cause]}});
}

void RunEvents::on_event(const engine::Event& event) {
  Json figures = Json::object();
  for (const auto& [name, value] : event.figures) figures[name] = value;
  events_.event("engine", {{"t_s", seconds(event.at_ns)},
                           {"name", event.name},
                           {"figures", std::move(figures)},
                           {"message", event.message}});
}

Status RunEvents::on_threads_ended(const load::PhaseSpec& phase) {
  if (files_.directory_drive != nullptr) files_.directory_drive->before_last_sample(phase);
  if (files_.volume == nullptr) return Status::ok();
  const auto next = static_cast<std::size_t>(&phase - files_.phases.data()) + 1;
  const bool is_measured_next = next < files_.phases.size() && files_.phases[next].measured;
  return phase.measured != is_measured_next ? files_.volume->sync() : Status::ok();
}

// An invalid command line ends the current phase, and with it the run.
bool RunEvents::should_end_phase(std::size_t index) {
  return control_ != nullptr && (control_->should_end_phase(index) || control_->has_failed());
}

void RunEvents::on_phase(const load::PhaseReport& report) {
  if (files_.directory_drive != nullptr) files_.directory_drive->end_phase(*report.phase);
  const load::Tally& tally = report.totals.tally;
  Json json = {{"name", report.phase->name},
               {"workload", load::name_of(report.phase->workload)},
               {"measured", report.phase->measured},
               {"t_s", seconds(report.begin_ns)},
               {"duration_s", seconds(report.totals.duration_ns)},
               {"operations", tally.operations()}};
  put_operations(json, tally);
  put_kinds(json, tally);
  json["not_found"] = tally.not_found;
  json["not_started"] = report.totals.not_started;
  if (report.phase->is_open_loop()) json["start_lag_us"] = latency_us(tally.start_lag);
  if (report.rate_ops_s) json["rate_ops_s"] = *report.rate_ops_s;
  json["complete"] = report.complete;
  if (report.ended_by_command) json["ended_by"] = "command";
  events_.event("phase", json);
}

Json run_figures(const load::RunReport& report, bool has_drive, std::span<const char* const> causes) {
  const load::Totals& totals = report.measured;
  const load::Tally& tally = totals.tally;
  Histogram all = tally.read_latency;
  all.merge(tally.write_latency);
  const double duration_s = seconds(totals.duration_ns);
  Json json = {{"duration_s", duration_s},
               {"operations", tally.operations()},
               {"throughput_ops_s", duration_s > 0 ? static_cast<double>(tally.operations()) / duration_s : 0.0},
               {"latency_us", latency_us(all)}};
  put_operations(json, tally);
  put_kinds(json, tally);
  json["not_found"] = tally.not_found;
  json["not_started"] = totals.not_started;
  if (has_drive) {
    json["host_bytes_written"] = totals.drive.host_bytes_written;
    json["host_bytes_read"] = totals.drive.host_bytes_read;
    json["host_bytes_written_by_cause"] = device::by_host_cause(totals.drive.host_bytes_written_by_cause);
    json["nand_bytes_programmed"] = device::by_flash_cause(totals.drive.nand_bytes_programmed);
  }
  json["live_user_bytes"] = report.live_user_bytes;
  json["live_user_bytes_exact"] = report.live_user_bytes_are_exact;
  json["stalls"] = {{"count", totals.stall_time.begun},
                    {"seconds", seconds(totals.stall_time.total_ns())},
                    {"by_cause", by_stall_cause(totals.stall_time, causes)}};
  json["cpu_seconds"] = totals.cpu_s;
  return json;
}

}  // namespace spillway::tool
