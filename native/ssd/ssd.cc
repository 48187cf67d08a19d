#include "ssd/ssd.h"

#include <algorithm>
#include <cassert>
#include <utility>

#include "ssd/ssd_impl.h"

namespace spillway::ssd {

// --- Time

Nanos Ssd::Impl::next_time() const {
  const Nanos time =
      std::min({array_.next_time(), arrivals_.next_time(), read_done_.next_time(), write_done_.next_time(), wake_at_});
  return kv_ ? std::min(time, kv_->next_time()) : time;
}

void Ssd::Impl::run_until(Nanos now, bool to_completion) {
  for (Nanos ran = now;;) {
    if (to_completion && !done_.empty()) now = std::min(now, done_.front().completed);
    const Nanos time = next_time();
    if (time > now) {
      if (time != kNever || in_flight_ == 0) return;
      fail_stuck_commands(ran);
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
    } else if (kv_ && kv_->next_time() == time) {
      kv_->run_next(time);
    } else if (queued_ > 0) {
      fetch_next(time);
    } else {
      start_idle_fold(time);
    }
  }
}

// Commands wait and no event is pending: the drive cannot make clean space. The commands fail.
void Ssd::Impl::fail_stuck_commands(Nanos now) {
  while (!admissions_.empty()) admissions_.pop();
  while (!flushes_.empty()) flushes_.pop();
  if (kv_) kv_->drop_stalled();
  for (std::uint32_t slot = 0; slot < slots_.size(); ++slot) {
    if (std::find(unused_slots_.begin(), unused_slots_.end(), slot) != unused_slots_.end()) continue;
    if (slots_[slot].role == Role::background) {
      kv_->flash_failed(slot);
      continue;
    }
    const bool is_kv = slots_[slot].role == Role::kv;
    slots_[slot].outcome = is_kv ? Outcome::kv_capacity_exceeded : Outcome::capacity_exceeded;
    slots_[slot].remaining = kNone;  // no completion even if its units are programmed later
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
  return slot;
}

void Ssd::Impl::complete(Nanos now, std::uint32_t slot) {
  const Slot& s = slots_[slot];
  done_.push_back({s.command.tag, s.submitted, now, s.command.queue, s.outcome});
  if (s.role == Role::kv) done_.back().kv_bytes = kv_->result_bytes(slot);
  unused_slots_.push_back(slot);
  --in_flight_;
  if (folds_ && in_flight_ == 0) arm_idle_timer(now);
}

// --- Submission

void Ssd::Impl::before_submit(Nanos now) {
  run_until(now);
  if (in_flight_ == 0) {
    idle_ = false;
    wake_at_ = kNever;
  }
  ++in_flight_;
}

void Ssd::Impl::submit(Nanos now, const Command& command) {
  before_submit(now);
  const std::uint32_t slot = take_slot(now, command);
  const std::uint64_t lbas = layout_.block_units * unit_lbas_;
  const bool has_range = command.op != Opcode::flush;
  if (has_range && (command.lba_count == 0 || command.lba >= lbas || command.lba_count > lbas - command.lba)) {
    slots_[slot].outcome = Outcome::lba_out_of_range;
    link_down_free_at_ = std::max(link_down_free_at_, now);
    arrivals_.push(link_down_free_at_, slot);
    return;
  }
  enqueue(now, slot);
}

void Ssd::Impl::enqueue(Nanos now, std::uint32_t slot) {
  if (queued_ == 0 && controller_free_at_ <= now) {
    fetch(now, slot);
    return;
  }
  const std::uint16_t queue = slots_[slot].command.queue;
  if (queue >= submission_queues_.size()) submission_queues_.resize(queue + std::size_t{1});
  submission_queues_[queue].push(slot);
  ++queued_;
  wake_at_ = controller_free_at_;
}

// The controller is free: it fetches the next command, round robin over submission queues.
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
    wake_at_ = queued_ > 0 ? controller_free_at_ : kNever;
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
  if (is_kv(c.op)) {
    fetch_kv(now, slot);
    return;
  }
  arrivals_.push(cross_link(link_down_free_at_, now, c.op == Opcode::write ? bytes_of(c) : 0), slot);
}

// --- The public class

Ssd::Ssd(const SsdConfig& config, std::uint64_t seed) : impl_(std::make_unique<Impl>(config, seed)) {
  assert(!problem(config));
}
Ssd::~Ssd() = default;
Ssd::Ssd(Ssd&&) noexcept = default;
Ssd& Ssd::operator=(Ssd&&) noexcept = default;

const SsdConfig& Ssd::config() const { return impl_->config_; }
const Layout& Ssd::layout() const { return impl_->layout_; }
void Ssd::submit(Nanos now, const Command& command) { impl_->submit(now, command); }
void Ssd::submit_kv(Nanos now, KvCommand command) { impl_->submit_kv(now, std::move(command)); }
void Ssd::prefetch_entry(const Command& command) const { impl_->prefetch_entry(command); }
void Ssd::prefetch_place(const Command& command) const { impl_->prefetch_place(command); }
std::optional<Nanos> Ssd::next_event() const { return impl_->next_event(); }
void Ssd::advance(Nanos now, std::vector<Completion>& done) { impl_->advance(now, done); }
void Ssd::advance_to_completion(Nanos until, std::vector<Completion>& done) {
  impl_->advance_to_completion(until, done);
}
std::size_t Ssd::in_flight() const { return impl_->in_flight_; }
const Counters& Ssd::counters() const { return impl_->counters_; }
KvCounters Ssd::kv_counters() const { return impl_->kv() != nullptr ? impl_->kv()->counters() : KvCounters(); }
double Ssd::mean_pe_cycles() const {
  const BlockTable& blocks = impl_->ftl_.blocks();
  return static_cast<double>(blocks.erases_total()) / blocks.size();
}
std::uint32_t Ssd::max_pe_cycles() const { return impl_->ftl_.blocks().erases_max(); }
std::uint64_t Ssd::mapped_units() const { return impl_->ftl_.mapped_units(); }

void Ssd::write_sequentially(std::uint64_t first, std::uint64_t count, std::uint16_t compressed_share) {
  impl_->quiesce();
  impl_->ftl_.write_sequentially(static_cast<std::uint32_t>(first), static_cast<std::uint32_t>(count),
                                 impl_->ftl_.slots_for(compressed_share));
}
void Ssd::assume_steady(std::uint64_t count, std::uint16_t compressed_share) {
  impl_->quiesce();
  impl_->ftl_.assume_steady(static_cast<std::uint32_t>(count), impl_->ftl_.slots_for(compressed_share));
}
void Ssd::overwrite(std::uint64_t unit, std::uint16_t compressed_share) {
  impl_->ftl_.overwrite(static_cast<std::uint32_t>(unit), impl_->ftl_.slots_for(compressed_share));
}
void Ssd::discard(std::uint64_t first, std::uint64_t count) {
  for (std::uint64_t unit = first; unit < first + count; ++unit) {
    impl_->ftl_.deallocate({}, static_cast<std::uint32_t>(unit));
  }
}
bool Ssd::bulk_load_kv(std::uint16_t kv_namespace, const std::vector<KvPair>& pairs) {
  return impl_->bulk_load_kv(kv_namespace, pairs);
}
void Ssd::reset_counters() {
  impl_->counters_ = Counters();
  if (impl_->kv() != nullptr) impl_->kv()->reset_counters();
}
bool Ssd::save(const StateSink& sink) { return impl_->save(sink); }
std::optional<std::string> Ssd::load(const StateSource& source) { return impl_->load(source); }
std::vector<KvPair> Ssd::kv_pairs(std::uint16_t kv_namespace) const {
  std::vector<KvPair> pairs;
  for (const auto& [key, place] : impl_->kv()->lsm(kv_namespace).index()) pairs.push_back({key, place.value_bytes});
  return pairs;
}
std::optional<std::string> Ssd::audit() const { return impl_->audit(); }

}  // namespace spillway::ssd
