#include "ssd/ftl/block_mapping.h"

#include <algorithm>
#include <cassert>
#include <type_traits>

#include "ssd/ftl/ftl.h"

namespace spillway::ssd {

BlockMapping::BlockMapping(Ftl& ftl, const SsdConfig& config, const Layout& layout)
    : ftl_(ftl),
      hybrid_(config.mapping.scheme == MappingScheme::hybrid),
      dies_(config.geometry.dies()),
      planes_per_die_(config.geometry.planes_per_die),
      pages_per_block_(config.geometry.pages_per_block),
      units_per_page_(config.geometry.units_per_page()),
      step_units_(config.geometry.planes_per_die * config.geometry.units_per_page()),
      logs_per_die_(layout.log_rows),
      rows_(std::size_t{layout.data_rows} * config.geometry.dies()),
      logs_(config.geometry.dies()) {}

// --- Host writes

void BlockMapping::open(FlashContext context, std::uint32_t unit) {
  assert(!host_.open);
  const Place at = place_of(unit);
  host_ = Step();
  host_.open = true;
  host_.row = at.row;
  host_.page = at.page;
  find_room(context, host_);
}

bool BlockMapping::write(FlashContext context, std::uint32_t unit, std::uint32_t owner) {
  assert(takes(unit));
  LogicalRow& r = rows_[host_.row];
  Row& to = host_.to_log ? r.log : r.data;
  ensure_program(context, host_, to);
  const std::uint32_t index = unit % step_units_;
  const bool is_new = !host_.has[index];
  if (context.array != nullptr) {
    ProgramStep& step = context.array->step(host_.program);
    step.host_units += is_new ? 1 : 0;
    if (owner != kNoCommand) step.owners.push_back(owner);
  }
  host_.by_cause[static_cast<std::size_t>(FlashCause::host)] += is_new ? 1 : 0;
  ftl_.unmap(unit);
  ++ftl_.mapped_units_;
  put(host_, to, unit, index);
  if (host_.has.count() == step_units_) complete(context);
  return is_new;
}

void BlockMapping::complete(FlashContext context) {
  if (!host_.open) return;
  LogicalRow& r = rows_[host_.row];
  Row& to = host_.to_log ? r.log : r.data;
  take_old(context, host_, to, FlashCause::gc);
  program(context, host_, to, FlashCause::host);
  host_.open = false;
  // A log that is full and in order becomes the data row at once: waiting would gain nothing.
  if (host_.to_log && r.log_in_order && r.log.page == pages_per_block_) merge(context, host_.row);
  level_wear(context);
}

void BlockMapping::overwrite(std::uint32_t unit) {
  if (!takes(unit)) {
    complete({});
    open({}, unit);
  }
  write({}, unit, kNoCommand);
}

// Chooses the row for the super page, and merges rows to free one if necessary.
void BlockMapping::find_room(FlashContext context, Step& step) {
  LogicalRow& r = rows_[step.row];
  const bool too_late = r.log.page == pages_per_block_ || (!hybrid_ && step.page < r.log.page);
  if (r.log.planes > 0 && too_late) merge(context, step.row);
  if (r.log.planes == 0) {
    if (r.data.planes == 0) r.data = open_row(step.row % dies_);
    if (step.page >= r.data.page) {
      step.to_page = step.page;
      return;
    }
    begin_log(context, step.row);
  }
  step.to_log = true;
  touch_log(step.row);
  if (hybrid_) {
    step.to_page = r.log.page;
    r.log_in_order = r.log_in_order && step.to_page == step.page;
    return;
  }
  step.to_page = step.page;
  for (std::uint32_t page = r.log.page; page < step.page; ++page) {
    copy_page(context, step.row, page, r.log, FlashCause::gc);
  }
}

// --- Logs

void BlockMapping::begin_log(FlashContext context, std::uint32_t row) {
  auto& logs = logs_[row % dies_];
  if (logs.size() == logs_per_die_) merge(context, logs.begin()->second);
  LogicalRow& r = rows_[row];
  r.log = open_row(row % dies_);
  r.log_in_order = true;
  r.log_used = 0;
}

void BlockMapping::touch_log(std::uint32_t row) {
  auto& logs = logs_[row % dies_];
  LogicalRow& r = rows_[row];
  logs.erase(r.log_used);
  r.log_used = ++super_pages_;
  logs.emplace(r.log_used, row);
}

void BlockMapping::drop_log(std::uint32_t row) {
  LogicalRow& r = rows_[row];
  logs_[row % dies_].erase(r.log_used);
  r.log = Row();
}

// Ends the logical row's log: its data is in one row afterwards.
void BlockMapping::merge(FlashContext context, std::uint32_t row) {
  LogicalRow& r = rows_[row];
  if (!r.log_in_order) {
    ++ftl_.counters_->full_merges;
    copy_all(context, row, FlashCause::gc);
    return;
  }
  bool copied = false;
  for (std::uint32_t page = r.log.page; page < pages_per_block_; ++page) {
    copied = copy_page(context, row, page, r.log, FlashCause::gc) || copied;
  }
  ++(copied ? ftl_.counters_->partial_merges : ftl_.counters_->switch_merges);
  erase_row(context, r.data);
  r.data = r.log;
  drop_log(row);
}

// Copies the logical row's data to a free row. The layout reserves one, so there always is one.
void BlockMapping::copy_all(FlashContext context, std::uint32_t row, FlashCause cause) {
  LogicalRow& r = rows_[row];
  Row to = open_row(row % dies_);
  for (std::uint32_t page = 0; page < pages_per_block_; ++page) copy_page(context, row, page, to, cause);
  erase_row(context, r.data);
  if (r.log.planes > 0) {
    erase_row(context, r.log);
    drop_log(row);
  }
  r.data = to;
}

// Static wear levelling: at intervals, moves the logical row on the least worn erase block, so that the block is
// reused.
void BlockMapping::level_wear(FlashContext context) {
  const std::uint32_t threshold = ftl_.config_.wear_levelling.static_threshold_pe;
  if (threshold == 0 || ftl_.erases_until_levelling_ > 0) return;
  ftl_.erases_until_levelling_ = std::max<std::uint64_t>(1, ftl_.layout_.blocks / 8);  // each time scans all blocks
  std::uint32_t spread = 0;
  const std::uint32_t least_worn = ftl_.blocks_.least_worn_closed(&spread);
  if (least_worn == kNoBlock || spread <= threshold) return;
  const auto holds = [least_worn](const Row& row) {
    return std::find(row.blocks.begin(), row.blocks.begin() + row.planes, least_worn) !=
           row.blocks.begin() + row.planes;
  };
  for (std::uint32_t row = 0; row < rows_.size(); ++row) {
    if (!holds(rows_[row].data) && !holds(rows_[row].log)) continue;
    ++ftl_.counters_->wear_moves;
    copy_all(context, row, FlashCause::wear);
    return;
  }
}

// --- Super pages

// Copies a super page to its own page of a row, unless nothing of it holds data.
bool BlockMapping::copy_page(FlashContext context, std::uint32_t row, std::uint32_t page, Row& to, FlashCause cause) {
  Step step;
  step.row = row;
  step.page = page;
  step.to_page = page;
  if (!take_old(context, step, to, cause)) return false;
  program(context, step, to, cause);
  return true;
}

// Adds the super page's data from other rows to the step. False if there is none.
bool BlockMapping::take_old(FlashContext context, Step& step, const Row& to, FlashCause cause) {
  const std::uint32_t first = first_unit(step.row, step.page);
  std::uint32_t read = kNoOp;
  std::uint32_t read_page = Ftl::kUnmapped;  // the flash page, within the drive, that it reads
  bool any = false;
  const auto queue_read = [&] {
    if (read != kNoOp) context.array->enqueue(context.now, read);
    read = kNoOp;
  };
  for (std::uint32_t index = 0; index < step_units_ && first + index < ftl_.logical_units_; ++index) {
    const std::uint32_t unit = first + index;
    const std::uint32_t from = ftl_.physical(unit);
    if (from == Ftl::kUnmapped || step.has[index]) continue;
    any = true;
    ensure_program(context, step, to);
    if (context.array != nullptr && from / units_per_page_ != read_page) {
      queue_read();
      read_page = from / units_per_page_;
      if (!ftl_.in_controller(from)) {
        read = context.array->new_op();
        FlashOp& op = context.array->op(read);
        op.purpose = ReadPurpose::relocation;
        op.die = ftl_.plane_of(from) / planes_per_die_;
        op.plane = static_cast<std::uint8_t>(ftl_.plane_of(from) % planes_per_die_);
        op.page = ftl_.page_of(from);
        op.steps[0] = step.program;
        ++context.array->step(step.program).reads_pending;
      }
    }
    if (read != kNoOp) context.array->op(read).bytes += ftl_.slot_bytes_;
    ftl_.counters_->nand_bytes_read[static_cast<std::size_t>(cause)] += ftl_.slot_bytes_;
    ++step.by_cause[static_cast<std::size_t>(cause)];
    ftl_.unmap(unit);
    ++ftl_.mapped_units_;
    put(step, to, unit, index);
  }
  queue_read();
  return any;
}

// REQUIRES: the unit is not mapped
void BlockMapping::put(Step& step, const Row& to, std::uint32_t unit, std::uint32_t index) {
  const std::uint32_t at = physical(to, step.to_page, index);
  ftl_.map_.set(unit, at + 1);
  ftl_.owner_.set(at, unit);
  ftl_.valid_[at / 64] |= std::uint64_t{1} << (at % 64);
  ftl_.blocks_.add_valid(ftl_.block_of(at));
  step.has.set(index);
}

void BlockMapping::ensure_program(FlashContext context, Step& step, const Row& to) {
  if (context.array == nullptr || step.program != kNoStep) return;
  step.program = context.array->new_step();
  ProgramStep& program = context.array->step(step.program);
  program.die = step.row % dies_;
  program.planes = to.planes;
  program.page = step.to_page;
  program.pages = step.to_page + 1 - to.page;
  program.blocks = to.blocks;
  for (std::uint32_t i = 0; i < to.planes; ++i) program.erase_counts[i] = ftl_.blocks_[to.blocks[i]].erases;
}

void BlockMapping::program(FlashContext context, Step& step, Row& to, FlashCause padding) {
  const std::uint32_t empty = step_units_ - static_cast<std::uint32_t>(step.has.count());
  step.by_cause[static_cast<std::size_t>(padding)] += empty;
  ftl_.counters_->nand_bytes_padded += std::uint64_t{empty} * ftl_.slot_bytes_;
  for (std::size_t cause = 0; cause < kFlashCauses; ++cause) {
    ftl_.counters_->nand_bytes_programmed[cause] += std::uint64_t{step.by_cause[cause]} * ftl_.slot_bytes_;
  }
  ftl_.counters_->nand_pages_programmed += to.planes;
  if (context.array != nullptr) {
    ensure_program(context, step, to);
    ProgramStep& program = context.array->step(step.program);
    program.complete = true;
    if (program.host_units > 0) program.sequence = ++ftl_.host_steps_;
    context.array->program_if_ready(context.now, step.program);
  } else {
    for (std::uint32_t i = 0; i < to.planes; ++i) ftl_.blocks_[to.blocks[i]].programmed_pages = step.to_page + 1;
  }
  step.program = kNoStep;
  to.page = step.to_page + 1;
  if (to.page == pages_per_block_) {
    for (std::uint32_t i = 0; i < to.planes; ++i) ftl_.blocks_.close(to.blocks[i]);
  }
}

// --- Rows of erase blocks

Row BlockMapping::open_row(std::uint32_t die) {
  Row row;
  for (std::uint32_t plane = 0; plane < planes_per_die_; ++plane) {
    row.blocks[row.planes++] = ftl_.blocks_.open(die * planes_per_die_ + plane, false);
  }
  ftl_.clean_slots_ -= std::uint64_t{row.planes} * ftl_.slots_per_block_;
  return row;
}

// REQUIRES: no valid data in it
void BlockMapping::erase_row(FlashContext context, Row& row) {
  for (std::uint32_t i = 0; i < row.planes; ++i) {
    const std::uint32_t block = row.blocks[i];
    assert(ftl_.blocks_[block].valid == 0);
    if (ftl_.blocks_[block].state == BlockState::open) ftl_.blocks_.close(block);
    ftl_.blocks_.begin_collecting(block);
    ftl_.free_block(block);
  }
  ftl_.erases_until_levelling_ -= std::min<std::uint64_t>(ftl_.erases_until_levelling_, row.planes);
  if (context.array != nullptr) ftl_.queue_erase(context, row.blocks[0], false);
  row = Row();
}

// --- State

std::uint64_t BlockMapping::detach_programs(FlashArray& array) {
  if (host_.program == kNoStep) return 0;
  const std::uint64_t host_units = array.step(host_.program).host_units;
  array.free_step(host_.program);
  host_.program = kNoStep;
  return host_units;
}

bool BlockMapping::visit_state(const std::function<bool(void* bytes, std::size_t size)>& visit, bool loading) {
  const auto field = [&visit](auto& value) {
    static_assert(std::is_trivially_copyable_v<std::remove_reference_t<decltype(value)>>);
    return visit(&value, sizeof(value));
  };
  for (LogicalRow& r : rows_) {
    for (Row* const row : {&r.data, &r.log}) {
      if (!field(row->blocks) || !field(row->planes) || !field(row->page)) return false;
      if ((row->planes != 0 && row->planes != planes_per_die_) || row->page > pages_per_block_) return false;
    }
    if (!field(r.log_used) || !field(r.log_in_order)) return false;
  }
  if (!field(super_pages_) || !field(host_.open) || !field(host_.to_log) || !field(host_.row) || !field(host_.page) ||
      !field(host_.to_page) || !field(host_.by_cause) || !field(host_.has)) {
    return false;
  }
  if (host_.row >= rows_.size() || host_.page >= pages_per_block_ || host_.to_page >= pages_per_block_) return false;
  return !loading || rebuild_logs();
}

// Derives each die's logs from the rows. False if the rows are inconsistent.
bool BlockMapping::rebuild_logs() {
  host_.program = kNoStep;
  for (auto& logs : logs_) logs.clear();
  for (std::uint32_t row = 0; row < rows_.size(); ++row) {
    if (rows_[row].log.planes == 0) continue;
    if (!logs_[row % dies_].emplace(rows_[row].log_used, row).second) return false;
  }
  return std::all_of(logs_.begin(), logs_.end(), [this](const auto& logs) { return logs.size() <= logs_per_die_; });
}

// Checks the erase blocks of a logical row, and that its units are in the right places.
std::optional<std::string> BlockMapping::audit_row(std::uint32_t row, std::vector<bool>& taken) const {
  const LogicalRow& r = rows_[row];
  const std::string name = "logical row " + std::to_string(row);
  for (const Row* const at : {&r.data, &r.log}) {
    for (std::uint32_t i = 0; i < at->planes; ++i) {
      const std::uint32_t block = at->blocks[i];
      if (block >= ftl_.blocks_.size() || taken[block]) return name + " shares an erase block with another";
      taken[block] = true;
      const BlockState expected = at->page == pages_per_block_ ? BlockState::closed : BlockState::open;
      if (ftl_.blocks_[block].state != expected) return name + " has an erase block in the wrong state";
      if (ftl_.blocks_.plane_of(block) != row % dies_ * planes_per_die_ + i) return name + " lies on another die";
    }
  }
  for (std::uint32_t page = 0; page < pages_per_block_; ++page) {
    const std::uint32_t first = first_unit(row, page);
    for (std::uint32_t index = 0; index < step_units_ && first + index < ftl_.logical_units_; ++index) {
      const std::uint32_t at = ftl_.physical(first + index);
      if (at == Ftl::kUnmapped || (r.data.planes > 0 && at == physical(r.data, page, index))) continue;
      const std::uint32_t log_page = ftl_.page_of(at);
      if (r.log.planes == 0 || at != physical(r.log, log_page, index)) return name + " has a unit out of its place";
      if (r.log_in_order && log_page != page) return name + " has a log that is not in order";
    }
  }
  return std::nullopt;
}

std::optional<std::string> BlockMapping::audit() const {
  std::vector<bool> taken(ftl_.blocks_.size());
  std::size_t logs = 0;
  for (std::uint32_t row = 0; row < rows_.size(); ++row) {
    if (auto broken = audit_row(row, taken)) return broken;
    logs += rows_[row].log.planes > 0 ? 1 : 0;
  }
  for (const auto& of_die : logs_) logs -= of_die.size();
  if (logs != 0) return "logs are miscounted";
  for (std::uint32_t block = 0; block < taken.size(); ++block) {
    if (taken[block] == (ftl_.blocks_[block].state == BlockState::free)) return "an erase block belongs to no row";
  }
  return std::nullopt;
}

}  // namespace spillway::ssd
