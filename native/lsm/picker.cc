#include "lsm/picker.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <queue>
#include <utility>
#include <vector>

#include "lsm/universal_picker.h"

namespace spillway::lsm {

Files Compaction::all() const {
  Files files = inputs;
  files.insert(files.end(), lower.begin(), lower.end());
  return files;
}

namespace {

constexpr std::size_t kLeastForIntraL0 = 4;    // RocksDB's kMinFilesForIntraL0Compaction
constexpr std::size_t kMostMovedTogether = 4;  // RocksDB's kMaxMultiTrivialMove

// The oldest L0 file, and all that overlap it directly or through others.
Files l0_inputs(const Files& l0) {
  Files inputs = {l0.back()};
  KeyRange range = range_of(inputs);
  for (bool grew = true; grew;) {
    grew = false;
    for (const File& file : l0) {
      if (file->low >= range.high || file->high <= range.low) continue;
      if (std::find(inputs.begin(), inputs.end(), file) != inputs.end()) continue;
      inputs.push_back(file);
      range = range_of(inputs);
      grew = true;
    }
  }
  return inputs;
}

bool overlap_each_other(const Files& files) {
  Files ordered = files;
  std::sort(ordered.begin(), ordered.end(), [](const File& a, const File& b) { return a->low < b->low; });
  return std::adjacent_find(ordered.begin(), ordered.end(),
                            [](const File& a, const File& b) { return a->high > b->low; }) != ordered.end();
}

// Files of L0 that move into the base level together, in the order of their keys: from the oldest on, as long as each
// lies on one side of those before it, and nothing of the base level lies among them. None into an empty level. As
// TryPickL0TrivialMove.
Files l0_moves(const Tree& tree) {
  Files moves;
  const std::size_t base = tree.base_level();
  if (!tree.options().trivial_moves || tree.level(base).empty()) return moves;
  const Files& l0 = tree.level(0);
  KeyRange range{l0.back()->low, l0.back()->low};
  for (std::size_t i = l0.size(); i-- > 0;) {
    const auto& file = l0[i];
    const bool below = file->high <= range.low;
    const bool above = file->low >= range.high;
    if (!below && !above) break;
    if (below) range.low = file->low;
    if (above) range.high = file->high;
    if (tree.overlapping_bytes(base, range) > 0) break;
    moves.push_back(file);
  }
  std::sort(moves.begin(), moves.end(), [](const File& a, const File& b) { return a->low < b->low; });
  return moves;
}

// More files of the start level, if they add none of the output level. Without a limit of bytes, as RocksDB's
// ignore_max_compaction_bytes_for_input has it by default.
void expand(const Tree& tree, Compaction& compaction) {
  if (compaction.lower.empty() || compaction.start_level == 0) return;
  const auto fits = [&](const Files& wider) {
    return wider.size() > compaction.inputs.size() && !any_in_compaction(wider) &&
           tree.overlapping(compaction.output_level, range_of(wider)).size() == compaction.lower.size();
  };
  const KeyRange lower = range_of(compaction.lower);
  const KeyRange upper = range_of(compaction.inputs);
  Files wider =
      tree.overlapping(compaction.start_level, {std::min(lower.low, upper.low), std::max(lower.high, upper.high)});
  if (fits(wider)) {
    compaction.inputs = std::move(wider);
    return;
  }
  std::erase_if(wider, [&](const File& file) {
    const bool chosen = std::find(compaction.inputs.begin(), compaction.inputs.end(), file) != compaction.inputs.end();
    return !chosen && (file->low < lower.low || file->high > lower.high);
  });
  if (fits(wider)) compaction.inputs = std::move(wider);
}

// The files that follow, as long as all of them move trivially and are few.
void extend_move(const Tree& tree, Compaction& compaction) {
  if (!compaction.lower.empty() || compaction.start_level == 0) return;
  const Files& level = tree.level(compaction.start_level);
  auto next = std::find(level.begin(), level.end(), compaction.inputs.front()) + 1;
  double bytes = bytes_of(compaction.inputs);
  for (; next != level.end() && compaction.inputs.size() < kMostMovedTogether; ++next) {
    bytes += (*next)->bytes;
    if ((*next)->in_compaction || bytes > tree.options().max_compaction_bytes()) return;
    if (!tree.overlapping(compaction.output_level, {compaction.inputs.front()->low, (*next)->high}).empty()) return;
    compaction.inputs.push_back(*next);
  }
}

bool moves_trivially(const Tree& tree, const Compaction& compaction) {
  if (!tree.options().trivial_moves || !compaction.lower.empty()) return false;
  if (compaction.output_level + 1 >= tree.levels()) return true;
  return std::all_of(compaction.inputs.begin(), compaction.inputs.end(), [&](const File& file) {
    const double below = tree.overlapping_bytes(compaction.output_level + 1, {file->low, file->high});
    return below + file->bytes <= tree.options().max_compaction_bytes();
  });
}

// Completes a compaction of `inputs`. Nothing if a file that it needs is in another one.
std::optional<Compaction> complete(const Tree& tree, Files inputs, std::size_t start, std::size_t output) {
  Compaction compaction;
  compaction.inputs = std::move(inputs);
  compaction.start_level = start;
  compaction.output_level = output;
  if (any_in_compaction(compaction.inputs) || tree.is_being_written(output, range_of(compaction.inputs))) {
    return std::nullopt;
  }
  compaction.lower = tree.overlapping(output, range_of(compaction.inputs));
  if (any_in_compaction(compaction.lower)) return std::nullopt;
  extend_move(tree, compaction);
  expand(tree, compaction);
  if (tree.is_being_written(output, range_of(compaction.all()))) return std::nullopt;
  compaction.trivial_move = moves_trivially(tree, compaction);
  return compaction;
}

std::optional<Compaction> pick_from_l0(const Tree& tree) {
  const Files& l0 = tree.level(0);
  if (any_in_compaction(l0)) return std::nullopt;  // one compaction with files of L0 at a time
  if (Files moves = l0_moves(tree); !moves.empty()) return complete(tree, std::move(moves), 0, tree.base_level());
  auto compaction = complete(tree, l0_inputs(l0), 0, tree.base_level());
  // RocksDB then asks of all of L0, not of what it has chosen, whether files overlap.
  if (compaction && overlap_each_other(l0)) compaction->trivial_move = false;
  return compaction;
}

// Merges the newest files of L0 into one, while L0 cannot be compacted into the base level.
std::optional<Compaction> pick_intra_l0(const Tree& tree) {
  const Files& l0 = tree.level(0);
  if (l0.size() < tree.options().level0_file_num_compaction_trigger + 2 || l0.front()->in_compaction)
    return std::nullopt;
  double bytes = l0.front()->bytes;
  double bytes_per_removed = std::numeric_limits<double>::max();
  std::size_t limit = 1;
  for (; limit < l0.size(); ++limit) {
    bytes += l0[limit]->bytes;
    const double now_per_removed = bytes / static_cast<double>(limit);
    if (l0[limit]->in_compaction || now_per_removed > bytes_per_removed ||
        bytes > tree.options().max_compaction_bytes()) {
      break;
    }
    bytes_per_removed = now_per_removed;
  }
  if (limit < kLeastForIntraL0) return std::nullopt;
  Compaction compaction;
  compaction.inputs.assign(l0.begin(), l0.begin() + static_cast<std::ptrdiff_t>(limit));
  return compaction;
}

// A file of a level, by its index, and when it is tried: the lowest first.
struct Candidate {
  double priority = 0;
  std::size_t index = 0;
  bool operator>(const Candidate& other) const {
    return priority != other.priority ? priority > other.priority : index > other.index;
  }
};

// The level's files that are in no compaction.
std::vector<Candidate> candidates(const Tree& tree, std::size_t level) {
  std::vector<Candidate> found;
  const Files& files = tree.level(level);
  found.reserve(files.size());
  const bool by_size = tree.options().compaction_pri == CompactionPri::by_compensated_size;
  // Files and those below are in the order of their keys: one pass over both.
  const Files& below = tree.level(level + 1);
  std::size_t first = 0;
  for (std::size_t i = 0; i < files.size(); ++i) {
    const SortedFile& file = *files[i];
    if (file.in_compaction) continue;
    if (by_size) {
      found.push_back({-file.bytes, i});
      continue;
    }
    while (first < below.size() && below[first]->high <= file.low) ++first;
    double overlap = 0;
    for (std::size_t at = first; at < below.size() && below[at]->low < file.high; ++at) overlap += below[at]->bytes;
    found.push_back({overlap / file.bytes, i});
  }
  return found;
}

std::optional<Compaction> pick_from_level(const Tree& tree, std::size_t level) {
  // The first few of many files mostly do: a heap, not a sort.
  std::priority_queue queue(std::greater<>(), candidates(tree, level));
  for (; !queue.empty(); queue.pop()) {
    if (auto compaction = complete(tree, {tree.level(level)[queue.top().index]}, level, level + 1)) return compaction;
  }
  return std::nullopt;
}

// A file by itself, within its level; of L0 as any compaction of it. As LevelCompactionBuilder::PickFileToCompact.
std::optional<Compaction> pick_forced(const Tree& tree, const Files& forced) {
  for (const File& file : forced) {
    if (file->in_compaction) continue;
    if (file->level == 0) {
      if (auto compaction = pick_from_l0(tree)) return compaction;
      continue;
    }
    if (tree.is_being_written(file->level, {file->low, file->high})) continue;
    Compaction compaction;
    compaction.inputs = {file};
    compaction.start_level = compaction.output_level = file->level;
    return compaction;
  }
  return std::nullopt;
}

std::optional<Compaction> pick_leveled(const Tree& tree) {
  std::vector<std::pair<double, std::size_t>> scores;
  scores.emplace_back(tree.score(0), 0);
  for (std::size_t l = tree.base_level(); l + 1 < tree.levels(); ++l) scores.emplace_back(tree.score(l), l);
  std::stable_sort(scores.begin(), scores.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
  bool l0_blocked = false;
  for (const auto& [score, level] : scores) {
    if (score < 1) break;
    // While L0 waits for the base level, nothing more of that level is compacted: L0 would starve.
    if (l0_blocked && level == tree.base_level()) continue;
    if (level > 0) {
      if (auto compaction = pick_from_level(tree, level)) return compaction;
      continue;
    }
    if (auto compaction = pick_from_l0(tree)) return compaction;
    l0_blocked = true;
    if (auto compaction = pick_intra_l0(tree)) return compaction;
  }
  return std::nullopt;
}

}  // namespace

Files grandparents_of(const Tree& tree, const Compaction& compaction) {
  const KeyRange range = range_of(compaction.all());
  for (std::size_t level = compaction.output_level + 1; level < tree.levels(); ++level) {
    if (Files found = tree.overlapping(level, range); !found.empty()) return found;
  }
  return {};
}

std::optional<Compaction> pick_compaction(const Tree& tree, const Files& forced) {
  if (tree.level(0).empty() && tree.options().shape != Shape::leveled && forced.empty()) return std::nullopt;
  if (tree.options().shape == Shape::universal) return tree.level(0).empty() ? std::nullopt : pick_universal(tree);
  auto compaction = pick_leveled(tree);
  return compaction ? compaction : pick_forced(tree, forced);
}

}  // namespace spillway::lsm
