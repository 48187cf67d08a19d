#include "ssd/kv/dev_lsm.h"

#include <cassert>

namespace spillway::ssd {

DevLsm::DevLsm(const NamespacesConfig& config, std::uint32_t unit_bytes, std::uint32_t first_unit, std::uint32_t units)
    : config_(config), unit_bytes_(unit_bytes), first_unit_(first_unit), units_(units), allocator_(first_unit, units) {
  new_run(runs_.end(), RunState::memtable);
}

DevLsm::Run& DevLsm::new_run(std::list<Run>::iterator before, RunState state) {
  Run& run = *runs_.emplace(before);
  run.id = next_run_++;
  run.state = state;
  return run;
}

// --- Look-ups

void DevLsm::add_units_of(const KvKey& key, const Location& location, std::vector<UnitRange>& ranges) const {
  add_units(*location.run, location.position, std::uint64_t{kPairHeaderBytes} + key.size + location.value_bytes,
            ranges);
}

void DevLsm::add_units_of_part(const KvKey& key, const Location& location, std::uint32_t offset_bytes,
                               std::uint32_t part_bytes, std::vector<UnitRange>& ranges) const {
  if (part_bytes == 0) return;
  add_units(*location.run, location.position + kPairHeaderBytes + key.size + offset_bytes, part_bytes, ranges);
}

// Units of `bytes` of the run from byte `from` on.
void DevLsm::add_units(const Run& run, std::uint64_t from, std::uint64_t bytes, std::vector<UnitRange>& ranges) const {
  std::uint64_t begin = from / unit_bytes_;
  // Pairs of a compaction's output without units are still in DRAM.
  const std::uint64_t end = std::min((from + bytes - 1) / unit_bytes_ + 1, run.units);
  std::uint64_t before = 0;  // units in the extents before
  for (const UnitRange& extent : run.extents) {
    if (begin >= end) return;
    if (begin < before + extent.count) {
      const auto first = static_cast<std::uint32_t>(extent.first + (begin - before));
      const auto count = static_cast<std::uint32_t>(std::min(end, before + extent.count) - begin);
      begin += count;
      UnitRange* const last = ranges.empty() ? nullptr : &ranges.back();
      if (last != nullptr && first >= last->first && first <= last->first + last->count) {
        last->count = std::max(last->count, first + count - last->first);
      } else {
        ranges.push_back({first, count});
      }
    }
    before += extent.count;
  }
}

// --- Writes

DevLsm::MemtableRoom DevLsm::room_for(std::uint64_t bytes, bool is_removal) const {
  const Run& memtable = runs_.back();
  const std::uint64_t held =
      reserved_for_flush_ + reserved_for_compaction_ + (is_removal ? 0 : kv_reserve_units(units_));
  const bool rotates = memtable.bytes + bytes > config_.memtable_bytes;
  const std::uint64_t needed = rotates ? units_of(memtable.bytes) + units_of(bytes) : units_of(memtable.bytes + bytes);
  if (held + needed > allocator_.free_units()) return MemtableRoom::none;
  return rotates ? MemtableRoom::after_switch : MemtableRoom::available;
}

void DevLsm::put(const KvPair& pair) {
  Run& memtable = runs_.back();
  const Item item{pair.key, pair.value_bytes, 0, false};
  const bool is_last = index_.empty() || std::prev(index_.end())->first < pair.key;
  const auto entry =
      is_last ? index_.emplace_hint(index_.end(), pair.key, Location{}) : index_.try_emplace(pair.key).first;
  Location& location = entry->second;
  if (location.run == &memtable) {
    Item& old = memtable.items[location.position];
    memtable.bytes -= old.stored_bytes();
    old = item;
  } else {
    Run* const before = location.run;
    location.run = &memtable;
    location.position = memtable.items.size();
    memtable.items.push_back(item);
    ++memtable.live;
    if (before != nullptr && --before->live == 0) free_dead_runs();
  }
  memtable.bytes += item.stored_bytes();
  location.value_bytes = pair.value_bytes;
}

// Removes the entry from the index. Its item in the memtable becomes a tombstone.
void DevLsm::forget(Index::iterator entry) {
  const Location location = entry->second;
  Run& memtable = runs_.back();
  --location.run->live;
  if (location.run == &memtable) {
    Item& item = memtable.items[location.position];
    memtable.bytes -= item.value_bytes;
    item.value_bytes = 0;
    item.tombstone = true;
    ++memtable.tombstones;
  }
  index_.erase(entry);
}

void DevLsm::remove(const KvKey& key) {
  const auto entry = index_.find(key);
  Run& memtable = runs_.back();
  const bool in_memtable = entry->second.run == &memtable;
  forget(entry);
  if (!in_memtable) {
    memtable.items.push_back({key, 0, 0, true});
    memtable.bytes += memtable.items.back().stored_bytes();
    ++memtable.tombstones;
  }
  free_dead_runs();
}

void DevLsm::remove_range(const KvRange& range) {
  Run& memtable = runs_.back();
  auto entry = range.after_begin ? index_.upper_bound(range.begin) : index_.lower_bound(range.begin);
  if (entry == index_.end() || !range.reaches(entry->first)) return;
  while (entry != index_.end() && range.reaches(entry->first)) forget(entry++);
  // One tombstone hides all older versions in the range.
  memtable.items.push_back({range.begin, 0, 0, true});
  memtable.bytes += memtable.items.back().stored_bytes();
  ++memtable.tombstones;
  free_dead_runs();
}

// --- Flash units

void DevLsm::free_run(std::list<Run>::iterator run) {
  for (const UnitRange& extent : run->extents) {
    allocator_.release(extent);
    freed_.push_back(extent);
  }
  runs_.erase(run);
}

void DevLsm::free_dead_runs() {
  for (auto run = runs_.begin(); run != runs_.end();) {
    const auto next = std::next(run);
    const bool hides_nothing = run->tombstones == 0 || run == runs_.begin() || index_.empty();
    if (run->live == 0 && run->state == RunState::flash && !run->compacted_away && hides_nothing) free_run(run);
    run = next;
  }
  if (!index_.empty()) return;
  Run& memtable = runs_.back();
  memtable.items.clear();
  memtable.bytes = memtable.tombstones = 0;
}

UnitRange DevLsm::give_units(Run& run, std::uint32_t most) {
  std::uint64_t& reserved = run.state == RunState::immutable ? reserved_for_flush_ : reserved_for_compaction_;
  const UnitRange units = allocator_.allocate(most);
  assert(reserved >= units.count);
  reserved -= units.count;
  run.units += units.count;
  UnitRange* const last = run.extents.empty() ? nullptr : &run.extents.back();
  if (last != nullptr && last->first + last->count == units.first) {
    last->count += units.count;
  } else {
    run.extents.push_back(units);
  }
  return units;
}

// --- Flush

DevLsm::Run& DevLsm::switch_memtable() {
  assert(immutable_ == nullptr);
  immutable_ = &runs_.back();
  immutable_->state = RunState::immutable;
  reserved_for_flush_ = units_of(immutable_->bytes);
  immutable_->bytes = 0;
  const auto by_key = [](const Item& a, const Item& b) { return a.key < b.key; };
  std::vector<Item>& items = immutable_->items;
  if (!std::is_sorted(items.begin(), items.end(), by_key)) std::stable_sort(items.begin(), items.end(), by_key);
  new_run(runs_.end(), RunState::memtable);
  return *immutable_;
}

std::uint64_t DevLsm::place_next() {
  Run& run = *immutable_;
  const Item item = run.items[run.processed++];
  if (item.tombstone) {
    if (&run == &runs_.front()) {  // there are no older versions
      --run.tombstones;
      return 0;
    }
  } else {
    const auto entry = index_.find(item.key);
    if (entry == index_.end() || entry->second.run != &run) return 0;
    entry->second.position = run.bytes;
  }
  Item& placed = run.items[run.placed++];
  placed = item;
  placed.offset = run.bytes;
  run.bytes += item.stored_bytes();
  return item.stored_bytes();
}

void DevLsm::finish_flush() {
  Run& run = *immutable_;
  run.items.resize(run.placed);
  run.items.shrink_to_fit();
  run.processed = run.placed = 0;
  run.state = RunState::flash;
  reserved_for_flush_ = 0;
  immutable_ = nullptr;
  free_dead_runs();
}

// --- Compaction

std::vector<DevLsm::Run*> DevLsm::pick_compaction() const {
  std::vector<Run*> group;
  if (config_.compaction_runs == 0) return group;
  std::uint64_t bytes = 0;
  const auto enough = [&] {
    return group.size() >= config_.compaction_runs &&
           allocator_.free_units() >= reserved_for_flush_ + reserved_for_compaction_ + units_of(bytes) +
                                          2 * units_of(config_.memtable_bytes) + kv_reserve_units(units_);
  };
  for (auto run = runs_.rbegin(); run != runs_.rend(); ++run) {
    if (run->state == RunState::compacting) return {};
    const bool joins = run->state == RunState::flash && (group.empty() || group.back()->level == run->level);
    if (!joins) {
      if (enough()) break;
      group.clear();
      bytes = 0;
      if (run->state != RunState::flash) continue;
    }
    group.push_back(const_cast<Run*>(&*run));
    bytes += run->bytes;
  }
  if (!enough()) return {};
  std::reverse(group.begin(), group.end());
  return group;
}

DevLsm::Run& DevLsm::begin_compaction(const std::vector<Run*>& sources) {
  std::uint64_t bytes = 0;
  for (Run* const source : sources) {
    source->compacted_away = true;
    bytes += source->bytes;
  }
  compacts_oldest_ = sources.front() == &runs_.front();
  const auto youngest =
      std::find_if(runs_.begin(), runs_.end(), [&sources](const Run& run) { return &run == sources.back(); });
  Run& into = new_run(std::next(youngest), RunState::compacting);
  into.level = sources.front()->level + 1;
  reserved_for_compaction_ = units_of(bytes);
  return into;
}

std::uint64_t DevLsm::move_item(Run& source, const Item& item, Run& into) {
  if (item.tombstone) {
    if (compacts_oldest_) return 0;
    ++into.tombstones;
  } else {
    const auto entry = index_.find(item.key);
    if (entry == index_.end() || entry->second.run != &source) return 0;
    --source.live;
    ++into.live;
    entry->second.run = &into;
    entry->second.position = into.bytes;
  }
  into.items.push_back(item);
  into.items.back().offset = into.bytes;
  into.bytes += item.stored_bytes();
  return item.stored_bytes();
}

void DevLsm::finish_compaction(Run& into) {
  into.state = RunState::flash;
  reserved_for_compaction_ = 0;
  for (auto run = runs_.begin(); run != runs_.end();) {
    const auto next = std::next(run);
    if (run->compacted_away) {
      assert(run->live == 0);
      free_run(run);
    }
    run = next;
  }
  free_dead_runs();
}

// --- Preparation

DevLsm::Run* DevLsm::bulk_load(const std::vector<KvPair>& pairs) {
  std::uint64_t bytes = 0;
  for (const KvPair& pair : pairs) bytes += pair.stored_bytes();
  if (!index_.empty() || units_of(bytes) + kv_reserve_units(units_) > allocator_.free_units()) return nullptr;
  Run& run = new_run(std::prev(runs_.end()), RunState::flash);
  for (const KvPair& pair : pairs) {
    index_.emplace_hint(index_.end(), pair.key, Location{&run, pair.value_bytes, run.bytes});
    run.items.push_back({pair.key, pair.value_bytes, run.bytes, false});
    run.bytes += pair.stored_bytes();
    ++run.live;
  }
  for (std::uint64_t missing = units_of(bytes); missing > 0;) {
    const UnitRange units = allocator_.allocate(static_cast<std::uint32_t>(missing));
    run.extents.push_back(units);
    run.units += units.count;
    missing -= units.count;
  }
  return &run;
}

}  // namespace spillway::ssd
