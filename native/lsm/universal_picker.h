// Compactions of a universal (tiered) tree: whole sorted runs, newest first.
//
// Each L0 file is a run, and so is each other level that is not empty. A compaction takes runs of adjacent ages. Its
// output goes to the deepest level above the next older run; to L0, if there is none.
#pragma once

#include <optional>

#include "lsm/picker.h"

namespace spillway::lsm {

std::optional<Compaction> pick_universal(const Tree& tree);

}  // namespace spillway::lsm
