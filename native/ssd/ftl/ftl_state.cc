// The state of the translation layer that survives a power cycle, and its consistency check.
#include <algorithm>
#include <string>

#include "ssd/ftl/ftl.h"

namespace spillway::ssd {

bool Ftl::visit_state(const std::function<bool(void* bytes, std::size_t size)>& visit, bool loading) {
  const auto field = [&visit](auto& value) { return visit(&value, sizeof(value)); };
  if (!visit(map_.data(), map_.bytes()) || !visit(slots_.data(), slots_.bytes())) return false;
  for (std::uint32_t i = 0; i < blocks_.size(); ++i) {
    Block& b = blocks_[i];
    if (!field(b.erases) || !field(b.programmed_pages) || !field(b.changed) || !field(b.state) || !field(b.slc)) {
      return false;
    }
    if (b.state > BlockState::cached || b.programmed_pages > pages_per_block_) return false;
  }
  std::vector<std::uint32_t> closed = blocks_.closed_in_order();
  auto closed_count = static_cast<std::uint64_t>(closed.size());
  if (!field(closed_count) || closed_count > blocks_.size()) return false;
  closed.resize(closed_count);
  if (!visit(closed.data(), closed.size() * sizeof(closed[0]))) return false;
  for (Stream& s : streams_) {
    for (Row& row : s.rows) {
      if (!field(row.blocks) || !field(row.planes) || !field(row.page)) return false;
      if (row.planes > planes_per_die_ || row.page > (s.slc ? layout_.slc_pages : pages_per_block_)) return false;
    }
    if (!field(s.next_die) || !field(s.open) || !field(s.die) || !field(s.used_slots) || !field(s.capacity) ||
        !field(s.by_cause)) {
      return false;
    }
    if (s.next_die >= dies_ || s.die >= dies_ || s.used_slots > s.capacity) return false;
  }
  if (block_mapping_ && !block_mapping_->visit_state(visit, loading)) return false;
  std::vector<Row> full;
  for (std::size_t i = 0; i < slc_rows_.size(); ++i) full.push_back(slc_rows_.peek(i));
  auto full_count = static_cast<std::uint64_t>(full.size());
  if (!field(full_count) || full_count > blocks_.size()) return false;
  full.resize(full_count);
  for (Row& row : full) {
    if (!field(row.blocks) || !field(row.planes) || row.planes == 0 || row.planes > planes_per_die_) return false;
  }
  if (!field(fold_page_) || fold_page_ > layout_.slc_pages || !field(host_)) return false;
  if (host_ != static_cast<std::size_t>(StreamId::host) &&
      (host_ != static_cast<std::size_t>(StreamId::slc) || layout_.slc_pages == 0)) {
    return false;
  }
  std::uint32_t clock = blocks_.clock();
  if (!field(clock) || !field(clean_slots_) || !field(erases_until_levelling_) || !field(random_)) return false;
  if (!loading) return true;
  blocks_.set_clock(clock);
  slc_rows_ = {};
  for (const Row& row : full) slc_rows_.push(row);
  return rebuild_from_map(closed);
}

// Rebuilds the reverse map, valid counts and lists from the map. False if the map is inconsistent.
bool Ftl::rebuild_from_map(const std::vector<std::uint32_t>& closed) {
  valid_ = FlatArray<std::uint64_t>(valid_.size());
  mapped_units_ = 0;
  slc_blocks_ = 0;
  for (std::uint32_t i = 0; i < blocks_.size(); ++i) {
    blocks_[i].valid = 0;
    if (blocks_[i].slc) ++slc_blocks_;
  }
  for (std::size_t unit = 0; unit < map_.size(); ++unit) {
    if (map_[unit] == 0) continue;
    const std::uint32_t at = map_[unit] - 1;
    if (at >= layout_.physical_units || is_valid(at) || !lies_in_a_page(at, unit)) return false;
    if (blocks_[block_of(at)].state == BlockState::free) return false;
    valid_[at / 64] |= std::uint64_t{1} << (at % 64);
    owner_.set(at, static_cast<std::uint32_t>(unit));
    blocks_[block_of(at)].valid += slots_of(static_cast<std::uint32_t>(unit));
    if (unit < logical_units_) ++mapped_units_;
  }
  std::vector<bool> seen(blocks_.size());
  for (const std::uint32_t block : closed) {
    if (block >= blocks_.size() || seen[block] || blocks_[block].state != BlockState::closed) return false;
    seen[block] = true;
  }
  blocks_.rebuild(closed);
  mapping_.clear();
  return !audit().has_value();
}

std::optional<std::string> Ftl::audit_slc() const {
  std::uint32_t held = 0;
  std::uint64_t full = 0;
  std::uint64_t valid = 0;
  for (std::uint32_t block = 0; block < blocks_.size(); ++block) {
    const Block& b = blocks_[block];
    if (b.state == BlockState::cached && !b.slc) return "a main block waits to be folded";
    if (!b.slc) continue;
    if (b.state != BlockState::open && b.state != BlockState::cached) return "a block has one bit a cell, and no use";
    if (b.valid > layout_.slc_pages * slots_per_page_) return "a block of the SLC cache holds more than it can";
    ++held;
    full += b.state == BlockState::cached ? 1 : 0;
    valid += b.valid;
  }
  if (held != slc_blocks_) return "blocks of the SLC cache are miscounted";
  if (valid != blocks_.cached_units()) return "units in the SLC cache are miscounted";
  std::vector<bool> seen(blocks_.size());
  std::uint64_t queued = 0;
  for (std::size_t at = 0; at < slc_rows_.size(); ++at) {
    const Row& row = slc_rows_.peek(at);
    for (std::uint32_t i = 0; i < row.planes; ++i, ++queued) {
      if (row.blocks[i] >= blocks_.size() || seen[row.blocks[i]]) return "a row of the SLC cache contradicts another";
      if (blocks_[row.blocks[i]].state != BlockState::cached) return "a row of the SLC cache is not full";
      seen[row.blocks[i]] = true;
    }
  }
  if (queued != full) return "a full row of the SLC cache would never be folded";
  return std::nullopt;
}

// Adds their clean slots to `clean`.
std::optional<std::string> Ftl::audit_open_rows(std::uint64_t& clean) const {
  for (const Stream& s : streams_) {
    for (const Row& row : s.rows) {
      for (std::uint32_t i = 0; i < row.planes; ++i) {
        if (row.blocks[i] >= blocks_.size()) return "an open row names an erase block outside the drive";
        if (blocks_[row.blocks[i]].state != BlockState::open) return "an open row has a block that is not open";
        if (blocks_[row.blocks[i]].slc != s.slc) return "an open row has a block of the other mode";
      }
      if (!s.slc) clean += std::uint64_t{row.planes} * (pages_per_block_ - row.page) * slots_per_page_;
    }
    if (s.open && !s.slc) clean -= s.capacity;
  }
  return std::nullopt;
}

std::optional<std::string> Ftl::audit() const {
  std::vector<std::uint32_t> valid(blocks_.size(), 0);
  std::vector<bool> taken(layout_.physical_units);
  std::uint64_t mapped = 0;
  for (std::size_t unit = 0; unit < map_.size(); ++unit) {
    if (map_[unit] == 0) continue;
    const std::uint32_t at = map_[unit] - 1;
    if (at >= layout_.physical_units) return "unit " + std::to_string(unit) + " is mapped outside the drive";
    if (!lies_in_a_page(at, unit)) return "unit " + std::to_string(unit) + " reaches beyond its flash page";
    const std::uint32_t slots = slots_of(static_cast<std::uint32_t>(unit));
    for (std::uint32_t slot = at; slot < at + slots; ++slot) {
      if (taken[slot]) return "two units share physical slot " + std::to_string(slot);
      taken[slot] = true;
    }
    if (!is_valid(at) || owner_[at] != unit) return "the reverse map does not know unit " + std::to_string(unit);
    valid[block_of(at)] += slots;
    if (unit < logical_units_) ++mapped;
  }
  if (mapped != mapped_units_) return "mapped units are miscounted";
  for (std::size_t at = 0; at < layout_.physical_units; ++at) {
    if (is_valid(static_cast<std::uint32_t>(at)) && !taken[at])
      return "physical slot " + std::to_string(at) + " has no owner";
  }
  std::uint64_t clean = 0;
  for (std::uint32_t block = 0; block < blocks_.size(); ++block) {
    if (blocks_[block].valid != valid[block])
      return "erase block " + std::to_string(block) + " miscounts its valid units";
    if (blocks_[block].state == BlockState::free) {
      if (valid[block] != 0) return "free erase block " + std::to_string(block) + " holds data";
      clean += slots_per_block_;
    }
    if (blocks_[block].state == BlockState::collecting)
      return "erase block " + std::to_string(block) + " was left half collected";
  }
  if (auto broken = audit_slc()) return broken;
  if (block_mapping_) {
    if (auto broken = block_mapping_->audit()) return broken;
  }
  if (auto broken = audit_open_rows(clean)) return broken;
  if (clean != clean_slots_) return "clean units are miscounted";
  return std::nullopt;
}

}  // namespace spillway::ssd
