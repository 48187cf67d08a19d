// Separated values: which blob files there are, which of them compactions collect, and which die.
//
// As RocksDB 7.8's integrated BlobDB. A flush writes the values of its entries into new blob files, and the tree has
// their addresses. Compactions carry addresses over (merge.h). Where values are collected, a compaction relocates those
// that lie in the oldest files (an age cutoff of all there are when it begins) into new ones. A file whose values no
// sorted file refers to is deleted. Bytes of blob files count for no level and no limit of pending bytes.
// A number of references is an expected one: a file is dead below half of a value. What was left of such a value may
// still name the file, so its record (BlobFile) stays for as long as the simulation.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <vector>

#include "lsm/spec.h"
#include "lsm/tree.h"

namespace spillway::lsm {

// Values that a compaction relocates, of one blob file.
struct Relocation {
  Blob blob = nullptr;
  double values = 0;
  double until = 0;  // values of this one and of those before it
};

class BlobFiles {
 public:
  // `record_bytes`: of a value in a blob file, its key included
  BlobFiles(const BlobOptions& options, double record_bytes) : options_(options), record_bytes_(record_bytes) {}

  // Those of the tree, oldest first.
  const std::vector<Blob>& live() const { return live_; }
  // REQUIRES: there is, or was, one with this number
  Blob blob(std::uint64_t number) { return &all_[number - 1]; }
  double garbage_bytes(const BlobFile& blob) const {
    const double left = referenced_[blob.number - 1];
    return blob.values > left ? blob.bytes * (1 - left / blob.values) : 0;
  }

  // New files for values of sorted files, in the order of their keys; the sorted files refer to them. `values` has
  // those of each sorted file. A file ends at its size, or when it has `most_values`.
  std::vector<Blob> write(std::span<const File> sorted, std::span<const Entries> values, double most_values = 1e300);

  // Takes out of sorted files what refers to blob files that a compaction is to collect. Returns how many entries each
  // sorted file has lost, and adds to `relocations` where their values lie.
  std::vector<Entries> collect(const Files& sorted, std::vector<Relocation>& relocations);

  // Sorted files that refer to the oldest blob files, if those are to be collected although no level needs a
  // compaction: they are old enough, and a share of garbage as large as the force threshold is in them. Those that are
  // in a compaction are left out.
  Files forced(const Tree& tree) const;

  // A compaction reads from these until end_reading().
  void begin_reading(const std::vector<Relocation>& relocations);
  void end_reading(const std::vector<Relocation>& relocations);

  // The tree's sorted files change, and these blob files are complete.
  void replace(const Files& removed, const Files& added, const std::vector<Blob>& complete);
  // Files that are dead, and that nothing reads; they are not returned again.
  std::vector<Blob> take_dead();

 private:
  std::uint64_t collected_until() const;
  std::optional<std::uint64_t> oldest_of(const SortedFile& file) const;
  void add_references(const Files& sorted);
  bool remove_references(const Files& sorted);
  bool is_alive(const BlobFile& blob) const;

  const BlobOptions options_;
  const double record_bytes_;
  std::deque<BlobFile> all_;        // that ever were, by number from 1 on
  std::vector<double> referenced_;  // by number: values to which sorted files of the tree refer
  std::vector<Blob> live_;
  std::vector<Blob> dead_;  // that are still read
};

}  // namespace spillway::lsm
