// Which compaction comes next: pure functions of the tree.
//
// As RocksDB 7.8's LevelCompactionPicker and UniversalCompactionPicker, without TTLs, manual compactions and deletes.
#pragma once

#include <optional>

#include "lsm/tree.h"

namespace spillway::lsm {

struct Compaction {
  Files inputs;  // of the start level
  Files lower;   // of the output level, that they overlap
  std::size_t start_level = 0;
  std::size_t output_level = 0;
  bool trivial_move = false;  // the files change their level, and nothing is read or written
  bool whole_runs = false;    // of a universal tree: the output is one sorted run

  Files all() const;
};

// Files below the output level that the compaction's inputs overlap: of the first level that has some. As
// CompactionPicker::GetGrandparents.
Files grandparents_of(const Tree& tree, const Compaction& compaction);

// Nothing, if no level needs one or all that do are blocked by running compactions.
// `forced`: sorted files that are compacted for the sake of their blob files (BlobFiles::forced), if no level needs
// one.
std::optional<Compaction> pick_compaction(const Tree& tree, const Files& forced = {});

}  // namespace spillway::lsm
