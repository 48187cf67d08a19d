// The keys of a preset: every field of an SsdConfig under its dotted name, in the order in which they are shown.
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "device/preset/preset.h"
#include "ssd/interface/config.h"

namespace spillway::device {

// A 64-bit number of bytes: spelled as an integer or as a string with a unit ("8GiB").
struct SizeSlot {
  std::uint64_t* bytes;
};

// gc.policy, which includes gc.choices: "greedy", "fifo", "d-choices:10", "cost-benefit".
struct PolicySlot {
  ssd::GarbageCollection* gc;
};

// mapping.scheme: "page", "block", "hybrid".
struct SchemeSlot {
  ssd::MappingScheme* scheme;
};

// The address of a key's value; its type determines the spellings. std::uint32_t fields ending in _bytes are sizes too.
using Slot = std::variant<std::uint32_t*, std::int64_t*, double*, bool*, std::vector<std::int64_t>*, SizeSlot,
                          PolicySlot, SchemeSlot>;

struct DriveKey {
  std::string key;  // "timing.read_ns"
  Slot slot;        // points into the config given to drive_keys()
};

std::vector<DriveKey> drive_keys(ssd::SsdConfig& config);

// The keys of the layers and of a disk: "cap.iops", "disk.command_ns", "host_stack.file-system.read_turn_ns" for each
// host stack.
std::vector<DriveKey> layer_keys(Drive& drive);

// The keys of both that affect this drive. They are shown, and its preset must give a source for each.
std::vector<DriveKey> keys_in_use(Drive& drive);

// "greedy", "d-choices:10", "page": the spellings in a preset.
std::string spelling(ssd::MappingScheme scheme);
std::string spelling(const ssd::GarbageCollection& gc);

}  // namespace spillway::device
