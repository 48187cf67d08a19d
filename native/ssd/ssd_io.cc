// Commands once they have been fetched: reads, writes, flushes, deallocations, and programming the write cache.
#include <algorithm>
#include <utility>

#include "ssd/ssd_impl.h"
#include "ssd/structures/prefetch.h"

namespace spillway::ssd {
namespace {

// How many units before a write its map entry, and then its old place, are prefetched: a write takes some 300 ns, a
// cache miss some 100 ns.
constexpr std::uint64_t kPrefetchEntry = 24;
constexpr std::uint64_t kPrefetchPlace = 12;
// How many admissions before its own a command, and then its first unit's place in the write cache's index, are
// prefetched.
constexpr std::size_t kPrefetchCommand = 8;
constexpr std::size_t kPrefetchAdmission = 4;

}  // namespace

// --- Reads

void Ssd::Impl::start_read(Nanos now, std::uint32_t slot) {
  const Command c = slots_[slot].command;
  ++counters_.host_reads;
  counters_.host_bytes_read += bytes_of(c);
  counters_.host_bytes_read_by_cause[c.cause] += bytes_of(c);
  read_units(now, slot, c.lba, c.lba_count);
  if (slots_[slot].remaining == 0) finish_read(now, slot);
}

// Queues the flash reads of these LBAs for the command.
void Ssd::Impl::read_units(Nanos now, std::uint32_t slot, std::uint64_t lba, std::uint32_t lba_count) {
  const FlashContext context{now, &array_};
  const auto first = static_cast<std::uint32_t>(lba / unit_lbas_);
  const auto units = static_cast<std::uint32_t>((lba + lba_count + unit_lbas_ - 1) / unit_lbas_ - lba / unit_lbas_);
  std::uint32_t map_read = kNoOp;   // the mapping read that the next data read waits for
  std::uint32_t map_unit = kNone;   // and its translation unit
  std::uint32_t data_read = kNoOp;  // the last data read, not yet queued
  const auto queue_data_read = [&] {
    if (data_read == kNoOp) return;
    if (map_read == kNoOp) {
      array_.enqueue(now, data_read);
    } else {
      array_.op(data_read).next = array_.op(map_read).chain;
      array_.op(map_read).chain = data_read;
    }
    data_read = kNoOp;
  };
  for (std::uint32_t i = 0; i < units; ++i) {
    const std::uint32_t unit = first + i;
    if (cache_.holds(unit)) {
      ++counters_.write_cache_read_hits;
      continue;
    }
    const std::uint32_t translation_unit = ftl_.translation_unit_of(unit);
    const std::uint32_t new_map_read = ftl_.look_up_for_read(context, unit, map_read != kNoOp ? map_unit : kNone);
    if (new_map_read != kNoOp || translation_unit != map_unit) {
      queue_data_read();
      if (map_read != kNoOp) array_.enqueue(now, map_read);
      map_read = new_map_read;
      map_unit = translation_unit;
    }
    const std::uint32_t physical = ftl_.physical(unit);
    if (physical == Ftl::kUnmapped) {
      ++counters_.unmapped_reads;
      continue;
    }
    if (ftl_.in_controller(physical)) {
      ++counters_.write_cache_read_hits;
      continue;
    }
    const std::uint64_t begin = std::max<std::uint64_t>(lba, std::uint64_t{unit} * unit_lbas_);
    const std::uint64_t end = std::min<std::uint64_t>(lba + lba_count, (std::uint64_t{unit} + 1) * unit_lbas_);
    // A compressed unit is read completely.
    auto bytes = static_cast<std::uint32_t>((end - begin) * config_.geometry.lba_bytes);
    if (ftl_.is_compressed(unit)) bytes = ftl_.bytes_of(unit);
    counters_.nand_bytes_read[static_cast<std::size_t>(FlashCause::host)] += bytes;
    const std::uint32_t op = read_unit(slot, physical, bytes, data_read);
    if (op != data_read) {
      queue_data_read();
      data_read = op;
    }
  }
  queue_data_read();
  if (map_read != kNoOp) array_.enqueue(now, map_read);
}

// The flash read of this unit: `previous` if that reads the same flash page, else a new one.
std::uint32_t Ssd::Impl::read_unit(std::uint32_t slot, std::uint32_t physical, std::uint32_t bytes,
                                   std::uint32_t previous) {
  const std::uint32_t plane = ftl_.plane_of(physical);
  const std::uint32_t flash_page = ftl_.flash_page_of(physical);
  if (previous != kNoOp && array_.op(previous).flash_page == flash_page) {
    array_.op(previous).bytes += bytes;
    return previous;
  }
  const std::uint32_t id = array_.new_op();
  FlashOp& op = array_.op(id);
  op.die = plane / config_.geometry.planes_per_die;
  op.plane = static_cast<std::uint8_t>(plane % config_.geometry.planes_per_die);
  op.page = ftl_.page_of(physical);
  op.flash_page = flash_page;
  op.slc = ftl_.is_slc(physical);
  op.bytes = bytes;
  op.command = slot;
  ++slots_[slot].remaining;
  return id;
}

void Ssd::Impl::finish_read(Nanos now, std::uint32_t slot) {
  if (slots_[slot].role != Role::block) {
    kv_->flash_done(now, slot);
    return;
  }
  const Nanos through = cross_link(link_up_free_at_, now, bytes_of(slots_[slot].command));
  read_done_.push(through + config_.timing.read_command_ns, slot);
}

// --- Writes, flushes, deallocations

void Ssd::Impl::arrive(Nanos now, std::uint32_t slot) {
  Slot& s = slots_[slot];
  if (s.outcome != Outcome::success) {
    finish_write(now, slot);
    return;
  }
  switch (s.command.op) {
    case Opcode::write:
      arrive_write(now, slot);
      break;
    case Opcode::deallocate:
      deallocate(now, slot);
      break;
    case Opcode::flush:
      ++counters_.host_flushes;
      if (config_.write_cache.power_loss_protection && cache_units_ != 0) {
        finish_write(now, slot);
      } else {
        s.flush_until = cache_.admitted();
        flushes_.push(slot);
        program_waiting(now);
        finish_flushes(now);
      }
      break;
    case Opcode::read:
      break;
    default:
      kv_->arrive(now, slot);
      break;
  }
}

void Ssd::Impl::arrive_write(Nanos now, std::uint32_t slot) {
  const Command c = slots_[slot].command;
  ++counters_.host_writes;
  counters_.host_bytes_written += bytes_of(c);
  counters_.host_bytes_written_by_cause[c.cause] += bytes_of(c);
  // P28: a write of part of a mapping unit has to read the rest of it first.
  const std::uint32_t first = first_unit(c);
  const std::uint32_t last = first + units_of(c) - 1;
  if (c.lba % unit_lbas_ != 0 || (first == last && (c.lba + c.lba_count) % unit_lbas_ != 0)) {
    read_rest_of_unit(now, slot, first);
  }
  if (last != first && (c.lba + c.lba_count) % unit_lbas_ != 0) read_rest_of_unit(now, slot, last);
  if (slots_[slot].remaining > 0) return;
  admissions_.push(slot);
  admit(now);
}

void Ssd::Impl::read_rest_of_unit(Nanos now, std::uint32_t slot, std::uint32_t unit) {
  if (cache_.holds(unit)) return;
  const std::uint32_t physical = ftl_.physical(unit);
  if (physical == Ftl::kUnmapped) return;
  ++counters_.sub_unit_writes;
  if (ftl_.in_controller(physical)) return;
  const std::uint32_t bytes = ftl_.bytes_of(unit);
  counters_.nand_bytes_read[static_cast<std::size_t>(FlashCause::host)] += bytes;
  const std::uint32_t id = read_unit(slot, physical, bytes, kNoOp);
  array_.op(id).purpose = ReadPurpose::rest_of_unit;
  array_.enqueue(now, id);
}

// Slots that a written unit takes. If the command covers only a part of it, the rest compresses as before.
std::uint8_t Ssd::Impl::slots_of_write(std::uint32_t slot, std::uint32_t unit) const {
  const Command& c = slots_[slot].command;
  const std::uint8_t slots = ftl_.slots_for(c.compressed_share);
  const std::uint64_t begin = std::max<std::uint64_t>(c.lba, std::uint64_t{unit} * unit_lbas_);
  const std::uint64_t end = std::min<std::uint64_t>(c.lba + c.lba_count, (std::uint64_t{unit} + 1) * unit_lbas_);
  if (end - begin == unit_lbas_) return slots;
  std::uint64_t before = slots;
  if (cache_.holds(unit)) {
    before = cache_.slots_of(unit);
  } else if (ftl_.physical(unit) != Ftl::kUnmapped) {
    before = ftl_.slots_of(unit);
  }
  const std::uint64_t written = end - begin;
  return static_cast<std::uint8_t>((slots * written + before * (unit_lbas_ - written) + unit_lbas_ - 1) / unit_lbas_);
}

void Ssd::Impl::admit(Nanos now) {
  while (!admissions_.empty()) {
    if (admissions_.size() > kPrefetchCommand) prefetch(&slots_[admissions_.peek(kPrefetchCommand)]);
    if (admissions_.size() > kPrefetchAdmission) {
      cache_.prefetch(first_unit(slots_[admissions_.peek(kPrefetchAdmission)].command));
    }
    if (!admit_command(now, admissions_.front())) return;
    admissions_.pop();
  }
}

// Moves a write's units into the cache. False if it has to wait for room.
bool Ssd::Impl::admit_command(Nanos now, std::uint32_t slot) {
  const std::uint32_t first = first_unit(slots_[slot].command);
  const std::uint32_t units = units_of(slots_[slot].command);
  const bool write_through = cache_units_ == 0;
  while (slots_[slot].admitted < units) {
    const std::uint32_t unit = first + slots_[slot].admitted;
    const std::uint32_t owner = write_through ? slot : WriteCache::kNoOwner;
    if (cache_.holds(unit)) {
      ++counters_.write_cache_overwrites;
      if (ftl_.compresses()) cache_.set_slots(unit, slots_of_write(slot, unit));
      if (write_through) {
        ++slots_[slot].remaining;
        credit(now, cache_.replace(unit, owner));
      }
    } else {
      if (!room_in_cache()) {
        program_waiting(now);
        if (!room_in_cache()) return false;
        continue;
      }
      if (write_through) ++slots_[slot].remaining;
      cache_.admit(unit, owner, ftl_.compresses() ? slots_of_write(slot, unit) : std::uint8_t{1});
    }
    ++slots_[slot].admitted;
  }
  if (write_through) {
    // All programs may end while this command's last units still wait for room.
    ++slots_[slot].remaining;
    program_waiting(now);
    credit(now, slot);
  } else {
    finish_write(now, slot);
    if (cache_.waiting() >= step_units_) program_waiting(now);
  }
  return true;
}

// One of the events for which a written-through command waits has happened.
void Ssd::Impl::credit(Nanos now, std::uint32_t slot) {
  if (slot == WriteCache::kNoOwner || slots_[slot].remaining == kNone) return;
  if (--slots_[slot].remaining == 0) finish_write(now, slot);
}

void Ssd::Impl::deallocate(Nanos now, std::uint32_t slot) {
  const Command c = slots_[slot].command;
  ++counters_.host_deallocates;
  counters_.host_bytes_deallocated += bytes_of(c);
  // Only whole units are deallocated. NVMe lets a drive ignore the rest, and this one does.
  const auto begin = static_cast<std::uint32_t>((c.lba + unit_lbas_ - 1) / unit_lbas_);
  const auto end = static_cast<std::uint32_t>((c.lba + c.lba_count) / unit_lbas_);
  deallocate_units(now, begin, end);
  finish_write(now, slot);
  admit(now);
}

void Ssd::Impl::deallocate_units(Nanos now, std::uint32_t begin, std::uint32_t end) {
  for (std::uint32_t unit = begin; unit < end; ++unit) {
    if (cache_.holds(unit)) {
      ++counters_.write_cache_deallocated;
      credit(now, cache_.drop(unit));
    }
    ftl_.deallocate({now, &array_}, unit);
  }
}

// --- From the cache to flash

// Begins a step on the next die that is ready for one. False if there is none, or no clean space.
bool Ssd::Impl::open_host_step(Nanos now) {
  if (!ftl_.ensure_clean_space({now, &array_})) return false;
  if (ftl_.host_step_open()) return true;  // collection shares the stream and left a step open
  for (;;) {
    const std::uint32_t die = array_.next_ready_die(next_die_);
    if (die == kNoDie) return false;
    if (ftl_.can_begin_host_step(die)) {
      next_die_ = (die + 1) % config_.geometry.dies();
      ftl_.begin_host_step(die);
      return true;
    }
    array_.set_writable(die, false);  // until an erase on it
  }
}

void Ssd::Impl::program_waiting(Nanos now) {
  if (programming_) return;
  programming_ = true;
  if (BlockMapping* const rows = ftl_.block_mapping()) {
    program_rows({now, &array_}, *rows);
  } else {
    program_pages({now, &array_});
  }
  programming_ = false;
}

void Ssd::Impl::program_pages(FlashContext context) {
  while (cache_.waiting() > 0) {
    if (ftl_.compresses() && ftl_.host_step_open() && !ftl_.host_step_fits(cache_.front_slots())) {
      ftl_.pad_host_step(context);
    }
    if (!ftl_.host_step_open()) {
      if (cache_.waiting() < step_units_ && !draining()) break;
      if (!array_.any_ready() || !open_host_step(context.now)) break;
    }
    if (cache_.waiting() > kPrefetchEntry) ftl_.prefetch_entry(cache_.peek(kPrefetchEntry));
    if (cache_.waiting() > kPrefetchPlace) {
      ftl_.prefetch_place(cache_.peek(kPrefetchPlace));
      cache_.prefetch(cache_.peek(kPrefetchPlace));
    }
    const WriteCache::Entry entry = cache_.take();
    ++in_program_;
    ftl_.write(context, entry.unit, entry.owner, entry.slots);
  }
  if (completes_step()) ftl_.pad_host_step(context);
}

// With block and hybrid mapping the oldest unit determines the next die. A super page stays open as long as the next
// units belong to it.
void Ssd::Impl::program_rows(FlashContext context, BlockMapping& rows) {
  while (cache_.waiting() > 0) {
    const std::uint32_t unit = cache_.peek(0);
    if (!rows.takes(unit)) {
      rows.complete(context);
      if (cache_.waiting() < step_units_ && !draining()) break;
      if (!array_.is_ready(rows.die_of(unit))) break;
      rows.open(context, unit);
    }
    const WriteCache::Entry entry = cache_.take();
    if (rows.write(context, entry.unit, entry.owner)) {
      ++in_program_;
    } else {
      ++counters_.write_cache_overwrites;
    }
  }
  if (completes_step()) rows.complete(context);
}

void Ssd::Impl::finish_flushes(Nanos now) {
  while (!flushes_.empty()) {
    Slot& flush = slots_[flushes_.front()];
    if (cache_.taken() < flush.flush_until) return;
    if (flush.flush_step == 0) flush.flush_step = ftl_.last_host_step();
    if (oldest_host_step_ <= flush.flush_step) return;
    finish_write(now, flushes_.front());
    flushes_.pop();
    program_waiting(now);
  }
}

// Steps finish out of order. A flush waits for all steps up to its last one.
void Ssd::Impl::host_step_done(std::uint64_t sequence) {
  while (oldest_host_step_ + host_steps_done_.size() <= sequence) host_steps_done_.push_back(false);
  host_steps_done_[sequence - oldest_host_step_] = true;
  while (!host_steps_done_.empty() && host_steps_done_.front()) {
    host_steps_done_.pop_front();
    ++oldest_host_step_;
  }
}

void Ssd::Impl::operation_done(Nanos now, std::uint32_t id) {
  const FlashOp op = array_.op(id);
  array_.free_op(id);
  if (op.kind == OpKind::program) {
    program_done(now, op.steps[0]);
  } else if (op.kind == OpKind::read) {
    switch (op.purpose) {
      case ReadPurpose::host:
        if (--slots_[op.command].remaining == 0) finish_read(now, op.command);
        break;
      case ReadPurpose::mapping:
        for (std::uint32_t chained = op.chain; chained != kNoOp;) {
          const std::uint32_t next = array_.op(chained).next;
          array_.enqueue(now, chained);
          chained = next;
        }
        break;
      case ReadPurpose::rest_of_unit:
        if (--slots_[op.command].remaining == 0) {
          admissions_.push(op.command);
          admit(now);
        }
        break;
      case ReadPurpose::relocation:
        for (const std::uint32_t step : op.steps) {
          if (step == kNoStep) continue;
          --array_.step(step).reads_pending;
          array_.program_if_ready(now, step);
        }
        break;
      case ReadPurpose::background:
        break;
    }
  }
  // The cache may have room again, or a die may be ready for host data.
  if (op.kind == OpKind::program || array_.any_ready()) make_progress(now);
  if (!folds_) return;
  if (op.kind == OpKind::erase && op.slc) ftl_.fold_erase_done();
  fold(now);
}

void Ssd::Impl::program_done(Nanos now, std::uint32_t id) {
  ProgramStep& step = array_.step(id);
  ftl_.programmed(step);
  in_program_ -= step.host_units;
  std::vector<std::uint32_t> owners;
  owners.swap(step.owners);
  if (step.sequence != 0) host_step_done(step.sequence);
  array_.free_step(id);
  for (const std::uint32_t owner : owners) credit(now, owner);
}

void Ssd::Impl::start_idle_fold(Nanos now) {
  wake_at_ = kNever;
  idle_ = true;
  fold(now);
}

void Ssd::Impl::fold(Nanos now) {
  while (!ftl_.fold_limit_reached() && ftl_.needs_fold(idle_)) {
    if (!ftl_.fold({now, &array_})) return;
  }
}

void Ssd::Impl::make_progress(Nanos now) {
  if (!admissions_.empty()) admit(now);
  if (cache_.waiting() >= step_units_ || draining()) program_waiting(now);
  if (!flushes_.empty()) finish_flushes(now);
}

}  // namespace spillway::ssd
