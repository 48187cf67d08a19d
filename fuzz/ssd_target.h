// One fuzz case for the drive model: bytes → a small drive, its initial state and a stream of commands.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

namespace spillway::fuzz {

// Runs the case. Nothing, or the first law that was broken, with what is needed to understand it.
std::optional<std::string> run_ssd_case(const std::uint8_t* bytes, std::size_t size);

}  // namespace spillway::fuzz
