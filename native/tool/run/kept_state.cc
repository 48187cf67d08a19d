#include "tool/run/kept_state.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <utility>
#include <vector>

#include "engine/factory/factory.h"
#include "fs/path_key.h"
#include "fs/volume_table.h"
#include "tool/protocol/drive_request.h"

namespace spillway::tool {
namespace {

constexpr const char* kStateFile = "drive.state";
constexpr const char* kTableFile = "volume.json";
constexpr const char* kFiles = "files/";
constexpr const char* kOthers = "kept:";  // prefix for files of other databases on the volume; no path begins with it

// What identifies a drive: every key of the resolved preset, and the partition.
Json identity(const RunRequest& request) {
  if (!request.emulated) return nullptr;
  Json drive = shown(request.emulated->drive);
  drive.erase("summary");
  drive.erase("sources");
  drive["fs.size_bytes"] = request.fs.size_bytes;
  return drive;
}

// The first key in which two drives differ, with both values; "" if they are equal.
std::string first_difference(const Json& kept, const Json& now, const std::string& prefix = "") {
  for (const auto& [key, value] : kept.items()) {
    const std::string name = prefix + key;
    if (!now.contains(key)) return name + " = " + value.dump() + ", which this run's drive has not";
    if (value == now[key]) continue;
    if (value.is_object() && now[key].is_object()) return first_difference(value, now[key], name + ".");
    return name + " = " + value.dump() + ", and this run's drive has " + now[key].dump();
  }
  for (const auto& [key, value] : now.items()) {
    if (!kept.contains(key)) return "no " + prefix + key + ", and this run's drive has " + value.dump();
  }
  return "";
}

std::uint64_t programmed_bytes(const ssd::Counters& counters) {
  return std::accumulate(counters.nand_bytes_programmed.begin(), counters.nand_bytes_programmed.end(),
                         std::uint64_t{0});
}

std::uint64_t whole(const Json& json, const char* key) {
  return json.is_object() ? json.value(key, std::uint64_t{0}) : 0;
}

}  // namespace

Result<std::unique_ptr<KeptState>> KeptState::open(const Json& json, RunRequest& request) {
  std::unique_ptr<KeptState> kept(new KeptState(json, request));
  if (Status status = kept->lock(); !status) return status;
  if (kept->asked_.from.empty()) return kept;
  auto old = (kept->from_ ? *kept->from_ : *kept->to_).read();
  if (!old) return old.status();
  kept->old_ = std::move(*old);
  if (Status status = kept->check_fits(request); !status) return status;
  return kept;
}

Status KeptState::lock() {
  if (!asked_.to.empty()) to_ = std::make_unique<KeptDirectory>("kept.to", asked_.to);
  if (!asked_.from.empty()) {
    from_ = std::make_unique<KeptDirectory>("kept.from", asked_.from);
    // If both are one directory, it is locked once, for replacement. In messages it keeps the name of the one to start
    // from.
    if (to_ && from_->is_same_as(*to_)) to_ = std::exchange(from_, nullptr);
  }
  if (from_) {
    if (Status status = from_->open(KeptDirectory::Use::start_from); !status) return status;
  }
  return to_ ? to_->open(KeptDirectory::Use::replace) : Status::ok();
}

Status KeptState::check_fits(RunRequest& request) {
  if (!old_.contains("drive") || !old_.contains("databases") || !old_["databases"].is_object())
    return differs("is damaged: kept.json says of no drive or databases; make the state again, or remove it");
  if (Status status = check_drive(); !status) return status;
  return check_database(request);
}

Status KeptState::check_drive() const {
  const Json now = identity(request_);
  const Json& kept = old_["drive"];
  const auto name = [](const Json& drive) {
    return drive.is_null() ? std::string("a plain directory") : "the drive " + drive["name"].dump();
  };
  const std::string was = "was kept on " + name(kept);
  if (kept.is_null() != now.is_null() || (!kept.is_null() && kept["name"] != now["name"]))
    return differs(was + ", and this run is on " + name(now) +
                   "; give the run that drive, or start from another state");
  if (kept.is_null()) return {};
  const std::string difference = first_difference(kept, now);
  if (difference.empty()) return {};
  return differs(was + " with " + difference + "; give both one value, or start from another state");
}

Status KeptState::check_database(RunRequest& request) {
  const Json& databases = old_["databases"];
  const bool has_it = databases.contains(asked_.database);
  const std::string named = "\"" + asked_.database + "\"";
  if (asked_.takes == KeptRequest::Takes::drive) return {};
  if (asked_.takes == KeptRequest::Takes::files) {
    if (!has_it) return {};
    return differs("has a database " + named + ", and the run begins an empty one; give kept.database another name");
  }
  if (!has_it) {
    std::string known;
    for (const auto& [name, unused] : databases.items()) known += (known.empty() ? "" : ", ") + name;
    return differs("has no database " + named + "; kept.database takes one of: " + known);
  }
  const Json& database = databases[asked_.database];
  const std::string engine = database["engine"]["name"].get<std::string>();
  if (engine != request.engine.name) {
    const std::string other = request.emulated ? "kept.takes to files or drive" : "start from another state";
    return differs("has a database " + named + " of the engine " + engine + ", and this run's is " +
                   request.engine.name + "; set engine.name to " + engine + ", or " + other);
  }
  if (Status status = read_past(database, request.load); !status) return status;
  const std::string problem = load::find_problem(request.load);
  return problem.empty() ? Status::ok() : Status::bad_input(problem);
}

Status KeptState::read_past(const Json& database, load::RunSpec& spec) const {
  for (const Json& entry : database["past"]) {
    load::RunSpec of_it;
    load::FinishedPhase done;
    if (Status status = read_load(entry["load"], of_it); !status) return status;
    if (Status status = read_phase(entry["phase"], "kept.from: phase", done.phase); !status) return status;
    done.pairs = of_it.pairs;
    done.seed = entry["seed"].get<std::uint64_t>();
    done.index = entry["index"].get<std::uint64_t>();
    done.operations = entry["operations"].get<std::vector<std::uint64_t>>();
    done.inserted_before = entry["inserted_before"].get<std::uint64_t>();
    done.inserted = entry["inserted"].get<std::uint64_t>();
    const auto uses_pairs = [](const load::PhaseSpec& phase) { return !phase.ycsb && !load::is_wait(phase.workload); };
    if (uses_pairs(done.phase) && std::any_of(spec.phases.begin(), spec.phases.end(), uses_pairs) &&
        done.pairs.key_bytes != spec.pairs.key_bytes) {
      return differs("has keys of " + std::to_string(done.pairs.key_bytes) + " bytes in its database, and " +
                     "load.key_bytes is " + std::to_string(spec.pairs.key_bytes) + "; set it to " +
                     std::to_string(done.pairs.key_bytes));
    }
    spec.earlier_phases.push_back(std::move(done));
  }
  return {};
}

Json KeptState::start() const {
  if (old_.is_null()) return nullptr;
  constexpr const char* kTakes[] = {"database", "files", "drive"};
  Json names = Json::array();
  for (const auto& [name, unused] : old_["databases"].items()) names.push_back(name);
  Json start = {{"path", asked_.from},  {"takes", kTakes[static_cast<int>(asked_.takes)]},
                {"databases", names},   {"bytes", old_["bytes"]},
                {"runs", old_["runs"]}, {"drive", old_["drive_state"]}};
  if (asked_.takes == KeptRequest::Takes::database) {
    const Json& database = old_["databases"][asked_.database];
    start["database"] = {
        {"name", asked_.database},          {"engine", database["engine"]["name"]},
        {"versions", database["versions"]}, {"options", database["engine"].value("options", Json::object())},
        {"runs", database["runs"]},         {"live_user_bytes", database["live_user_bytes"]}};
  }
  return start;
}

const Json* KeptState::find_file(const std::string& relative) const {
  for (const Json& entry : old_["files"]) {
    if (entry["path"] == relative) return &entry;
  }
  return nullptr;
}

std::optional<device::InitialState> KeptState::initial() const {
  if (old_.is_null()) return std::nullopt;
  const Json* const file = find_file(kStateFile);
  if (file == nullptr) return std::nullopt;  // a disk, or a plain directory
  device::InitialState initial;
  initial.kind = device::InitialState::Kind::file;
  initial.path = source().path_of(*file);
  return initial;
}

Status KeptState::restore(fs::Volume* volume) {
  if (old_.is_null()) return {};
  const bool takes_database = asked_.takes == KeptRequest::Takes::database;
  if (const Json* const table = find_file(kTableFile); table != nullptr && volume != nullptr) {
    if (Status status = source().check(*table); !status) return status;
    const std::string path = source().path_of(*table);
    auto files = fs::read_table(path);
    if (!files) return files.status();
    for (const fs::VolumeTable::File& file : files->files) {
      if (takes_database && is_own(file.names.front())) continue;
      for (const fs::Extent& extent : file.extents) others_bytes_ += extent.pages * fs::kPageBytes;
    }
    const std::string root = fs::path_key(request_.directory);
    const auto on_volume = [&](const std::string& name) {
      return takes_database && is_own(name) ? root + name.substr(asked_.database.size()) : kOthers + name;
    };
    const auto exists = [&](const std::string& name) {
      if (name.starts_with(kOthers)) return true;
      return find_file(kFiles + asked_.database + name.substr(root.size())) != nullptr;
    };
    if (Status status = volume->load(path, exists, on_volume); !status) return status;
    if (asked_.takes == KeptRequest::Takes::drive) {
      for (const std::string& name : volume->names()) {
        if (Status status = volume->remove(name); !status) return status;
      }
      others_bytes_ = 0;
    }
  }
  if (!takes_database) return {};
  const std::string prefix = kFiles + asked_.database + "/";
  for (const Json& entry : old_["files"]) {
    const std::string relative = entry["path"].get<std::string>();
    if (!relative.starts_with(prefix)) continue;
    const std::string target = request_.directory + "/" + relative.substr(prefix.size());
    if (Status status = source().copy_out(entry, target); !status) return status;
  }
  return {};
}

Status KeptState::check_state() const {
  const Json* const file = old_.is_null() ? nullptr : find_file(kStateFile);
  return file == nullptr ? Status::ok() : source().check(*file);
}

Result<Json> KeptState::keep(device::EmulatedDevice* device, fs::Volume* volume, const load::RunReport& report) {
  if (!to_ || !report.complete) return Json(nullptr);
  if (Status status = to_->begin(); !status) return status;
  if (volume != nullptr) {
    volume->detach();  // like unmounting: writes back what is dirty
    if (Status status = add_drive(*device, *volume); !status) return status;
  }
  if (Status status = add_databases(); !status) return status;
  const Json kept = document(device, volume, report);
  if (Status status = to_->commit(kept); !status) return status;
  return Json{{"path", asked_.to},
              {"database", asked_.database},
              {"bytes", kept["bytes"]},
              {"runs", kept["runs"]},
              {"drive", kept["drive_state"]}};
}

Status KeptState::add_drive(device::EmulatedDevice& device, fs::Volume& volume) {
  auto table = to_->new_file(kTableFile);
  if (!table) return table.status();
  const std::string root = fs::path_key(request_.directory) + "/";
  bool inside = true;
  const auto in_table = [&](const std::string& name) {
    if (name.starts_with(kOthers)) return name.substr(std::string(kOthers).size());
    inside = inside && name.starts_with(root);
    return asked_.database + "/" + name.substr(std::min(root.size(), name.size()));
  };
  if (Status status = volume.save(*table, in_table); !status) return status;
  if (!inside)
    return Status::error(Fault::not_supported, "kept.to: the engine has files outside of " + request_.directory +
                                                   ", which cannot be kept; leave out the options that put them there");
  if (Status status = to_->add_written(kTableFile); !status) return status;
  if (device.drive().flash() == nullptr) return {};  // a disk has no state that depends on what was written
  auto state = to_->new_file(kStateFile);
  if (!state) return state.status();
  if (Status status = device::save_state(device.drive(), *state); !status) return status;
  return to_->add_written(kStateFile);
}

Status KeptState::add_databases() {
  if (Status status = to_->add_tree(request_.directory, kFiles + asked_.database); !status) return status;
  if (old_.is_null() || asked_.takes == KeptRequest::Takes::drive) return {};
  for (const Json& entry : old_["files"]) {
    const std::string relative = entry["path"].get<std::string>();
    if (!relative.starts_with(kFiles) || is_own(relative.substr(std::string(kFiles).size()))) continue;
    if (Status status = to_->add_kept(source(), entry); !status) return status;
  }
  return {};
}

Json KeptState::document(device::EmulatedDevice* device, fs::Volume* volume, const load::RunReport& report) const {
  const bool has_earlier_runs = !old_.is_null();
  const bool same_database = has_earlier_runs && asked_.takes == KeptRequest::Takes::database;
  Json drive_state = nullptr;
  if (volume != nullptr) {
    const Json before = has_earlier_runs ? old_["drive_state"] : Json(nullptr);
    const ssd::Counters counters = device->counters();
    const device::Device::Wear wear = device->wear();
    const device::DriveModel& model = device->drive();
    drive_state = {{"host_bytes_written", whole(before, "host_bytes_written") + counters.host_bytes_written},
                   {"nand_bytes_programmed", whole(before, "nand_bytes_programmed") + programmed_bytes(counters)},
                   {"mapped_share", static_cast<double>(model.mapped_units() * model.mapping_unit_bytes()) /
                                        static_cast<double>(model.capacity_bytes())},
                   {"held_bytes", volume->space().held_bytes},
                   {"mean_pe_cycles", wear.mean_pe_cycles},
                   {"max_pe_cycles", wear.max_pe_cycles}};
  }
  Json databases = has_earlier_runs && asked_.takes != KeptRequest::Takes::drive ? old_["databases"] : Json::object();
  const Json past = same_database ? old_["databases"][asked_.database] : Json::object();
  Json done = past.contains("past") ? past["past"] : Json::array();
  for (const Json& entry : done_on_database(report)) done.push_back(entry);
  databases[asked_.database] = {{"engine", json_["engine"]},
                                {"versions", engine::engine_versions(request_.engine.name)},
                                {"runs", whole(past, "runs") + 1},
                                {"live_user_bytes", report.live_user_bytes},
                                {"past", done}};
  return {{"spillway", version()},
          {"note", asked_.note},
          {"runs", (has_earlier_runs ? whole(old_, "runs") : 0) + 1},
          {"bytes", to_->added_bytes()},
          {"drive", identity(request_)},
          {"drive_state", drive_state},
          {"databases", databases}};
}

Json KeptState::done_on_database(const load::RunReport& report) const {
  Json all = Json::array();
  for (std::size_t i = 0; i < report.finished_phases.size(); ++i) {
    const load::FinishedPhase& done = report.finished_phases[i];
    Json phase = json_["phases"][i];
    phase.erase("arrivals");  // not needed to replay the phase, and a trace's file may be deleted
    all.push_back({{"load", json_["load"]},
                   {"seed", done.seed},
                   {"index", done.index},
                   {"phase", std::move(phase)},
                   {"operations", done.operations},
                   {"inserted_before", done.inserted_before},
                   {"inserted", done.inserted}});
  }
  return all;
}

}  // namespace spillway::tool
