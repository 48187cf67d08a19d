#include "ssd/ftl/ftl.h"

#include <algorithm>
#include <bit>
#include <cassert>

namespace spillway::ssd {
namespace {

// How many physical units before its relocation the map entry of a unit's owner is prefetched.
constexpr std::uint32_t kPrefetchRelocation = 12;
constexpr std::uint32_t kOwnersInALine = 64 / sizeof(std::uint32_t);

Layout in_slots(Layout layout, std::uint32_t slots_per_unit) {
  layout.data_units *= slots_per_unit;
  layout.reserve_units *= slots_per_unit;
  layout.collect_until_units *= slots_per_unit;
  layout.physical_units *= slots_per_unit;
  return layout;
}

}  // namespace

Ftl::Ftl(const SsdConfig& config, const Layout& layout, Counters* counters, std::uint64_t seed)
    : config_(config),
      layout_(in_slots(layout, config.slots_per_unit())),
      counters_(counters),
      compresses_(config.compresses()),
      slots_per_unit_(config.slots_per_unit()),
      slots_per_page_(config.geometry.units_per_page() * config.slots_per_unit()),
      slots_per_block_(config.geometry.units_per_block() * config.slots_per_unit()),
      pages_per_block_(config.geometry.pages_per_block),
      planes_per_die_(config.geometry.planes_per_die),
      dies_(config.geometry.dies()),
      slot_bytes_(config.geometry.mapping_unit_bytes / config.slots_per_unit()),
      entries_per_translation_unit_(config.geometry.mapping_unit_bytes / 4),
      logical_units_(static_cast<std::uint32_t>(layout.logical_units)),
      separate_(config.gc.separate_streams),
      slc_dynamic_until_(std::max<std::uint64_t>(
          1, static_cast<std::uint64_t>(config.slc_cache.dynamic_until * static_cast<double>(layout.logical_units)))),
      // Without spare space a victim that frees almost nothing costs a whole erase block of programs. Sequential
      // writes, the only ones that such a drive can accept, soon leave better victims.
      least_gain_(config.capacity.spare_factor < 0.01 ? std::max(1U, slots_per_block_ / 2) : 1),
      map_(layout.logical_units + layout.translation_units, static_cast<std::uint32_t>(layout_.physical_units)),
      owner_(layout_.physical_units, static_cast<std::uint32_t>(layout.logical_units + layout.translation_units)),
      valid_((layout_.physical_units + 63) / 64),
      slots_(config.compresses() ? layout.logical_units + layout.translation_units : 0),
      blocks_(config, layout.blocks),
      mapping_(config.mapping_cache.bytes / 8, layout.logical_units, entries_per_translation_unit_),
      clean_slots_(layout_.physical_units),
      random_(mix(seed)) {
  for (auto& s : streams_) s.rows.resize(dies_);
  stream(StreamId::slc).slc = true;
  erases_until_levelling_ = layout.blocks;
  if (config.mapping.scheme != MappingScheme::page) block_mapping_.emplace(*this, config, layout);
}

// --- Space

bool Ftl::ensure_clean_space(FlashContext context) {
  std::uint64_t needed = std::uint64_t{planes_per_die_} * slots_per_page_;
  if (layout_.slc_pages != 0) {
    drop_dead_rows(context);
    if (next_slc_row_is_dynamic()) needed += std::uint64_t{planes_per_die_} * slots_per_block_;
  }
  if (!must_fold()) return collect_garbage(context, needed);
  const bool made =
      collect_garbage(context, needed + std::uint64_t{planes_per_die_} * layout_.slc_pages * slots_per_page_);
  return made && (!must_fold() || fold_row(context));
}

// Collects garbage until `needed` slots are clean for host data. False if that is impossible, even with work in
// progress.
bool Ftl::collect_garbage(FlashContext context, std::uint64_t needed) {
  if (clean_slots_ >= reserve_units() + needed) return true;
  // The reserve stays clean for relocation. A victim without gain ends the loop, unless the SLC cache can release
  // flash.
  const std::uint64_t wanted = std::max(layout_.collect_until_units - layout_.reserve_units, needed);
  while (clean_slots_ < reserve_units() + wanted) {
    // The SLC cache's dynamic part is folded first: in SLC mode a row takes several times the flash that its data
    // needs.
    if (slc_blocks_ > layout_.slc_blocks && slc_blocks_ > most_slc_blocks() && fold_row(context)) continue;
    if (collect_one(context)) continue;
    if (slc_blocks_ <= layout_.slc_blocks || !fold_row(context)) break;
  }
  const std::uint64_t floor = (std::uint64_t{dies_} * planes_per_die_ + 2) * slots_per_block_;
  return clean_slots_ >= reserve_units() - layout_.reserve_units + std::min(floor, layout_.reserve_units);
}

bool Ftl::collect_one(FlashContext context) {
  std::uint32_t victim = blocks_.pick_victim(random_);
  if (victim == kNoBlock) return false;
  if (compresses_ && may_not_pay(victim)) {
    victim = least_to_move();
    if (most_to_move(victim) + least_gain_ > slots_per_block_) return false;
  } else if (blocks_[victim].valid + least_gain_ > slots_per_block_) {
    // FIFO and d-choices may choose a block that frees nothing, which is part of their cost. Where a policy considers
    // every block and its choice frees nothing, collection cannot help.
    if (considers_every_block(config_.gc.policy) || least_gain_ > 1 || !anything_to_free()) return false;
  }
  ++counters_->gc_victims;
  counters_->gc_victim_valid_units += compresses_ ? valid_units(victim) : blocks_[victim].valid;
  relocate(context, victim, FlashCause::gc);
  level_wear(context);
  return true;
}

// Whether some closed block has an invalid unit.
bool Ftl::anything_to_free() const {
  const std::uint64_t current =
      compresses_ ? valid_slots() : mapped_units_ - blocks_.cached_units() + layout_.translation_units;
  const std::uint64_t open_at_most = kMainStreams * std::uint64_t{dies_} * planes_per_die_ * slots_per_block_;
  const std::uint64_t main_units = layout_.physical_units - std::uint64_t{slc_blocks_} * slots_per_block_;
  if (main_units - clean_slots_ > current + open_at_most) return true;
  const std::uint32_t best = blocks_.fewest_valid_closed();
  return best != kNoBlock && blocks_[best].valid < slots_per_block_;
}

void Ftl::relocate(FlashContext context, std::uint32_t block, FlashCause cause) {
  blocks_.begin_collecting(block);
  const std::uint32_t first = block * slots_per_block_;
  for (std::uint32_t i = 0; i < slots_per_block_; i += kOwnersInALine) prefetch(owner_.address(first + i));
  move_pages(context, block, 0, pages_per_block_, cause);
  free_block(block);
  if (context.array != nullptr) queue_erase(context, block, false);
}

// Relocates the valid units of pages [begin, end). Returns the slots that they took. Does not change the block's valid
// count.
std::uint32_t Ftl::move_pages(FlashContext context, std::uint32_t block, std::uint32_t begin, std::uint32_t end,
                              FlashCause cause) {
  Stream& to = stream(StreamId::relocation);
  const std::uint32_t first = block * slots_per_block_;
  const std::uint32_t programmed_pages = blocks_[block].programmed_pages;
  std::uint32_t moved = 0;
  for (std::uint32_t page = begin; page < end; ++page) {
    std::uint32_t read = kNoOp;
    for (std::uint32_t i = 0; i < slots_per_page_; ++i) {
      const std::uint32_t from = first + page * slots_per_page_ + i;
      const std::uint32_t ahead = from + kPrefetchRelocation;
      if (ahead < first + slots_per_block_ && is_valid(ahead)) {
        const std::uint32_t coming = owner_[ahead];
        prefetch(map_.address(coming));
        if (!mapping_.holds_everything()) mapping_.prefetch(coming);
      }
      if (!is_valid(from)) continue;
      const std::uint32_t slots = slots_of(owner_[from]);
      moved += slots;
      if (context.array != nullptr && read == kNoOp && page < programmed_pages) {
        read = context.array->new_op();
        FlashOp& op = context.array->op(read);
        op.purpose = ReadPurpose::relocation;
        op.die = blocks_.plane_of(block) / planes_per_die_;
        op.plane = static_cast<std::uint8_t>(blocks_.plane_of(block) % planes_per_die_);
        op.page = page;
        op.slc = cause == FlashCause::fold;
      }
      valid_[from / 64] &= ~(std::uint64_t{1} << (from % 64));
      const std::uint32_t unit = owner_[from];
      place(context, to, unit, cause, read);
      if (unit < logical_units_) mapping_.change_if_cached(unit);
      counters_->nand_bytes_read[static_cast<std::size_t>(cause)] += std::uint64_t{slots} * slot_bytes_;
      if (read != kNoOp) context.array->op(read).bytes += slots * slot_bytes_;
    }
    if (read != kNoOp) context.array->enqueue(context.now, read);
  }
  return moved;
}

// REQUIRES: the block is being collected and has no valid unit left
void Ftl::free_block(std::uint32_t block) {
  blocks_[block].valid = 0;
  blocks_.erase(block);
  clean_slots_ += slots_per_block_;
  ++counters_->erases;
}

// One erase operation for this block and the other planes' blocks of its row.
void Ftl::queue_erase(FlashContext context, std::uint32_t block, bool folded) {
  const std::uint32_t erase = context.array->new_op();
  FlashOp& op = context.array->op(erase);
  op.kind = OpKind::erase;
  op.die = blocks_.plane_of(block) / planes_per_die_;
  op.slc = folded;
  context.array->set_writable(op.die, true);
  context.array->enqueue(context.now, erase);
}

// Static wear levelling: every so many erases the data of the least worn block is moved, so that the block is reused.
void Ftl::level_wear(FlashContext context) {
  if (config_.wear_levelling.static_threshold_pe == 0 || levelling_) return;
  if (--erases_until_levelling_ > 0) return;
  erases_until_levelling_ = std::max<std::uint64_t>(1, layout_.blocks / 8);  // each time scans all blocks
  std::uint32_t spread = 0;
  const std::uint32_t least_worn = blocks_.least_worn_closed(&spread);
  if (least_worn == kNoBlock || spread <= config_.wear_levelling.static_threshold_pe) return;
  levelling_ = true;
  erases_until_levelling_ = 1;  // repeat until the spread is below the threshold
  ++counters_->wear_moves;
  relocate(context, least_worn, FlashCause::wear);
  levelling_ = false;
}

bool Ftl::has_free_block(std::uint32_t die, std::uint32_t spare_blocks) const {
  for (std::uint32_t plane = 0; plane < planes_per_die_; ++plane) {
    if (blocks_.free_in_plane(die * planes_per_die_ + plane) > spare_blocks) return true;
  }
  return false;
}

// Opens a block in every plane of the die that has more than `spare_blocks` free ones.
bool Ftl::open_row(Stream& s, std::uint32_t die, std::uint32_t spare_blocks) {
  Row& row = s.rows[die];
  row.planes = 0;
  row.page = 0;
  for (std::uint32_t plane = 0; plane < planes_per_die_; ++plane) {
    const std::uint32_t index = die * planes_per_die_ + plane;
    if (blocks_.free_in_plane(index) > spare_blocks) row.blocks[row.planes++] = blocks_.open(index, s.slc);
  }
  if (s.slc) {  // the SLC cache alone uses their pages
    slc_blocks_ += row.planes;
    clean_slots_ -= std::uint64_t{row.planes} * slots_per_block_;
  }
  return row.planes > 0;
}

// The next die, round robin, on which the stream has an open row or can open one. Relocated data opens rows only where
// at least as many blocks are free as on the average plane: victims are chosen drive-wide, and this keeps free blocks
// on every die for host data.
std::uint32_t Ftl::pick_die(Stream& s) {
  const std::uint32_t average = blocks_.free_total() / (dies_ * planes_per_die_);
  std::uint32_t spare = &s == &streams_[0] || average == 0 ? 0 : average - 1;
  for (;;) {
    for (std::uint32_t tried = 0; tried < dies_; ++tried) {
      const std::uint32_t die = s.next_die;
      s.next_die = die + 1 == dies_ ? 0 : die + 1;
      if (s.rows[die].planes > 0 || (has_free_block(die, spare) && open_row(s, die, spare))) return die;
    }
    assert(spare > 0 && "the reserve covers every open row");
    spare = 0;
  }
}

bool Ftl::can_begin_host_step(std::uint32_t die) const {
  if (only_slc()) return slc_takes(die);
  return streams_[0].rows[die].planes > 0 || has_free_block(die, 0) || slc_takes(die);
}

void Ftl::begin_host_step(std::uint32_t die) {
  assert(!host_step_open());
  host_ = static_cast<std::size_t>(slc_takes(die) ? StreamId::slc : StreamId::host);
  Stream& s = streams_[host_];
  if (s.open) return;  // preconditioning has opened it
  if (s.rows[die].planes == 0) open_row(s, die, 0);
  begin_step(s, die);
}

void Ftl::begin_step(Stream& s, std::uint32_t die) {
  const Row& row = s.rows[die];
  s.open = true;
  s.die = die;
  s.used_slots = 0;
  s.by_cause = {};
  s.capacity = row.planes * slots_per_page_;
  if (!s.slc) clean_slots_ -= s.capacity;
  s.step = kNoStep;
}

// Creates the program of the open step. A step that preconditioning began gets it at the first write with an array.
void Ftl::ensure_program(FlashContext context, Stream& s) {
  if (context.array == nullptr || s.step != kNoStep) return;
  const Row& row = s.rows[s.die];
  s.step = context.array->new_step();
  ProgramStep& step = context.array->step(s.step);
  step.die = s.die;
  step.planes = row.planes;
  step.page = row.page;
  step.slc = s.slc;
  step.blocks = row.blocks;
  for (std::uint32_t i = 0; i < row.planes; ++i) step.erase_counts[i] = blocks_[row.blocks[i]].erases;
}

void Ftl::finish_step(FlashContext context, Stream& s) {
  Row& row = s.rows[s.die];
  if (context.array != nullptr) {
    ensure_program(context, s);
    ProgramStep& step = context.array->step(s.step);
    step.complete = true;
    step.folds = s.by_cause[static_cast<std::size_t>(FlashCause::fold)] != 0;
    if (step.folds) ++folds_in_flight_;
    if (step.host_units > 0) step.sequence = ++host_steps_;
    context.array->program_if_ready(context.now, s.step);
  } else {
    for (std::uint32_t i = 0; i < row.planes; ++i) blocks_[row.blocks[i]].programmed_pages = row.page + 1;
  }
  for (std::size_t cause = 0; cause < kFlashCauses; ++cause) {
    counters_->nand_bytes_programmed[cause] += std::uint64_t{s.by_cause[cause]} * slot_bytes_;
  }
  counters_->nand_pages_programmed += row.planes;
  s.step = kNoStep;
  s.open = false;
  if (s.slc) counters_->slc_bytes_programmed += std::uint64_t{s.capacity} * slot_bytes_;
  if (++row.page == (s.slc ? layout_.slc_pages : pages_per_block_)) {
    for (std::uint32_t i = 0; i < row.planes; ++i) blocks_.close(row.blocks[i]);
    if (s.slc) slc_rows_.push(row);
    row.planes = 0;
  }
}

std::uint64_t Ftl::detach_programs(FlashArray& array) {
  std::uint64_t host_units = 0;
  for (auto& s : streams_) {
    if (s.step == kNoStep) continue;
    host_units += array.step(s.step).host_units;
    array.free_step(s.step);
    s.step = kNoStep;
  }
  if (block_mapping_) host_units += block_mapping_->detach_programs(array);
  return host_units;
}

void Ftl::programmed(const ProgramStep& step) {
  if (step.folds) --folds_in_flight_;
  for (std::uint32_t i = 0; i < step.planes; ++i) {
    Block& block = blocks_[step.blocks[i]];
    if (block.erases == step.erase_counts[i]) block.programmed_pages += step.pages;
  }
}

// --- Data

// Maps `unit` to the next slot of the stream. `read`: the flash read that its data comes from, or kNoOp.
void Ftl::place(FlashContext context, Stream& s, std::uint32_t unit, FlashCause cause, std::uint32_t read) {
  const std::uint32_t slots = slots_of(unit);
  if (compresses_) pad_unless_fits(context, s, slots, cause);
  if (!s.open) begin_step(s, pick_die(s));
  ensure_program(context, s);
  const Row& row = s.rows[s.die];
  const std::uint32_t block = row.blocks[s.used_slots / slots_per_page_];
  const std::uint32_t to = block * slots_per_block_ + row.page * slots_per_page_ + s.used_slots % slots_per_page_;
  map_.set(unit, to + 1);
  owner_.set(to, unit);
  valid_[to / 64] |= std::uint64_t{1} << (to % 64);
  blocks_.add_valid(block, slots);
  s.by_cause[static_cast<std::size_t>(cause)] += slots;
  const std::uint32_t step_id = s.step;
  if (step_id != kNoStep && read != kNoOp) {
    FlashOp& op = context.array->op(read);
    if (op.steps[0] != step_id && op.steps[1] != step_id) {
      op.steps[op.steps[0] == kNoStep ? 0 : 1] = step_id;
      ++context.array->step(step_id).reads_pending;
    }
  }
  s.used_slots += slots;
  if (s.used_slots == s.capacity) finish_step(context, s);
}

void Ftl::unmap(std::uint32_t unit) {
  const std::uint32_t old = map_[unit];
  if (old == 0) return;
  const std::uint32_t from = old - 1;
  map_.set(unit, 0);
  valid_[from / 64] &= ~(std::uint64_t{1} << (from % 64));
  blocks_.remove_valid(from / slots_per_block_, slots_of(unit));
  if (unit < logical_units_) --mapped_units_;
}

void Ftl::write(FlashContext context, std::uint32_t unit, std::uint32_t owner, std::uint8_t slots) {
  Stream& s = streams_[host_];
  assert(s.open);
  ensure_program(context, s);
  if (context.array != nullptr) {
    ProgramStep& step = context.array->step(s.step);
    ++step.host_units;
    if (owner != kNoCommand) step.owners.push_back(owner);
  }
  unmap(unit);
  ++mapped_units_;
  if (compresses_) slots_[unit] = slots;
  place(context, s, unit, FlashCause::host, kNoOp);
  if (s.slc) blocks_.add_cached();
  update_map_entry(context, unit);
}

void Ftl::write_untimed(std::uint32_t unit, std::uint8_t slots) {
  Stream& s = streams_[0];
  unmap(unit);
  ++mapped_units_;
  if (compresses_) slots_[unit] = slots;
  place({}, s, unit, FlashCause::host, kNoOp);
}

void Ftl::pad_host_step(FlashContext context) {
  Stream& s = streams_[host_];
  if (!s.open) return;
  counters_->nand_bytes_padded += std::uint64_t{s.capacity - s.used_slots} * slot_bytes_;
  s.by_cause[static_cast<std::size_t>(FlashCause::host)] += s.capacity - s.used_slots;
  finish_step(context, s);
}

void Ftl::deallocate(FlashContext context, std::uint32_t unit) {
  if (map_[unit] == 0) return;
  unmap(unit);
  update_map_entry(context, unit);
}

// --- The map

// The entry of a unit that was just written changes, and enters the cache as changed.
void Ftl::update_map_entry(FlashContext context, std::uint32_t unit) {
  if (mapping_.holds_everything()) return;
  const auto outcome = mapping_.access(unit, true);
  ++(outcome.hit ? counters_->mapping_cache_hits : counters_->mapping_cache_misses);
  if (!outcome.hit) {
    // No command waits for this read: the write needs the old address only to invalidate it.
    const std::uint32_t read = translation_read(context, translation_unit_of(unit), ReadPurpose::background);
    if (read != kNoOp) context.array->enqueue(context.now, read);
  }
  if (outcome.write_back != MappingCache::kNone) write_translation_unit(context, outcome.write_back);
  const std::uint32_t next = mapping_.next_to_evict();
  if (next != MappingCache::kNone) prefetch_physical(map_[logical_units_ + translation_unit_of(next)]);
}

std::uint32_t Ftl::look_up_for_read(FlashContext context, std::uint32_t unit, std::uint32_t previous_translation_unit) {
  if (mapping_.holds_everything()) return kNoOp;
  const auto outcome = mapping_.access(unit, false);
  ++(outcome.hit ? counters_->mapping_cache_hits : counters_->mapping_cache_misses);
  if (outcome.write_back != MappingCache::kNone) write_translation_unit(context, outcome.write_back);
  if (outcome.hit || translation_unit_of(unit) == previous_translation_unit) return kNoOp;
  return translation_read(context, translation_unit_of(unit), ReadPurpose::mapping);
}

// Reads a translation unit from flash. kNoOp if it is in the controller or was never written.
std::uint32_t Ftl::translation_read(FlashContext context, std::uint32_t translation_unit, ReadPurpose purpose) {
  const std::uint32_t from = physical(logical_units_ + translation_unit);
  if (from == kUnmapped || in_controller(from)) return kNoOp;
  counters_->nand_bytes_read[static_cast<std::size_t>(FlashCause::mapping)] += config_.geometry.mapping_unit_bytes;
  if (context.array == nullptr) return kNoOp;
  const std::uint32_t read = context.array->new_op();
  FlashOp& op = context.array->op(read);
  op.purpose = purpose;
  op.die = plane_of(from) / planes_per_die_;
  op.plane = static_cast<std::uint8_t>(plane_of(from) % planes_per_die_);
  op.page = page_of(from);
  op.bytes = config_.geometry.mapping_unit_bytes;
  return read;
}

// Reads, changes and programs a translation unit. False if there was no clean space for it.
bool Ftl::write_translation_unit(FlashContext context, std::uint32_t translation_unit) {
  Stream& s = stream(StreamId::mapping);
  if ((!s.open || !fits(s, slots_per_unit_)) && !ensure_clean_space(context)) return false;
  const std::uint32_t read = translation_read(context, translation_unit, ReadPurpose::relocation);
  const std::uint32_t unit = logical_units_ + translation_unit;
  unmap(unit);
  if (compresses_) slots_[unit] = static_cast<std::uint8_t>(slots_per_unit_);
  place(context, s, unit, FlashCause::mapping, read);
  if (read != kNoOp) context.array->enqueue(context.now, read);
  return true;
}

}  // namespace spillway::ssd
