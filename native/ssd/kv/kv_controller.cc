#include "ssd/kv/kv_controller.h"

#include <cassert>
#include <utility>

namespace spillway::ssd {
namespace {

// Writes of a run that may be on their way at once: enough for every die, few enough that a full write cache stops the
// core. And what a compaction reads and merges in one go.
constexpr std::uint32_t kWritesAhead = 64;
constexpr std::uint64_t kMergeChunkBytes = 128 * 1024;

}  // namespace

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
    spaces_.push_back({DevLsm(config_, unit_bytes_, first, units), {}, {}, {}});
  }
}

// --- Commands

void KvController::take(std::uint32_t slot, KvCommand command) {
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
  if (cut_off_) set_out_again(now);
  line_.push_back({Work::command, slot});
  start_core(now);
}

// Only its own fields decide, not what is stored.
std::optional<Outcome> KvController::refusal(const Request& r) const {
  const KvCommand& c = r.command;
  if (c.kv_namespace >= spaces_.size()) return Outcome::kv_invalid_namespace;
  const auto bad_pair = [this](const KvPair& pair) -> std::optional<Outcome> {
    if (pair.key.size == 0 || pair.key.size > config_.kml_bytes) return Outcome::kv_invalid_key_size;
    if (pair.value_bytes > config_.vml_bytes) return Outcome::kv_invalid_value_size;
    return std::nullopt;
  };
  switch (c.op) {
    case Opcode::kv_store:
      return bad_pair(c.pair);
    case Opcode::kv_retrieve:
    case Opcode::kv_delete:
    case Opcode::kv_exist:
      return bad_pair({c.pair.key, 0});
    case Opcode::kv_batch_store: {
      std::uint64_t bytes = 0;
      for (const KvPair& pair : c.pairs) {
        if (const auto bad = bad_pair(pair)) return bad;
        bytes += pair.stored_bytes();
      }
      // A memtable must be able to take it whole.
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
    case Opcode::kv_list:
    case Opcode::kv_iterate:
    case Opcode::kv_bulk_scan:
      return parse + scan(r);
    default:
      return parse + reset(now, r, slot);
  }
}

bool KvController::make_room(Nanos now, Request& r, std::uint32_t slot, std::uint64_t bytes, bool is_removal) {
  Space& space = spaces_[r.command.kv_namespace];
  // Behind one that is parked, so that stores take effect in the order of their arrival.
  bool must_wait = !space.parked.empty();
  if (!must_wait) {
    const DevLsm::Room room = space.lsm.room_for(bytes, is_removal);
    if (room == DevLsm::Room::here) return true;
    if (room == DevLsm::Room::none) {
      ++kv_.refused_for_capacity;
      r.outcome = Outcome::kv_capacity_exceeded;
      return false;
    }
    must_wait = space.lsm.rotated() != nullptr;
  }
  if (must_wait) {
    ++kv_.stores_that_waited;
    space.parked.push_back(slot);
    at_work_.work = Work::flush;  // nothing to answer when the core is done with it
    at_work_.what = ~std::uint32_t{0};
    return false;
  }
  space.flush.run = &space.lsm.rotate();
  go_on(now, space, space.flush, Work::flush);
  return true;
}

Nanos KvController::store(Nanos now, Request& r, std::uint32_t slot) {
  const bool single = r.command.op == Opcode::kv_store;
  const std::span<const KvPair> pairs =
      single ? std::span(&r.command.pair, 1) : std::span<const KvPair>(r.command.pairs);
  Space& space = spaces_[r.command.kv_namespace];
  if (single && space.parked.empty() && r.command.condition != KvCondition::none) {
    const bool is_there = space.lsm.index().contains(r.command.pair.key);
    if (is_there != (r.command.condition == KvCondition::only_if_exists)) {
      r.outcome = is_there ? Outcome::kv_key_exists : Outcome::kv_key_does_not_exist;
      return config_.core_pair_ns;
    }
  }
  std::uint64_t bytes = 0;
  for (const KvPair& pair : pairs) bytes += pair.stored_bytes();
  if (!make_room(now, r, slot, bytes, false)) return 0;
  for (const KvPair& pair : pairs) space.lsm.put(pair);
  deallocate_freed(now, space);
  ++kv_.stores;
  kv_.stored_pairs += pairs.size();
  return config_.core_pair_ns * static_cast<Nanos>(pairs.size()) + bytes_ns(bytes);
}

Nanos KvController::remove(Nanos now, Request& r, std::uint32_t slot) {
  Space& space = spaces_[r.command.kv_namespace];
  const KvKey& key = r.command.pair.key;
  if (space.parked.empty() && !space.lsm.index().contains(key)) {
    r.outcome = Outcome::kv_key_does_not_exist;
    return config_.core_pair_ns;
  }
  if (!make_room(now, r, slot, kPairHeaderBytes + key.size, true)) return 0;
  space.lsm.remove(key);
  deallocate_freed(now, space);
  ++kv_.deletes;
  return config_.core_pair_ns;
}

Nanos KvController::reset(Nanos now, Request& r, std::uint32_t slot) {
  Space& space = spaces_[r.command.kv_namespace];
  const KvRange& range = r.command.range;
  const bool all = range.begin.size == 0 && range.end.size == 0;
  // The whole namespace needs no room: nothing is left that a tombstone would have to hide.
  if (all ? !space.parked.empty() : true) {
    if (!make_room(now, r, slot, kPairHeaderBytes + kMaxKeyBytes, true)) return 0;
  }
  space.lsm.remove_range(range);
  deallocate_freed(now, space);
  ++kv_.resets;
  return 0;
}

Nanos KvController::retrieve(Request& r) {
  const DevLsm& lsm = spaces_[r.command.kv_namespace].lsm;
  const auto found = lsm.index().find(r.command.pair.key);
  const bool exist = r.command.op == Opcode::kv_exist;
  ++(exist ? kv_.exists : kv_.retrieves);
  if (found == lsm.index().end()) {
    r.outcome = Outcome::kv_key_does_not_exist;
    return config_.core_pair_ns;
  }
  if (exist) return config_.core_pair_ns;
  r.result_bytes = found->second.value_bytes;
  r.transfer_bytes = std::min(r.result_bytes, r.command.buffer_bytes);
  if (lsm.in_dram(found->second)) {
    ++kv_.answered_from_dram;
  } else {
    lsm.add_units_of(found->first, found->second, r.reads);
  }
  return config_.core_pair_ns + bytes_ns(r.transfer_bytes);
}

// List, iterate and bulk scan: pairs in order while the buffer has room.
Nanos KvController::scan(Request& r) {
  const DevLsm& lsm = spaces_[r.command.kv_namespace].lsm;
  const bool keys_only = r.command.op == Opcode::kv_list;
  const std::uint32_t buffer =
      r.command.op == Opcode::kv_bulk_scan ? kScanChunkBytes : std::min(r.command.buffer_bytes, kScanChunkBytes);
  std::uint64_t pairs = 0;
  for (auto at = lsm.first_of(r.command.range); at != lsm.index().end() && r.command.range.reaches(at->first); ++at) {
    const std::uint64_t bytes =
        std::uint64_t{kPairHeaderBytes} + at->first.size + (keys_only ? 0 : at->second.value_bytes);
    if (r.transfer_bytes + bytes > buffer) {
      // Nothing at all would look like the end.
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

// --- The core

void KvController::start_core(Nanos now) {
  while (!busy_ && !line_.empty()) {
    at_work_ = line_.front();
    line_.pop_front();
    Nanos takes = 0;
    if (at_work_.work == Work::command) {
      takes = execute(now, at_work_.what);
    } else {
      Space& space = spaces_[at_work_.what];
      takes = at_work_.work == Work::flush ? flush_chunk(space) : merge_chunk(space);
    }
    busy_ = true;
    core_ends_ = now + takes;
    kv_.core_busy_ns += static_cast<std::uint64_t>(takes);
  }
  update_next_time();
}

void KvController::core_done(Nanos now) {
  busy_ = false;
  const Task task = at_work_;
  if (task.work == Work::command) {
    Request& r = requests_[task.what];
    if (r.outcome == Outcome::success && !r.reads.empty()) {
      flash_->read(now, task.what, r.reads);
    } else {
      if (r.outcome != Outcome::success) r.transfer_bytes = 0;
      flash_->answer(now, task.what, r.outcome);
    }
  } else if (task.what < spaces_.size()) {
    Space& space = spaces_[task.what];
    Job& job = task.work == Work::flush ? space.flush : space.merge;
    job.in_line = false;
    write_placed(now, space, job, task.work);
    go_on(now, space, job, task.work);
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

// --- Runs on their way to flash

std::uint32_t KvController::background_slot(Nanos now, Space& space, Work work, bool is_read, UnitRange units) {
  const std::uint32_t slot = flash_->background_slot(now);
  if (slot >= background_.size()) background_.resize(slot + std::size_t{1});
  background_[slot] = {true, index_of(space), work, is_read, units};
  return slot;
}

void KvController::background_done(Nanos now, std::uint32_t slot) {
  const Background done = std::exchange(background_[slot], {});
  flash_->give_back(slot);
  Space& space = spaces_[done.kv_namespace];
  Job& job = done.work == Work::flush ? space.flush : space.merge;
  if (done.is_read) {
    line_.push_back({done.work, done.kv_namespace});
    return;
  }
  --job.writes;
  if (job.flushing) {
    finish(now, space, job, done.work);
  } else {
    go_on(now, space, job, done.work);
  }
}

// The next step of a job that may have one.
void KvController::go_on(Nanos now, Space& space, Job& job, Work work) {
  if (job.run == nullptr || job.in_line || !job.failed.empty()) return;
  if (!job.all_placed) {
    if (job.writes >= kWritesAhead) return;
    job.in_line = true;
    if (work == Work::merge) {
      gather_merge_chunk(now, space);
    } else {
      line_.push_back({work, index_of(space)});
    }
    return;
  }
  if (job.writes > 0) return;
  if (writes_are_safe_) {
    finish(now, space, job, work);
    return;
  }
  job.flushing = true;
  ++job.writes;
  flash_->flush(now, background_slot(now, space, work, false, {}));
}

// What can be programmed together, of a memtable.
Nanos KvController::flush_chunk(Space& space) {
  DevLsm::Run& run = *space.flush.run;
  std::uint64_t bytes = 0;
  Nanos pairs = 0;
  while (run.looked_at < run.items.size() && bytes < page_bytes_) {
    const std::uint64_t placed = space.lsm.place_next();
    bytes += placed;
    if (placed > 0) ++pairs;
  }
  space.flush.all_placed = run.looked_at == run.items.size();
  return config_.core_scan_pair_ns * pairs + bytes_ns(bytes);
}

void KvController::write_placed(Nanos now, Space& space, Job& job, Work work) {
  std::uint64_t& counter = work == Work::flush ? kv_.bytes_flushed : kv_.bytes_compacted;
  for (;;) {
    const std::uint64_t missing = space.lsm.units_missing(*job.run, job.all_placed);
    if (missing == 0) return;
    const UnitRange units = space.lsm.give_units(*job.run, static_cast<std::uint32_t>(missing));
    counter += std::uint64_t{units.count} * unit_bytes_;
    ++job.writes;
    flash_->write(now, background_slot(now, space, work, false, units), units);
  }
}

void KvController::finish(Nanos now, Space& space, Job& job, Work work) {
  DevLsm::Run* const run = job.run;
  job = {};
  if (work == Work::flush) {
    ++kv_.flushes;
    space.lsm.finish_rotated();
    while (!space.parked.empty()) {
      line_.push_front({Work::command, space.parked.back()});
      space.parked.pop_back();
    }
  } else {
    ++kv_.compactions;
    space.lsm.finish_merge(*run);
  }
  deallocate_freed(now, space);
  begin_merge(now, space);
}

// --- Compaction

bool KvController::merging() const {
  for (const Space& space : spaces_) {
    if (space.merge.run != nullptr) return true;
  }
  return false;
}

void KvController::begin_merge(Nanos now, Space& space) {
  if (space.merge.run != nullptr) return;
  std::vector<DevLsm::Run*> sources = space.lsm.wants_compaction();
  if (sources.empty()) return;
  space.merge.run = &space.lsm.begin_merge(sources);
  for (DevLsm::Run* const source : sources) space.merge.sources.push_back({source});
  go_on(now, space, space.merge, Work::merge);
}

// Reads flash until each source is its share of a chunk ahead; the core merges when that is there.
void KvController::gather_merge_chunk(Nanos now, Space& space) {
  Job& job = space.merge;
  job.reads.clear();
  for (Source& source : job.sources) {
    while (source.read < source.run->items.size() && source.bytes_ahead < kMergeChunkBytes / job.sources.size()) {
      const DevLsm::Item& item = source.run->items[source.read++];
      space.lsm.add_units_of(item.key, {source.run, item.value_bytes, item.offset}, job.reads);
      source.bytes_ahead += item.stored_bytes();
    }
  }
  if (job.reads.empty()) {
    line_.push_back({Work::merge, index_of(space)});
  } else {
    flash_->read(now, background_slot(now, space, Work::merge, true, {}), job.reads);
  }
}

Nanos KvController::merge_chunk(Space& space) {
  Job& job = space.merge;
  std::uint64_t bytes = 0;
  Nanos pairs = 0;
  for (;;) {
    Source* first = nullptr;
    for (Source& source : job.sources) {
      if (source.next == source.run->items.size()) continue;
      if (first == nullptr || source.run->items[source.next].key < first->run->items[first->next].key) first = &source;
    }
    job.all_placed = first == nullptr;
    if (first == nullptr || first->next == first->read) break;
    const DevLsm::Item& item = first->run->items[first->next++];
    first->bytes_ahead -= item.stored_bytes();
    bytes += item.stored_bytes();
    ++pairs;
    space.lsm.move_item(*first->run, item, *job.run);
  }
  return config_.core_scan_pair_ns * pairs + bytes_ns(bytes);
}

// --- Flash that is free again, and a drive that was stuck

void KvController::deallocate_freed(Nanos now, Space& space) {
  for (const UnitRange& units : space.lsm.take_freed()) flash_->deallocate(now, units);
}

void KvController::flash_failed(std::uint32_t slot) {
  const Background failed = std::exchange(background_[slot], {});
  flash_->give_back(slot);
  cut_off_ = true;
  Space& space = spaces_[failed.kv_namespace];
  Job& job = failed.work == Work::flush ? space.flush : space.merge;
  --job.writes;
  job.flushing = false;
  if (failed.units.count > 0) job.failed.push_back(failed.units);
}

void KvController::forget_parked() {
  for (Space& space : spaces_) space.parked.clear();
}

void KvController::set_out_again(Nanos now) {
  cut_off_ = false;
  for (Space& space : spaces_) {
    for (const Work work : {Work::flush, Work::merge}) {
      Job& job = work == Work::flush ? space.flush : space.merge;
      for (const UnitRange& units : std::exchange(job.failed, {})) {
        ++job.writes;
        flash_->write(now, background_slot(now, space, work, false, units), units);
      }
      go_on(now, space, job, work);
    }
  }
}

void KvController::restart() {
  for (Space& space : spaces_) {
    space.flush = {};
    space.merge = {};
    space.flush.run = space.lsm.rotated();
  }
  cut_off_ = true;
}

}  // namespace spillway::ssd
