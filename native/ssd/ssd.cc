#include "ssd/ssd.h"

#include <algorithm>
#include <cassert>
#include <cstring>
#include <deque>
#include <utility>

#include "ssd/flash_array.h"
#include "ssd/ftl.h"
#include "ssd/ring.h"
#include "ssd/timed_queue.h"
#include "ssd/write_cache.h"

namespace spillway::ssd {
namespace {

constexpr Nanos kNever = Agenda::kNever;
constexpr std::uint32_t kNone = ~std::uint32_t{0};

// A drive without a write cache still has page registers and buffers to assemble flash pages in: this many steps.
constexpr std::uint64_t kStagingSteps = 4096;

// How many units ahead of a write its map entry, and then its old place, are fetched into the processor's cache: a
// write takes some 300 ns, a miss some 100 ns.
constexpr std::uint64_t kPrefetchEntry = 24;
constexpr std::uint64_t kPrefetchPlace = 12;
// And how many admissions ahead the command, and then its first unit's place in the write cache's index, are.
constexpr std::size_t kPrefetchCommand = 8;
constexpr std::size_t kPrefetchAdmission = 4;

}  // namespace

// A command on its way:
//
//   submit → submission queue → fetch → read:  (map read →) flash reads → host link → done
//                                       write: host link → arrival → (rest of unit read →) admission → done
// and behind a write's back: write cache → step → program. Without a write cache a write is done when programmed.
class Ssd::Impl {
 public:
  Impl(const SsdConfig& config, std::uint64_t seed)
      : config_(config),
        layout_(ssd::layout(config)),
        unit_lbas_(config.geometry.mapping_unit_bytes / config.geometry.lba_bytes),
        step_units_(std::uint64_t{config.geometry.planes_per_die} * config.geometry.units_per_page()),
        cache_units_(config.write_cache.bytes / config.geometry.mapping_unit_bytes),
        link_ns_per_byte_(1000.0 / config.timing.host_link_mb_s),
        array_(config, &counters_),
        ftl_(config, layout_, &counters_, seed),
        cache_(cache_units_ != 0 ? cache_units_ : kStagingSteps * step_units_) {}

  void submit(Nanos now, const Command& command);
  std::optional<Nanos> next_event() const {
    if (!done_.empty()) return done_.front().completed;
    const Nanos time = next_time();
    return time == kNever ? std::nullopt : std::optional<Nanos>(time);
  }
  void advance(Nanos now, std::vector<Completion>& done) {
    run_until(now);
    done.insert(done.end(), done_.begin(), done_.end());
    done_.clear();
  }

  void expect_soon(const Command& c) const {
    if (c.op != Opcode::read || c.lba / unit_lbas_ >= layout_.logical_units) return;
    cache_.prefetch(first_unit(c));
    ftl_.prefetch_entry(first_unit(c));
  }
  void expect_very_soon(const Command& c) const {
    if (c.op == Opcode::read && c.lba / unit_lbas_ < layout_.logical_units) ftl_.prefetch_place(first_unit(c));
  }

  bool quiet() const { return in_flight_ == 0 && next_time() == kNever; }
  void stop_time();
  bool save(const StateSink& sink);
  std::optional<std::string> load(const StateSource& source);

  const SsdConfig config_;
  const Layout layout_;
  Counters counters_;
  std::size_t in_flight_ = 0;

 private:
  struct Slot {
    Command command;
    Nanos submitted = 0;
    std::uint32_t remaining = 0;    // flash reads (of a read, or of the rest of units) or units not yet programmed
    std::uint32_t admitted = 0;     // units of a write that are in the cache
    std::uint64_t flush_until = 0;  // of a flush: admissions that must have left the cache
    std::uint64_t flush_step = 0;   // and the host step that must be programmed, with all before it; 0: not known yet
    Outcome outcome = Outcome::success;
  };
  Nanos next_time() const;
  void run_until(Nanos now);
  void fail_what_is_stuck(Nanos now);

