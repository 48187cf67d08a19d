// What tests of trees and of the choice of compactions share: files, options, levels.
#pragma once

#include <memory>

#include "lsm/tree.h"

namespace spillway::lsm {

inline constexpr double kEntry = 100;

inline File file(double low, double high, double entries) {
  auto made = std::make_shared<SortedFile>();
  made->low = low;
  made->high = high;
  made->entries = {entries};
  made->bytes = entries * kEntry;
  return made;
}

inline TreeOptions small_options() {
  TreeOptions options;
  options.write_buffer_size = options.target_file_size_base = 100 * kEntry;
  options.max_bytes_for_level_base = 1000 * kEntry;
  options.levels = 4;
  return options;
}

inline void put_in_level(Tree& tree, std::size_t level, const Files& files) { tree.replace({}, files, level); }

}  // namespace spillway::lsm
