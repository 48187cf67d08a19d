// Makes a test find the engines that its build has made as modules, unless the environment names others.
#pragma once

#include <cstdlib>

namespace spillway::engine {

#ifdef SPILLWAY_BUILT_ENGINES
inline const bool finds_built_modules = ::setenv("SPILLWAY_ENGINES", SPILLWAY_BUILT_ENGINES, /*replace=*/0) == 0;
#endif

}  // namespace spillway::engine
