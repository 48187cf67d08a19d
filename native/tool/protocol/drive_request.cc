#include "tool/protocol/drive_request.h"

#include <sys/resource.h>
#include <time.h>

#include <limits>
#include <map>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>

#include "device/preset/drive_keys.h"
#include "tool/protocol/fields.h"
#include "tool/protocol/progress_reporter.h"

namespace spillway::tool {
namespace {

Json value_of(const device::Slot& slot) {
  return std::visit(
      [](const auto& in) -> Json {
        using T = std::decay_t<decltype(in)>;
        if constexpr (std::is_same_v<T, device::SizeSlot>) {
          return *in.bytes;
        } else if constexpr (std::is_same_v<T, device::PolicySlot>) {
          return device::spelling(*in.gc);
        } else if constexpr (std::is_same_v<T, device::SchemeSlot>) {
          return device::spelling(*in.scheme);
        } else {
          return *in;
        }
      },
      slot);
}

// `set` has values in TOML's spelling. A JSON number or boolean is accepted as the same value.
std::map<std::string, std::string> read_set(const Json& set, Fields& fields) {
  std::map<std::string, std::string> result;
  if (set.is_null()) return result;
  if (!set.is_object()) {
    fields.refuse("set", "an object of dotted keys and their values");
    return result;
  }
  for (const auto& [key, value] : set.items())
    result[key] = value.is_string() ? value.get<std::string>() : value.dump();
  return result;
}

}  // namespace

Result<device::Drive> read_drive(const Json& drive) {
  Fields fields(drive, "drive");
  device::DriveSpec spec;
  spec.preset = fields.text("preset", "");
  spec.preset_file = fields.text("preset_file", "");
  spec.preset_dirs = fields.texts("preset_dirs");
  spec.set = read_set(fields.inner("set"), fields);
  if (Status status = fields.finish(); !status) return status;
  if (spec.preset_dirs.empty()) spec.preset_dirs = device::default_preset_dirs();
  return device::resolve(spec);
}

Result<device::InitialState> read_initial(const Json& initial) {
  Fields fields(initial, "initial");
  const std::string kind = fields.text("kind", "trimmed");
  device::InitialState state;
  state.fill = fields.number("fill", 1.0, 0, 1);
  state.compression_ratio = fields.number("compression_ratio", 1.0, 0, 1);
  state.warmup_capacities = fields.number("warmup_capacities", 0, 0, 1e6);
  state.path = fields.text("path", "");
  const std::string partition = fields.text("partition", "as_is");
  state.partition_bytes = fields.whole("partition_bytes", 0, 0, std::numeric_limits<std::uint64_t>::max());
  if (Status status = fields.finish(); !status) return status;
  auto of_partition = device::parse_initial_partition(partition);
  if (!of_partition) return of_partition.status();
  state.partition = *of_partition;
  auto parsed = device::parse_initial_kind(kind);
  if (!parsed) return parsed.status();
  state.kind = *parsed;
  return state;
}

Result<bool> prepare(device::DriveModel& drive, const device::InitialState& initial, std::uint64_t seed, Events& events,
                     const std::atomic<bool>& stop) {
  ProgressReporter progress(events, "prepare", "units");
  Status status = device::prepare(drive, initial, seed, [&](std::uint64_t done, std::uint64_t total) {
    progress.report(done, total);
    return !stop;
  });
  if (status.fault() == Fault::stopped) return false;
  if (!status) return status;
  return true;
}

Json shown(const device::Drive& drive) {
  device::Drive copy = drive;
  const ssd::Layout layout = ssd::layout(copy.config);
  Json json = {{"name", copy.config.name}, {"summary", drive.summary}, {"capacity_bytes", layout.capacity_bytes}};
  for (const auto& [key, slot] : device::keys_in_use(copy)) {
    Json* table = &json;
    std::size_t begin = 0;
    for (auto dot = key.find('.'); dot != std::string::npos; dot = key.find('.', begin)) {
      table = &(*table)[key.substr(begin, dot - begin)];
      begin = dot + 1;
    }
    (*table)[key.substr(begin)] = value_of(slot);
  }
  if (!drive.host_stacks.empty()) json["host"]["stack"] = drive.host_stack.empty() ? "none" : drive.host_stack;
  json["sources"] = Json::object();
  for (const auto& [key, source] : drive.sources) json["sources"][key] = source;
  return json;
}

Json shown(const ssd::Layout& layout) {
  return {{"capacity_bytes", layout.capacity_bytes},
          {"logical_units", layout.logical_units},
          {"data_units", layout.data_units},
          {"reserve_units", layout.reserve_units},
          {"physical_units", layout.physical_units},
          {"translation_units", layout.translation_units},
          {"erase_blocks", layout.blocks}};
}

Json shown(const device::Device::Wear& wear, const ssd::SsdConfig& config) {
  Json json = {{"mean_pe_cycles", wear.mean_pe_cycles},
               {"max_pe_cycles", wear.max_pe_cycles},
               {"rated_pe_cycles", wear.rated_pe_cycles}};
  if (wear.rated_pe_cycles > 0) {  // 0: a disk
    json["physical_bytes"] = ssd::layout(config).physical_units * config.geometry.mapping_unit_bytes;
  }
  return json;
}

Json latency_us(const Histogram& histogram) {
  return {{"count", histogram.count()},
          {"mean", histogram.mean_ns() / 1e3},
          {"p50", histogram.quantile_ns(0.5) / 1e3},
          {"p99", histogram.quantile_ns(0.99) / 1e3},
          {"p99_9", histogram.quantile_ns(0.999) / 1e3},
          {"max", static_cast<double>(histogram.max_ns()) / 1e3}};
}

double cpu_seconds() {
  timespec used{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
  return static_cast<double>(used.tv_sec) + static_cast<double>(used.tv_nsec) / 1e9;
}

std::uint64_t peak_rss_bytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<std::uint64_t>(usage.ru_maxrss) * 1024;
}

}  // namespace spillway::tool
