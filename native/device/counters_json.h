// The drive's counters as JSON: every field of ssd::Counters by its own name, arrays as objects by cause.
#pragma once

#include <array>
#include <cstdint>
#include <nlohmann/json.hpp>

#include "ssd/interface/counters.h"

namespace spillway::device {

// Bytes by the host's causes, and bytes by the flash's causes, under the causes' names.
nlohmann::ordered_json by_host_cause(const std::array<std::uint64_t, ssd::kHostCauses>& bytes);
nlohmann::ordered_json by_flash_cause(const std::array<std::uint64_t, ssd::kFlashCauses>& bytes);

nlohmann::ordered_json to_json(const ssd::Counters& counters);
nlohmann::ordered_json to_json(const ssd::KvCounters& counters);

// now - before, number by number: what a drive did in between. REQUIRES: both have the same structure.
nlohmann::ordered_json difference(const nlohmann::ordered_json& now, const nlohmann::ordered_json& before);

}  // namespace spillway::device
