#include "pool/policy.h"

#include "base/spelling.h"

namespace spillway::pool {

Result<std::unique_ptr<Policy>> make_policy(const std::string& name, Frame frames) {
  if (name == "clock-sweep") return make_clock_sweep(frames, kMostUses);
  if (name == "lru") return make_lru(frames);
  const std::string near = nearest(name, {"clock-sweep", "lru"});
  return Status::bad_input("policy \"" + name + "\" is not known; " +
                           (near.empty() ? "it is clock-sweep or lru" : "did you mean " + near + "?"));
}

}  // namespace spillway::pool
