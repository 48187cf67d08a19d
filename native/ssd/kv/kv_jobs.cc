// Writes runs of a key-value namespace to flash: flushes of memtables, compactions, and retries of failed writes.
#include <cassert>
#include <utility>

#include "ssd/kv/kv_controller.h"

namespace spillway::ssd {
namespace {

// Writes of one run in flight: enough for every die, few enough that a full write cache stops the core. Source: guess
constexpr std::uint32_t kMaxWritesInFlight = 64;
// Bytes that a compaction reads and merges at once. Source: guess
constexpr std::uint64_t kCompactionChunkBytes = 128 * 1024;

}  // namespace

// --- Flushes, and shared parts of flushes and compactions

std::uint32_t KvController::background_slot(Nanos now, Namespace& ns, Work work, bool is_read, UnitRange units) {
  const std::uint32_t slot = flash_->background_slot(now);
  if (slot >= background_.size()) background_.resize(slot + std::size_t{1});
  background_[slot] = {true, index_of(ns), work, is_read, units};
  return slot;
}

void KvController::background_done(Nanos now, std::uint32_t slot) {
  const Background done = std::exchange(background_[slot], {});
  flash_->release_slot(slot);
  Namespace& ns = namespaces_[done.kv_namespace];
  Job& job = done.work == Work::flush ? ns.flush : ns.compaction;
  if (done.is_read) {
    core_queue_.push_back({done.work, done.kv_namespace});
    return;
  }
  --job.writes;
  if (job.flushing) {
    finish_job(now, ns, job, done.work);
  } else {
    resume_job(now, ns, job, done.work);
  }
}

// Starts the next step of a job, unless a step is in progress or writes have failed.
void KvController::resume_job(Nanos now, Namespace& ns, Job& job, Work work) {
  if (job.run == nullptr || job.in_core_queue || !job.failed.empty()) return;
  if (!job.all_placed) {
    if (job.writes >= kMaxWritesInFlight) return;
    job.in_core_queue = true;
    if (work == Work::compaction) {
      read_compaction_chunk(now, ns);
    } else {
      core_queue_.push_back({work, index_of(ns)});
    }
    return;
  }
  if (job.writes > 0) return;
  if (writes_are_safe_) {
    finish_job(now, ns, job, work);
    return;
  }
  job.flushing = true;
  ++job.writes;
  flash_->flush(now, background_slot(now, ns, work, false, {}));
}

// Places as many pairs of the immutable memtable as one program holds.
Nanos KvController::flush_chunk(Namespace& ns) {
  DevLsm::Run& run = *ns.flush.run;
  std::uint64_t bytes = 0;
  Nanos pairs = 0;
  while (run.processed < run.items.size() && bytes < page_bytes_) {
    const std::uint64_t placed = ns.lsm.place_next();
    bytes += placed;
    if (placed > 0) ++pairs;
  }
  ns.flush.all_placed = run.processed == run.items.size();
  return config_.core_scan_pair_ns * pairs + bytes_ns(bytes);
}

void KvController::write_placed(Nanos now, Namespace& ns, Job& job, Work work) {
  std::uint64_t& counter = work == Work::flush ? kv_.bytes_flushed : kv_.bytes_compacted;
  for (;;) {
    const std::uint64_t missing = ns.lsm.units_missing(*job.run, job.all_placed);
    if (missing == 0) return;
    const UnitRange units = ns.lsm.give_units(*job.run, static_cast<std::uint32_t>(missing));
    counter += std::uint64_t{units.count} * unit_bytes_;
    ++job.writes;
    flash_->write(now, background_slot(now, ns, work, false, units), units);
  }
}

void KvController::finish_job(Nanos now, Namespace& ns, Job& job, Work work) {
  DevLsm::Run* const run = job.run;
  job = {};
  if (work == Work::flush) {
    ++kv_.flushes;
    ns.lsm.finish_flush();
    while (!ns.stalled.empty()) {
      core_queue_.push_front({Work::command, ns.stalled.back()});
      ns.stalled.pop_back();
    }
  } else {
    ++kv_.compactions;
    ns.lsm.finish_compaction(*run);
  }
  deallocate_freed(now, ns);
  begin_compaction(now, ns);
}

// --- Compaction

bool KvController::compacting() const {
  for (const Namespace& ns : namespaces_) {
    if (ns.compaction.run != nullptr) return true;
  }
  return false;
}

void KvController::begin_compaction(Nanos now, Namespace& ns) {
  if (ns.compaction.run != nullptr) return;
  std::vector<DevLsm::Run*> sources = ns.lsm.pick_compaction();
  if (sources.empty()) return;
  ns.compaction.run = &ns.lsm.begin_compaction(sources);
  for (DevLsm::Run* const source : sources) ns.compaction.sources.push_back({source});
  resume_job(now, ns, ns.compaction, Work::compaction);
}

// Read-ahead: each source reads its share of a chunk. The core merges when the reads are done.
void KvController::read_compaction_chunk(Nanos now, Namespace& ns) {
  Job& job = ns.compaction;
  job.reads.clear();
  for (Source& source : job.sources) {
    while (source.read < source.run->items.size() && source.bytes_ahead < kCompactionChunkBytes / job.sources.size()) {
      const DevLsm::Item& item = source.run->items[source.read++];
      ns.lsm.add_units_of(item.key, {source.run, item.value_bytes, item.offset}, job.reads);
      source.bytes_ahead += item.stored_bytes();
    }
  }
  if (job.reads.empty()) {
    core_queue_.push_back({Work::compaction, index_of(ns)});
  } else {
    flash_->read(now, background_slot(now, ns, Work::compaction, true, {}), job.reads);
  }
}

Nanos KvController::compact_chunk(Namespace& ns) {
  Job& job = ns.compaction;
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
    ns.lsm.move_item(*first->run, item, *job.run);
  }
  return config_.core_scan_pair_ns * pairs + bytes_ns(bytes);
}

// --- Freed flash, and failed writes

void KvController::deallocate_freed(Nanos now, Namespace& ns) {
  for (const UnitRange& units : ns.lsm.take_freed()) flash_->deallocate(now, units);
}

void KvController::flash_failed(std::uint32_t slot) {
  const Background failed = std::exchange(background_[slot], {});
  flash_->release_slot(slot);
  has_failed_writes_ = true;
  Namespace& ns = namespaces_[failed.kv_namespace];
  Job& job = failed.work == Work::flush ? ns.flush : ns.compaction;
  --job.writes;
  job.flushing = false;
  if (failed.units.count > 0) job.failed.push_back(failed.units);
}

void KvController::drop_stalled() {
  for (Namespace& ns : namespaces_) ns.stalled.clear();
}

void KvController::retry_failed_writes(Nanos now) {
  has_failed_writes_ = false;
  for (Namespace& ns : namespaces_) {
    for (const Work work : {Work::flush, Work::compaction}) {
      Job& job = work == Work::flush ? ns.flush : ns.compaction;
      for (const UnitRange& units : std::exchange(job.failed, {})) {
        ++job.writes;
        flash_->write(now, background_slot(now, ns, work, false, units), units);
      }
      resume_job(now, ns, job, work);
    }
  }
}

void KvController::restart_flushes() {
  for (Namespace& ns : namespaces_) {
    ns.flush = {};
    ns.compaction = {};
    ns.flush.run = ns.lsm.immutable();
  }
  has_failed_writes_ = true;
}

}  // namespace spillway::ssd
