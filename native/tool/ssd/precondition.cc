#include <limits>
#include <string>

#include "tool/protocol/drive_request.h"
#include "tool/protocol/fields.h"
#include "tool/ssd/commands.h"

namespace spillway::tool {

Status ssd_precondition(const Json& request, Events& events, const std::atomic<bool>& stop) {
  Fields fields(request, "");
  const Json& drive_field = fields.inner("drive");
  const Json& initial_field = fields.inner("initial");
  const std::uint64_t seed = fields.whole("seed", 1, 0, std::numeric_limits<std::uint64_t>::max());
  const std::string path = fields.text("state", "");
  if (path.empty()) fields.refuse("state", "the path of the file to write");
  if (Status status = fields.finish(); !status) return status;
  const auto drive = read_drive(drive_field);
  if (!drive) return drive.status();
  const auto initial = read_initial(initial_field);
  if (!initial) return initial.status();

  events.started("ssd-precondition", shown(drive.value()));
  const double began = cpu_seconds();
  device::DriveModel model(drive.value(), seed);
  const auto prepared = prepare(model, initial.value(), seed, events, stop);
  if (!prepared) return prepared.status();
  // A partly prepared drive is no initial state, so the file is not written.
  if (prepared.value()) {
    if (Status status = device::save_state(model, path); !status) return status;
  }
  events.result({{"state", path},
                 {"setup_cpu_seconds", cpu_seconds() - began},
                 {"mapped_units", model.mapped_units()},
                 {"peak_rss_bytes", peak_rss_bytes()}},
                prepared.value());
  return {};
}

}  // namespace spillway::tool
