#include "tool/run/command.h"

#include <unistd.h>

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <utility>

#include "device/counters_json.h"
#include "engine/factory/factory.h"
#include "fs/volume.h"
#include "fs/write_counts.h"
#include "load/clock.h"
#include "load/run.h"
#include "load/space.h"
#include "tool/protocol/drive_request.h"
#include "tool/run/control.h"
#include "tool/run/directory_drive.h"
#include "tool/run/kept_state.h"
#include "tool/run/request.h"
#include "tool/run/run_events.h"

namespace spillway::tool {
namespace {

// The layers of a run, in the order in which they are created. They are destroyed in the opposite order.
struct Stack {
  std::unique_ptr<device::EmulatedDevice> device;
  std::unique_ptr<fs::Volume> volume;
  fs::WriteCounts writes;  // for a plain directory
  std::unique_ptr<engine::Engine> engine;
};

// The engine's directory, which is empty or created here. The destructor restores that, unless keep() was called, so a
// refused run leaves nothing behind.
class StoreDirectory {
 public:
  explicit StoreDirectory(std::string path) : path_(std::move(path)) {}
  ~StoreDirectory() {
    std::error_code ignored;
    if (kept_) return;
    if (made_) std::filesystem::remove_all(path_, ignored);
    if (!was_empty_) return;
    for (std::filesystem::directory_iterator entry(path_, ignored); entry != std::filesystem::directory_iterator();
         entry.increment(ignored))
      std::filesystem::remove_all(entry->path(), ignored);
  }
  StoreDirectory(const StoreDirectory&) = delete;
  StoreDirectory& operator=(const StoreDirectory&) = delete;

  Status make() {
    std::error_code failure;
    made_ = std::filesystem::create_directories(path_, failure);
    if (failure) return refused("cannot be made: " + failure.message() + "; choose another");
    const bool empty = std::filesystem::is_empty(path_, failure);
    if (failure) return refused("cannot be read: " + failure.message() + "; choose another");
    // Figures of a store with unknown contents would be meaningless.
    was_empty_ = empty;
    if (!empty) return refused("is not empty; a run begins with an empty store, name a new one");
    if (::access(path_.c_str(), W_OK | X_OK) != 0)
      return refused("cannot be written; give permission or choose another");
    return {};
  }
  void keep() { kept_ = true; }

 private:
  Status refused(const std::string& why) const { return Status::bad_input("directory: " + path_ + " " + why); }

