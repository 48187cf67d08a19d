#include "accelerate/databases/configuration.h"

#include "base/settings.h"
#include "base/spelling.h"
#include "spill/settings/spill_settings.h"

namespace spillway::accelerate {

Result<SpillOptions> parse_configuration(const std::string& text) {
  const auto entries = parse_entries(text);
  if (!entries) return Status::bad_input("SPILLWAY: " + entries.status().message());
  StringMap given;
  for (const auto& [key, value] : entries.value()) {
    if (!given.emplace(key, value).second) return Status::bad_input("SPILLWAY: " + key + " is given twice");
  }
  Settings settings(given, "SPILLWAY: ", "the accelerator");
  SpillOptions spill = spill::read_spill_options(settings, {.prefix = "", .size_suffix = "", .shown = "SPILLWAY: "});
  if (Status status = settings.finish(); !status) return status;
  return spill;
}

}  // namespace spillway::accelerate