  std::uint32_t take_slot(Nanos now, const Command& command);
  void complete(Nanos now, std::uint32_t slot);
  Nanos cross_link(Nanos& free_at, Nanos now, std::uint64_t bytes) const {
    free_at = std::max(free_at, now) + static_cast<Nanos>(static_cast<double>(bytes) * link_ns_per_byte_ + 0.5);
    return free_at;
  }
  std::uint64_t bytes_of(const Command& c) const { return std::uint64_t{c.lba_count} * config_.geometry.lba_bytes; }
  std::uint32_t first_unit(const Command& c) const { return static_cast<std::uint32_t>(c.lba / unit_lbas_); }
  std::uint32_t units_of(const Command& c) const {
    return static_cast<std::uint32_t>((c.lba + c.lba_count + unit_lbas_ - 1) / unit_lbas_ - c.lba / unit_lbas_);
  }

  void fetch(Nanos now, std::uint32_t slot);
  void fetch_next(Nanos now);

  void start_read(Nanos now, std::uint32_t slot);
  std::uint32_t read_unit(std::uint32_t slot, std::uint32_t physical, std::uint32_t bytes, std::uint32_t previous);
  void finish_read(Nanos now, std::uint32_t slot);

  void arrive(Nanos now, std::uint32_t slot);
  void arrive_write(Nanos now, std::uint32_t slot);
  void read_rest_of_unit(Nanos now, std::uint32_t slot, std::uint32_t unit);
  void admit(Nanos now);
  bool admit_command(Nanos now, std::uint32_t slot);
  bool room_in_cache() const {
    return cache_.has_slot() && (cache_units_ == 0 || cache_.waiting() + in_program_ < cache_units_);
  }
  void credit(Nanos now, std::uint32_t slot);
  void finish_write(Nanos now, std::uint32_t slot) { write_done_.push(now + config_.timing.write_command_ns, slot); }
  void deallocate(Nanos now, std::uint32_t slot);

  // Must waiting units go to flash although they do not fill a step? For a flush, without a cache, or when deallocated
  // units have left holes in a full cache.
  bool draining() const {
    if (cache_units_ == 0 || !cache_.has_slot()) return true;
    return !flushes_.empty() && cache_.taken() < slots_[flushes_.front()].flush_until;
  }
  bool open_host_step(Nanos now);
  void pump(Nanos now);
  void finish_flushes(Nanos now);
  void host_step_done(std::uint64_t sequence);

  void make_progress(Nanos now);
  void operation_done(Nanos now, std::uint32_t id);
  void program_done(Nanos now, std::uint32_t id);

  const std::uint32_t unit_lbas_;
  const std::uint64_t step_units_;
  const std::uint64_t cache_units_;
  const double link_ns_per_byte_;

 public:
  FlashArray array_;
  Ftl ftl_;

 private:
  WriteCache cache_;
  std::uint64_t in_program_ = 0;  // units that left the cache and still hold its space

