// A synthetic workload on a drive in virtual time, for `spillway ssd simulate`.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/spelling.h"
#include "device/counters_json.h"
#include "tool/protocol/drive_request.h"
#include "tool/protocol/fields.h"
#include "tool/protocol/progress_reporter.h"
#include "tool/ssd/closed_loop.h"
#include "tool/ssd/commands.h"

namespace spillway::tool {
namespace {

constexpr std::uint64_t kMostIodepth = 65536;                   // the largest size of an NVMe queue
constexpr std::uint64_t kMostBsBytes = std::uint64_t{1} << 30;  // limit of device::Io
constexpr std::array<std::pair<const char*, Pattern>, 6> kPatterns = {{{"randwrite", Pattern::randwrite},
                                                                       {"randread", Pattern::randread},
                                                                       {"seqwrite", Pattern::seqwrite},
                                                                       {"seqread", Pattern::seqread},
                                                                       {"mixed", Pattern::mixed},
                                                                       {"hotcold", Pattern::hotcold}}};

struct SimulateRequest {
  device::Drive drive;
  device::InitialState initial;
  std::uint64_t seed = 1;
  Workload workload;
  double range = 1;
  double writes_capacities = 1;
  std::optional<std::uint64_t> ios;
};

std::string shown_number(double value) { return Json(value).dump(); }

Status read_pattern(const std::string& name, Pattern& pattern) {
  std::vector<std::string> names;
  for (const auto& [known, value] : kPatterns) {
    names.emplace_back(known);
    if (name != known) continue;
    pattern = value;
    return {};
  }
  const std::string near = nearest(name, names);
  return Status::bad_input("workload.name \"" + name + "\" is not known; " +
                           (near.empty() ? "it takes randwrite, randread, seqwrite, seqread, mixed or hotcold"
                                         : "did you mean " + near + "?"));
}

// Overwrites in an order other than the one in which the flash was filled need spare flash.
Status check_room(const SimulateRequest& request, const ssd::Layout& layout) {
  const Pattern pattern = request.workload.pattern;
  const bool random_writes = pattern == Pattern::randwrite || pattern == Pattern::mixed || pattern == Pattern::hotcold;
  const std::uint64_t units = request.workload.range_bytes / request.drive.config.geometry.mapping_unit_bytes;
  if (!random_writes || units < layout.data_units) return {};
  return Status::bad_input(
      "capacity.spare_factor is " + shown_number(request.drive.config.capacity.spare_factor) +
      ", which leaves random writes over the whole drive no spare flash; raise it (0.07 is usual) or "
      "lower workload.range");
}

Status read_workload(const Json& json, SimulateRequest& request) {
  Fields fields(json, "workload");
  Workload& workload = request.workload;
  const std::string name = fields.text("name", "randwrite");
  const double fill = request.initial.fill;
  workload.bs_bytes = fields.whole("bs_bytes", 4096, 1, kMostBsBytes);
  workload.iodepth = static_cast<std::uint32_t>(fields.whole("iodepth", 32, 1, kMostIodepth));
  workload.read_share = fields.number("read_share", 0.5, 0, 1);
  workload.hot_space = fields.number("hot_space", 0.1, 0, 1);
  workload.compression_ratio = fields.number("compression_ratio", 1, 0, 1);
  workload.hot_traffic = fields.number("hot_traffic", 0.9, 0, 1);
  request.range = fields.number("range", fill > 0 ? fill : 1, 0, 1);
  request.writes_capacities = fields.number("writes_capacities", 1, 0, 1e6);
  request.ios = fields.optional_whole("ios", 0, std::numeric_limits<std::uint64_t>::max());
  if (Status status = fields.finish(); !status) return status;
  if (Status status = read_pattern(name, workload.pattern); !status) return status;

  if (workload.compression_ratio == 0) {
    return Status::bad_input("workload.compression_ratio is 0; it takes a share above 0 and at most 1");
  }
  const std::uint32_t lba_bytes = request.drive.config.geometry.lba_bytes;
  if (workload.bs_bytes % lba_bytes != 0) {
    return Status::bad_input("workload.bs_bytes is " + std::to_string(workload.bs_bytes) +
                             "; it takes a multiple of the drive's " + std::to_string(lba_bytes) + "-byte LBAs");
  }
  const ssd::Layout layout = ssd::layout(request.drive.config);
  const std::uint64_t capacity = layout.capacity_bytes;
  workload.range_bytes = static_cast<std::uint64_t>(request.range * static_cast<double>(capacity));
  if (workload.range_bytes < workload.bs_bytes) {
    return Status::bad_input("workload.range holds " + std::to_string(workload.range_bytes) +
                             " bytes, less than one io; make it larger or workload.bs_bytes smaller");
  }
  return check_room(request, layout);
}

Result<SimulateRequest> read_request(const Json& json) {
  Fields fields(json, "");
  const Json& drive_field = fields.inner("drive");
  const Json& initial_field = fields.inner("initial");
  const Json& workload_field = fields.inner("workload");
  SimulateRequest request;
  request.seed = fields.whole("seed", 1, 0, std::numeric_limits<std::uint64_t>::max());
  if (Status status = fields.finish(); !status) return status;
  auto drive = read_drive(drive_field);
  if (!drive) return drive.status();
  request.drive = std::move(*drive);
  auto initial = read_initial(initial_field);
  if (!initial) return initial.status();
  request.initial = std::move(*initial);
  if (Status status = read_workload(workload_field, request); !status) return status;
  return request;
}

bool writes(Pattern pattern) { return pattern != Pattern::randread && pattern != Pattern::seqread; }

// The number of commands: the requested one, or as many as write the requested multiple of the capacity.
std::uint64_t count_ios(const SimulateRequest& request) {
  if (request.ios) return *request.ios;
  const Workload& workload = request.workload;
  const auto capacity = static_cast<double>(ssd::layout(request.drive.config).capacity_bytes);
  const double share = workload.pattern == Pattern::mixed ? 1 - workload.read_share : 1.0;
  // A workload without writes moves as many bytes as one that only writes.
  const double moved = request.writes_capacities * capacity / static_cast<double>(workload.bs_bytes);
  return static_cast<std::uint64_t>(std::llround(moved / (share > 0 ? share : 1.0)));
}

// Untimed overwrites with the workload's own distribution; with the uniform one if it writes nothing. False: stopped.
bool warm_up(device::DriveModel& drive, const SimulateRequest& request, Events& events, const std::atomic<bool>& stop) {
  if (drive.flash() == nullptr) return true;  // a disk overwrites in place
  const std::uint64_t unit_bytes = drive.mapping_unit_bytes();
  Workload workload = request.workload;
  if (!writes(workload.pattern)) workload.pattern = Pattern::randwrite;
  workload.read_share = 0;
  AddressStream addresses(workload, ssd::mix(request.seed + 1));
  const auto bytes = request.initial.warmup_capacities * static_cast<double>(workload.range_bytes);
  const auto units = static_cast<std::uint64_t>(bytes / static_cast<double>(unit_bytes));
  const std::uint64_t units_per_io = std::max<std::uint64_t>(1, workload.bs_bytes / unit_bytes);
  ProgressReporter progress(events, "warmup", "units");
  const std::uint16_t share = device::share_of(workload.compression_ratio);
  std::uint64_t looks = 0;
  for (std::uint64_t done = 0; done < units;) {
    const std::uint64_t first = addresses.next().offset_bytes / unit_bytes;
    for (std::uint64_t i = 0; i < units_per_io; ++i) drive.flash()->overwrite(first + i, share);
    done += units_per_io;
    if (++looks % 4096 != 0) continue;
    progress.report(done, units);
    if (stop) return false;
  }
  return true;
}

std::optional<double> ratio(std::uint64_t part, std::uint64_t whole) {
  if (whole == 0) return std::nullopt;
  return static_cast<double>(part) / static_cast<double>(whole);
}

Json or_null(std::optional<double> value) { return value ? Json(*value) : Json(nullptr); }

Json result_of(const SimulateRequest& request, const ssd::Counters& counters, const LoopResult& loop) {
  const double seconds = static_cast<double>(loop.duration_ns) / 1e9;
  const std::uint64_t bytes = counters.host_bytes_read + counters.host_bytes_written;
  const std::uint64_t victim_units = counters.gc_victims * request.drive.config.geometry.units_per_block();
  return {{"ios", loop.ios},
          {"iops", seconds > 0 ? static_cast<double>(loop.ios) / seconds : 0.0},
          {"bandwidth_mb_s", seconds > 0 ? static_cast<double>(bytes) / 1e6 / seconds : 0.0},
          {"latency_us", latency_us(loop.latency)},
          {"wa_device", or_null(ratio(counters.nand_bytes_programmed_total(), counters.host_bytes_written))},
          {"host_bytes_written", counters.host_bytes_written},
          {"host_bytes_read", counters.host_bytes_read},
          {"nand_bytes_programmed", device::by_flash_cause(counters.nand_bytes_programmed)},
          // Share of a collected erase block that was still valid, over all victims.
          {"gc_victim_valid_mean", or_null(ratio(counters.gc_victim_valid_units, victim_units))},
          {"erases", counters.erases},
          {"unmapped_reads", counters.unmapped_reads},
          {"simulated_seconds", seconds}};
}

// A disk has no flash and no wear.
device::Device::Wear wear_of(const device::DriveModel& drive) {
  const ssd::Ssd* const flash = drive.flash();
  if (flash == nullptr) return {};
  return {flash->mean_pe_cycles(), flash->max_pe_cycles(), flash->config().wear_levelling.rated_pe_cycles};
}

Status drive_full() {
  return Status::error(Fault::drive_full,
                       "the drive has no clean erase block left and garbage collection cannot make one; raise "
                       "capacity.spare_factor or lower initial.fill");
}

Status simulate(const SimulateRequest& request, Events& events, const std::atomic<bool>& stop) {
  events.started("ssd-simulate", shown(request.drive));

  const double setup_began = cpu_seconds();
  device::DriveModel drive(request.drive, request.seed);
  device::InitialState initial = request.initial;
  initial.warmup_capacities = 0;  // done here, with the workload's own distribution
  const auto prepared = prepare(drive, initial, request.seed, events, stop);
  if (!prepared) return prepared.status();
  const bool warm = prepared.value() && warm_up(drive, request, events, stop);
  drive.reset_counters();

  const double loop_began = cpu_seconds();
  const std::uint64_t ios = warm ? count_ios(request) : 0;
  ProgressReporter progress(events, "simulate", "operations");
  const LoopResult loop = run_closed_loop(drive, request.workload, ios, request.seed, [&](std::uint64_t done) {
    progress.report(done, ios);
    return !stop;
  });
  if (loop.first_failure == ssd::Outcome::capacity_exceeded) return drive_full();

  const ssd::Counters counters = drive.counters();
  Json result = result_of(request, counters, loop);
  result["cpu_seconds"] = cpu_seconds() - loop_began;
  result["setup_cpu_seconds"] = loop_began - setup_began;
  result["peak_rss_bytes"] = peak_rss_bytes();
  result["counters"] = device::to_json(counters);
  result["capacity_bytes"] = drive.capacity_bytes();
  result["wear"] = shown(wear_of(drive), request.drive.config);
  events.result(std::move(result), warm && loop.complete);
  return {};
}

}  // namespace

Status ssd_simulate(const Json& request, Events& events, const std::atomic<bool>& stop) {
  auto read = read_request(request);
  if (!read) return read.status();
  return simulate(*read, events, stop);
}

}  // namespace spillway::tool
