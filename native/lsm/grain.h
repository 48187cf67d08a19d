// A coarser grain: the same experiment with fewer, larger units, so that a terabyte takes seconds.
//
// At grain g all sizes and counts of the tree and of the drive are divided by g, and the simulated times multiplied by
// it. Rates (bytes per second, puts per second) and ratios stay. An erase block gets 1/g of its flash pages, so that
// its size keeps its relation to that of a sorted file; the planes of a die become one, whose flash page is programmed
// in one operation as theirs are in a multi-plane one, and is the mapping unit. What changes: an erase block has fewer
// pages (the closed forms of garbage collection depend on their number), and requests at the drive are g times larger
// beside a file. Queries are not scaled: they read a drive of the original geometry (for_queries).
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "device/preset/preset.h"
#include "lsm/figures.h"
#include "lsm/spec.h"

namespace spillway::lsm {

inline constexpr std::uint32_t kMostGrain = 4096;

// The coarsest grain that leaves files and erase blocks enough units, up to what this load needs to take seconds.
std::uint32_t choose_grain(const Spec& spec, const device::Drive& drive);

// True if the tree's smallest file, of separated values one of addresses, would be smaller than some flash pages:
// rounding would then decide what is written.
bool too_coarse(const Spec& coarse, const device::Drive& coarse_drive);

// True if the spill store would be smaller than two requests, so that it would never take a write.
bool spill_too_coarse(const Spec& coarse, const device::Drive& coarse_drive);

// REQUIRES: 1 <= grain <= kMostGrain, a power of two
Spec coarser(const Spec& spec, std::uint32_t grain);
device::Drive coarser(const device::Drive& drive, std::uint32_t grain);
// The drive that queries read: the original one, with as few erase blocks as do.
device::Drive for_queries(const device::Drive& drive);
// Figures of the coarse simulation, as those of the original.
Figures finer(Figures figures, std::uint32_t grain);

}  // namespace spillway::lsm
