#include "plugin/kept_drive.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "device/counters_json.h"

namespace spillway::plugin {

using Json = nlohmann::ordered_json;

namespace {

bool exists(const std::string& path) {
  std::error_code ignored;
  return std::filesystem::exists(path, ignored);
}

Status failed(const std::string& what, const std::string& path) {
  return Status::io_error("cannot " + what + " " + path + ": " + std::strerror(errno));
}

// Whole or not there.
Status write_json(const Json& json, const std::string& path) {
  const std::string beside = path + ".new";
  std::ofstream out(beside, std::ios::trunc);
  out << json.dump(2) << '\n';
  out.close();
  if (!out) {
    const Status status = failed("write", beside);
    std::remove(beside.c_str());
    return status;
  }
  return std::rename(beside.c_str(), path.c_str()) == 0 ? Status::ok() : failed("put in place", path);
}

Json shown(const fs::VolumeOptions& options) {
  return {{"discard", options.discard},
          {"placement", options.placement == fs::Placement::first_fit ? "first_fit" : "next_fit"},
          {"page_cache_bytes", options.page_cache_bytes},
          {"readahead_bytes", options.readahead_bytes},
          {"writeback_bytes", options.writeback_bytes},
          {"outstanding_bytes", options.outstanding_bytes},
          {"dirty_bytes", options.dirty_bytes}};
}

// The capacity of the preset's drive without an override; 0 if that gives no valid drive.
std::uint64_t unscaled_capacity(device::DriveSpec spec) {
  std::erase_if(spec.set, [](const auto& entry) {
    return entry.first == "capacity.capacity_bytes" || entry.first == "capacity.blocks_per_plane";
  });
  const auto drive = device::resolve(spec);
  return drive ? ssd::layout(drive.value().config).capacity_bytes : 0;
}

Json ratio(std::uint64_t numerator, std::uint64_t denominator) {
  if (denominator == 0) return nullptr;
  return static_cast<double>(numerator) / static_cast<double>(denominator);
}

}  // namespace

Result<std::unique_ptr<KeptDrive>> KeptDrive::open(const std::string& uri) {
  auto parsed = parse_uri(uri);
  if (!parsed) return parsed.status();
  auto resolved = device::resolve(parsed->drive);
  if (!resolved) return resolved.status();
  std::unique_ptr<KeptDrive> drive(new KeptDrive());
  drive->uri_ = *parsed;
  drive->preset_capacity_bytes_ = unscaled_capacity(parsed->drive);
  if (!parsed->state.empty()) {
    if (Status status = drive->lock_state(); !status) return status;
  }
  if (Status status = drive->make_or_load(*resolved); !status) return status;
  return drive;
}

KeptDrive::~KeptDrive() {
  if (lock_ >= 0) ::close(lock_);
}

Status KeptDrive::lock_state() {
  std::error_code problem;
  std::filesystem::create_directories(uri_.state, problem);
  if (problem) {
    return Status::bad_input(std::string(kScheme) + "://: state: cannot make " + uri_.state + " (" + problem.message() +
                             "); name a directory that can be written");
  }
  lock_ = ::open(in_state("lock").c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0644);
  if (lock_ < 0) {
    return Status::bad_input(std::string(kScheme) + "://: state: cannot write in " + uri_.state + " (" +
                             std::strerror(errno) + "); name a directory that can be written");
  }
  if (::flock(lock_, LOCK_EX | LOCK_NB) != 0) {
    return Status::bad_input(std::string(kScheme) + "://: state: the drive in " + uri_.state +
                             " is in use by another process; wait for it or name another directory");
  }
  return Status::ok();
}

Status KeptDrive::make_or_load(const device::Drive& drive) {
  device::DriveModel model(drive, uri_.seed);
  loaded_ = !uri_.state.empty() && exists(in_state("drive.state"));
  if (loaded_) {
    if (Status status = device::load_state(model, in_state("drive.state")); !status) return status;
    if (Status status = load_standing(); !status) return status;
  } else {
    if (Status status = device::prepare(model, uri_.initial, uri_.seed); !status) return status;
    standing_ = {{"initial", uri_.initial_name},
                 {"fill", uri_.initial.fill},
                 {"warmup_capacities", uri_.initial.warmup_capacities},
                 {"seed", uri_.seed}};
  }
  device_ =
      uri_.paced ? device::make_paced(std::move(model), uri_.time_scale) : device::make_simulated(std::move(model));
  counters_at_open_ = device::to_json(device_->counters());
  volume_ = std::make_unique<fs::Volume>(*device_, uri_.volume);
  if (!loaded_ || !exists(in_state("volume.json"))) return Status::ok();
  return volume_->load(in_state("volume.json"), exists);
}

Status KeptDrive::load_standing() {
  const std::string path = in_state("standing.json");
  std::ifstream in(path);
  standing_ = Json::parse(in, nullptr, /*allow_exceptions=*/false);
  if (!standing_.is_object()) {
    return Status::bad_input(path + " is missing or damaged: remove " + uri_.state + " to begin with a new drive");
  }
  return Status::ok();
}

Status KeptDrive::close() {
  volume_->detach();
  Status saved = uri_.state.empty() ? Status::ok() : save();
  Status reported = write_report();
  return saved ? reported : saved;
}

// The drive is saved last: a table that is newer than its drive is corrected when files are opened, but a drive without
// its table would hold data that is never freed.
Status KeptDrive::save() const {
  if (Status status = write_json(standing_, in_state("standing.json")); !status) return status;
  if (Status status = volume_->save(in_state("volume.json")); !status) return status;
  return device::save_state(device_->drive(), in_state("drive.state"));
}

Status KeptDrive::write_report() const { return write_json(report(), uri_.report); }

Json KeptDrive::report() const {
  const ssd::Counters lifetime = device_->counters();
  const device::DeviceInfo& info = device_->info();
  const device::Device::Wear wear = device_->wear();
  const fs::Space space = volume_->space();
  const Histogram error = device_->pacing().error;
  const Json lifetime_json = device::to_json(lifetime);
  const Json counters = device::difference(lifetime_json, counters_at_open_);
  std::uint64_t programmed = 0;
  for (const auto& bytes : counters.at("nand_bytes_programmed")) programmed += bytes.get<std::uint64_t>();
  Json standing = standing_;
  standing["state"] = loaded_ ? "loaded" : "made";
  standing["capacity_scaled"] = preset_capacity_bytes_ != 0 && preset_capacity_bytes_ != info.capacity_bytes;
  standing["preset_capacity_bytes"] = preset_capacity_bytes_ != 0 ? Json(preset_capacity_bytes_) : Json(nullptr);
  standing["pacing"] = uri_.paced ? "real" : "off";
  standing["time_scale"] = uri_.paced ? Json(uri_.time_scale) : Json(nullptr);
  return {{"format", "spillway-counters-1"},
          {"drive", info.name},
          {"capacity_bytes", info.capacity_bytes},
          {"standing", standing},
          {"drive_seconds", static_cast<double>(device_->now()) / 1e9},
          {"wa_device", ratio(programmed, counters.at("host_bytes_written").get<std::uint64_t>())},
          {"counters", counters},
          {"counters_since_made", lifetime_json},
          {"wear",
           {{"mean_pe_cycles", wear.mean_pe_cycles},
            {"max_pe_cycles", wear.max_pe_cycles},
            {"rated_pe_cycles", wear.rated_pe_cycles}}},
          {"space",
           {{"held_bytes", space.held_bytes},
            {"free_bytes", space.free_bytes},
            {"adopted_bytes", space.adopted_bytes},
            {"discard", uri_.volume.discard}}},
          {"fs", shown(uri_.volume)},
          {"pacing_error_us",
           {{"count", error.count()},
            {"p50", error.quantile_ns(0.5) / 1e3},
            {"p99", error.quantile_ns(0.99) / 1e3},
            {"max", static_cast<double>(error.max_ns()) / 1e3}}}};
}

}  // namespace spillway::plugin
