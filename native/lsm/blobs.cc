#include "lsm/blobs.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <map>
#include <numeric>
#include <optional>
#include <utility>

namespace spillway::lsm {
namespace {

constexpr double kLeastReferenced = 0.5;   // values: below it a file most likely has none
constexpr double kFileOverhead = 30 + 32;  // header and footer. Source: BlobLogHeader, BlobLogFooter
constexpr double kAlmostNone = 1e-6;       // values: what rounding may leave

double sum_of(std::span<const double> entries) { return std::accumulate(entries.begin(), entries.end(), 0.0); }

// Finds the relocation of a blob file, with a number below `end`, among many.
class RelocationIndex {
 public:
  RelocationIndex(const Files& sorted, std::uint64_t end, const std::vector<Relocation>& relocations) : first_(end) {
    for (const File& file : sorted) {
      if (!file->blobs.empty()) first_ = std::min(first_, file->blobs.number(0));
    }
    for (const Relocation& one : relocations) first_ = std::min(first_, one.blob->number);
    places_.resize(end - first_);
    for (std::size_t i = 0; i < relocations.size(); ++i) {
      if (relocations[i].blob->number < end) (*this)[relocations[i].blob->number] = i + 1;
    }
  }
  // The place of a blob file's relocation and 1; 0: it has none yet.
  std::size_t& operator[](std::uint64_t number) { return places_[number - first_]; }