  std::vector<Slot> slots_;
  std::vector<std::uint32_t> unused_slots_;
  std::vector<Ring<std::uint32_t>> submission_queues_;
  std::uint32_t queued_ = 0;
  std::uint32_t next_queue_ = 0;
  Nanos controller_free_at_ = 0;
  Nanos link_up_free_at_ = 0;
  Nanos link_down_free_at_ = 0;
  TimedQueue arrivals_;    // writes, flushes and deallocations, when their data is in the drive
  TimedQueue read_done_;   // completions of reads, in order of time
  TimedQueue write_done_;  // completions of everything else, in order of time
  Ring<std::uint32_t> admissions_;
  Ring<std::uint32_t> flushes_;
  std::deque<bool> host_steps_done_;    // from oldest_host_step_ on
  std::uint64_t oldest_host_step_ = 1;  // steps are numbered from 1
  std::uint32_t next_die_ = 0;
  bool pumping_ = false;
  std::vector<Completion> done_;
};

// --- Time

Nanos Ssd::Impl::next_time() const {
  return std::min({array_.next_time(), arrivals_.next_time(), read_done_.next_time(), write_done_.next_time(),
                   queued_ > 0 ? controller_free_at_ : kNever});
}

void Ssd::Impl::run_until(Nanos now) {
  for (Nanos ran = now;;) {
    const Nanos time = next_time();
    if (time > now) {
      if (time != kNever || in_flight_ == 0) return;
      fail_what_is_stuck(ran);
      continue;
    }
    ran = time;
    if (read_done_.next_time() == time) {
      complete(time, read_done_.pop());
    } else if (write_done_.next_time() == time) {
      complete(time, write_done_.pop());
    } else if (array_.next_time() == time) {
      const std::uint32_t op = array_.run_next();
      if (op != kNoOp) operation_done(time, op);
    } else if (arrivals_.next_time() == time) {
      arrive(time, arrivals_.pop());
    } else {
      fetch_next(time);
    }
  }
}

// Commands wait and nothing can happen any more: the drive cannot make clean space. They fail, by name.
void Ssd::Impl::fail_what_is_stuck(Nanos now) {
  while (!admissions_.empty()) admissions_.pop();
  while (!flushes_.empty()) flushes_.pop();
  for (std::uint32_t slot = 0; slot < slots_.size(); ++slot) {
    if (std::find(unused_slots_.begin(), unused_slots_.end(), slot) != unused_slots_.end()) continue;
    slots_[slot].outcome = Outcome::capacity_exceeded;
    slots_[slot].remaining = kNone;  // its units may still be programmed one day: nobody waits for them
    finish_write(now, slot);
  }
}

std::uint32_t Ssd::Impl::take_slot(Nanos now, const Command& command) {
  std::uint32_t slot;
  if (unused_slots_.empty()) {
    slot = static_cast<std::uint32_t>(slots_.size());
    slots_.emplace_back();
  } else {
    slot = unused_slots_.back();
    unused_slots_.pop_back();
    slots_[slot] = Slot();
  }
  slots_[slot].command = command;
  slots_[slot].submitted = now;
  ++in_flight_;
  return slot;
}

void Ssd::Impl::complete(Nanos now, std::uint32_t slot) {
  const Slot& s = slots_[slot];
  done_.push_back({s.command.tag, s.submitted, now, s.command.queue, s.outcome});
  unused_slots_.push_back(slot);
  --in_flight_;
}

// --- Submission

void Ssd::Impl::submit(Nanos now, const Command& command) {
  run_until(now);
  const std::uint32_t slot = take_slot(now, command);
  const std::uint64_t lbas = layout_.logical_units * unit_lbas_;
  const bool has_range = command.op != Opcode::flush;
  if (has_range && (command.lba_count == 0 || command.lba >= lbas || command.lba_count > lbas - command.lba)) {
    slots_[slot].outcome = Outcome::lba_out_of_range;
    link_down_free_at_ = std::max(link_down_free_at_, now);
    arrivals_.push(link_down_free_at_, slot);
    return;
  }
  if (queued_ == 0 && controller_free_at_ <= now) {
    fetch(now, slot);
    return;
  }
  if (command.queue >= submission_queues_.size()) submission_queues_.resize(command.queue + std::size_t{1});
  submission_queues_[command.queue].push(slot);
  ++queued_;
}

// The controller is free again: it takes the next command, round robin over submission queues.
void Ssd::Impl::fetch_next(Nanos now) {
  const auto queues = static_cast<std::uint32_t>(submission_queues_.size());
  for (std::uint32_t tried = 0; tried < queues; ++tried) {
    auto& queue = submission_queues_[next_queue_ % queues];
    next_queue_ = (next_queue_ + 1) % queues;
    if (queue.empty()) continue;
    const std::uint32_t slot = queue.front();
    queue.pop();
    --queued_;
    fetch(now, slot);
    return;
  }
}

void Ssd::Impl::fetch(Nanos now, std::uint32_t slot) {
  const Command& c = slots_[slot].command;
  const bool reads = c.op == Opcode::read;
  controller_free_at_ = now + (reads ? config_.timing.read_occupancy_ns : config_.timing.write_occupancy_ns);
  if (reads) {
    start_read(now, slot);
    return;
  }
  arrivals_.push(cross_link(link_down_free_at_, now, c.op == Opcode::write ? bytes_of(c) : 0), slot);
}

// --- Reads

void Ssd::Impl::start_read(Nanos now, std::uint32_t slot) {
  const Command c = slots_[slot].command;
  ++counters_.host_reads;
  counters_.host_bytes_read += bytes_of(c);
  counters_.host_bytes_read_by_cause[c.cause] += bytes_of(c);
  const Flow flow{now, &array_};
  const std::uint32_t first = first_unit(c);
  const std::uint32_t units = units_of(c);
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
    const std::uint32_t new_map_read = ftl_.look_up_for_read(flow, unit, map_read != kNoOp ? map_unit : kNone);
    if (new_map_read != kNoOp || translation_unit != map_unit) {
      queue_data_read();
      if (map_read != kNoOp) array_.enqueue(now, map_read);
      map_read = new_map_read;
      map_unit = translation_unit;
    }
    const std::uint32_t physical = ftl_.physical(unit);
    if (physical == Ftl::kNowhere) {
      ++counters_.unmapped_reads;
      continue;
    }
    if (ftl_.in_controller(physical)) {
      ++counters_.write_cache_read_hits;
      continue;
    }
    const std::uint64_t begin = std::max<std::uint64_t>(c.lba, std::uint64_t{unit} * unit_lbas_);
    const std::uint64_t end = std::min<std::uint64_t>(c.lba + c.lba_count, (std::uint64_t{unit} + 1) * unit_lbas_);
    const auto bytes = static_cast<std::uint32_t>((end - begin) * config_.geometry.lba_bytes);
    counters_.nand_bytes_read[static_cast<std::size_t>(FlashCause::host)] += bytes;
    const std::uint32_t op = read_unit(slot, physical, bytes, data_read);
    if (op != data_read) {
      queue_data_read();
      data_read = op;
    }
  }
  queue_data_read();
  if (map_read != kNoOp) array_.enqueue(now, map_read);
  if (slots_[slot].remaining == 0) finish_read(now, slot);
}

