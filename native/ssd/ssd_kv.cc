// Key-value commands from submission to completion, and the flash commands of the key-value controller.
#include <utility>

#include "ssd/ssd_impl.h"

namespace spillway::ssd {

void Ssd::Impl::submit_kv(Nanos now, KvCommand command) {
  before_submit(now);
  Command envelope;
  envelope.tag = command.tag;
  envelope.op = command.op;
  envelope.cause = command.cause;
  envelope.queue = command.queue;
  const std::uint32_t slot = take_slot(now, envelope);
  slots_[slot].role = Role::kv;
  kv_->accept(slot, std::move(command));
  enqueue(now, slot);
}

void Ssd::Impl::fetch_kv(Nanos now, std::uint32_t slot) {
  if (is_kv_read(slots_[slot].command.op)) {
    controller_free_at_ = now + config_.timing.read_occupancy_ns;
    kv_->arrive(now, slot);
  } else {
    arrivals_.push(cross_link(link_down_free_at_, now, kv_->bytes_to_drive(slot)), slot);
  }
}

void Ssd::Impl::answer(Nanos now, std::uint32_t slot, Outcome outcome) {
  slots_[slot].outcome = outcome;
  const Command& c = slots_[slot].command;
  if (!is_kv_read(c.op)) {
    finish_write(now, slot);
    return;
  }
  const std::uint32_t bytes = kv_->bytes_to_host(slot);
  counters_.host_bytes_read += bytes;
  counters_.host_bytes_read_by_cause[c.cause] += bytes;
  read_done_.push(cross_link(link_up_free_at_, now, bytes) + config_.timing.read_command_ns, slot);
}

std::uint32_t Ssd::Impl::background_slot(Nanos now) {
  const std::uint32_t slot = take_slot(now, Command());
  slots_[slot].role = Role::background;
  return slot;
}

void Ssd::Impl::read(Nanos now, std::uint32_t slot, std::span<const UnitRange> ranges) {
  for (const UnitRange& range : ranges) {
    read_units(now, slot, std::uint64_t{range.first} * unit_lbas_, range.count * unit_lbas_);
  }
  if (slots_[slot].remaining == 0) kv_->flash_done(now, slot);
}

void Ssd::Impl::write(Nanos now, std::uint32_t slot, UnitRange units) {
  Command& c = slots_[slot].command;
  c.op = Opcode::write;
  c.lba = std::uint64_t{units.first} * unit_lbas_;
  c.lba_count = units.count * unit_lbas_;
  admissions_.push(slot);
  admit(now);
}

void Ssd::Impl::flush(Nanos now, std::uint32_t slot) {
  slots_[slot].command.op = Opcode::flush;
  slots_[slot].flush_until = cache_.admitted();
  flushes_.push(slot);
  program_waiting(now);
  finish_flushes(now);
}

void Ssd::Impl::deallocate(Nanos now, UnitRange units) {
  deallocate_units(now, units.first, units.first + units.count);
  admit(now);
}

bool Ssd::Impl::bulk_load_kv(std::uint16_t kv_namespace, const std::vector<KvPair>& pairs) {
  if (pairs.empty()) return true;
  quiesce();
  const DevLsm::Run* const run = kv_->lsm(kv_namespace).bulk_load(pairs);
  if (run == nullptr) return false;
  for (const UnitRange& extent : run->extents) {
    for (std::uint32_t i = 0; i < extent.count; ++i) ftl_.overwrite(extent.first + i, ftl_.slots_for(kIncompressible));
  }
  return true;
}

std::optional<std::string> Ssd::Impl::audit() const {
  if (auto broken = ftl_.audit()) return broken;
  if (!kv_) return std::nullopt;
  const auto is_written = [this](std::uint32_t unit) {
    return ftl_.physical(unit) != Ftl::kUnmapped || cache_.holds(unit);
  };
  for (std::uint16_t i = 0; i < config_.namespaces.count; ++i) {
    if (auto broken = kv_->lsm(i).audit(is_written)) return broken;
  }
  return std::nullopt;
}

}  // namespace spillway::ssd
