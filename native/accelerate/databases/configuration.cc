#include "accelerate/databases/configuration.h"

#include "spill/settings/spill_settings.h"

namespace spillway::accelerate {

// Without a path: the databases of one program cannot share one.
Result<SpillOptions> parse_configuration(const std::string& text) {
  return spill::parse_spill_options(text, "SPILLWAY: ", spill::PathKey::refused);
}

}  // namespace spillway::accelerate
