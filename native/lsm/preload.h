// A tree that holds every key before a load begins: loaded in the order of the keys and compacted, so that all of it
// lies in one level. (Preload::unsettled is the load itself, put after put: lsm/writer.h.)
#pragma once

#include <cstddef>

#include "lsm/key_space.h"
#include "lsm/tree.h"
#include "ssd/structures/random.h"

namespace spillway::lsm {

// The level in which so many bytes stay when they are compacted: the last one of dynamic targets and of trees without
// targets, else the first one whose target is above them.
std::size_t settled_level(const Tree& tree, double bytes);

// Every key once, in files of a size, without number and place. REQUIRES: keys.overwrites()
Files settled_files(const KeySpace& keys, double entry_bytes, double target_file_bytes, ssd::Random& random);

}  // namespace spillway::lsm
