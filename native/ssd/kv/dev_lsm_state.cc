// What of a Dev-LSM outlives a power cycle, and the check that it is consistent.
#include "ssd/kv/dev_lsm.h"

namespace spillway::ssd {
namespace {

template <typename T>
bool field(const DevLsm::Visit& visit, T& value) {
  return visit(&value, sizeof(value));
}

}  // namespace

bool DevLsm::visit_run(const Visit& visit, bool loading, Run& run) {
  auto item_count = static_cast<std::uint64_t>(run.items.size());
  auto extent_count = static_cast<std::uint64_t>(run.extents.size());
  if (!field(visit, run.id) || !field(visit, run.state) || !field(visit, run.level) || !field(visit, run.bytes) ||
      !field(visit, run.tombstones) || !field(visit, run.looked_at) || !field(visit, run.kept) ||
      !field(visit, item_count) || !field(visit, extent_count)) {
    return false;
  }
  if (run.state > RunState::flash || extent_count > units_ || run.looked_at > item_count || run.kept > run.looked_at) {
    return false;
  }
  for (std::uint64_t i = 0; i < item_count; ++i) {
    if (loading) run.items.emplace_back();
    Item& item = run.items[i];
    auto tombstone = static_cast<std::uint8_t>(item.tombstone ? 1 : 0);
    if (!field(visit, item.key.bytes) || !field(visit, item.key.size) || !field(visit, item.value_bytes) ||
        !field(visit, item.offset) || !field(visit, tombstone)) {
      return false;
    }
    if (item.key.size > kMaxKeyBytes || item.value_bytes > config_.vml_bytes || tombstone > 1) return false;
    item.tombstone = tombstone != 0;
  }
  for (std::uint64_t i = 0; i < extent_count; ++i) {
    if (loading) run.extents.emplace_back();
    if (!field(visit, run.extents[i].first) || !field(visit, run.extents[i].count)) return false;
    if (!loading) continue;
    if (run.extents[i].count == 0 || !space_.take_exactly(run.extents[i])) return false;
    run.units += run.extents[i].count;
  }
  return true;
}

// A rotated run whose way to flash was cut off is all in DRAM again.
void DevLsm::begin_rotated_anew() {
  Run& run = *rotated_;
  for (const UnitRange& extent : run.extents) space_.give_back(extent);
  run.extents.clear();
  using Offset = std::vector<Item>::difference_type;
  run.items.erase(run.items.begin() + static_cast<Offset>(run.kept),
                  run.items.begin() + static_cast<Offset>(run.looked_at));
  run.units = run.bytes = run.looked_at = run.kept = 0;
  std::uint64_t bytes = 0;
  for (const Item& item : run.items) bytes += item.stored_bytes();
  promised_to_rotated_ = units_of(bytes);
}

bool DevLsm::visit_index(const Visit& visit, bool loading) {
  std::map<RunId, Run*> by_id;
  for (Run& run : runs_) by_id.emplace(run.id, &run);
  auto count = static_cast<std::uint64_t>(index_.size());
  if (by_id.size() != runs_.size() || !field(visit, count)) return false;
  auto saved = index_.begin();
  for (std::uint64_t i = 0; i < count; ++i) {
    KvKey key = loading ? KvKey() : saved->first;
    Place place = loading ? Place() : saved->second;
    RunId id = loading ? 0 : place.run->id;
    if (!field(visit, key.bytes) || !field(visit, key.size) || !field(visit, id) || !field(visit, place.value_bytes) ||
        !field(visit, place.where)) {
      return false;
    }
    if (!loading) {
      ++saved;
      continue;
    }
    const auto run = by_id.find(id);
    if (run == by_id.end() || key.size > kMaxKeyBytes || key.size == 0) return false;
    place.run = run->second;
    if (place.run->state == RunState::memtable && place.where >= place.run->items.size()) return false;
    if (!index_.empty() && !(std::prev(index_.end())->first < key)) return false;
    index_.emplace_hint(index_.end(), key, place);
    ++place.run->live;
  }
  return true;
}

bool DevLsm::visit_state(const Visit& visit, bool loading) {
  auto count = static_cast<std::uint64_t>(runs_.size());
  if (!field(visit, count) || count == 0 || !field(visit, next_run_)) return false;
  if (loading) {
    // As new: this may hold what it held before.
    runs_.clear();
    index_.clear();
    freed_.clear();
    space_ = UnitSpace(first_unit_, units_);
    rotated_ = nullptr;
    for (std::uint64_t i = 0; i < count; ++i) {
      runs_.emplace_back();
      if (!visit_run(visit, true, runs_.back())) return false;
      const bool is_last = i + 1 == count;
      if ((runs_.back().state == RunState::memtable) != is_last) return false;
      if (runs_.back().state == RunState::rotated && rotated_ != nullptr) return false;
      if (runs_.back().state == RunState::rotated) rotated_ = &runs_.back();
      if (runs_.back().state == RunState::merging) return false;
    }
  } else {
    for (Run& run : runs_) {
      if (!visit_run(visit, false, run)) return false;
    }
  }
  if (!visit_index(visit, loading)) return false;
  if (!loading) return true;
  promised_to_merge_ = promised_to_rotated_ = 0;
  if (rotated_ != nullptr) begin_rotated_anew();
  return promised_to_rotated_ <= space_.free_units() && !audit({});
}

std::optional<std::string> DevLsm::audit_runs(std::vector<std::uint8_t>& owned) const {
  for (const Run& run : runs_) {
    const std::string name = "run " + std::to_string(run.id);
    std::uint64_t units = 0;
    for (const UnitRange& extent : run.extents) {
      units += extent.count;
      for (std::uint32_t unit = extent.first; unit < extent.first + extent.count; ++unit) {
        if (unit < first_unit_ || unit - first_unit_ >= units_) return name + " has a unit outside its namespace";
        if (owned[unit - first_unit_]++ != 0) return name + " has a unit that another has, too";
      }
    }
    if (units != run.units) return name + " miscounts its units";
    if (run.state == RunState::flash && units != units_of(run.bytes)) return name + " has too much or too little flash";
    std::uint64_t bytes = 0;
    std::uint64_t tombstones = 0;
    const std::size_t placed = run.state == RunState::rotated ? run.kept : run.items.size();
    for (std::size_t i = 0; i < placed; ++i) {
      if (run.state != RunState::memtable && run.items[i].offset != bytes) return name + " is not packed";
      bytes += run.items[i].stored_bytes();
      if (run.items[i].tombstone) ++tombstones;
    }
    if (bytes != run.bytes) return name + " miscounts its bytes";
    if (run.state != RunState::rotated && tombstones != run.tombstones) return name + " miscounts its tombstones";
  }
  return std::nullopt;
}

std::optional<std::string> DevLsm::audit(const std::function<bool(std::uint32_t unit)>& is_written) const {
  std::vector<std::uint8_t> owned(units_, 0);
  if (auto broken = audit_runs(owned)) return broken;
  std::uint64_t free_units = 0;
  for (const auto& [first, count] : space_.free_extents()) {
    free_units += count;
    for (std::uint32_t unit = first; unit < first + count; ++unit) {
      if (owned[unit - first_unit_]++ != 0) return "a unit of a run is free at the same time";
      if (is_written && is_written(unit)) return "unit " + std::to_string(unit) + " is free and holds data";
    }
  }
  if (free_units != space_.free_units()) return "free units of a key-value namespace are miscounted";
  for (const std::uint8_t owners : owned) {
    if (owners != 1) return "a unit of a key-value namespace is neither free nor in a run";
  }
  std::map<const Run*, std::uint64_t> live;
  for (const auto& [key, place] : index_) {
    ++live[place.run];
    if (place.value_bytes > config_.vml_bytes) return "a value is longer than it may be";
    if (place.run->state == RunState::memtable) {
      if (place.where >= place.run->items.size()) return "a key has no item in the memtable";
      const Item& item = place.run->items[place.where];
      if (!(item.key == key) || item.tombstone || item.value_bytes != place.value_bytes) {
        return "a key's item in the memtable is another's";
      }
    } else if (place.run->state != RunState::rotated) {
      if (place.where + kPairHeaderBytes + key.size + place.value_bytes > place.run->bytes) {
        return "a pair lies outside its run";
      }
    }
  }
  for (const Run& run : runs_) {
    if (live[&run] != run.live) return "run " + std::to_string(run.id) + " miscounts its live pairs";
    if (run.state != RunState::flash || !is_written) continue;
    for (const UnitRange& extent : run.extents) {
      for (std::uint32_t unit = extent.first; unit < extent.first + extent.count; ++unit) {
        if (!is_written(unit)) return "unit " + std::to_string(unit) + " of a run was never written";
      }
    }
  }
  if (promised_to_rotated_ + promised_to_merge_ > space_.free_units()) return "more flash is promised than there is";
  return std::nullopt;
}

}  // namespace spillway::ssd
