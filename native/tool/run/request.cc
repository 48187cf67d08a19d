#include "tool/run/request.h"

#include <cmath>
#include <filesystem>
#include <limits>
#include <map>
#include <utility>
#include <vector>

#include "engine/factory/factory.h"
#include "tool/protocol/drive_request.h"
#include "tool/protocol/fields.h"
#include "tool/run/arrivals_request.h"
#include "tool/run/ycsb_request.h"

namespace spillway::tool {
namespace {

constexpr std::uint64_t kMost = std::numeric_limits<std::uint64_t>::max();
constexpr std::uint64_t kMostWhole32 = std::numeric_limits<std::uint32_t>::max();
constexpr double kMostSeconds = 365.0 * 86400;
constexpr double kMostRate = 1e9;  // one operation per nanosecond, the resolution of time here

Status read_estimate(const Json& json, RunRequest& request) {
  Fields fields(json, "target.estimate");
  const Json& drive = fields.inner("drive");
  const Json& initial = fields.inner("initial");
  if (Status status = fields.finish(); !status) return status;
  auto resolved = read_drive(drive);
  if (!resolved) return resolved.status();
  auto state = read_initial(initial);
  if (!state) return state.status();
  request.estimate = EmulatedTarget{std::move(*resolved), std::move(*state), 1.0, Pacing::off};
  return {};
}

Status read_target(const Json& json, RunRequest& request) {
  Fields fields(json, "target");
  Status problem;
  const bool is_directory = choice(fields, "target", "kind", {"emulated", "directory"}, 0, problem) == 1;
  const Json& drive = fields.inner("drive");
  const Json& initial = fields.inner("initial");
  const auto pacing = static_cast<Pacing>(choice(fields, "target", "pacing", {"real", "off"}, 0, problem));
  const auto time_scale = fields.optional_number("time_scale", 1e-6, 1e6);
  request.counters = fields.texts("counters");
  const Json& estimate = fields.inner("estimate");
  if (Status status = fields.finish(); !status) return status;
  if (!problem) return problem;
  if (is_directory) {
    for (const char* key : {"drive", "initial", "pacing", "time_scale"}) {
      if (!json.contains(key)) continue;
      return Status::bad_input(std::string("target.") + key +
                               " belongs to an emulated drive; remove it or set target.kind to emulated");
    }
    return estimate.is_null() ? Status::ok() : read_estimate(estimate, request);
  }
  for (const char* key : {"counters", "estimate"}) {
    if (!json.contains(key)) continue;
    return Status::bad_input(std::string("target.") + key +
                             " belongs to a plain directory; remove it or set target.kind to directory");
  }
  auto resolved = read_drive(drive);
  if (!resolved) return resolved.status();
  auto state = read_initial(initial);
  if (!state) return state.status();
  request.emulated = EmulatedTarget{std::move(*resolved), std::move(*state), time_scale.value_or(1.0), pacing};
  return {};
}

Status read_fs(const Json& json, fs::VolumeOptions& volume) {
  Fields fields(json, "fs");
  Status problem;
  volume.size_bytes = fields.whole("size_bytes", 0, 0, kMost);
  volume.discard = fields.flag("discard", volume.discard);
  volume.placement =
      static_cast<fs::Placement>(choice(fields, "fs", "placement", {"next_fit", "first_fit"}, 0, problem));
  if (!problem) return problem;
  volume.page_cache_bytes = fields.whole("page_cache_bytes", volume.page_cache_bytes, 0, kMost);
  volume.writeback_bytes = fields.whole("writeback_bytes", volume.writeback_bytes, fs::kPageBytes, kMost);
  volume.closed_dirty_bytes = fields.whole("closed_dirty_bytes", volume.closed_dirty_bytes, 0, kMost);
  return fields.finish();
}

// A partition lies within its drive and consists of whole pages.
Status check_size(const RunRequest& request) {
  const std::uint64_t size = request.fs.size_bytes;
  if (size == 0) return {};
  const std::string is = "fs.size_bytes is " + std::to_string(size);
  if (!request.emulated) return Status::bad_input(is + ", but the target is a directory; remove it");
  const std::uint64_t capacity = ssd::layout(request.emulated->drive.config).capacity_bytes;
  if (size > capacity) {
    return Status::bad_input(is + ", and the drive holds " + std::to_string(capacity) +
                             "; lower it or raise capacity.capacity_bytes");
  }
  if (size % fs::kPageBytes != 0) {
    return Status::bad_input(is + "; it takes a multiple of " + std::to_string(fs::kPageBytes));
  }
  return {};
}

std::string as_text(const Json& value) { return value.is_string() ? value.get<std::string>() : value.dump(); }

// Reads settings of the engine by their dotted keys: {"adoc": {"most_jobs": 2}} is adoc.most_jobs = 2.
Status read_settings(const Json& json, StringMap& settings) {
  for (const auto& [key, value] : json.items()) {
    if (key == "name" || key == "options" || value.is_null()) continue;
    if (value.is_array()) return Status::bad_input("engine." + key + " is a list; it takes a value or an object");
    if (!value.is_object()) {
      settings[key] = as_text(value);
      continue;
    }
    for (const auto& [inner, of_inner] : value.items())
      settings[std::string(key).append(".").append(inner)] = as_text(of_inner);
  }
  return {};
}

Status read_engine(const Json& json, RunRequest& request) {
  engine::EngineSpec& engine = request.engine;
  if (!json.is_object()) return Status::bad_input("engine is " + json.dump() + "; it takes an object with a name");
  engine.name = json.value("name", Json(engine.name)).is_string() ? json.value("name", engine.name) : "";
  if (json.contains("options")) {
    const Json& options = json["options"];
    if (!options.is_object()) {
      return Status::bad_input("engine.options is " + options.dump() +
                               "; it takes an object of the engine's options and their values as texts");
    }
    for (const auto& [key, value] : options.items()) engine.options[key] = as_text(value);
  }
  if (Status status = read_settings(json, engine.settings); !status) return status;
  if (request.emulated) {
    const ssd::SsdConfig& config = request.emulated->drive.config;
    engine.capacity_bytes = request.fs.size_bytes > 0 ? request.fs.size_bytes : ssd::layout(config).capacity_bytes;
    engine.lba_bytes = config.geometry.lba_bytes;
  }
  engine.value_bytes = request.load.pairs.value_bytes;
  engine.has_kv_namespace = request.emulated && request.emulated->drive.config.namespaces.kv_share > 0;
  return engine::check_engine(engine);
}

// Refuses workloads that a raw engine, which is not a store, cannot run.
Status check_workloads(const RunRequest& request) {
  if (engine::is_store(request.engine)) return {};
  for (std::size_t i = 0; i < request.load.phases.size(); ++i) {
    const load::Workload workload = request.load.phases[i].workload;
    const bool is_scan = workload == load::Workload::seekrandom;
    if (!is_scan && !load::is_ycsb(workload)) continue;
    return Status::bad_input("phases[" + std::to_string(i) + "].workload is " + load::name_of(workload) +
                             "; the engine " + request.engine.name + " has no " + (is_scan ? "scans" : "records") +
                             ": choose a workload of puts and gets, or another engine");
  }
  return {};
}

Status read_phases(const Json& json, load::RunSpec& spec) {
  if (!json.is_array()) return Status::bad_input("phases is " + json.dump() + "; it takes a list of phases");
  for (std::size_t i = 0; i < json.size(); ++i) {
    load::PhaseSpec phase;
    if (Status status = read_phase(json[i], "phases[" + std::to_string(i) + "]", phase); !status) return status;
    spec.phases.push_back(std::move(phase));
  }
  return {};
}

// Whether a database in a state can have this name, which becomes a directory's.
bool is_name(const std::string& name) {
  constexpr const char* kLetters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
  return !name.empty() && name.front() != '.' && name.find_first_not_of(kLetters) == std::string::npos;
}

Status read_kept(const Json& json, RunRequest& request) {
  if (json.is_null()) return {};
  Fields fields(json, "kept");
  Status problem;
  KeptRequest kept;
  kept.from = fields.text("from", "");
  kept.to = fields.text("to", "");
  kept.takes =
      static_cast<KeptRequest::Takes>(choice(fields, "kept", "takes", {"database", "files", "drive"}, 0, problem));
  kept.database = fields.text("database", kept.database);
  kept.note = fields.inner("note");
  if (!is_name(kept.database)) fields.refuse("database", "a name of letters, digits, ., _ and -");
  if (Status status = fields.finish(); !status) return status;
  if (!problem) return problem;
  if (kept.from.empty() && kept.to.empty())
    return Status::bad_input(
        "kept has neither from nor to; name a directory to start from, or one to keep what the run leaves");
  if (request.estimate)
    return Status::bad_input("kept: a drive model that only watches is not kept; remove target.estimate or kept");
  if (!request.emulated && kept.takes != KeptRequest::Takes::database)
    return Status::bad_input("kept.takes is \"" + json.value("takes", std::string()) +
                             "\", but the target is a directory, which has a database and no drive; use database");
  if (!engine::is_movable(request.engine))
    return Status::bad_input("kept: a database of the engine " + request.engine.name +
                             " cannot be moved, so it is not kept; remove kept");
  request.kept = std::move(kept);
  return {};
}

}  // namespace

Status read_load(const Json& json, load::RunSpec& spec) {
  Fields fields(json, "load");
  load::PairSpec& pairs = spec.pairs;
  pairs.key_bytes = static_cast<std::uint32_t>(fields.whole("key_bytes", pairs.key_bytes, 1, kMostWhole32));
  pairs.value_bytes = static_cast<std::uint32_t>(fields.whole("value_bytes", pairs.value_bytes, 0, kMostWhole32));
  pairs.compression_ratio = fields.number("compression_ratio", pairs.compression_ratio, 0, 1);
  pairs.num = fields.whole("num", pairs.num, 1, kMost);
  spec.seed = fields.whole("seed", spec.seed, 0, kMost);
  return fields.finish();
}

Status read_phase(const Json& json, const std::string& path, load::PhaseSpec& phase) {
  Fields fields(json, path);
  Status problem;
  const std::vector<std::string> workloads = load::workload_names();
  if (!json.is_object() || !json.contains("workload")) {
    fields.refuse("workload", "one of db_bench's workloads, ycsb-load or ycsb-run");
  }
  phase.workload = *load::parse_workload(workloads[choice(fields, path, "workload", workloads, 0, problem)]);
  phase.name = fields.text("name", load::name_of(phase.workload));
  phase.threads = static_cast<std::uint32_t>(fields.whole("threads", 1, 0, kMostWhole32));
  phase.operations = fields.optional_whole("operations", 0, kMost);
  phase.duration_s = fields.optional_number("duration_s", 0, kMostSeconds);
  phase.rate_ops_s = fields.optional_number("rate_ops_s", 0, kMostRate);
  if (const std::string rate_of = fields.text("rate_of", ""); !rate_of.empty()) phase.rate_of = rate_of;
  phase.rate_share = fields.optional_number("rate_share", 0, kMostRate).value_or(phase.rate_share);
  phase.write_rate_ops_s = fields.optional_number("write_rate_ops_s", 0, kMostRate);
  phase.measured = fields.flag("measured", true);
  phase.diversion =
      static_cast<engine::Diversion>(choice(fields, path, "diversion", {"automatic", "always", "never"}, 0, problem));
  phase.seek_nexts = fields.whole("seek_nexts", 0, 0, kMost);
  phase.exact_mix = fields.flag("exact_mix", false);
  const Json& arrivals = fields.inner("arrivals");
  const Json& ycsb = fields.inner("ycsb");
  const auto percent = fields.optional_number("read_write_percent", 0, 100);
  if (percent) phase.read_write_percent = static_cast<std::uint32_t>(std::lround(*percent));
  if (Status status = fields.finish(); !status) return status;
  if (!arrivals.is_null()) {
    auto spec = read_arrivals(arrivals, path + ".arrivals", phase.rate_ops_s.value_or(0));
    if (!spec) return spec.status();
    phase.arrivals = std::move(*spec);
  }
  if (!ycsb.is_null()) {
    auto properties = read_ycsb(ycsb, path + ".ycsb");
    if (!properties) return properties.status();
    phase.ycsb = std::move(*properties);
  }
  return problem;
}

Result<RunRequest> read_run_request(const Json& json) {
  Fields fields(json, "");
  RunRequest request;
  request.seed = fields.whole("seed", request.seed, 0, kMost);
  request.load.seed = request.seed;
  request.directory = fields.text("directory", "");
  if (request.directory.empty()) fields.refuse("directory", "the path of a directory for the store's files");
  const Json& target = fields.inner("target");
  const Json& fs = fields.inner("fs");
  const Json& engine = fields.inner("engine");
  const Json& load = fields.inner("load");
  const Json& phases = fields.inner("phases");
  const Json& kept = fields.inner("kept");
  const std::uint64_t interval_ms = fields.whole("sample_interval_ms", 1000, 0, 86'400'000);
  request.load.sample_interval_ns = static_cast<std::int64_t>(interval_ms) * 1'000'000;
  if (Status status = fields.finish(); !status) return status;
  if (Status status = read_target(target, request); !status) return status;
  if (Status status = read_fs(fs, request.fs); !status) return status;
  if (Status status = check_size(request); !status) return status;
  request.engine.directory = request.directory;
  if (Status status = read_load(load, request.load); !status) return status;
  if (Status status = read_engine(engine, request); !status) return status;
  // An engine that compresses leaves nothing for the drive to compress. Otherwise values compress and keys do not.
  if (!engine::compresses(request.engine))
    request.fs.compression_ratio = request.load.pairs.compression_ratio_of_pair();
  if (Status status = read_phases(phases, request.load); !status) return status;
  if (Status status = check_workloads(request); !status) return status;
  if (Status status = read_kept(kept, request); !status) return status;
  const bool continues_database =
      request.kept && !request.kept->from.empty() && request.kept->takes == KeptRequest::Takes::database;
  if (const std::string problem = load::find_problem(request.load); !continues_database && !problem.empty())
    return Status::bad_input(problem);
  return request;
}

Status check_space(const RunRequest& request) {
  const std::uint64_t wanted = load::least_live_bytes(request.load, engine::compresses(request.engine));
  const std::string phases = "the phases leave at least " + std::to_string(wanted) + " bytes of pairs";
  if (const auto& model = request.emulated ? request.emulated : request.estimate) {
    const std::uint64_t size = request.fs.size_bytes;
    const std::uint64_t room = size > 0 ? size : ssd::layout(model->drive.config).capacity_bytes;
    if (wanted > room) {
      const std::string holder = size > 0 ? "the partition" : request.emulated ? "the drive" : "the estimate's drive";
      return Status::bad_input("load.num: " + phases + ", and " + holder + " holds " + std::to_string(room) +
                               "; lower load.num or the phases' operations, or raise " +
                               (size > 0 ? "fs.size_bytes" : "capacity.capacity_bytes"));
    }
  }
  std::error_code failure;
  const std::filesystem::space_info space = std::filesystem::space(request.directory, failure);
  if (!failure && wanted > space.available) {
    return Status::bad_input("directory: " + phases + ", and " + request.directory + " has " +
                             std::to_string(space.available) + " free; make room or choose another directory");
  }
  return {};
}

}  // namespace spillway::tool
