#include "ssd/kv/kv_controller.h"

#include <cassert>
#include <utility>

namespace spillway::ssd {

KvController::KvController(const SsdConfig& config, const Layout& layout, Counters* counters, KvFlash* flash)
    : config_(config.namespaces),
      unit_bytes_(config.geometry.mapping_unit_bytes),
      page_bytes_(config.geometry.page_bytes * config.geometry.planes_per_die),
      writes_are_safe_(config.write_cache.bytes == 0 || config.write_cache.power_loss_protection),
      counters_(counters),
      flash_(flash) {
  const auto units = static_cast<std::uint32_t>(layout.kv_units);
  auto first = static_cast<std::uint32_t>(layout.logical_units - layout.kv_units * config_.count);
  for (std::uint32_t i = 0; i < config_.count; ++i, first += units) {
    namespaces_.push_back({DevLsm(config_, unit_bytes_, first, units), {}, {}, {}});
  }
}

// --- Commands

void KvController::accept(std::uint32_t slot, KvCommand command) {
  if (slot >= requests_.size()) requests_.resize(slot + std::size_t{1});
  Request& r = requests_[slot];
  r.command = std::move(command);
  r.outcome = Outcome::success;
  r.result_bytes = r.transfer_bytes = 0;
  r.parsed = false;
  r.reads.clear();
}

std::uint64_t KvController::bytes_to_drive(std::uint32_t slot) const {
  const KvCommand& c = requests_[slot].command;
  if (c.op == Opcode::kv_store) return std::uint64_t{c.pair.key.size} + c.pair.value_bytes;
  if (c.op != Opcode::kv_batch_store) return 0;
  std::uint64_t bytes = 0;
  for (const KvPair& pair : c.pairs) bytes += std::uint64_t{pair.key.size} + pair.value_bytes;
  return bytes;
}

std::uint32_t KvController::bytes_to_host(std::uint32_t slot) const { return requests_[slot].transfer_bytes; }

void KvController::arrive(Nanos now, std::uint32_t slot) {
  const KvCommand& c = requests_[slot].command;
  if (!is_kv_read(c.op)) {
    const std::uint64_t bytes = bytes_to_drive(slot);
    if (bytes > 0) ++counters_->host_writes;
    counters_->host_bytes_written += bytes;
    counters_->host_bytes_written_by_cause[c.cause] += bytes;
  } else {
    ++counters_->host_reads;
  }
  if (has_failed_writes_) retry_failed_writes(now);
  core_queue_.push_back({Work::command, slot});
  start_core(now);
}

// Depends only on the command's own fields, not on stored data.
std::optional<Outcome> KvController::refusal(const Request& r) const {
  const KvCommand& c = r.command;
  if (c.kv_namespace >= namespaces_.size()) return Outcome::kv_invalid_namespace;
  const auto bad_pair = [this](const KvPair& pair) -> std::optional<Outcome> {
    if (pair.key.size == 0 || pair.key.size > config_.kml_bytes) return Outcome::kv_invalid_key_size;
    if (pair.value_bytes > config_.vml_bytes) return Outcome::kv_invalid_value_size;
    return std::nullopt;
  };
  switch (c.op) {
    case Opcode::kv_store:
      return bad_pair(c.pair);
    case Opcode::kv_retrieve:
      if (c.offset_bytes != 0 && !config_.retrieve_offset) return Outcome::kv_invalid_field;
      return bad_pair({c.pair.key, 0});
    case Opcode::kv_delete:
    case Opcode::kv_exist:
      return bad_pair({c.pair.key, 0});
    case Opcode::kv_batch_retrieve:
      return refusal_of_parts(c.parts);
    case Opcode::kv_batch_store: {
      std::uint64_t bytes = 0;
      for (const KvPair& pair : c.pairs) {
        if (const auto bad = bad_pair(pair)) return bad;
        bytes += pair.stored_bytes();
      }
      // The command must fit into an empty memtable.
      if (bytes > config_.memtable_bytes) return Outcome::kv_invalid_value_size;
      return std::nullopt;
    }
    default:
      if (c.range.begin.size > config_.kml_bytes || c.range.end.size > config_.kml_bytes) {
        return Outcome::kv_invalid_key_size;
      }
      return std::nullopt;
  }
}

std::optional<Outcome> KvController::refusal_of_parts(std::span<const KvPart> parts) const {
  if (config_.batch_retrieve_keys == 0) return Outcome::kv_invalid_opcode;
  if (parts.empty() || parts.size() > config_.batch_retrieve_keys) return Outcome::kv_invalid_field;
  std::uint64_t bytes = 0;
  for (const KvPart& part : parts) {
    if (part.key.size == 0 || part.key.size > config_.kml_bytes) return Outcome::kv_invalid_key_size;
    if (part.offset_bytes != 0 && !config_.retrieve_offset) return Outcome::kv_invalid_field;
    bytes += std::uint64_t{kPartHeaderBytes} + part.buffer_bytes;
  }
  // The answer crosses the link in one transfer.
  if (bytes > kScanChunkBytes) return Outcome::kv_invalid_field;
  return std::nullopt;
}

Nanos KvController::execute(Nanos now, std::uint32_t slot) {
  Request& r = requests_[slot];
  const Nanos parse = std::exchange(r.parsed, true) ? 0 : config_.core_command_ns;
  if (const auto refused = refusal(r)) {
    r.outcome = *refused;
    return parse;
  }
  switch (r.command.op) {
    case Opcode::kv_store:
    case Opcode::kv_batch_store:
      return parse + store(now, r, slot);
    case Opcode::kv_delete:
      return parse + remove(now, r, slot);
    case Opcode::kv_retrieve:
    case Opcode::kv_exist:
      return parse + retrieve(r);
    case Opcode::kv_batch_retrieve:
      return parse + retrieve_batch(r);
    case Opcode::kv_list:
    case Opcode::kv_iterate:
    case Opcode::kv_bulk_scan:
      return parse + scan(r);
    default:
      return parse + reset(now, r, slot);
  }
}

bool KvController::ensure_memtable_room(Nanos now, Request& r, std::uint32_t slot, std::uint64_t bytes,
                                        bool is_removal) {
  Namespace& ns = namespaces_[r.command.kv_namespace];
  // A store waits behind a stalled one: stores take effect in the order of their arrival.
  bool must_wait = !ns.stalled.empty();
  if (!must_wait) {
    const DevLsm::MemtableRoom room = ns.lsm.room_for(bytes, is_removal);
    if (room == DevLsm::MemtableRoom::available) return true;
    if (room == DevLsm::MemtableRoom::none) {
      ++kv_.refused_for_capacity;
      r.outcome = Outcome::kv_capacity_exceeded;
      return false;
    }
    must_wait = ns.lsm.immutable() != nullptr;
  }
  if (must_wait) {
    ++kv_.stores_that_waited;
    ns.stalled.push_back(slot);
    current_task_.work = Work::flush;  // no answer is due when the core is done
    current_task_.what = ~std::uint32_t{0};
    return false;
  }
  ns.flush.run = &ns.lsm.switch_memtable();
  resume_job(now, ns, ns.flush, Work::flush);
  return true;
}

Nanos KvController::store(Nanos now, Request& r, std::uint32_t slot) {
  const bool single = r.command.op == Opcode::kv_store;
  const std::span<const KvPair> pairs =
      single ? std::span(&r.command.pair, 1) : std::span<const KvPair>(r.command.pairs);
  Namespace& ns = namespaces_[r.command.kv_namespace];
  if (single && ns.stalled.empty() && r.command.condition != KvCondition::none) {
    const bool is_there = ns.lsm.index().contains(r.command.pair.key);
    if (is_there != (r.command.condition == KvCondition::only_if_exists)) {
      r.outcome = is_there ? Outcome::kv_key_exists : Outcome::kv_key_does_not_exist;
      return config_.core_pair_ns;
    }
  }
  std::uint64_t bytes = 0;
  for (const KvPair& pair : pairs) bytes += pair.stored_bytes();
  if (!ensure_memtable_room(now, r, slot, bytes, false)) return 0;
  for (const KvPair& pair : pairs) ns.lsm.put(pair);
  deallocate_freed(now, ns);
  ++kv_.stores;
  kv_.stored_pairs += pairs.size();
  return config_.core_pair_ns * static_cast<Nanos>(pairs.size()) + bytes_ns(bytes);
}

Nanos KvController::remove(Nanos now, Request& r, std::uint32_t slot) {
  Namespace& ns = namespaces_[r.command.kv_namespace];
  const KvKey& key = r.command.pair.key;
  if (ns.stalled.empty() && !ns.lsm.index().contains(key)) {
    r.outcome = Outcome::kv_key_does_not_exist;
    return config_.core_pair_ns;
  }
  if (!ensure_memtable_room(now, r, slot, kPairHeaderBytes + key.size, true)) return 0;
  ns.lsm.remove(key);
  deallocate_freed(now, ns);
  ++kv_.deletes;
  return config_.core_pair_ns;
}

Nanos KvController::reset(Nanos now, Request& r, std::uint32_t slot) {
  Namespace& ns = namespaces_[r.command.kv_namespace];
  const KvRange& range = r.command.range;
  const bool all = range.begin.size == 0 && range.end.size == 0;
  // A reset of the whole namespace needs no room: no older version is left for a tombstone to hide.
  if (all ? !ns.stalled.empty() : true) {
    if (!ensure_memtable_room(now, r, slot, kPairHeaderBytes + kMaxKeyBytes, true)) return 0;
  }
  ns.lsm.remove_range(range);
  deallocate_freed(now, ns);
  ++kv_.resets;
  return 0;
}

Nanos KvController::retrieve(Request& r) {
  const DevLsm& lsm = namespaces_[r.command.kv_namespace].lsm;
  const auto found = lsm.index().find(r.command.pair.key);
  const bool exist = r.command.op == Opcode::kv_exist;
  ++(exist ? kv_.exists : kv_.retrieves);
  if (found == lsm.index().end()) {
    r.outcome = Outcome::kv_key_does_not_exist;
    return config_.core_pair_ns;
  }
  if (exist) return config_.core_pair_ns;
  r.result_bytes = found->second.value_bytes;
  r.transfer_bytes = read_part(lsm, found, r.command.offset_bytes, r.command.buffer_bytes, r.reads);
  return config_.core_pair_ns + bytes_ns(r.transfer_bytes);
}

Nanos KvController::retrieve_batch(Request& r) {
  const DevLsm& lsm = namespaces_[r.command.kv_namespace].lsm;
  for (const KvPart& part : r.command.parts) {
    ++kv_.retrieves;
    r.transfer_bytes += kPartHeaderBytes;
    const auto found = lsm.index().find(part.key);
    if (found == lsm.index().end()) continue;
    r.transfer_bytes += read_part(lsm, found, part.offset_bytes, part.buffer_bytes, r.reads);
  }
  r.result_bytes = r.transfer_bytes;
  return config_.core_batch_key_ns * static_cast<Nanos>(r.command.parts.size()) + bytes_ns(r.transfer_bytes);
}

// Adds the flash to read for a part of a value. A drive without retrieve_offset reads the whole pair. Returns the bytes
// of the part.
std::uint32_t KvController::read_part(const DevLsm& lsm, DevLsm::Index::const_iterator found,
                                      std::uint32_t offset_bytes, std::uint32_t buffer_bytes,
                                      std::vector<UnitRange>& reads) {
  const auto& [key, location] = *found;
  const std::uint32_t bytes = part_bytes(location.value_bytes, offset_bytes, buffer_bytes);
  if (lsm.in_dram(location)) {
    ++kv_.answered_from_dram;
  } else if (!config_.retrieve_offset) {
    lsm.add_units_of(key, location, reads);
  } else {
    lsm.add_units_of_part(key, location, offset_bytes, bytes, reads);
  }
  return bytes;
}

// List, iterate and bulk scan: pairs in order while the buffer has room.
Nanos KvController::scan(Request& r) {
  const DevLsm& lsm = namespaces_[r.command.kv_namespace].lsm;
  const bool keys_only = r.command.op == Opcode::kv_list;
  const std::uint32_t buffer =
      r.command.op == Opcode::kv_bulk_scan ? kScanChunkBytes : std::min(r.command.buffer_bytes, kScanChunkBytes);
  std::uint64_t pairs = 0;
  for (auto at = lsm.first_of(r.command.range); at != lsm.index().end() && r.command.range.reaches(at->first); ++at) {
    const std::uint64_t bytes =
        std::uint64_t{kPairHeaderBytes} + at->first.size + (keys_only ? 0 : at->second.value_bytes);
    if (r.transfer_bytes + bytes > buffer) {
      // An answer without pairs would mean the end of the range.
      if (pairs == 0) r.outcome = Outcome::kv_invalid_value_size;
      break;
    }
    r.transfer_bytes += static_cast<std::uint32_t>(bytes);
    ++pairs;
    if (!keys_only && !lsm.in_dram(at->second)) lsm.add_units_of(at->first, at->second, r.reads);
  }
  ++(keys_only ? kv_.lists : kv_.scans);
  if (!keys_only) kv_.scanned_pairs += pairs;
  r.result_bytes = r.transfer_bytes;
  return config_.core_scan_pair_ns * static_cast<Nanos>(pairs) + bytes_ns(r.transfer_bytes);
}

// --- The core, and completed flash work

void KvController::start_core(Nanos now) {
  while (!busy_ && !core_queue_.empty()) {
    current_task_ = core_queue_.front();
    core_queue_.pop_front();
    Nanos takes = 0;
    if (current_task_.work == Work::command) {
      takes = execute(now, current_task_.what);
    } else {
      Namespace& ns = namespaces_[current_task_.what];
      takes = current_task_.work == Work::flush ? flush_chunk(ns) : compact_chunk(ns);
    }
    busy_ = true;
    core_ends_ = now + takes;
    kv_.core_busy_ns += static_cast<std::uint64_t>(takes);
  }
  update_next_time();
}

void KvController::core_done(Nanos now) {
  busy_ = false;
  const Task task = current_task_;
  if (task.work == Work::command) {
    Request& r = requests_[task.what];
    if (r.outcome == Outcome::success && !r.reads.empty()) {
      flash_->read(now, task.what, r.reads);
    } else {
      if (r.outcome != Outcome::success) r.transfer_bytes = 0;
      flash_->answer(now, task.what, r.outcome);
    }
  } else if (task.what < namespaces_.size()) {
    Namespace& ns = namespaces_[task.what];
    Job& job = task.work == Work::flush ? ns.flush : ns.compaction;
    job.in_core_queue = false;
    write_placed(now, ns, job, task.work);
    resume_job(now, ns, job, task.work);
  }
  start_core(now);
}

void KvController::run_next(Nanos now) {
  if (done_.empty()) {
    core_done(now);
    return;
  }
  const std::uint32_t slot = done_.front();
  done_.pop_front();
  if (slot < background_.size() && background_[slot].used) {
    background_done(now, slot);
  } else {
    flash_->answer(now, slot, requests_[slot].outcome);
  }
  start_core(now);
}

void KvController::flash_done(Nanos now, std::uint32_t slot) {
  done_.push_back(slot);
  done_at_ = now;
  update_next_time();
}

}  // namespace spillway::ssd
