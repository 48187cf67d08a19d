#include "spill/rollback/merged_run.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "spill/live/sorted_size.h"

namespace spillway::spill {
namespace {

using Entries = std::vector<const Entry*>;

std::uint64_t bytes_of(const KeyRange& range) {
  return most_sorted_bytes_of_entry(range.begin.size(), range.end.size());
}
std::uint64_t bytes_of(const Entry& entry) {
  return most_sorted_bytes_of_entry(entry.key_bytes, entry.kind == Kind::put ? entry.value.length : 0);
}
std::uint64_t bytes_of(const std::vector<KeyRange>& ranges) {
  std::uint64_t bytes = 0;
  for (const KeyRange& range : ranges) bytes += bytes_of(range);
  return bytes;
}

// One run of all, in order: pairs of runs are merged until one is left.
Entries merge(std::vector<Entries> runs, const EntryOrder& order) {
  while (runs.size() > 1) {
    std::vector<Entries> merged;
    for (std::size_t i = 0; i + 1 < runs.size(); i += 2) {
      Entries& both = merged.emplace_back();
      both.reserve(runs[i].size() + runs[i + 1].size());
      std::merge(runs[i].begin(), runs[i].end(), runs[i + 1].begin(), runs[i + 1].end(), std::back_inserter(both),
                 order);
      runs[i] = {};
      runs[i + 1] = {};
    }
    if (runs.size() % 2 == 1) merged.push_back(std::move(runs.back()));
    runs = std::move(merged);
  }
  return runs.empty() ? Entries() : std::move(runs.front());
}

// Their union, in order: in a file that is ingested all have the same sequence number.
std::vector<KeyRange> joined(std::vector<KeyRange> ranges, const rocksdb::Comparator& order) {
  std::erase_if(ranges, [&](const KeyRange& range) { return order.Compare(range.begin, range.end) >= 0; });
  std::sort(ranges.begin(), ranges.end(),
            [&](const KeyRange& a, const KeyRange& b) { return order.Compare(a.begin, b.begin) < 0; });
  std::vector<KeyRange> result;
  for (KeyRange& range : ranges) {
    if (result.empty() || order.Compare(result.back().end, range.begin) < 0) {
      result.push_back(std::move(range));
    } else if (order.Compare(result.back().end, range.end) < 0) {
      result.back().end = std::move(range.end);
    }
  }
  return result;
}

Sequence newest_tombstone_over(const Entry& entry, std::span<const std::shared_ptr<Generation>> with_tombstones,
                               Sequence up_to) {
  Sequence newest = 0;
  for (const auto& one : with_tombstones) {
    newest = std::max(newest, one->covering_tombstone(entry.column_family, entry.key(), up_to));
  }
  return newest;
}

}  // namespace

std::vector<RunPart> split(const RunPart& part, std::uint64_t bytes) {
  std::vector<RunPart> parts;
  std::uint64_t of_last = 0;
  std::size_t begin = 0;
  for (std::size_t i = 0; i < part.entries.size(); ++i) {
    of_last += bytes_of(*part.entries[i]);
    if (of_last < bytes && i + 1 < part.entries.size()) continue;
    parts.push_back({part.column_family, part.entries.subspan(begin, i + 1 - begin), {}});
    begin = i + 1;
    of_last = 0;
  }
  return parts;
}

MergedRun::MergedRun(std::span<const std::shared_ptr<Generation>> generations, Sequence up_to,
                     const ColumnFamilies& families, const IsSuperseded& is_superseded)
    : all_families_(&families) {
  std::vector<Entries> runs;
  Generations with_tombstones;
  for (const auto& generation : generations) {
    for (const auto& run : generation->sorted_runs(up_to)) {
      Entries& newest = runs.emplace_back();
      std::ranges::copy_if(*run, std::back_inserter(newest),
                           [&](const Entry* entry) { return entry->sequence <= up_to && !is_superseded(*entry); });
    }
    if (generation->has_range_tombstones()) with_tombstones.push_back(generation);
  }
  const Entry* last = nullptr;
  OfFamily* of_family = nullptr;
  for (const Entry* entry : merge(std::move(runs), EntryOrder(families))) {
    const bool same_family = last != nullptr && last->column_family == entry->column_family;
    const bool same_key = same_family && last->key() == entry->key();
    last = entry;
    if (same_key) continue;  // an older version
    if (!same_family) {
      of_family = families.of(entry->column_family).is_dropped ? nullptr : &families_[entry->column_family];
    }
    if (of_family == nullptr || newest_tombstone_over(*entry, with_tombstones, up_to) > entry->sequence) continue;
    of_family->entries.push_back(entry);
    bytes_left_ += bytes_of(*entry);
  }
  for (const auto& generation : with_tombstones) {
    for (const RangeTombstone& tombstone : generation->range_tombstones()) {
      if (tombstone.sequence > up_to || families.of(tombstone.column_family).is_dropped) continue;
      families_[tombstone.column_family].deleted.push_back({tombstone.begin, tombstone.end});
    }
  }
  for (auto& [id, family] : families_) family.deleted = joined(std::move(family.deleted), *families.comparator(id));
  std::erase_if(families_, [](const auto& one) { return one.second.entries.empty() && one.second.deleted.empty(); });
  bytes_left_ += tombstone_bytes() + families_.size() * kSortedFileBytes;
}

std::optional<MergedRun::Plain> MergedRun::plain_range() const {
  if (families_.size() != 1) return std::nullopt;
  const auto& [id, family] = *families_.begin();
  if (!family.deleted.empty() || family.next >= family.entries.size()) return std::nullopt;
  return Plain{id, {std::string(family.entries[family.next]->key()), std::string(family.entries.back()->key())}};
}

std::uint64_t MergedRun::tombstone_bytes() const {
  std::uint64_t bytes = 0;
  for (const auto& [id, family] : families_) bytes += bytes_of(family.deleted);
  return bytes;
}

MergedRun::End MergedRun::end_of_part(const OfFamily& family, std::uint64_t most_bytes) {
  End end{family.next, 0};
  for (; end.entries < family.entries.size(); ++end.entries) {
    const std::uint64_t its = bytes_of(*family.entries[end.entries]);
    if (end.entries > family.next && end.bytes + its > most_bytes) break;
    end.bytes += its;
  }
  return end;
}

void MergedRun::split_deleted(std::uint32_t id, const OfFamily& family, std::size_t end, std::vector<KeyRange>* before,
                              std::vector<KeyRange>* rest) const {
  const bool is_last = end == family.entries.size();
  const rocksdb::Comparator& order = *all_families_->comparator(id);
  const std::string next_key(is_last ? std::string_view() : family.entries[end]->key());
  for (const KeyRange& range : family.deleted) {
    if (is_last || order.Compare(range.end, next_key) <= 0) {
      before->push_back(range);
    } else if (order.Compare(range.begin, next_key) >= 0) {
      rest->push_back(range);
    } else {
      before->push_back({range.begin, next_key});
      rest->push_back({next_key, range.end});
    }
  }
}

std::vector<RunPart> MergedRun::next(std::uint64_t most_bytes) const {
  std::vector<RunPart> parts;
  std::uint64_t bytes = 0;
  for (const auto& [id, family] : families_) {
    if (!parts.empty() && bytes + kSortedFileBytes >= most_bytes) break;
    const std::uint64_t room = most_bytes - std::min(most_bytes, bytes + kSortedFileBytes);
    const End end = end_of_part(family, room);
    if (!parts.empty() && end.bytes > room) break;
    RunPart& part = parts.emplace_back();
    part.column_family = id;
    part.entries = std::span(family.entries).subspan(family.next, end.entries - family.next);
    std::vector<KeyRange> rest;
    split_deleted(id, family, end.entries, &part.deleted, &rest);
    bytes += end.bytes + kSortedFileBytes + bytes_of(part.deleted);
    if (end.entries < family.entries.size()) break;
  }
  return parts;
}

void MergedRun::advance(std::uint64_t most_bytes) {
  for (const RunPart& part : next(most_bytes)) {
    OfFamily& family = families_.at(part.column_family);
    const std::size_t end = family.next + part.entries.size();
    std::vector<KeyRange> before;
    std::vector<KeyRange> rest;
    split_deleted(part.column_family, family, end, &before, &rest);
    for (const Entry* entry : part.entries) bytes_left_ -= std::min(bytes_left_, bytes_of(*entry));
    family.next = end;
    family.deleted = std::move(rest);
    if (end == family.entries.size()) families_.erase(part.column_family);
  }
  if (families_.empty()) bytes_left_ = 0;
}

}  // namespace spillway::spill
