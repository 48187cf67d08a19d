#include "lsm/merge.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <utility>

namespace spillway::lsm {
namespace {

constexpr double kAlmost = 1e-6;      // of a range: what rounding may leave
constexpr double kAlmostNone = 1e-3;  // entries of a sorted file with values in one blob file: as good as none

double normal(ssd::Random& random) {
  const double u = std::max(random.uniform(), 1e-300);
  return std::sqrt(-2 * std::log(u)) * std::cos(2 * std::numbers::pi * random.uniform());
}

// What a part of an output has of one input.
struct Origin {
  std::size_t input = 0;
  Entries entries;
};

// Collects the entries of output files and decides where each ends.
class Outputs {
 public:
  Outputs(const KeySpace& keys, const MergeSpec& spec, ssd::Random& random)
      : spec_(spec), random_(random), classes_(keys.classes()) {
    const bool aligned = spec.align_to_grandparents && !spec.grandparents.empty();
    most_bytes_ = spec.target_file_bytes == 0 ? 1e300 : spec.target_file_bytes * (aligned ? 2 : 1);
  }

  // Adds entries that are evenly spread over [low, high). `origins`: of the inputs whose values are separated.
  void add(double low, double high, const Entries& entries, const std::vector<Origin>& origins) {
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
      for (const Origin& origin : origins) {
        Entries& sum = origin_of(origin.input);
        for (std::size_t c = 0; c < classes_; ++c) sum[c] += origin.entries[c] * share;
      }
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
    origins_.clear();
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
    carry_over();
    if (entries_ > 0) files_.push_back(std::move(file_));
  }

  // What the open file has of an input. It has something of few of them, whose ranges end one after another.
  Entries& origin_of(std::size_t input) {
    const auto same = [input](const Origin& one) { return one.input == input; };
    const auto found = std::find_if(origins_.rbegin(), origins_.rend(), same);
    return found != origins_.rend() ? found->entries : origins_.emplace_back(Origin{input, Entries(classes_)}).entries;
  }

  // The open file gets its part of what the inputs refer to, in the order of the blob files.
  void carry_over() {
    std::sort(origins_.begin(), origins_.end(), [](const Origin& a, const Origin& b) { return a.input < b.input; });
    references_ = {};
    for (Origin& origin : origins_) {
      if (total(origin.entries) <= 0) continue;
      const SortedFile& input = *spec_.inputs[origin.input];
      Entries& shares = origin.entries;
      for (std::size_t c = 0; c < classes_; ++c) shares[c] = input.entries[c] > 0 ? shares[c] / input.entries[c] : 0;
      add_shares(scratch_, references_, input.blobs, shares);
      std::swap(scratch_, references_);
    }
    file_->blobs = references_.at_least(kAlmostNone);
  }

  const MergeSpec& spec_;
  ssd::Random& random_;
  const std::size_t classes_;
  double most_bytes_ = 0;

  std::vector<Origin> origins_;  // what the open file has of inputs
  BlobReferences references_;    // of the file that ends
  BlobReferences scratch_;
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
  std::size_t input = 0;     // its index, of a file that is no grandparent
};

// Entries of a file in a span of its range.
double held_in(const SortedFile& file, std::size_t c, double span) {
  return file.entries[c] * span / (file.high - file.low);
}

// What a merge leaves of the inputs' entries in a span: of a key that several hold the newest one's. The sets of a load
// that writes each key once do not meet.
std::vector<Origin> remaining(const KeySpace& keys, const Files& inputs, std::vector<std::size_t> active, double span) {
  std::sort(active.begin(), active.end());  // newest first
  std::vector<Origin> origins;
  Entries in_none(keys.classes(), 1);  // share of the keys that nothing newer holds
  for (const std::size_t input : active) {
    Origin& one = origins.emplace_back(Origin{input, Entries(keys.classes())});
    for (std::size_t c = 0; c < keys.classes(); ++c) {
      const double held = held_in(*inputs[input], c, span);
      const double there = keys.class_keys(c) * span;
      one.entries[c] = held * in_none[c];
      if (keys.overwrites() && there > 0) in_none[c] *= std::max(0.0, 1 - held / there);
    }
  }
  return origins;
}

std::vector<Edge> edges_of(const MergeSpec& spec) {
  std::vector<Edge> edges;
  edges.reserve(2 * (spec.inputs.size() + spec.grandparents.size()));
  for (std::size_t i = 0; i < spec.inputs.size(); ++i) {
    const SortedFile* const file = spec.inputs[i].get();
    edges.push_back({file->low, file, true, false, i});
    edges.push_back({file->high, file, false, false, i});
  }
  for (const File& file : spec.grandparents) {
    edges.push_back({file->low, file.get(), true, true, 0});
    edges.push_back({file->high, file.get(), false, true, 0});
  }
  for (const double cut : spec.cuts) edges.push_back({cut, nullptr, false, true, 0});
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
  const auto refers = [](const File& file) { return !file->blobs.empty(); };
  const bool carries = std::any_of(spec.inputs.begin(), spec.inputs.end(), refers);
  std::vector<std::size_t> active;  // inputs
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
        active.push_back(edge.input);
      } else {
        std::erase(active, edge.input);
      }
    }
    outputs.set_ended(ended);
    if (boundaries > 0) outputs.pass_boundary(begun, boundaries);
    if (i == edges.size() || active.empty()) continue;
    const double span = edges[i].at - at;
    for (std::size_t c = 0; c < entries.size(); ++c) {
      held.clear();
      for (const std::size_t input : active) held.push_back(held_in(*spec.inputs[input], c, span));
      entries[c] = keys.merged(c, span, held);
    }
    const std::vector<Origin> origins = carries ? remaining(keys, spec.inputs, active, span) : std::vector<Origin>();
    outputs.add(at, edges[i].at, entries, origins);
  }
  return outputs.take();
}

}  // namespace spillway::lsm
