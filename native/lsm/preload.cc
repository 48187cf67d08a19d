#include "lsm/preload.h"

#include <cassert>
#include <memory>

#include "lsm/merge.h"

namespace spillway::lsm {

std::size_t settled_level(const Tree& tree, double bytes) {
  const std::size_t last = tree.levels() - 1;
  if (tree.options().shape != Shape::leveled || tree.options().level_compaction_dynamic_level_bytes) return last;
  std::size_t level = 1;
  while (level < last && tree.target_bytes(level) <= bytes) ++level;
  return level;
}

Files settled_files(const KeySpace& keys, double entry_bytes, double target_file_bytes, ssd::Random& random) {
  assert(keys.overwrites());
  auto all = std::make_shared<SortedFile>();
  all->entries = keys.all(1);
  MergeSpec spec;
  spec.inputs = {std::move(all)};
  spec.target_file_bytes = target_file_bytes;
  spec.entry_bytes = entry_bytes;
  return merge(keys, spec, random);
}

}  // namespace spillway::lsm