 private:
  std::uint64_t first_;  // number of a blob file
  std::vector<std::size_t> places_;
};

}  // namespace

bool BlobFiles::is_alive(const BlobFile& blob) const { return referenced_[blob.number - 1] >= kLeastReferenced; }

void BlobFiles::add_references(const Files& sorted) {
  for (const File& file : sorted) {
    const BlobReferences& blobs = file->blobs;
    for (std::size_t i = 0; i < blobs.size(); ++i) referenced_[blobs.number(i) - 1] += sum_of(blobs.entries(i));
  }
}

// Whether a blob file has died of it.
bool BlobFiles::remove_references(const Files& sorted) {
  bool died = false;
  for (const File& file : sorted) {
    const BlobReferences& blobs = file->blobs;
    for (std::size_t i = 0; i < blobs.size(); ++i) {
      double& referenced = referenced_[blobs.number(i) - 1];
      const bool was_alive = referenced >= kLeastReferenced;
      referenced -= sum_of(blobs.entries(i));
      died = died || (was_alive && referenced < kLeastReferenced);
    }
  }
  return died;
}

// The number of the oldest blob file, dead ones left out, that a sorted file refers to.
std::optional<std::uint64_t> BlobFiles::oldest_of(const SortedFile& file) const {
  for (std::size_t i = 0; i < file.blobs.size(); ++i) {
    if (referenced_[file.blobs.number(i) - 1] >= kLeastReferenced) return file.blobs.number(i);
  }
  return std::nullopt;
}

std::vector<Blob> BlobFiles::write(std::span<const File> sorted, std::span<const Entries> values, double most_values) {
  // RocksDB closes a file with the value that makes it as large as it may be.
  const double by_size = std::max(1.0, std::ceil(options_.file_size / record_bytes_));
  const double most = std::max(1.0, std::min(by_size, most_values));
  std::vector<Blob> made;
  for (std::size_t i = 0; i < sorted.size(); ++i) {
    const double all = total(values[i]);
    for (double left = all; left > kAlmostNone;) {
      if (made.empty() || made.back()->values >= most - kAlmostNone) {
        made.push_back(&all_.emplace_back());
        made.back()->number = all_.size();
        referenced_.push_back(0);
      }
      BlobFile& blob = *made.back();
      const double taken = std::min(left, most - blob.values);
      Entries part = values[i];
      for (double& entries : part) entries *= taken / all;
      sorted[i]->blobs.add(blob.number, part);
      blob.values += taken;
      left -= taken;
    }
  }
  for (const Blob& blob : made) blob->bytes = blob->values * record_bytes_ + kFileOverhead;
  return made;
}

// The number of the oldest file that a compaction leaves alone. As
// CompactionIterator::ComputeBlobGarbageCollectionCutoffFileNumber.
std::uint64_t BlobFiles::collected_until() const {
  if (!options_.garbage_collection || live_.empty()) return 0;
  const auto cutoff = static_cast<std::size_t>(options_.age_cutoff * static_cast<double>(live_.size()));
  return cutoff >= live_.size() ? live_.back()->number + 1 : live_[cutoff]->number;
}

std::vector<Entries> BlobFiles::collect(const Files& sorted, std::vector<Relocation>& relocations) {
  const std::uint64_t newer = collected_until();
  RelocationIndex index(sorted, newer, relocations);
  std::vector<Entries> lost;
  for (const File& file : sorted) {
    Entries& of_file = lost.emplace_back(file->entries.size(), 0.0);
    std::size_t old = 0;
    for (; old < file->blobs.size() && file->blobs.number(old) < newer; ++old) {
      const std::span<const double> entries = file->blobs.entries(old);
      for (std::size_t c = 0; c < of_file.size(); ++c) of_file[c] += entries[c];
      std::size_t& place = index[file->blobs.number(old)];
      if (place == 0) {
        relocations.push_back({blob(file->blobs.number(old)), 0, 0});
        place = relocations.size();
      }
      relocations[place - 1].values += sum_of(entries);
    }
    file->blobs.remove_oldest(old);
  }
  double until = 0;
  for (Relocation& one : relocations) {
    until += one.values;
    one.until = until;
  }
  return lost;
}

// A sorted file is linked to the oldest blob file that it refers to, and a batch is a blob file with linked ones and
// those behind it without. As VersionStorageInfo::ComputeFilesMarkedForForcedBlobGC of RocksDB 7.8.
Files BlobFiles::forced(const Tree& tree) const {
  if (!options_.garbage_collection || options_.force_threshold >= 1) return {};
  const auto eligible = static_cast<std::size_t>(options_.age_cutoff * static_cast<double>(live_.size()));
  if (eligible == 0) return {};
  std::map<std::uint64_t, Files> linked;
  for (std::size_t level = 0; level < tree.levels(); ++level) {
    for (const File& file : tree.level(level)) {
      if (const auto oldest = oldest_of(*file)) linked[*oldest].push_back(file);
    }
  }
  double bytes = 0;
  double garbage = 0;
  const auto begins_batch = [&](const Blob& blob) { return linked.count(blob->number) > 0; };
  std::size_t count = 0;
  for (; count < eligible && (count == 0 || !begins_batch(live_[count])); ++count) {
    bytes += live_[count]->bytes;
    garbage += garbage_bytes(*live_[count]);
  }
  const bool all_of_it = count == live_.size() || begins_batch(live_[count]);
  if (!all_of_it || garbage < options_.force_threshold * bytes) return {};
  Files found = linked[live_.front()->number];
  std::erase_if(found, [](const File& file) { return file->in_compaction; });
  return found;
}

void BlobFiles::begin_reading(const std::vector<Relocation>& relocations) {
  for (const Relocation& one : relocations) ++one.blob->readers;
}

void BlobFiles::end_reading(const std::vector<Relocation>& relocations) {
  for (const Relocation& one : relocations) {
    assert(one.blob->readers > 0);
    --one.blob->readers;
  }
}

void BlobFiles::replace(const Files& removed, const Files& added, const std::vector<Blob>& complete) {
  add_references(added);
  bool died = remove_references(removed);
  for (const Blob& blob : complete) {
    const auto older = [](const Blob& a, const Blob& b) { return a->number < b->number; };
    live_.insert(std::upper_bound(live_.begin(), live_.end(), blob, older), blob);
    died = died || !is_alive(*blob);
  }
  if (!died) return;
  const auto dead =
      std::stable_partition(live_.begin(), live_.end(), [this](const Blob& blob) { return is_alive(*blob); });
  dead_.insert(dead_.end(), dead, live_.end());
  live_.erase(dead, live_.end());
}

std::vector<Blob> BlobFiles::take_dead() {
  const auto is_read = [](const Blob& blob) { return blob->readers > 0; };
  const auto free = std::stable_partition(dead_.begin(), dead_.end(), is_read);
  std::vector<Blob> found(free, dead_.end());
  dead_.erase(free, dead_.end());
  return found;
}

}  // namespace spillway::lsm
