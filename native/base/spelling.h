// Spelling in presets, flags, URIs and requests: sizes with a unit, and known words that a user may mistype.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"

namespace spillway {

// "4096", "8GiB", "1.5 TB" → bytes. MB = 10^6, MiB = 2^20.
Result<std::uint64_t> parse_size(const std::string& text);

// "capacity=8GiB;seed=2" → its keys and values in order. Empty entries are left out. bad_input: one without a "=".
Result<std::vector<std::pair<std::string, std::string>>> parse_entries(const std::string& text);

// The candidate with the smallest edit distance to `text`; "" if none is near.
std::string nearest(const std::string& text, const std::vector<std::string>& candidates);

}  // namespace spillway
