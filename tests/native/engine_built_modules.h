// Lets a test find the engines that its build made as modules, unless it is told of others.
#pragma once

#include <cstdlib>

namespace spillway::engine {

#ifdef SPILLWAY_BUILT_ENGINES
inline const bool finds_built_modules = ::setenv("SPILLWAY_ENGINES", SPILLWAY_BUILT_ENGINES, /*replace=*/0) == 0;
#endif

}  // namespace spillway::engine
