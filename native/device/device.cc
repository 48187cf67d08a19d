#include "device/device.h"

#include <array>

namespace spillway::device {

const char* name_of(Cause cause) {
  switch (cause) {
    case Cause::user:
      return "user";
    case Cause::wal:
      return "wal";
    case Cause::flush:
      return "flush";
    case Cause::compaction:
      return "compaction";
    case Cause::blob:
      return "blob";
    case Cause::manifest:
      return "manifest";
    case Cause::checkpoint:
      return "checkpoint";
    case Cause::other:
      return "other";
    case Cause::spill:
      return "spill";
  }
  return "?";
}

Result<Done> run(Queue& queue, const Io& io) {
  assert(queue.pending() == 0);
  if (Status status = queue.submit({&io, 1}); !status) return status;
  std::array<Done, 1> done;
  queue.reap(done, 1);
  return done[0];
}

}  // namespace spillway::device
