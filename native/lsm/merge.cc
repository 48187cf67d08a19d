#include "lsm/merge.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <utility>

namespace spillway::lsm {
namespace {

constexpr double kAlmost = 1e-6;  // of a range: what rounding may leave

double normal(ssd::Random& random) {
  const double u = std::max(random.uniform(), 1e-300);
  return std::sqrt(-2 * std::log(u)) * std::cos(2 * std::numbers::pi * random.uniform());
}

// Collects the entries of output files and decides where each ends.
class Outputs {
 public:
  Outputs(const KeySpace& keys, const MergeSpec& spec, ssd::Random& random)
      : spec_(spec), random_(random), classes_(keys.classes()) {
    const bool aligned = spec.align_to_grandparents && !spec.grandparents.empty();
    most_bytes_ = spec.target_file_bytes == 0 ? 1e300 : spec.target_file_bytes * (aligned ? 2 : 1);
  }

  // Adds entries that are evenly spread over [low, high).
  void add(double low, double high, const Entries& entries) {
    double left = total(entries);
    if (left <= 0) return;
    const double width = high - low;
    const double all = left;
    double at = low;
    while (left > 0) {
      if (!open_) start(at);
      const double room = std::max(1.0, limit_entries_ - entries_);
      const double taken = std::min(room, left);
      const double share = taken / all;
      for (std::size_t c = 0; c < classes_; ++c) file_->entries[c] += entries[c] * share;
      entries_ += taken;
      left -= taken;
      at = left <= 0 ? high : std::min(high, at + width * share);
      file_->high = at;
      if (taken == room) end();
    }
  }

  // The sweep passes an end or a beginning of a grandparent. `begun_bytes` of grandparents begin there or before.
  void pass_boundary(double begun_bytes, std::size_t boundaries) {
    if (!open_) return;
    const double size = entries_ * spec_.entry_bytes;
    const double overlap = begun_bytes - ended_before_;  // as in RocksDB, the one that begins is part of it
    if (overlap + size > spec_.most_overlap_bytes) return end();
    passed_ += boundaries;  // RocksDB counts those that it passes now, too
    if (spec_.align_to_grandparents) {
      const double threshold = 0.5 + std::min(0.05 * static_cast<double>(passed_), 0.4);
      if (size >= spec_.target_file_bytes * threshold) return end();
    }
  }

  void set_ended(double bytes) { ended_ = bytes; }

  // The sweep passes a key at which a file ends.
  void cut() {
    if (open_) end();
  }

  Files take() {
    if (open_) end();
    return std::move(files_);
  }

 private:
  void start(double low) {
    file_ = std::make_shared<SortedFile>();
    file_->low = low;
    file_->high = low;
    file_->entries.assign(classes_, 0);
    entries_ = 0;
    passed_ = 0;
    ended_before_ = ended_;
    const double mean = most_bytes_ / spec_.entry_bytes;
    // As many entries more or fewer as random keys scatter.
    limit_entries_ = mean > 1e15 ? mean : std::max(1.0, mean + std::sqrt(mean) * normal(random_));
    open_ = true;
  }

  void end() {
    open_ = false;
    file_->bytes = entries_ * spec_.entry_bytes;
    if (entries_ > 0) files_.push_back(std::move(file_));
  }

  const MergeSpec& spec_;
  ssd::Random& random_;
  const std::size_t classes_;
  double most_bytes_ = 0;

  Files files_;
  File file_;
  bool open_ = false;
  double entries_ = 0;
  double limit_entries_ = 0;
  std::size_t passed_ = 0;   // boundaries of grandparents within the open file
  double ended_ = 0;         // bytes of grandparents that end before the sweep's place
  double ended_before_ = 0;  // the same, where the open file begins
};

struct Edge {
  double at = 0;
  const SortedFile* file = nullptr;
  bool begins = false;
  bool grandparent = false;  // with no file: a cut
};

std::vector<Edge> edges_of(const MergeSpec& spec) {
  std::vector<Edge> edges;
  edges.reserve(2 * (spec.inputs.size() + spec.grandparents.size()));
  for (const File& file : spec.inputs) {
    edges.push_back({file->low, file.get(), true, false});
    edges.push_back({file->high, file.get(), false, false});
  }
  for (const File& file : spec.grandparents) {
    edges.push_back({file->low, file.get(), true, true});
    edges.push_back({file->high, file.get(), false, true});
  }
  for (const double cut : spec.cuts) edges.push_back({cut, nullptr, false, true});
  // Ends before beginnings at the same place; else in the order of the inputs, so that a run repeats.
  std::stable_sort(edges.begin(), edges.end(),
                   [](const Edge& a, const Edge& b) { return a.at != b.at ? a.at < b.at : a.begins < b.begins; });
  return edges;
}

}  // namespace

std::vector<double> cuts_of(const Files& files, double range_bytes, std::size_t most) {
  // How many bytes a key more has, from where on.
  std::vector<std::pair<double, double>> changes;
  double left = bytes_of(files);
  for (const File& file : files) {
    const double density = file->bytes / (file->high - file->low);
    changes.emplace_back(file->low, density);
    changes.emplace_back(file->high, -density);
  }
  std::sort(changes.begin(), changes.end());
  std::vector<double> cuts;
  double density = 0;
  double at = changes.empty() ? 0 : changes.front().first;
  double until_cut = range_bytes;
  for (const auto& [key, change] : changes) {
    while (density > 0 && until_cut < (key - at) * density) {
      if (cuts.size() + 1 >= most || left - until_cut <= kAlmost * range_bytes) return cuts;
      at += until_cut / density;
      cuts.push_back(at);
      left -= until_cut;
      until_cut = range_bytes;
    }
    left -= (key - at) * density;
    until_cut -= (key - at) * density;
    at = key;
    density += change;
  }
  return cuts;
}

Files merge(const KeySpace& keys, const MergeSpec& spec, ssd::Random& random) {
  Outputs outputs(keys, spec, random);
  std::vector<const SortedFile*> active;
  std::vector<double> held;
  Entries entries(keys.classes());
  double begun = 0;  // bytes of grandparents
  double ended = 0;
  const std::vector<Edge> edges = edges_of(spec);
  for (std::size_t i = 0; i < edges.size();) {
    const double at = edges[i].at;
    std::size_t boundaries = 0;
    for (; i < edges.size() && edges[i].at == at; ++i) {
      const Edge& edge = edges[i];
      if (edge.file == nullptr) {
        outputs.cut();
      } else if (edge.grandparent) {
        ++boundaries;
        (edge.begins ? begun : ended) += edge.file->bytes;
      } else if (edge.begins) {
        active.push_back(edge.file);
      } else {
        std::erase(active, edge.file);
      }
    }
    outputs.set_ended(ended);
    if (boundaries > 0) outputs.pass_boundary(begun, boundaries);
    if (i == edges.size() || active.empty()) continue;
    const double span = edges[i].at - at;
    for (std::size_t c = 0; c < entries.size(); ++c) {
      held.clear();
      for (const SortedFile* file : active) held.push_back(file->entries[c] * span / (file->high - file->low));
      entries[c] = keys.merged(c, span, held);
    }
    outputs.add(at, edges[i].at, entries);
  }
  return outputs.take();
}

}  // namespace spillway::lsm
