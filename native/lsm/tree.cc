#include "lsm/tree.h"

#include <algorithm>
#include <cassert>
#include <limits>

namespace spillway::lsm {

double bytes_of(const Files& files) {
  double sum = 0;
  for (const File& file : files) sum += file->bytes;
  return sum;
}

bool any_in_compaction(const Files& files) {
  return std::any_of(files.begin(), files.end(), [](const File& file) { return file->in_compaction; });
}

KeyRange range_of(const Files& files) {
  assert(!files.empty());
  KeyRange range{files.front()->low, files.front()->high};
  for (const File& file : files) {
    range.low = std::min(range.low, file->low);
    range.high = std::max(range.high, file->high);
  }
  return range;
}

Tree::Tree(const TreeOptions& options)
    : options_(options), levels_(options.levels), level_bytes_(options.levels), targets_(options.levels) {
  set_targets();
}

namespace {

constexpr double kScoreScale = 10;  // of VersionStorageInfo::ComputeCompactionScore

// The first file that ends after `low`. REQUIRES: files do not overlap and are in order
Files::const_iterator first_after(const Files& files, double low) {
  return std::partition_point(files.begin(), files.end(), [low](const File& file) { return file->high <= low; });
}

}  // namespace

Files Tree::overlapping(std::size_t index, KeyRange range) const {
  const Files& files = levels_[index];
  const auto begin = first_after(files, range.low);
  auto end = begin;
  while (end != files.end() && (*end)->low < range.high) ++end;
  return {begin, end};
}

double Tree::overlapping_bytes(std::size_t index, KeyRange range) const {
  const Files& files = levels_[index];
  double sum = 0;
  for (auto at = first_after(files, range.low); at != files.end() && (*at)->low < range.high; ++at) {
    sum += (*at)->bytes;
  }
  return sum;
}

void Tree::replace(const Files& inputs, const Files& outputs, std::size_t output_level) {
  std::size_t place_in_l0 = std::numeric_limits<std::size_t>::max();
  for (const File& input : inputs) {
    for (std::size_t l = 0; l < levels_.size(); ++l) {
      Files& files = levels_[l];
      const auto at =
          std::find(l == 0 ? files.begin() : files.begin() + (first_after(files, input->low) - files.begin()),
                    files.end(), input);
      if (at == files.end()) continue;
      if (l == 0) place_in_l0 = std::min(place_in_l0, static_cast<std::size_t>(at - files.begin()));
      files.erase(at);
      level_bytes_[l] = files.empty() ? 0 : level_bytes_[l] - input->bytes;
      break;
    }
  }
  Files& into = levels_[output_level];
  level_bytes_[output_level] += bytes_of(outputs);
  if (output_level == 0) {
    const std::size_t place = std::min(place_in_l0, into.size());
    into.insert(into.begin() + static_cast<std::ptrdiff_t>(place), outputs.begin(), outputs.end());
  } else if (!outputs.empty()) {
    const auto at = first_after(into, outputs.front()->low);
    assert(at == into.end() || (*at)->low >= outputs.back()->high);
    into.insert(into.begin() + (at - into.begin()), outputs.begin(), outputs.end());
  }
  if (options_.level_compaction_dynamic_level_bytes) set_targets();
}

void Tree::end_writing(std::size_t index, KeyRange range) {
  const auto at = std::find_if(written_.begin(), written_.end(), [&](const auto& one) {
    return one.first == index && one.second.low == range.low && one.second.high == range.high;
  });
  assert(at != written_.end());
  written_.erase(at);
}

bool Tree::is_being_written(std::size_t index, KeyRange range) const {
  return std::any_of(written_.begin(), written_.end(), [&](const auto& one) {
    return one.first == index && one.second.low < range.high && range.low < one.second.high;
  });
}

void Tree::set_targets() {
  if (options_.shape != Shape::leveled) {
    std::fill(targets_.begin(), targets_.end(), std::numeric_limits<double>::infinity());
    return;
  }
  if (options_.level_compaction_dynamic_level_bytes) return set_dynamic_targets();
  double target = options_.max_bytes_for_level_base;
  for (std::size_t l = 1; l < targets_.size(); ++l, target *= options_.fanout) targets_[l] = target;
}

// As VersionStorageInfo::CalculateBaseBytes: the last level is as large as it is, and each one above it F times
// smaller, up to a base level of at most max_bytes_for_level_base.
void Tree::set_dynamic_targets() {
  double largest = 0;
  std::size_t first_used = 0;
  for (std::size_t l = 1; l < levels_.size(); ++l) {
    const double here = bytes(l);
    if (here > 0 && first_used == 0) first_used = l;
    largest = std::max(largest, here);
  }
  std::fill(targets_.begin(), targets_.end(), std::numeric_limits<double>::max());
  if (largest == 0) {
    base_level_ = levels_.size() - 1;
    return;
  }
  const double base_most = options_.max_bytes_for_level_base;
  const double base_least = base_most / options_.fanout;
  double size = largest;
  for (std::size_t l = levels_.size() - 2; l >= first_used; --l) size /= options_.fanout;
  base_level_ = first_used;
  double base_size = base_least + 1;
  if (size > base_least) {
    while (base_level_ > 1 && size > base_most) {
      --base_level_;
      size /= options_.fanout;
    }
    base_size = std::min(base_most, size);
  }
  for (std::size_t l = base_level_; l < levels_.size(); ++l, base_size *= options_.fanout) {
    targets_[l] = std::max(base_size, base_most);
  }
}

double Tree::target_file_bytes(std::size_t index) const {
  double target = options_.target_file_size_base;
  for (std::size_t l = base_level_; l < index; ++l) target *= options_.target_file_size_multiplier;
  return target;
}

double Tree::score(std::size_t index) const {
  double idle_bytes = 0;
  std::size_t idle_files = 0;
  for (const File& file : levels_[index]) {
    if (file->in_compaction) continue;
    idle_bytes += file->bytes;
    ++idle_files;
  }
  const bool dynamic = options_.level_compaction_dynamic_level_bytes && options_.shape == Shape::leveled;
  if (index > 0) {
    const double target = targets_[index];
    if (!dynamic || idle_bytes < target) return idle_bytes / target;
    return idle_bytes / (target + coming_down(index)) * kScoreScale;
  }
  const double by_files = static_cast<double>(idle_files) / options_.level0_file_num_compaction_trigger;
  if (options_.shape != Shape::leveled) return by_files;
  // Large L0 files (of L0 to L0 compactions) count by their size, too.
  if (!dynamic) return std::max(by_files, idle_bytes / options_.max_bytes_for_level_base);
  double score = by_files;
  if (idle_bytes >= options_.max_bytes_for_level_base) score = std::max(score, 1.01);
  const double base_target = targets_[base_level_];
  if (idle_bytes > base_target) score = std::max(score, idle_bytes / std::max(bytes(base_level_), base_target));
  return score > 1 ? score * kScoreScale : score;
}

// What levels above have too much, and L0 has: with dynamic targets a level to which much will come is compacted later.
double Tree::coming_down(std::size_t index) const {
  double sum = bytes(0);
  for (std::size_t l = 1; l < index; ++l) sum += std::max(0.0, bytes(l) - targets_[l]);
  return sum;
}

std::size_t Tree::stall_runs() const {
  std::size_t runs = levels_[0].size();
  if (options_.shape != Shape::universal) return runs;
  for (std::size_t l = 1; l < levels_.size(); ++l) runs += levels_[l].empty() ? 0 : 1;
  return runs;
}

double Tree::pending_compaction_bytes() const {
  if (options_.shape == Shape::universal) return 0;
  double estimate = 0;
  double to_next = 0;
  if (levels_[0].size() >= options_.level0_file_num_compaction_trigger ||
      (bytes(0) > 0 && bytes(0) >= options_.max_bytes_for_level_base)) {
    to_next = bytes(0);
    estimate = to_next;
  }
  for (std::size_t l = base_level_; l < levels_.size(); ++l) {
    double size = bytes(l);
    if (l == base_level_ && to_next > 0) estimate += size;
    size += to_next;
    to_next = 0;
    if (size <= targets_[l]) continue;
    to_next = size - targets_[l];
    const double next = l + 1 < levels_.size() ? bytes(l + 1) : 0;
    if (next > 0) estimate += to_next * (next / size + 1);
  }
  return estimate;
}

}  // namespace spillway::lsm
