#include "tool/lsm/command.h"

#include <memory>
#include <string>

#include "device/counters_json.h"
#include "lsm/grain.h"
#include "lsm/simulation.h"
#include "tool/lsm/request.h"
#include "tool/protocol/drive_request.h"
#include "tool/protocol/progress_reporter.h"

namespace spillway::tool {
namespace {

std::uint64_t whole(double value) { return static_cast<std::uint64_t>(value + 0.5); }

Json stalls_of(const std::array<double, lsm::kStallCauses>& seconds) {
  const auto of = [&](lsm::StallCause cause) { return seconds[static_cast<std::size_t>(cause)]; };
  return {{"memtable", of(lsm::StallCause::memtable)},
          {"l0", of(lsm::StallCause::l0)},
          {"pending_compaction_bytes", of(lsm::StallCause::pending_compaction_bytes)}};
}

Json levels_of(const lsm::Figures& figures) {
  Json levels = Json::array();
  for (std::size_t l = 0; l < figures.levels.size(); ++l) {
    const lsm::LevelFigures& level = figures.levels[l];
    levels.push_back({{"level", l},
                      {"files", level.files},
                      {"bytes", whole(level.bytes)},
                      {"bytes_written", whole(level.bytes_written)},
                      {"bytes_read", whole(level.bytes_read)}});
  }
  return levels;
}

Json files_touched_of(const lsm::Figures& figures) {
  Json by_level = Json::array();
  std::uint64_t compactions = 0;
  std::uint64_t files = 0;
  for (std::size_t l = 0; l < figures.compactions_from.size(); ++l) {
    const lsm::CompactionFigures& from = figures.compactions_from[l];
    compactions += from.compactions;
    files += from.files_touched;
    by_level.push_back({{"level", l}, {"compactions", from.compactions}, {"files", from.files_touched}});
  }
  const Json mean =
      compactions > 0 ? Json(static_cast<double>(files) / static_cast<double>(compactions)) : Json(nullptr);
  return {{"mean", mean}, {"by_level", by_level}};
}

Json blobs_of(const lsm::BlobFigures& blobs) {
  return {{"files", blobs.files},
          {"bytes", whole(blobs.bytes)},
          {"garbage_bytes", whole(blobs.garbage_bytes)},
          {"bytes_flushed", whole(blobs.bytes_flushed)},
          {"bytes_relocated", whole(blobs.bytes_relocated)},
          {"bytes_read", whole(blobs.bytes_read)}};
}

Json queries_of(const lsm::Spec& spec, const lsm::Figures& figures) {
  Json queries = Json::array();
  for (std::size_t i = 0; i < figures.queries.size(); ++i) {
    const lsm::QueryFigures& query = figures.queries[i];
    const auto operations = static_cast<double>(query.operations);
    queries.push_back({{"workload", spec.queries[i].kind == lsm::QuerySpec::Kind::point ? "readrandom" : "seekrandom"},
                       {"threads", spec.queries[i].threads},
                       {"operations", query.operations},
                       {"seconds", query.seconds},
                       {"ops_s", query.seconds > 0 ? operations / query.seconds : 0.0},
                       {"reads_per_operation", query.block_reads / std::max(1.0, operations)},
                       {"latency_us", latency_us(query.latency)}});
  }
  return queries;
}

Json figures_of(const lsm::Figures& figures) {
  return {{"operations", whole(figures.operations)},
          {"simulated_seconds", figures.load_seconds},
          {"settle_seconds", figures.settle_seconds},
          {"ops_s", figures.load_seconds > 0 ? figures.operations / figures.load_seconds : 0.0},
          {"preloaded_bytes", whole(figures.preloaded_bytes)},
          {"user_bytes", whole(figures.user_bytes)},
          {"live_user_bytes", whole(figures.live_user_bytes)},
          {"wal_bytes", whole(figures.wal_bytes)},
          {"flush_bytes", whole(figures.flush_bytes)},
          {"compaction_bytes_read", whole(figures.compaction_bytes_read)},
          {"compaction_bytes_written", whole(figures.compaction_bytes_written)},
          {"host_bytes_written", figures.drive.host_bytes_written},
          {"host_bytes_read", figures.drive.host_bytes_read},
          {"host_bytes_written_by_cause", device::by_host_cause(figures.drive.host_bytes_written_by_cause)},
          {"nand_bytes_programmed", device::by_flash_cause(figures.drive.nand_bytes_programmed)},
          {"blobs", blobs_of(figures.blobs)},
          {"held_bytes", figures.held_bytes},
          {"peak_held_bytes", figures.peak_held_bytes},
          {"levels", levels_of(figures)},
          {"stalls", {{"delayed_s", stalls_of(figures.delayed_s)}, {"stopped_s", stalls_of(figures.stopped_s)}}},
          {"worst_wait_ms", figures.worst_wait_s * 1e3},
          {"flushes", figures.flushes},
          {"compactions", figures.compactions},
          {"intra_l0_compactions", figures.intra_l0_compactions},
          {"trivial_moves", figures.trivial_moves},
          {"files_touched", files_touched_of(figures)},
          {"spilled_operations", whole(figures.spilled_operations)},
          {"spilled_bytes", whole(figures.spilled_bytes)},
          {"rollbacks", figures.rollbacks},
          {"rollback_bytes_written", whole(figures.rollback_bytes_written)}};
}

Json result_of(const lsm::Spec& spec, const lsm::Figures& figures) {
  Json result = figures_of(figures);
  result["queries"] = queries_of(spec, figures);
  if (figures.reports.empty()) return result;
  result["reports"] = Json::array();
  for (const lsm::Figures& report : figures.reports) result["reports"].push_back(figures_of(report));
  return result;
}

Json shown(const lsm::Sample& sample, double grain) {
  Json level_bytes = Json::array();
  for (const double bytes : sample.level_bytes) level_bytes.push_back(whole(bytes * grain));
  return {{"t_s", sample.seconds * grain},
          {"operations", whole(sample.operations * grain)},
          {"l0_files", sample.l0_files},
          {"immutable_memtables", sample.immutable_memtables},
          {"pending_compaction_bytes", whole(sample.pending_compaction_bytes * grain)},
          {"level_bytes", level_bytes},
          {"host_bytes_written", whole(static_cast<double>(sample.host_bytes_written) * grain)},
          {"nand_bytes_programmed", whole(static_cast<double>(sample.nand_bytes_programmed) * grain)},
          {"delayed", sample.delayed},
          {"stopped", sample.stopped}};
}

Result<device::Drive> coarse_drive(const LsmRequest& request, std::uint32_t grain) {
  device::Drive drive = lsm::coarser(request.drive, grain);
  if (grain > 1 && lsm::too_coarse(lsm::coarser(request.spec, grain), drive)) {
    return Status::bad_input("grain " + std::to_string(grain) +
                             " leaves files of a few flash pages; give a smaller one, or 0");
  }
  if (grain > 1 && lsm::spill_too_coarse(lsm::coarser(request.spec, grain), drive)) {
    return Status::bad_input("grain " + std::to_string(grain) +
                             " leaves a spill store of less than two requests; give a smaller one, or 0");
  }
  if (drive.layers().is_disk()) return drive;
  if (const auto problem = ssd::problem(drive.config)) {
    return Status::bad_input("grain " + std::to_string(grain) + " does not fit this drive: " + problem->key + ": " +
                             problem->message);
  }
  return drive;
}

// At a coarse grain, queries read a drive of their own; null: they read the tree's.
std::unique_ptr<device::DriveModel> full_query_drive(const LsmRequest& request, std::uint32_t grain) {
  if (grain == 1 || request.spec.queries.empty()) return nullptr;
  auto drive = std::make_unique<device::DriveModel>(lsm::for_queries(request.drive), request.spec.seed);
  if (ssd::Ssd* flash = drive->flash()) {
    flash->write_sequentially(0, drive->capacity_bytes() / drive->mapping_unit_bytes());
  }
  return drive;
}

}  // namespace

Status lsm_simulate(const Json& json, Events& events, const std::atomic<bool>& stop) {
  auto request = read_lsm_request(json);
  if (!request) return request.status();
  const std::uint32_t grain = request->grain > 0 ? request->grain : lsm::choose_grain(request->spec, request->drive);
  const auto coarse = coarse_drive(*request, grain);
  if (!coarse) return coarse.status();
  events.started("lsm-simulate", shown(request->drive));

  const double began = cpu_seconds();
  device::DriveModel drive(coarse.value(), request->spec.seed);
  device::InitialState initial = request->initial;
  initial.partition_bytes /= grain;
  const auto prepared = prepare(drive, initial, request->spec.seed, events, stop);
  if (!prepared) return prepared.status();
  drive.reset_counters();
  const double prepared_at = cpu_seconds();

  lsm::Spec spec = lsm::coarser(request->spec, grain);
  spec.region = region_of(*request, drive.capacity_bytes(), grain);
  ProgressReporter progress(events, "simulate", "operations");
  lsm::Watch watch;
  const double g = grain;
  watch.progress = [&](double operations) {
    progress.report(whole(operations * g), whole(request->spec.load.operations));
    return !stop;
  };
  watch.sample = [&](const lsm::Sample& sample) { events.event("lsm-sample", shown(sample, g)); };
  const auto query_drive = full_query_drive(*request, grain);
  auto simulated = lsm::simulate(spec, drive, query_drive.get(), watch);
  if (!simulated) return simulated.status();
  const lsm::Figures figures = lsm::finer(std::move(*simulated), grain);
  Json result = result_of(request->spec, figures);
  result["capacity_bytes"] = drive.capacity_bytes() * grain;
  result["grain"] = grain;
  result["cpu_seconds"] = cpu_seconds() - prepared_at;
  result["setup_cpu_seconds"] = prepared_at - began;
  result["peak_rss_bytes"] = peak_rss_bytes();
  events.result(std::move(result), prepared.value() && figures.complete);
  return {};
}

}  // namespace spillway::tool
