#include "lsm/blobs.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <map>
#include <optional>
#include <utility>

namespace spillway::lsm {
namespace {

constexpr double kLeastReferenced = 0.5;   // values: below it a file most likely has none
constexpr double kFileOverhead = 30 + 32;  // header and footer. Source: BlobLogHeader, BlobLogFooter
constexpr double kAlmostNone = 1e-6;       // values: what rounding may leave

void add_references(const Files& sorted) {
  for (const File& file : sorted) {
    for (const BlobReference& reference : file->blobs) reference.blob->referenced += total(reference.entries);
  }
}

// Whether a blob file has died of it.
bool remove_references(const Files& sorted) {
  bool died = false;
  for (const File& file : sorted) {
    for (const BlobReference& reference : file->blobs) {
      double& referenced = reference.blob->referenced;
      const bool was_alive = referenced >= kLeastReferenced;
      referenced -= total(reference.entries);
      died = died || (was_alive && referenced < kLeastReferenced);
    }
  }
  return died;
}

// Finds the relocation of a blob file, with a number below `end`, among many.
class RelocationIndex {
 public:
  RelocationIndex(const Files& sorted, std::uint64_t end, const std::vector<Relocation>& relocations) : first_(end) {
    for (const File& file : sorted) {
      for (const BlobReference& one : file->blobs) first_ = std::min(first_, one.blob->number);
    }
    for (const Relocation& one : relocations) first_ = std::min(first_, one.blob->number);
    places_.resize(end - first_);
    for (std::size_t i = 0; i < relocations.size(); ++i) {
      if (relocations[i].blob->number < end) (*this)[*relocations[i].blob] = i + 1;
    }
  }
  // The place of a blob file's relocation and 1; 0: it has none yet.
  std::size_t& operator[](const BlobFile& blob) { return places_[blob.number - first_]; }

 private:
  std::uint64_t first_;  // number of a blob file
  std::vector<std::size_t> places_;
};

// The number of the oldest blob file, dead ones left out, that a sorted file refers to.
std::optional<std::uint64_t> oldest_of(const SortedFile& file) {
  std::optional<std::uint64_t> oldest;
  for (const BlobReference& one : file.blobs) {
    if (one.blob->referenced < kLeastReferenced) continue;
    oldest = std::min(oldest.value_or(one.blob->number), one.blob->number);
  }
  return oldest;
}

}  // namespace

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
      }
      BlobFile& blob = *made.back();
      const double taken = std::min(left, most - blob.values);
      BlobReference reference{made.back(), values[i]};
      for (double& entries : reference.entries) entries *= taken / all;
      sorted[i]->blobs.push_back(std::move(reference));
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

std::vector<Entries> BlobFiles::collect(const Files& sorted, std::vector<Relocation>& relocations) const {
  const std::uint64_t newer = collected_until();
  RelocationIndex index(sorted, newer, relocations);
  std::vector<Entries> lost;
  for (const File& file : sorted) {
    Entries& of_file = lost.emplace_back(file->entries.size(), 0.0);
    std::erase_if(file->blobs, [&](const BlobReference& reference) {
      if (reference.blob->number >= newer) return false;
      for (std::size_t c = 0; c < of_file.size(); ++c) of_file[c] += reference.entries[c];
      std::size_t& place = index[*reference.blob];
      if (place == 0) {
        relocations.push_back({reference.blob, 0, 0});
        place = relocations.size();
      }
      relocations[place - 1].values += total(reference.entries);
      return true;
    });
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
    garbage += live_[count]->garbage_bytes();
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
  const auto is_alive = [](const Blob& blob) { return blob->referenced >= kLeastReferenced; };
  for (const Blob& blob : complete) {
    const auto older = [](const Blob& a, const Blob& b) { return a->number < b->number; };
    live_.insert(std::upper_bound(live_.begin(), live_.end(), blob, older), blob);
    died = died || !is_alive(blob);
  }
  if (!died) return;
  const auto dead = std::stable_partition(live_.begin(), live_.end(), is_alive);
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
