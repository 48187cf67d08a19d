#include "device/model/drive_model.h"

#include <algorithm>
#include <utility>

#include "device/preset/preset.h"

namespace spillway::device {

using ssd::Command;
using ssd::Nanos;
using ssd::Opcode;

namespace {

Nanos bytes_ns(std::uint64_t bytes, double mb_s) {
  return mb_s > 0 ? static_cast<Nanos>(static_cast<double>(bytes) * 1000 / mb_s) : 0;
}

// Whether the command transfers data to the host.
bool reads(Opcode op) { return op == Opcode::read || ssd::is_kv_read(op); }

// Bytes to the host, of a completed command that says `kv_bytes`.
std::uint32_t transferred_bytes(const ssd::KvCommand& c, std::uint32_t kv_bytes) {
  return c.op == Opcode::kv_retrieve ? ssd::part_bytes(kv_bytes, c.offset_bytes, c.buffer_bytes) : kv_bytes;
}

}  // namespace

DriveModel::DriveModel(ssd::Ssd flash)
    : name_(flash.config().name),
      lba_bytes_(flash.config().geometry.lba_bytes),
      mapping_unit_bytes_(flash.config().geometry.mapping_unit_bytes),
      flash_(std::move(flash)) {}

DriveModel::DriveModel(const Drive& drive, std::uint64_t seed)
    : name_(drive.config.name),
      layers_(drive.layers()),
      layered_(layers_.has_cap() || !drive.host_stack.empty()),
      lba_bytes_(drive.config.geometry.lba_bytes),
      mapping_unit_bytes_(drive.config.geometry.mapping_unit_bytes) {
  if (layers_.is_disk()) {
    const ssd::SsdConfig& config = drive.config;
    disk_.emplace(layers_.disk, HardDisk::Format{ssd::layout(config).capacity_bytes, lba_bytes_, mapping_unit_bytes_,
                                                 config.timing.host_link_mb_s, config.write_cache});
  } else {
    flash_.emplace(drive.config, seed);
  }
}

std::uint64_t DriveModel::capacity_bytes() const {
  return flash_ ? flash_->layout().capacity_bytes : disk_->capacity_bytes();
}

std::uint64_t DriveModel::mapped_units() const {
  return flash_ ? flash_->mapped_units() : disk_->capacity_bytes() / mapping_unit_bytes_;
}

void DriveModel::reset_counters() {
  if (flash_) {
    flash_->reset_counters();
  } else {
    disk_->reset_counters();
  }
}

// --- The medium

void DriveModel::medium_submit(Nanos now, const Command& command) {
  if (flash_) {
    flash_->submit(now, command);
  } else {
    disk_->submit(now, command);
  }
}

std::optional<Nanos> DriveModel::medium_next() const { return flash_ ? flash_->next_event() : disk_->next_event(); }

void DriveModel::medium_advance(Nanos now, std::vector<ssd::Completion>& done) {
  if (flash_) {
    flash_->advance(now, done);
  } else {
    disk_->advance(now, done);
  }
}

void DriveModel::medium_advance_to_completion(Nanos until, std::vector<ssd::Completion>& done) {
  if (flash_) {
    flash_->advance_to_completion(until, done);
    return;
  }
  for (auto next = disk_->next_event(); done.empty() && next && *next <= until; next = disk_->next_event()) {
    disk_->advance(*next, done);
  }
}

// --- Time

void DriveModel::submit(Nanos now, const Command& command) {
  if (!layered_) {
    medium_submit(now, command);
    return;
  }
  run_until(now);
  const std::uint32_t slot = take_slot(now, command);
  at(now + issue_ns(command.op, bytes_of(command)), slot, Stage::entered);
  run_until(now);  // without delays the command reaches the medium at once
}

// The layers treat a key-value command as a command of that many bytes to the drive.
void DriveModel::submit_kv(Nanos now, ssd::KvCommand command) {
  if (!layered_) {
    flash_->submit_kv(now, std::move(command));
    return;
  }
  run_until(now);
  Command envelope;
  envelope.tag = command.tag;
  envelope.op = command.op;
  envelope.cause = command.cause;
  envelope.queue = command.queue;
  std::uint64_t bytes = command.op == Opcode::kv_store ? command.pair.stored_bytes() : 0;
  for (const ssd::KvPair& pair : command.pairs) bytes += pair.stored_bytes();
  envelope.lba_count = lbas_of(bytes);
  const std::uint32_t slot = take_slot(now, envelope);
  slots_[slot].kv = std::make_unique<ssd::KvCommand>(std::move(command));
  at(now + issue_ns(envelope.op, bytes_of(envelope)), slot, Stage::entered);
  run_until(now);
}

Nanos DriveModel::issue_ns(Opcode op, std::uint64_t bytes) const {
  const HostStack& stack = layers_.host_stack;
  // A write's data is copied before it goes to the drive, a read's after it has come back.
  if (reads(op)) return stack.read_submit_ns;
  return stack.write_submit_ns + bytes_ns(bytes, stack.write_copy_mb_s);
}

std::optional<Nanos> DriveModel::next_event() const {
  const auto medium = medium_next();
  if (!layered_) return medium;
  if (!done_.empty()) return done_.front().completed;
  if (pending_events_.empty()) return medium;
  return medium ? std::min(*medium, pending_events_.top().time) : pending_events_.top().time;
}

void DriveModel::advance(Nanos now, std::vector<ssd::Completion>& done) {
  if (!layered_) {
    medium_advance(now, done);
    return;
  }
  run_until(now);
  done.insert(done.end(), done_.begin(), done_.end());
  done_.clear();
}

void DriveModel::advance_to_completion(Nanos until, std::vector<ssd::Completion>& done) {
  if (!layered_) {
    medium_advance_to_completion(until, done);
    return;
  }
  run_until(until, true);
  done.insert(done.end(), done_.begin(), done_.end());
  done_.clear();
}

void DriveModel::run_until(Nanos now, bool to_completion) {
  for (;;) {
    if (to_completion && !done_.empty()) now = std::min(now, done_.front().completed);
    // At the same time the layers come first.
    const bool layers_wait = !pending_events_.empty();
    if (run_medium(layers_wait ? std::min(now, pending_events_.top().time - 1) : now)) continue;
    if (!layers_wait || pending_events_.top().time > now) return;
    const Event event = pending_events_.top();
    pending_events_.pop();
    handle(event);
  }
}

// Runs the medium up to a time, or to its first completions before, which the layers take. Whether there are some.
bool DriveModel::run_medium(Nanos until) {
  from_medium_.clear();
  medium_advance_to_completion(until, from_medium_);
  const HostStack& stack = layers_.host_stack;
  for (const ssd::Completion& completion : from_medium_) {
    const auto slot = static_cast<std::uint32_t>(completion.tag);
    Slot& s = slots_[slot];
    s.outcome = completion.outcome;
    s.kv_bytes = completion.kv_bytes;
    if (s.kv && reads(s.command.op)) s.command.lba_count = lbas_of(transferred_bytes(*s.kv, completion.kv_bytes));
    const bool is_read = reads(s.command.op);
    const Nanos copy = is_read ? bytes_ns(bytes_of(s.command), stack.read_copy_mb_s) : 0;
    at(completion.completed + (is_read ? stack.read_complete_ns : stack.write_complete_ns) + copy, slot, Stage::done);
  }
  return !from_medium_.empty();
}

void DriveModel::handle(const Event& event) {
  switch (event.stage) {
    case Stage::entered:
      enter(event.time, event.slot);
      break;
    case Stage::served:
      if (stack_.leave()) serve_batch(event.time, true);
      apply_rate_cap(event.time, event.slot);
      break;
    case Stage::admitted:
      wait_for_commit(event.time, event.slot);
      break;
    case Stage::committed:
      if (commits_.leave()) begin_commit(event.time, true);
      [[fallthrough]];
    case Stage::sent: {
      Slot& s = slots_[event.slot];
      if (s.kv) {
        s.kv->tag = event.slot;
        flash_->submit_kv(event.time, *s.kv);
        break;
      }
      Command command = s.command;
      command.tag = event.slot;
      medium_submit(event.time, command);
      break;
    }
    case Stage::done:
      finish(event.time, event.slot);
      break;
  }
}

// --- The path of a command

std::uint32_t DriveModel::take_slot(Nanos now, const Command& command) {
  if (unused_slots_.empty()) {
    unused_slots_.push_back(static_cast<std::uint32_t>(slots_.size()));
    slots_.emplace_back();
  }
  const std::uint32_t slot = unused_slots_.back();
  unused_slots_.pop_back();
  slots_[slot] = {command, now, ssd::Outcome::success, false, 0, nullptr};
  ++used_slots_;
  return slot;
}

std::uint64_t DriveModel::bytes_of(const Command& command) const {
  const bool transfers = command.op == Opcode::read || command.op == Opcode::write || is_kv(command.op);
  return transfers ? std::uint64_t{command.lba_count} * lba_bytes_ : 0;
}

bool DriveModel::is_partial(const Command& command) const {
  const std::uint32_t block = layers_.host_stack.block_bytes;
  if (block == 0 || command.op != Opcode::write) return false;
  return (command.lba * lba_bytes_) % block != 0 || bytes_of(command) % block != 0;
}

void DriveModel::enter(Nanos now, std::uint32_t slot) {
  if (is_partial(slots_[slot].command)) {
    if (partial_under_way_) {
      partial_waiting_.push_back(slot);
      return;
    }
    partial_under_way_ = true;
    slots_[slot].holds_block = true;
  }
  join_batch(now, slot);
}

void DriveModel::join_batch(Nanos now, std::uint32_t slot) {
  const HostStack& stack = layers_.host_stack;
  const Command& command = slots_[slot].command;
  const bool is_read = reads(command.op);
  const std::uint64_t bytes = bytes_of(command);
  BatchServer::Request request;
  request.slot = slot;
  request.turn_ns = is_read ? stack.read_turn_ns : stack.write_turn_ns;
  request.wake_ns = (is_read ? stack.read_wake_ns : stack.write_wake_ns) +
                    bytes_ns(bytes, is_read ? stack.read_wake_mb_s : stack.write_wake_mb_s);
  request.serve_ns = (is_read ? stack.read_serial_ns : stack.write_serial_ns) +
                     bytes_ns(bytes, is_read ? stack.read_serial_mb_s : stack.write_serial_mb_s);
  if (stack_.join(request)) serve_batch(now, false);
}

void DriveModel::serve_batch(Nanos now, bool waited) {
  stack_.serve(now, waited, [this](std::uint32_t slot, Nanos time) { at(time, slot, Stage::served); });
}

// A leaky bucket by virtual scheduling, as in ATM networks: each command advances the time until which the rate is used
// up. An idle drive saves up no more than the burst.
void DriveModel::apply_rate_cap(Nanos now, std::uint32_t slot) {
  const Cap& cap = layers_.cap;
  const Command& command = slots_[slot].command;
  const Nanos by_count = cap.iops > 0 ? static_cast<Nanos>(1e9 / cap.iops) : 0;
  const Nanos cost = std::max(by_count, bytes_ns(bytes_of(command), cap.bandwidth_mb_s));
  const Nanos start = std::max(now - cap.burst_ns, rate_used_until_);
  rate_used_until_ = start + cost;
  const Nanos network = reads(command.op) ? cap.read_network_ns : cap.write_network_ns;
  at(std::max(now, start) + network, slot, Stage::admitted);
}

void DriveModel::wait_for_commit(Nanos now, std::uint32_t slot) {
  if (reads(slots_[slot].command.op) || layers_.cap.commit_ns == 0) {
    at(now, slot, Stage::sent);
    return;
  }
  if (commits_.join({slot, layers_.cap.commit_ns, 0, 0})) begin_commit(now, false);
}

void DriveModel::begin_commit(Nanos now, bool waited) {
  commits_.serve(now, waited, [this](std::uint32_t slot, Nanos time) { at(time, slot, Stage::committed); });
}

void DriveModel::finish(Nanos now, std::uint32_t slot) {
  const Slot s = std::move(slots_[slot]);
  done_.push_back({s.command.tag, s.submitted, now, s.command.queue, s.outcome, s.kv_bytes});
  unused_slots_.push_back(slot);
  --used_slots_;
  if (!s.holds_block) return;
  partial_under_way_ = false;
  if (partial_waiting_.empty()) return;
  const std::uint32_t next = partial_waiting_.front();
  partial_waiting_.pop_front();
  enter(now, next);
}

}  // namespace spillway::device
