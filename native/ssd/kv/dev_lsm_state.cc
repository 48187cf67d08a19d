// The state of a Dev-LSM that survives a power cycle, and its consistency check.
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
      !field(visit, run.tombstones) || !field(visit, run.processed) || !field(visit, run.placed) ||
      !field(visit, item_count) || !field(visit, extent_count)) {
    return false;
  }
  if (run.state > RunState::flash || extent_count > units_ || run.processed > item_count ||
      run.placed > run.processed) {
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
    if (run.extents[i].count == 0 || !allocator_.allocate_exactly(run.extents[i])) return false;
    run.units += run.extents[i].count;
  }
  return true;
}

// An interrupted flush starts again: its run is completely in DRAM.
void DevLsm::restart_flush() {
  Run& run = *immutable_;
  for (const UnitRange& extent : run.extents) allocator_.release(extent);
  run.extents.clear();
  using Offset = std::vector<Item>::difference_type;
  run.items.erase(run.items.begin() + static_cast<Offset>(run.placed),
                  run.items.begin() + static_cast<Offset>(run.processed));
  run.units = run.bytes = run.processed = run.placed = 0;
  std::uint64_t bytes = 0;
  for (const Item& item : run.items) bytes += item.stored_bytes();
  reserved_for_flush_ = units_of(bytes);
}

bool DevLsm::visit_index(const Visit& visit, bool loading) {
  std::map<RunId, Run*> by_id;
  for (Run& run : runs_) by_id.emplace(run.id, &run);
  auto count = static_cast<std::uint64_t>(index_.size());
  if (by_id.size() != runs_.size() || !field(visit, count)) return false;
  auto saved = index_.begin();
  for (std::uint64_t i = 0; i < count; ++i) {
    KvKey key = loading ? KvKey() : saved->first;
    Location location = loading ? Location() : saved->second;
    RunId id = loading ? 0 : location.run->id;
    if (!field(visit, key.bytes) || !field(visit, key.size) || !field(visit, id) ||
        !field(visit, location.value_bytes) || !field(visit, location.position)) {
      return false;
    }
    if (!loading) {
      ++saved;
      continue;
    }
    const auto run = by_id.find(id);
    if (run == by_id.end() || key.size > kMaxKeyBytes || key.size == 0) return false;
    location.run = run->second;
    if (location.run->state == RunState::memtable && location.position >= location.run->items.size()) return false;
    if (!index_.empty() && !(std::prev(index_.end())->first < key)) return false;
    index_.emplace_hint(index_.end(), key, location);
    ++location.run->live;
  }
  return true;
}

bool DevLsm::visit_state(const Visit& visit, bool loading) {
  auto count = static_cast<std::uint64_t>(runs_.size());
  if (!field(visit, count) || count == 0 || !field(visit, next_run_)) return false;
  if (loading) {
    runs_.clear();
    index_.clear();
    freed_.clear();
    allocator_ = UnitAllocator(first_unit_, units_);
    immutable_ = nullptr;
    for (std::uint64_t i = 0; i < count; ++i) {
      runs_.emplace_back();
      if (!visit_run(visit, true, runs_.back())) return false;
      const bool is_last = i + 1 == count;
      if ((runs_.back().state == RunState::memtable) != is_last) return false;
      if (runs_.back().state == RunState::immutable && immutable_ != nullptr) return false;
      if (runs_.back().state == RunState::immutable) immutable_ = &runs_.back();
      if (runs_.back().state == RunState::compacting) return false;
    }
  } else {
    for (Run& run : runs_) {
      if (!visit_run(visit, false, run)) return false;
    }
  }
  if (!visit_index(visit, loading)) return false;
  if (!loading) return true;
  reserved_for_compaction_ = reserved_for_flush_ = 0;
  if (immutable_ != nullptr) restart_flush();
  return reserved_for_flush_ <= allocator_.free_units() && !audit({});
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
    const std::size_t placed = run.state == RunState::immutable ? run.placed : run.items.size();
    for (std::size_t i = 0; i < placed; ++i) {
      if (run.state != RunState::memtable && run.items[i].offset != bytes) return name + " is not packed";
      bytes += run.items[i].stored_bytes();
      if (run.items[i].tombstone) ++tombstones;
    }
    if (bytes != run.bytes) return name + " miscounts its bytes";
    if (run.state != RunState::immutable && tombstones != run.tombstones) return name + " miscounts its tombstones";
  }
  return std::nullopt;
}

std::optional<std::string> DevLsm::audit(const std::function<bool(std::uint32_t unit)>& is_written) const {
  std::vector<std::uint8_t> owned(units_, 0);
  if (auto broken = audit_runs(owned)) return broken;
  std::uint64_t free_units = 0;
  for (const auto& [first, count] : allocator_.free_extents()) {
    free_units += count;
    for (std::uint32_t unit = first; unit < first + count; ++unit) {
      if (owned[unit - first_unit_]++ != 0) return "a unit of a run is free at the same time";
      if (is_written && is_written(unit)) return "unit " + std::to_string(unit) + " is free and holds data";
    }
  }
  if (free_units != allocator_.free_units()) return "free units of a key-value namespace are miscounted";
  for (const std::uint8_t owners : owned) {
    if (owners != 1) return "a unit of a key-value namespace is neither free nor in a run";
  }
  std::map<const Run*, std::uint64_t> live;
  for (const auto& [key, location] : index_) {
    ++live[location.run];
    if (location.value_bytes > config_.vml_bytes) return "a value is longer than it may be";
    if (location.run->state == RunState::memtable) {
      if (location.position >= location.run->items.size()) return "a key has no item in the memtable";
      const Item& item = location.run->items[location.position];
      if (!(item.key == key) || item.tombstone || item.value_bytes != location.value_bytes) {
        return "a key's item in the memtable is another's";
      }
    } else if (location.run->state != RunState::immutable) {
      if (location.position + kPairHeaderBytes + key.size + location.value_bytes > location.run->bytes) {
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
  if (reserved_for_flush_ + reserved_for_compaction_ > allocator_.free_units())
    return "more flash is reserved than there is";
  return std::nullopt;
}

}  // namespace spillway::ssd