  std::string path_;
  bool made_ = false;
  bool was_empty_ = false;
  bool kept_ = false;
};

// Stops preparing the drive once `stop` is set. The run then ends before its first phase, with an incomplete result.
Status make_stack(const RunRequest& request, KeptState* kept, Stack& stack, Events& events,
                  const std::atomic<bool>& stop) {
  if (kept != nullptr) {
    if (Status status = kept->check_state(); !status) return status;
  }
  fs::VolumeOptions volume = request.fs;
  volume.passive = request.estimate.has_value();
  if (const auto& chosen = request.emulated ? request.emulated : request.estimate) {
    const EmulatedTarget& target = *chosen;
    device::DriveModel model(target.drive, request.seed);
    const device::InitialState initial = (kept ? kept->initial() : std::nullopt).value_or(target.initial);
    if (auto prepared = prepare(model, initial, request.seed, events, stop); !prepared) return prepared.status();
    stack.device = target.pacing == Pacing::real ? device::make_paced(std::move(model), target.time_scale)
                                                 : device::make_simulated(std::move(model));
    stack.volume = std::make_unique<fs::Volume>(*stack.device, volume);
  }
  if (kept != nullptr) {
    if (Status status = kept->restore(stack.volume.get()); !status) return status;
  }
  engine::EngineSpec spec = request.engine;
  spec.volume = stack.volume.get();
  if (request.emulated) spec.device = stack.device.get();
  if (!request.emulated) spec.writes = &stack.writes;
  spec.host_sync = request.estimate.has_value();  // the directory's own drive is measured, the model only observes
  auto engine = engine::open_engine(spec);
  if (!engine) return engine.status();
  stack.engine = std::move(*engine);
  return {};
}

Json pacing_error_us(const Histogram& error) {
  return {{"p50", error.quantile_ns(0.5) / 1e3},
          {"p99", error.quantile_ns(0.99) / 1e3},
          {"max", static_cast<double>(error.max_ns()) / 1e3},
          {"count", error.count()}};
}

Json versions_of(const RunRequest& request) {
  Json versions = engine::engine_versions(request.engine.name);
  versions["spillway"] = version();
  return versions;
}

// Adds figures that drive and engine report only while they are open.
void put_stack(Json& json, const RunRequest& request, Stack& stack, std::uint64_t space_bytes) {
  json["space_bytes"] = space_bytes;
  if (request.emulated) {
    if (request.emulated->pacing == Pacing::real)
      json["pacing_error_us"] = pacing_error_us(stack.device->pacing().error);
    json["counters"] = device::to_json(stack.device->counters());
    json["wear"] = shown(stack.device->wear(), request.emulated->drive.config);
  }
  if (request.estimate) json["estimate"]["wear"] = shown(stack.device->wear(), request.estimate->drive.config);
  json["engine_statistics"] = stack.engine->statistics();
  json["versions"] = versions_of(request);
  if (const std::string name = engine::engine_compression(request.engine); !name.empty()) json["compression"] = name;
}

}  // namespace

Status run_command(const Json& json, Events& events, const std::atomic<bool>& stop, LineReader* lines) {
  auto request = read_run_request(json);
  if (!request) return request.status();
  std::unique_ptr<KeptState> kept;
  if (request->kept) {
    auto opened = KeptState::open(json, *request);
    if (!opened) return opened.status();
    kept = std::move(*opened);
  }
  StoreDirectory directory(request->directory);
  if (Status status = directory.make(); !status) return status;
  if (Status status = check_space(*request); !status) return status;

  const Json start = kept ? kept->start() : Json(nullptr);
  Json more = {{"versions", versions_of(*request)}};
  if (!start.is_null()) more["kept"] = start;
  events.started("run", request->emulated ? shown(request->emulated->drive) : Json(nullptr), more);
  Stack stack;
  if (Status status = make_stack(*request, kept.get(), stack, events, stop); !status) return status;
  directory.keep();

  const auto space_bytes = [&] {
    if (!request->emulated) return load::directory_bytes(request->directory);
    return stack.volume->space().held_bytes - (kept ? kept->others_bytes() : 0);
  };
  load::SteadyClock clock;
  const std::span<const char* const> causes = stack.engine->stall_causes();
  DirectoryDrive directory_drive({request->directory, request->counters, request->load.phases}, stack.writes,
                                 request->estimate ? stack.volume.get() : nullptr);
  std::optional<RunControl> control;
  if (lines != nullptr) control.emplace(*lines, request->load.phases.size());
  RunEvents listener(events, causes,
                     {.directory_drive = request->emulated ? nullptr : &directory_drive,
                      .volume = request->emulated ? stack.volume.get() : nullptr,
                      .phases = request->load.phases},
                     control ? &*control : nullptr);
  const load::MeasuredStore store{*stack.engine, request->emulated ? stack.device.get() : nullptr, space_bytes};
  const auto report = load::run(request->load, store, clock, stop, listener);
  if (!report) return report.status();
  if (control && control->has_failed()) return control->status();
  Json figures = run_figures(report.value(), request->emulated.has_value(), causes);
  if (!request->emulated) directory_drive.put(figures);
  put_stack(figures, *request, stack, space_bytes());
  if (Status status = stack.engine->close(); !status) return status;
  if (kept) {
    stack.engine.reset();  // an engine may hold deleted files open until then
    auto left = kept->keep(stack.device.get(), stack.volume.get(), report.value());
    if (!left) return left.status();
    if (!left->is_null()) figures["kept"] = std::move(*left);
  }
  events.result(std::move(figures), report.value().complete);
  return {};
}

}  // namespace spillway::tool
