#include "ssd/flash/flash_array.h"

#include <algorithm>
#include <bit>
#include <cassert>

#include "ssd/structures/prefetch.h"

namespace spillway::ssd {
namespace {

// Times are given by page number within the erase block. The list repeats.
std::int64_t time_of_page(const std::vector<std::int64_t>& times, std::uint32_t page) {
  return times.size() == 1 ? times[0] : times[page % times.size()];
}

std::int64_t longest(const Timing& timing) {
  return std::max({timing.erase_ns, *std::max_element(timing.read_ns.begin(), timing.read_ns.end()),
                   *std::max_element(timing.program_ns.begin(), timing.program_ns.end())});
}

}  // namespace

FlashArray::FlashArray(const SsdConfig& config, Counters* counters)
    : timing_(config.timing),
      slc_read_ns_(config.slc_cache.read_ns),
      slc_program_ns_(config.slc_cache.program_ns),
      channels_(config.geometry.channels),
      page_bytes_(config.geometry.page_bytes),
      channel_ns_per_byte_(1000.0 / config.timing.channel_mb_s),
      counters_(counters),
      dies_(config.geometry.dies()),
      ready_((config.geometry.dies() + 63) / 64, ~std::uint64_t{0}),
      ready_dies_(config.geometry.dies()),
      channel_free_at_(config.geometry.channels, 0),
      wheel_(longest(config.timing)) {
  if (dies_.size() % 64 != 0) ready_.back() = (std::uint64_t{1} << (dies_.size() % 64)) - 1;
}

std::uint32_t FlashArray::new_op() {
  if (unused_ops_.empty()) {
    ops_.emplace_back();
    return static_cast<std::uint32_t>(ops_.size() - 1);
  }
  const std::uint32_t id = unused_ops_.back();
  unused_ops_.pop_back();
  ops_[id] = FlashOp();
  return id;
}

void FlashArray::free_op(std::uint32_t id) { unused_ops_.push_back(id); }

std::uint32_t FlashArray::new_step() {
  if (unused_steps_.empty()) {
    steps_.emplace_back();
    return static_cast<std::uint32_t>(steps_.size() - 1);
  }
  const std::uint32_t id = unused_steps_.back();
  unused_steps_.pop_back();
  ProgramStep& step = steps_[id];
  step.pages = 1;
  step.reads_pending = 0;
  step.slc = false;
  step.folds = false;
  step.host_units = 0;
  step.sequence = 0;
  step.complete = false;
  step.owners.clear();
  return id;
}

void FlashArray::free_step(std::uint32_t id) { unused_steps_.push_back(id); }

bool FlashArray::is_host_read(const FlashOp& op) const {
  return timing_.reads_overtake > 0 && op.kind == OpKind::read &&
         (op.purpose == ReadPurpose::host || op.purpose == ReadPurpose::mapping ||
          op.purpose == ReadPurpose::rest_of_unit);
}

void FlashArray::change_load(std::uint32_t die, std::int32_t by) {
  dies_[die].load += static_cast<std::uint32_t>(by);
  update_ready(die);
}

void FlashArray::set_writable(std::uint32_t die, bool writable) {
  dies_[die].writable = writable;
  update_ready(die);
}

void FlashArray::update_ready(std::uint32_t die) {
  const std::uint64_t bit = std::uint64_t{1} << (die % 64);
  const bool ready = dies_[die].writable && dies_[die].load < kProgramsAhead;
  if (ready == ((ready_[die / 64] & bit) != 0)) return;
  ready_[die / 64] ^= bit;
  ready_dies_ += ready ? 1U : ~0U;
}

std::uint32_t FlashArray::next_ready_die(std::uint32_t from) const {
  const std::size_t first = from / 64;
  std::uint64_t word = ready_[first] & (~std::uint64_t{0} << (from % 64));
  for (std::size_t examined = 0; examined <= ready_.size(); ++examined) {
    const std::size_t index = (first + examined) % ready_.size();
    if (examined > 0) word = ready_[index];
    if (word != 0) return static_cast<std::uint32_t>(index * 64 + static_cast<std::size_t>(std::countr_zero(word)));
  }
  return kNoDie;
}

void FlashArray::push(OpQueue& queue, std::uint32_t id) {
  ops_[id].next = kNoOp;
  (queue.tail == kNoOp ? queue.head : ops_[queue.tail].next) = id;
  queue.tail = id;
}

std::uint32_t FlashArray::pop(OpQueue& queue) {
  const std::uint32_t id = queue.head;
  queue.head = ops_[id].next;
  if (queue.head == kNoOp) {
    queue.tail = kNoOp;
  } else {
    prefetch(&ops_[queue.head]);  // it starts when this one is done
  }
  ops_[id].next = kNoOp;
  return id;
}

void FlashArray::enqueue(std::int64_t now, std::uint32_t id) {
  const std::uint32_t index = ops_[id].die;
  Die& die = dies_[index];
  if (is_host_read(ops_[id])) {
    push(die.reads, id);
  } else {
    push(die.rest, id);
    change_load(index, +1);
  }
  if (!die.busy) start_next(now, index);
}

void FlashArray::program_if_ready(std::int64_t now, std::uint32_t step) {
  const ProgramStep& s = steps_[step];
  if (!s.complete || s.reads_pending != 0) return;
  const std::uint32_t id = new_op();
  FlashOp& op = ops_[id];
  op.kind = OpKind::program;
  op.die = s.die;
  op.page = s.page;
  op.slc = s.slc;
  op.bytes = s.planes * page_bytes_;
  op.steps[0] = step;
  enqueue(now, id);
}

void FlashArray::start_next(std::int64_t now, std::uint32_t index) {
  Die& die = dies_[index];
  const bool rest_waits = die.rest.head != kNoOp;
  const bool read_waits = die.reads.head != kNoOp;
  if (read_waits && (!rest_waits || die.overtaken < timing_.reads_overtake)) {
    if (rest_waits) ++die.overtaken;
    start(now, pop(die.reads));
  } else if (rest_waits) {
    die.overtaken = 0;
    start(now, pop(die.rest));
  }
}

void FlashArray::start(std::int64_t now, std::uint32_t id) {
  FlashOp& op = ops_[id];
  dies_[op.die].busy = true;
  op.started = now;
  std::int64_t end = now;
  switch (op.kind) {
    case OpKind::read:
      if (timing_.independent_plane_reads && is_host_read(op)) gather_other_planes(id);
      end += op.slc ? slc_read_ns_ : time_of_page(timing_.read_ns, op.page);
      break;
    case OpKind::program:
      end = transfer(now, op.die, op.bytes) + (op.slc ? slc_program_ns_ : time_of_page(timing_.program_ns, op.page));
      break;
    case OpKind::erase:
      end += timing_.erase_ns;
      break;
  }
  wheel_.push(now, end, id);
}

// Groups read `id` with queued host reads of other planes, at most one per plane, among the first few that wait.
void FlashArray::gather_other_planes(std::uint32_t id) {
  Die& die = dies_[ops_[id].die];
  std::uint32_t planes_taken = 1U << ops_[id].plane;
  std::uint32_t last = id;
  std::uint32_t before = kNoOp;
  std::uint32_t examined = 0;
  for (std::uint32_t other = die.reads.head; other != kNoOp && examined < 2 * kMaxPlanes; ++examined) {
    const std::uint32_t next = ops_[other].next;
    if ((planes_taken & (1U << ops_[other].plane)) != 0 || ops_[other].slc != ops_[id].slc) {
      before = other;
    } else {
      planes_taken |= 1U << ops_[other].plane;
      (before == kNoOp ? die.reads.head : ops_[before].next) = next;
      if (die.reads.tail == other) die.reads.tail = before;
      ops_[other].next = kNoOp;
      ops_[last].group = other;
      ops_[last].frees_die = false;
      last = other;
    }
    other = next;
  }
}

// The channel serves transfers in the order of their requests. Returns when this one is complete.
std::int64_t FlashArray::transfer(std::int64_t now, std::uint32_t die, std::uint32_t bytes) {
  std::int64_t& free_at = channel_free_at_[die % channels_];
  const auto duration = timing_.channel_command_ns + static_cast<std::int64_t>(bytes * channel_ns_per_byte_ + 0.5);
  free_at = std::max(free_at, now) + duration;
  counters_->channel_busy_ns += static_cast<std::uint64_t>(duration);
  return free_at;
}

void FlashArray::end_of_sense(std::int64_t now, std::uint32_t id) {
  const std::int64_t started = ops_[id].started;
  for (std::uint32_t member = id; member != kNoOp; member = ops_[member].group) {
    ops_[member].sensed = true;
    if (ops_[member].steps[0] != kNoStep) prefetch(&steps_[ops_[member].steps[0]]);
    ops_[member].started = started;
    wheel_.push(now, transfer(now, ops_[member].die, ops_[member].bytes), member);
  }
}

std::uint32_t FlashArray::run_next() {
  const std::int64_t now = wheel_.next_time();
  const std::uint32_t id = wheel_.take();
  const FlashOp& op = ops_[id];
  if (op.kind == OpKind::program) prefetch(&steps_[op.steps[0]]);
  const bool finished = op.kind != OpKind::read || op.sensed;
  if (!finished) {
    end_of_sense(now, id);
  } else if (op.frees_die) {
    free_die(now, op);
  }
  if (wheel_.next_time() != TimingWheel::kNever) prefetch(&ops_[wheel_.next()]);
  return finished ? id : kNoOp;
}

void FlashArray::free_die(std::int64_t now, const FlashOp& op) {
  const auto busy = static_cast<std::uint64_t>(now - op.started);
  (op.kind == OpKind::read      ? counters_->die_read_busy_ns
   : op.kind == OpKind::program ? counters_->die_program_busy_ns
                                : counters_->die_erase_busy_ns) += busy;
  const std::uint32_t die = op.die;
  if (!is_host_read(op)) change_load(die, -1);
  dies_[die].busy = false;
  start_next(now, die);
}

}  // namespace spillway::ssd
