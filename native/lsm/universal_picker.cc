#include "lsm/universal_picker.h"

#include <algorithm>
#include <span>
#include <vector>

namespace spillway::lsm {
namespace {

struct Run {
  std::size_t level = 0;
  std::span<const File> files;  // of the tree: a run may have thousands
  double bytes = 0;
  bool in_compaction = false;
};

std::vector<Run> runs_of(const Tree& tree) {
  std::vector<Run> runs;
  for (const File& file : tree.level(0)) runs.push_back({0, {&file, 1}, file->bytes, file->in_compaction});
  for (std::size_t l = 1; l < tree.levels(); ++l) {
    const Files& files = tree.level(l);
    if (!files.empty()) runs.push_back({l, files, bytes_of(files), any_in_compaction(files)});
  }
  return runs;
}

Compaction merge_runs(const Tree& tree, const std::vector<Run>& runs, std::size_t first, std::size_t count) {
  Compaction compaction;
  for (std::size_t i = first; i < first + count; ++i) {
    compaction.inputs.insert(compaction.inputs.end(), runs[i].files.begin(), runs[i].files.end());
  }
  compaction.start_level = runs[first].level;
  compaction.whole_runs = true;
  const std::size_t older = first + count;
  compaction.output_level = older == runs.size()     ? tree.levels() - 1
                            : runs[older].level == 0 ? 0
                                                     : runs[older].level - 1;
  return compaction;
}

// All runs, if the newer ones together are too large for the oldest one.
std::optional<Compaction> reduce_size_amplification(const Tree& tree, const std::vector<Run>& runs) {
  double newer = 0;
  for (std::size_t i = 0; i + 1 < runs.size(); ++i) newer += runs[i].bytes;
  const bool busy = std::any_of(runs.begin(), runs.end(), [](const Run& run) { return run.in_compaction; });
  const double limit = tree.options().universal.max_size_amplification_percent / 100;
  if (busy || newer < limit * runs.back().bytes) return std::nullopt;
  return merge_runs(tree, runs, 0, runs.size());
}

// Runs of similar sizes, from the newest idle one on: each at most size_ratio percent larger than those before it.
std::optional<Compaction> merge_similar(const Tree& tree, const std::vector<Run>& runs, double ratio_percent,
                                        std::size_t most) {
  const std::size_t least = std::max<std::size_t>(2, tree.options().universal.min_merge_width);
  for (std::size_t first = 0; first < runs.size(); ++first) {
    if (runs[first].in_compaction) continue;
    double sum = runs[first].bytes;
    std::size_t count = 1;
    while (first + count < runs.size() && count < most && !runs[first + count].in_compaction &&
           sum * (100 + ratio_percent) / 100 >= runs[first + count].bytes) {
      sum += runs[first + count++].bytes;
    }
    if (count >= least) return merge_runs(tree, runs, first, count);
  }
  return std::nullopt;
}

}  // namespace

std::optional<Compaction> pick_universal(const Tree& tree) {
  const std::vector<Run> runs = runs_of(tree);
  const std::size_t trigger = tree.options().level0_file_num_compaction_trigger;
  const auto busy = static_cast<std::size_t>(
      std::count_if(runs.begin(), runs.end(), [](const Run& run) { return run.in_compaction; }));
  // RocksDB's score counts the runs that are in no compaction.
  if (runs.size() < 2 || runs.size() - busy < trigger) return std::nullopt;
  if (auto all = reduce_size_amplification(tree, runs)) return all;
  if (auto similar = merge_similar(tree, runs, tree.options().universal.size_ratio, runs.size())) return similar;
  if (runs.size() - busy <= trigger) return std::nullopt;
  return merge_similar(tree, runs, 1e30, runs.size() - busy - trigger + 1);
}

}  // namespace spillway::lsm
