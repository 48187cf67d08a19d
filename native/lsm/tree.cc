#include "lsm/tree.h"

#include <algorithm>
#include <cassert>
#include <limits>

namespace spillway::lsm {

void BlobReferences::remove_oldest(std::size_t count) {
  numbers_.erase(numbers_.begin(), numbers_.begin() + static_cast<std::ptrdiff_t>(count));
  entries_.erase(entries_.begin(), entries_.begin() + static_cast<std::ptrdiff_t>(count * classes_));
}

void add_shares(BlobReferences& both, const BlobReferences& a, const BlobReferences& b,
                std::span<const double> shares) {
  const std::size_t classes = both.classes_ = shares.size();
  both.numbers_.resize(a.size() + b.size());
  both.entries_.resize((a.size() + b.size()) * classes);
  std::size_t at_a = 0;
  std::size_t at_b = 0;
  std::size_t made = 0;
  for (; at_a < a.size() || at_b < b.size(); ++made) {
    const bool from_a = at_b == b.size() || (at_a < a.size() && a.numbers_[at_a] <= b.numbers_[at_b]);
    const bool from_b = at_a == a.size() || (at_b < b.size() && b.numbers_[at_b] <= a.numbers_[at_a]);
    both.numbers_[made] = from_a ? a.numbers_[at_a] : b.numbers_[at_b];
    for (std::size_t c = 0; c < classes; ++c) {
      const double of_a = from_a ? a.entries_[at_a * classes + c] : 0;
      const double of_b = from_b ? b.entries_[at_b * classes + c] * shares[c] : 0;
      both.entries_[made * classes + c] = of_a + of_b;
    }
    at_a += from_a ? 1 : 0;
    at_b += from_b ? 1 : 0;
  }
  both.numbers_.resize(made);
  both.entries_.resize(made * classes);
}

BlobReferences BlobReferences::at_least(double least) const {
  const auto is_enough = [&](std::size_t i) {
    double sum = 0;
    for (const double one : entries(i)) sum += one;
    return sum >= least;
  };
  std::size_t count = 0;
  for (std::size_t i = 0; i < size(); ++i) count += is_enough(i) ? 1 : 0;
  BlobReferences kept;
  kept.numbers_.reserve(count);
  kept.entries_.reserve(count * classes_);
  for (std::size_t i = 0; i < size(); ++i) {
    if (is_enough(i)) kept.add(numbers_[i], entries(i));
  }
  return kept;
}

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
    : options_(options),
      levels_(options.levels),
      level_bytes_(options.levels),
      busy_bytes_(options.levels),
      busy_files_(options.levels),
      targets_(options.levels) {
  set_targets();
}

namespace {

constexpr double kScoreScale = 10;  // of VersionStorageInfo::ComputeCompactionScore

// The first file that ends after `low`. REQUIRES: files do not overlap and are in order
Files::const_iterator first_after(const Files& files, double low) {
  return std::partition_point(files.begin(), files.end(), [low](const File& file) { return file->high <= low; });
}

// REQUIRES: the file is one of the level's
Files::iterator place_of(Files& files, std::size_t level, const SortedFile& file) {
  const auto before = [&](const File& one) { return one->low < file.low; };
  const auto begin = level == 0 ? files.begin() : std::partition_point(files.begin(), files.end(), before);
  return std::find_if(begin, files.end(), [&](const File& one) { return one.get() == &file; });
}

// Whether outputs are in order where [first, last) of a level are.
bool fits_between(const Files& files, Files::const_iterator first, Files::const_iterator last, const Files& outputs) {
  if (outputs.empty()) return false;
  return (first == files.begin() || (*(first - 1))->high <= outputs.front()->low) &&
         (last == files.end() || (*last)->low >= outputs.back()->high);
}

// Puts `outputs` in the place of [first, last).
void splice(Files& files, Files::iterator first, Files::iterator last, const Files& outputs) {
  const auto both = std::min<std::ptrdiff_t>(last - first, static_cast<std::ptrdiff_t>(outputs.size()));
  const auto rest = std::copy_n(outputs.begin(), both, first);
  files.insert(files.erase(rest, last), outputs.begin() + both, outputs.end());
}

void insert(Files& files, std::size_t level, const Files& outputs, std::size_t place_in_l0) {
  if (level == 0) {
    const std::size_t place = std::min(place_in_l0, files.size());
    files.insert(files.begin() + static_cast<std::ptrdiff_t>(place), outputs.begin(), outputs.end());
    return;
  }
  const auto at = first_after(files, outputs.front()->low);
  assert(at == files.end() || (*at)->low >= outputs.back()->high);
  files.insert(at, outputs.begin(), outputs.end());
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

void Tree::add_newest(File file) {
  file->level = 0;
  level_bytes_[0] += file->bytes;
  levels_[0].insert(levels_[0].begin(), std::move(file));
}

void Tree::replace(const Files& inputs, const Files& outputs, std::size_t output_level) {
  std::size_t place_in_l0 = std::numeric_limits<std::size_t>::max();
  bool placed = false;
  // Neighbours are removed together, and outputs put where they were: a level may have many files.
  for (std::size_t i = 0; i < inputs.size();) {
    const std::size_t level = inputs[i]->level;
    Files& files = levels_[level];
    const auto first = place_of(files, level, *inputs[i]);
    auto last = first;
    for (; i < inputs.size() && last != files.end() && *last == inputs[i]; ++last) {
      level_bytes_[level] -= inputs[i++]->bytes;
    }
    assert(first != last);
    if (last - first == static_cast<std::ptrdiff_t>(files.size())) level_bytes_[level] = 0;
    if (level == 0) place_in_l0 = std::min(place_in_l0, static_cast<std::size_t>(first - files.begin()));
    if (level > 0 && level == output_level && !placed && fits_between(files, first, last, outputs)) {
      placed = true;
      splice(files, first, last, outputs);
    } else {
      files.erase(first, last);
    }
  }
  level_bytes_[output_level] += bytes_of(outputs);
  for (const File& output : outputs) output->level = output_level;
  if (!placed && !outputs.empty()) insert(levels_[output_level], output_level, outputs, place_in_l0);
  if (options_.level_compaction_dynamic_level_bytes) set_targets();
}

void Tree::begin_compaction(const Files& files) {
  for (const File& file : files) {
    assert(!file->in_compaction);
    file->in_compaction = true;
    busy_bytes_[file->level] += file->bytes;
    ++busy_files_[file->level];
  }
}

void Tree::end_compaction(const Files& files) {
  for (const File& file : files) {
    assert(file->in_compaction);
    file->in_compaction = false;
    busy_bytes_[file->level] -= file->bytes;
    if (--busy_files_[file->level] == 0) busy_bytes_[file->level] = 0;
  }
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
  const double idle_bytes = std::max(0.0, level_bytes_[index] - busy_bytes_[index]);
  const std::size_t idle_files = levels_[index].size() - busy_files_[index];
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