// A flash read for this unit: the previous one when it is of the same flash page, else a new one.
std::uint32_t Ssd::Impl::read_unit(std::uint32_t slot, std::uint32_t physical, std::uint32_t bytes,
                                   std::uint32_t previous) {
  const std::uint32_t plane = ftl_.plane_of(physical);
  const std::uint32_t flash_page = physical / config_.geometry.units_per_page();
  if (previous != kNoOp && array_.op(previous).flash_page == flash_page) {
    array_.op(previous).bytes += bytes;
    return previous;
  }
  const std::uint32_t id = array_.new_op();
  FlashOp& op = array_.op(id);
  op.die = plane / config_.geometry.planes_per_die;
  op.plane = plane % config_.geometry.planes_per_die;
  op.page = ftl_.page_of(physical);
  op.flash_page = flash_page;
  op.bytes = bytes;
  op.command = slot;
  ++slots_[slot].remaining;
  return id;
}

void Ssd::Impl::finish_read(Nanos now, std::uint32_t slot) {
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
        pump(now);
        finish_flushes(now);
      }
      break;
    case Opcode::read:
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
  if (physical == Ftl::kNowhere) return;
  ++counters_.sub_unit_writes;
  if (ftl_.in_controller(physical)) return;
  const std::uint32_t bytes = config_.geometry.mapping_unit_bytes;
  counters_.nand_bytes_read[static_cast<std::size_t>(FlashCause::host)] += bytes;
  const std::uint32_t id = read_unit(slot, physical, bytes, kNoOp);
  array_.op(id).purpose = ReadFor::rest_of_unit;
  array_.enqueue(now, id);
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

