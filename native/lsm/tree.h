// The tree's shape: files as key ranges and sizes, in levels.
//
// L0 holds its files newest first, and they overlap. Every other level is one sorted run of files that do not. Pure
// bookkeeping: no time, no drive.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "fs/extents.h"
#include "lsm/key_space.h"
#include "lsm/spec.h"

namespace spillway::lsm {

// A file of values that lie apart from the tree.
struct BlobFile {
  std::uint64_t number = 0;  // from 1 on; a later file has a higher one
  double values = 0;         // that were written into it
  double bytes = 0;
  fs::ExtentList place;       // on the drive
  std::uint32_t readers = 0;  // running compactions that relocate values out of it (kept by BlobFiles)
};

// BlobFiles owns it.
using Blob = BlobFile*;

// Where the values of a sorted file's entries are: for each blob file, the oldest first, how many of the entries, by
// class, have their values in it. They are spread over the file's keys as all others are. A simulation has millions of
// these references, so they lie one behind another.
class BlobReferences {
 public:
  std::size_t size() const { return numbers_.size(); }
  bool empty() const { return numbers_.empty(); }
  std::uint64_t number(std::size_t i) const { return numbers_[i]; }
  std::span<const double> entries(std::size_t i) const { return std::span(entries_).subspan(i * classes_, classes_); }
  // REQUIRES: a later blob file than those before, and as many classes
  void add(std::uint64_t number, std::span<const double> entries) {
    classes_ = entries.size();
    numbers_.push_back(number);
    entries_.insert(entries_.end(), entries.begin(), entries.end());
  }
  // Removes the first ones.
  void remove_oldest(std::size_t count);
  // Of `both`, which is written anew: those of `a`, and a share, by class, of those of `b`.
  friend void add_shares(BlobReferences& both, const BlobReferences& a, const BlobReferences& b,
                         std::span<const double> shares);
  // Those of at least so many entries, without more memory than they need.
  BlobReferences at_least(double least) const;

 private:
  std::size_t classes_ = 1;
  std::vector<std::uint64_t> numbers_;
  std::vector<double> entries_;  // `classes_` of each
};

// A sorted file: entries evenly spread over [low, high).
struct SortedFile {
  double low = 0;
  double high = 1;
  Entries entries;
  double bytes = 0;
  BlobReferences blobs;  // if values are separated
  fs::ExtentList place;  // on the drive
  // Kept by the tree that it is in:
  std::size_t level = 0;
  bool in_compaction = false;
};

using File = std::shared_ptr<SortedFile>;
using Files = std::vector<File>;

double bytes_of(const Files& files);
bool any_in_compaction(const Files& files);

// The key range of some files. REQUIRES: !files.empty()
struct KeyRange {
  double low = 0;
  double high = 0;
};
KeyRange range_of(const Files& files);

class Tree {
 public:
  explicit Tree(const TreeOptions& options);

  const Files& level(std::size_t index) const { return levels_[index]; }
  std::size_t levels() const { return levels_.size(); }
  double bytes(std::size_t index) const { return level_bytes_[index]; }

  // The files of a level (not L0) that overlap [low, high), in order.
  Files overlapping(std::size_t index, KeyRange range) const;
  double overlapping_bytes(std::size_t index, KeyRange range) const;

  // Adds a file to L0 as the newest.
  void add_newest(File file);
  // Removes the inputs and adds the outputs to a level. Outputs to L0 take the place of the newest input.
  // REQUIRES: all inputs are in the tree, and in no compaction; outputs of a level below L0 do not overlap what stays
  // in it, and are in order without a file that stays between them
  void replace(const Files& inputs, const Files& outputs, std::size_t output_level);

  // A compaction takes these files while it runs: no other one may, and scores leave them out.
  // REQUIRES: they are in the tree, and in no compaction
  void begin_compaction(const Files& files);
  // REQUIRES: begin_compaction() with them
  void end_compaction(const Files& files);

  // What RocksDB's triggers of L0 stall writers by (l0_delay_trigger_count): L0's files, and in a universal tree the
  // other sorted runs too.
  std::size_t stall_runs() const;

  // The level into which L0 is compacted. 1 unless level targets are dynamic.
  std::size_t base_level() const { return base_level_; }
  double target_bytes(std::size_t index) const { return targets_[index]; }
  double target_file_bytes(std::size_t index) const;

  // RocksDB's compaction score of a level; from 1 on it is compacted (VersionStorageInfo::ComputeCompactionScore).
  double score(std::size_t index) const;
  // The bytes that must be rewritten until every level is within its target (EstimateCompactionBytesNeeded).
  double pending_compaction_bytes() const;

  // A compaction writes into a level while it runs: no other one may write there into the same range, with or without
  // files of the level in it.
  void begin_writing(std::size_t index, KeyRange range) { written_.emplace_back(index, range); }
  // REQUIRES: begin_writing() with the same arguments
  void end_writing(std::size_t index, KeyRange range);
  bool is_being_written(std::size_t index, KeyRange range) const;

  const TreeOptions& options() const { return options_; }

 private:
  void set_targets();
  void set_dynamic_targets();
  double coming_down(std::size_t index) const;

  TreeOptions options_;
  std::vector<Files> levels_;
  std::vector<double> level_bytes_;  // sums over levels_
  std::vector<double> busy_bytes_;   // of files in compactions, by level
  std::vector<std::size_t> busy_files_;
  std::vector<double> targets_;  // by level; of L0: not used
  std::size_t base_level_ = 1;
  std::vector<std::pair<std::size_t, KeyRange>> written_;  // by running compactions: level and range
};

}  // namespace spillway::lsm
