// Engines that are loaded on request, each from a shared object installed with the program.
//
// libspillway-engine-NAME.so is looked for in the directories of $SPILLWAY_ENGINES (colons between), or, without that,
// in ../lib from the program: where scripts/native.sh and the build tree have it. It has two names of C's:
//   const char* spillway_engine_sources()         sources_stamp() of the sources it was built from
//   const EngineKind* spillway_engine_kind()      the engine; lives as long as the process
// A module holds its own copy of the layers below the engine and works on the program's objects, so that it is taken
// only when both were built from the same sources. What was loaded stays loaded.
#pragma once

#include <string>

#include "base/result.h"
#include "engine/engine_kind.h"

namespace spillway::engine {

// A digest of the sources that a module and its program have to have in common.
const char* sources_stamp();

// The engine of a module; or one sentence: that it is not installed and `brought_by` brings it, that it cannot be
// loaded and why, that it is of other sources.
Result<EngineKind> load_engine(const std::string& name, const std::string& brought_by);

}  // namespace spillway::engine
