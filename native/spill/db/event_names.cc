#include "spillway/options.h"

namespace spillway {

const char* name_of(SpillEvent::Kind kind) {
  switch (kind) {
    case SpillEvent::Kind::divert_begin:
      return "divert_begin";
    case SpillEvent::Kind::divert_end:
      return "divert_end";
    case SpillEvent::Kind::spill_full:
      return "spill_full";
    case SpillEvent::Kind::generation_sealed:
      return "generation_sealed";
    case SpillEvent::Kind::rollback_begin:
      return "rollback_begin";
    case SpillEvent::Kind::rollback_end:
      return "rollback_end";
    case SpillEvent::Kind::rollback_failed:
      return "rollback_failed";
    case SpillEvent::Kind::store_failed:
      return "store_failed";
    case SpillEvent::Kind::root_handed_out:
      return "root_handed_out";
  }
  return "unknown";
}

}  // namespace spillway