// Moves a write's units into the cache; false when it has to wait for room.
bool Ssd::Impl::admit_command(Nanos now, std::uint32_t slot) {
  const std::uint32_t first = first_unit(slots_[slot].command);
  const std::uint32_t units = units_of(slots_[slot].command);
  const bool write_through = cache_units_ == 0;
  while (slots_[slot].admitted < units) {
    const std::uint32_t unit = first + slots_[slot].admitted;
    const std::uint32_t owner = write_through ? slot : WriteCache::kNoOwner;
    if (cache_.holds(unit)) {
      ++counters_.write_cache_overwrites;
      if (write_through) {
        ++slots_[slot].remaining;
        credit(now, cache_.replace(unit, owner));
      }
    } else {
      if (!room_in_cache()) {
        pump(now);
        if (!room_in_cache()) return false;
        continue;
      }
      if (write_through) ++slots_[slot].remaining;
      cache_.admit(unit, owner);
    }
    ++slots_[slot].admitted;
  }
  if (write_through) {
    // Programs may all have ended while this command's last units were still waiting for room.
    ++slots_[slot].remaining;
    pump(now);
    credit(now, slot);
  } else {
    finish_write(now, slot);
    if (cache_.waiting() >= step_units_) pump(now);
  }
  return true;
}

// One of the things that a written-through command waits for has happened.
void Ssd::Impl::credit(Nanos now, std::uint32_t slot) {
  if (slot == WriteCache::kNoOwner || slots_[slot].remaining == kNone) return;
  if (--slots_[slot].remaining == 0) finish_write(now, slot);
}

void Ssd::Impl::deallocate(Nanos now, std::uint32_t slot) {
  const Command c = slots_[slot].command;
  ++counters_.host_deallocates;
  counters_.host_bytes_deallocated += bytes_of(c);
  // Only whole units: a drive may ignore the rest, and this one does.
  const auto begin = static_cast<std::uint32_t>((c.lba + unit_lbas_ - 1) / unit_lbas_);
  const auto end = static_cast<std::uint32_t>((c.lba + c.lba_count) / unit_lbas_);
  for (std::uint32_t unit = begin; unit < end; ++unit) {
    if (cache_.holds(unit)) {
      ++counters_.write_cache_deallocated;
      credit(now, cache_.drop(unit));
    }
    ftl_.deallocate({now, &array_}, unit);
  }
  finish_write(now, slot);
  admit(now);
}

// --- From the cache to flash

// Begins a step on the next die that is ready for one. False when there is none, or no clean space.
bool Ssd::Impl::open_host_step(Nanos now) {
  if (!ftl_.make_room({now, &array_})) return false;
  if (ftl_.host_step_open()) return true;  // collection shares the stream and left a step open
  for (;;) {
    const std::uint32_t die = array_.next_ready_die(next_die_);
    if (die == kNoDie) return false;
    if (ftl_.can_begin_host_step(die)) {
      next_die_ = (die + 1) % config_.geometry.dies();
      ftl_.begin_host_step(die);
      return true;
    }
    array_.set_supplied(die, false);  // until an erase there
  }
}

void Ssd::Impl::pump(Nanos now) {
  if (pumping_) return;
  pumping_ = true;
  const Flow flow{now, &array_};
  while (cache_.waiting() > 0) {
    if (!ftl_.host_step_open()) {
      if (cache_.waiting() < step_units_ && !draining()) break;
      if (!array_.any_ready() || !open_host_step(now)) break;
    }
    if (cache_.waiting() > kPrefetchEntry) ftl_.prefetch_entry(cache_.peek(kPrefetchEntry));
    if (cache_.waiting() > kPrefetchPlace) {
      ftl_.prefetch_place(cache_.peek(kPrefetchPlace));
      cache_.prefetch(cache_.peek(kPrefetchPlace));
    }
    const WriteCache::Entry entry = cache_.take();
    ++in_program_;
    ftl_.write(flow, entry.unit, entry.owner);
  }
  const bool flushing = !flushes_.empty() && cache_.taken() >= slots_[flushes_.front()].flush_until;
  if (cache_.waiting() == 0 && (cache_units_ == 0 || flushing)) ftl_.pad_host_step(flow);
  pumping_ = false;
}

