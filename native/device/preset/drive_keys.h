// The keys of a preset: every field of an SsdConfig under its dotted name, in the order in which a reader expects them.
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "device/preset/preset.h"
#include "ssd/interface/config.h"

namespace spillway::device {

// A 64-bit field that is a number of bytes: spelled as an integer or as a string with a unit ("8GiB").
struct SizeSlot {
  std::uint64_t* bytes;
};

// gc.policy also carries gc.choices: "greedy", "fifo", "d-choices:10", "cost-benefit".
struct PolicySlot {
  ssd::GarbageCollection* gc;
};

// mapping.scheme: "page", "block", "hybrid".
struct SchemeSlot {
  ssd::MappingScheme* scheme;
};

// Where a key's value lives, and with it which spellings it takes. std::uint32_t fields ending in _bytes are sizes too.
using Slot = std::variant<std::uint32_t*, std::int64_t*, double*, bool*, std::vector<std::int64_t>*, SizeSlot,
                          PolicySlot, SchemeSlot>;

struct DriveKey {
  std::string key;  // "timing.read_ns"
  Slot slot;        // points into the config given to drive_keys()
};

std::vector<DriveKey> drive_keys(ssd::SsdConfig& config);

// The keys of everything that surrounds or replaces the flash: "cap.iops", "disk.command_ns",
// "host_stack.file-system.read_turn_ns" for each stack there is.
std::vector<DriveKey> layer_keys(Drive& drive);

// Those keys of both that mean something for this drive: what is shown of it, and what its preset owes a source for.
std::vector<DriveKey> keys_in_use(Drive& drive);

// "greedy", "d-choices:10", "page": the spellings that a preset takes.
std::string spelling(ssd::MappingScheme scheme);
std::string spelling(const ssd::GarbageCollection& gc);

}  // namespace spillway::device
