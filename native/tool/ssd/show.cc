#include "tool/protocol/drive_request.h"
#include "tool/protocol/fields.h"
#include "tool/ssd/commands.h"

namespace spillway::tool {

Status ssd_show(const Json& request, Events& events, const std::atomic<bool>& /*stop*/) {
  Fields fields(request, "");
  const Json& drive_field = fields.inner("drive");
  if (Status status = fields.finish(); !status) return status;
  const auto drive = read_drive(drive_field);
  if (!drive) return drive.status();
  events.started("ssd-show", shown(drive.value()));
  events.result({{"drive", shown(drive.value())}, {"layout", shown(ssd::layout(drive.value().config))}}, true);
  return {};
}

}  // namespace spillway::tool