void Ssd::Impl::finish_flushes(Nanos now) {
  while (!flushes_.empty()) {
    Slot& flush = slots_[flushes_.front()];
    if (cache_.taken() < flush.flush_until) return;
    if (flush.flush_step == 0) flush.flush_step = ftl_.last_host_step();
    if (oldest_host_step_ <= flush.flush_step) return;
    finish_write(now, flushes_.front());
    flushes_.pop();
    pump(now);
  }
}

// Steps end out of order; a flush waits for all up to its own.
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
      case ReadFor::host:
        if (--slots_[op.command].remaining == 0) finish_read(now, op.command);
        break;
      case ReadFor::mapping:
        for (std::uint32_t chained = op.chain; chained != kNoOp;) {
          const std::uint32_t next = array_.op(chained).next;
          array_.enqueue(now, chained);
          chained = next;
        }
        break;
      case ReadFor::rest_of_unit:
        if (--slots_[op.command].remaining == 0) {
          admissions_.push(op.command);
          admit(now);
        }
        break;
      case ReadFor::relocation:
        for (const std::uint32_t step : op.steps) {
          if (step == kNoStep) continue;
          --array_.step(step).reads_pending;
          array_.program_if_ready(now, step);
        }
        break;
      case ReadFor::background:
        break;
    }
  }
  // The cache may have room again, or a die may be ready for host data.
  if (op.kind == OpKind::program || array_.any_ready()) make_progress(now);
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

void Ssd::Impl::make_progress(Nanos now) {
  if (!admissions_.empty()) admit(now);
  if (cache_.waiting() >= step_units_ || draining()) pump(now);
  if (!flushes_.empty()) finish_flushes(now);
}

// --- Preconditioning and state

void Ssd::Impl::stop_time() {
  assert(quiet());
  in_program_ -= ftl_.stop_time(array_);
  for (std::uint32_t die = 0; die < config_.geometry.dies(); ++die) array_.set_supplied(die, true);
  while (cache_.waiting() > 0) {
    [[maybe_unused]] const bool done = ftl_.overwrite(cache_.take().unit);
    assert(done);
  }
}

namespace {

constexpr char kMagic[8] = {'S', 'P', 'L', 'W', 'S', 'S', 'D', '2'};

struct Fingerprint {
  const char* key;
  std::uint64_t value;
};

// What must agree for a state to make sense on a drive.
std::vector<Fingerprint> fingerprint(const SsdConfig& c, const Layout& l) {
  const Geometry& g = c.geometry;
  return {{"geometry.channels", g.channels},
          {"geometry.chips_per_channel", g.chips_per_channel},
          {"geometry.dies_per_chip", g.dies_per_chip},
          {"geometry.planes_per_die", g.planes_per_die},
          {"geometry.pages_per_block", g.pages_per_block},
          {"geometry.page_bytes", g.page_bytes},
          {"geometry.mapping_unit_bytes", g.mapping_unit_bytes},
          {"geometry.lba_bytes", g.lba_bytes},
          {"capacity.capacity_bytes", l.capacity_bytes},
          {"capacity.spare_factor (data units)", l.data_units},
          {"physical units", l.physical_units},
          {"mapping_cache.bytes (translation units)", l.translation_units},
          {"gc.separate_streams", c.gc.separate_streams ? 1U : 0U},
          {"gc.policy", static_cast<std::uint64_t>(c.gc.policy)}};
}

}  // namespace

bool Ssd::Impl::save(const StateSink& sink) {
  stop_time();
  if (!sink(kMagic, sizeof(kMagic))) return false;
  for (const Fingerprint& field : fingerprint(config_, layout_)) {
    if (!sink(&field.value, sizeof(field.value))) return false;
  }
  if (!sink(&counters_, sizeof(counters_))) return false;
  return ftl_.visit_state([&sink](void* bytes, std::size_t size) { return sink(bytes, size); }, false);
}

std::optional<std::string> Ssd::Impl::load(const StateSource& source) {
  char magic[sizeof(kMagic)] = {};
  if (!source(magic, sizeof(magic))) return "is truncated";
  if (std::memcmp(magic, kMagic, sizeof(magic)) != 0) return "is not a drive state of this version";
  for (const Fingerprint& field : fingerprint(config_, layout_)) {
    std::uint64_t value = 0;
    if (!source(&value, sizeof(value))) return "is truncated";
    if (value != field.value) {
      return "was made for another drive: its " + std::string(field.key) + " is " + std::to_string(value) + ", not " +
             std::to_string(field.value);
    }
  }
  stop_time();
  bool truncated = false;
  const auto visit = [&](void* bytes, std::size_t size) {
    truncated = truncated || !source(bytes, size);
    return !truncated;
  };
  if (!visit(&counters_, sizeof(counters_))) return "is truncated";
  if (!ftl_.visit_state(visit, true)) return truncated ? "is truncated" : "is damaged: its map contradicts itself";
  return std::nullopt;
}

// --- The public face

Ssd::Ssd(const SsdConfig& config, std::uint64_t seed) : impl_(std::make_unique<Impl>(config, seed)) {
  assert(!problem(config));
}
Ssd::~Ssd() = default;
Ssd::Ssd(Ssd&&) noexcept = default;
Ssd& Ssd::operator=(Ssd&&) noexcept = default;

const SsdConfig& Ssd::config() const { return impl_->config_; }
const Layout& Ssd::layout() const { return impl_->layout_; }
void Ssd::submit(Nanos now, const Command& command) { impl_->submit(now, command); }
void Ssd::expect_soon(const Command& command) const { impl_->expect_soon(command); }
void Ssd::expect_very_soon(const Command& command) const { impl_->expect_very_soon(command); }
std::optional<Nanos> Ssd::next_event() const { return impl_->next_event(); }
void Ssd::advance(Nanos now, std::vector<Completion>& done) { impl_->advance(now, done); }
std::size_t Ssd::in_flight() const { return impl_->in_flight_; }
const Counters& Ssd::counters() const { return impl_->counters_; }
double Ssd::mean_pe_cycles() const {
  const BlockTable& blocks = impl_->ftl_.blocks();
  return static_cast<double>(blocks.erases_total()) / blocks.size();
}
std::uint32_t Ssd::max_pe_cycles() const { return impl_->ftl_.blocks().erases_max(); }
std::uint64_t Ssd::mapped_units() const { return impl_->ftl_.mapped_units(); }

void Ssd::fill(std::uint64_t first, std::uint64_t count) {
  impl_->stop_time();
  impl_->ftl_.fill(static_cast<std::uint32_t>(first), static_cast<std::uint32_t>(count));
}
void Ssd::assume_steady(std::uint64_t count) {
  impl_->stop_time();
  impl_->ftl_.assume_steady(static_cast<std::uint32_t>(count));
}
void Ssd::overwrite(std::uint64_t unit) { impl_->ftl_.overwrite(static_cast<std::uint32_t>(unit)); }
void Ssd::reset_counters() { impl_->counters_ = Counters(); }
bool Ssd::save(const StateSink& sink) { return impl_->save(sink); }
std::optional<std::string> Ssd::load(const StateSource& source) { return impl_->load(source); }
std::optional<std::string> Ssd::audit() const { return impl_->ftl_.audit(); }

}  // namespace spillway::ssd
