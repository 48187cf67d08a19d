// Key-value commands and the one core that serves them (K15, K16), in time.
//
//   arrive → wait for the core → the core works: command, pairs, bytes → flash reads, if any → answer
//                                   └─ memtable full: write stall until the immutable memtable is on flash
//
// The core does one thing at a time, in the order of arrival. Flushes and compactions wait in the same queue, one flash
// page at a time. So a host that writes faster than flash programs meets write stalls, and no queue grows without
// bound. A command takes effect when the core begins with it.
//
// A store is complete when it is in the memtable, which survives a loss of power. The memtable is freed when its run is
// on flash.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "ssd/interface/command.h"
#include "ssd/interface/counters.h"
#include "ssd/interface/kv_command.h"
#include "ssd/kv/dev_lsm.h"
#include "ssd/structures/timing_wheel.h"

namespace spillway::ssd {

// What the controller needs from the rest of the drive. Each request is answered by flash_done(), at once or later.
class KvFlash {
 public:
  virtual ~KvFlash() = default;
  virtual void read(Nanos now, std::uint32_t slot, std::span<const UnitRange> ranges) = 0;
  virtual void write(Nanos now, std::uint32_t slot, UnitRange units) = 0;
  // Done when all earlier writes survive a loss of power.
  virtual void flush(Nanos now, std::uint32_t slot) = 0;
  virtual void deallocate(Nanos now, UnitRange units) = 0;
  // A slot for a read, write or flush of the controller's own. Released when it is done or has failed.
  virtual std::uint32_t background_slot(Nanos now) = 0;
  virtual void release_slot(std::uint32_t slot) = 0;
  // The command is complete. Its answer still has to cross the link.
  virtual void answer(Nanos now, std::uint32_t slot, Outcome outcome) = 0;
};

class KvController {
 public:
  KvController(const SsdConfig& config, const Layout& layout, Counters* counters, KvFlash* flash);

  // Keeps the command under `slot` until it is answered.
  void accept(std::uint32_t slot, KvCommand command);
  const KvCommand& command(std::uint32_t slot) const { return requests_[slot].command; }
  std::uint64_t bytes_to_drive(std::uint32_t slot) const;
  std::uint32_t bytes_to_host(std::uint32_t slot) const;
  std::uint32_t result_bytes(std::uint32_t slot) const { return requests_[slot].result_bytes; }
  // The command was fetched and its data has crossed the link.
  void arrive(Nanos now, std::uint32_t slot);

  Nanos next_time() const { return next_time_; }
  // REQUIRES: now == next_time()
  void run_next(Nanos now);

  void flash_done(Nanos now, std::uint32_t slot);
  // A background write failed because the drive cannot make clean space. It is retried when the next command arrives.
  void flash_failed(std::uint32_t slot);
  // Forgets the stalled commands; the caller fails them.
  void drop_stalled();

  const KvCounters& counters() const { return kv_; }
  void set_counters(const KvCounters& counters) { kv_ = counters; }
  void reset_counters() { kv_ = {}; }
  const DevLsm& lsm(std::uint16_t kv_namespace) const { return namespaces_[kv_namespace].lsm; }
  DevLsm& lsm(std::uint16_t kv_namespace) { return namespaces_[kv_namespace].lsm; }
  bool compacting() const;
  // After loading a state: interrupted flushes start again with the next command.
  void restart_flushes();

 private:
  struct Request {
    KvCommand command;
    Outcome outcome = Outcome::success;
    std::uint32_t result_bytes = 0;
    std::uint32_t transfer_bytes = 0;  // to the host
    bool parsed = false;               // core_command_ns was charged
    std::vector<UnitRange> reads;
  };
  // A run that is being compacted. Items [0, next) are merged; [next, read) were read from flash, bytes_ahead in total.
  struct Source {
    DevLsm::Run* run = nullptr;
    std::size_t next = 0;
    std::size_t read = 0;
    std::uint64_t bytes_ahead = 0;
  };
  // Writes a run to flash: a flush of a memtable, or a compaction of several runs.
  struct Job {
    DevLsm::Run* run = nullptr;
    std::vector<Source> sources;  // of a compaction
    std::uint32_t writes = 0;     // in flight
    bool in_core_queue = false;   // a chunk of it waits for the core, is at the core, or is being read
    bool all_placed = false;
    bool flushing = false;
    std::vector<UnitRange> reads;
    std::vector<UnitRange> failed;  // writes to retry
  };
  struct Namespace {
    DevLsm lsm;
    Job flush;
    Job compaction;
    std::deque<std::uint32_t> stalled;
  };
  enum class Work : std::uint8_t { command, flush, compaction };
  struct Task {
    Work work = Work::command;
    std::uint32_t what = 0;  // slot or namespace
  };
  struct Background {
    bool used = false;
    std::uint16_t kv_namespace = 0;
    Work work = Work::flush;
    bool is_read = false;
    UnitRange units;  // of a write
  };

  static constexpr Nanos kNever = TimingWheel::kNever;

  void update_next_time() { next_time_ = !done_.empty() ? done_at_ : busy_ ? core_ends_ : kNever; }
  void start_core(Nanos now);
  void core_done(Nanos now);
  Nanos bytes_ns(std::uint64_t bytes) const {
    return config_.core_mb_s > 0 ? static_cast<Nanos>(static_cast<double>(bytes) * 1000 / config_.core_mb_s) : 0;
  }

  // Does the core's work, which takes effect at once. Returns how long the core is busy with it.
  Nanos execute(Nanos now, std::uint32_t slot);
  Nanos store(Nanos now, Request& r, std::uint32_t slot);
  Nanos remove(Nanos now, Request& r, std::uint32_t slot);
  Nanos retrieve(Request& r);
  Nanos retrieve_batch(Request& r);
  std::uint32_t read_part(const DevLsm& lsm, DevLsm::Index::const_iterator found, std::uint32_t offset_bytes,
                          std::uint32_t buffer_bytes, std::vector<UnitRange>& reads);
  Nanos scan(Request& r);
  Nanos reset(Nanos now, Request& r, std::uint32_t slot);
  Nanos flush_chunk(Namespace& ns);
  Nanos compact_chunk(Namespace& ns);

  std::optional<Outcome> refusal(const Request& r) const;
  std::optional<Outcome> refusal_of_parts(std::span<const KvPart> parts) const;
  // False if the command has stalled or was refused.
  bool ensure_memtable_room(Nanos now, Request& r, std::uint32_t slot, std::uint64_t bytes, bool is_removal);
  void write_placed(Nanos now, Namespace& ns, Job& job, Work work);
  void background_done(Nanos now, std::uint32_t slot);
  void resume_job(Nanos now, Namespace& ns, Job& job, Work work);
  void finish_job(Nanos now, Namespace& ns, Job& job, Work work);
  void begin_compaction(Nanos now, Namespace& ns);
  void read_compaction_chunk(Nanos now, Namespace& ns);
  void deallocate_freed(Nanos now, Namespace& ns);
  void retry_failed_writes(Nanos now);
  std::uint32_t background_slot(Nanos now, Namespace& ns, Work work, bool is_read, UnitRange units);
  std::uint16_t index_of(const Namespace& ns) const { return static_cast<std::uint16_t>(&ns - namespaces_.data()); }

  const NamespacesConfig config_;
  const std::uint32_t unit_bytes_;
  const std::uint32_t page_bytes_;  // of all planes of a die: what is programmed together
  const bool writes_are_safe_;      // as soon as the write cache has them
  Counters* counters_;
  KvFlash* flash_;
  KvCounters kv_;
  std::vector<Namespace> namespaces_;
  std::vector<Request> requests_;       // by slot
  std::vector<Background> background_;  // by slot
  std::deque<Task> core_queue_;
  Task current_task_;
  bool busy_ = false;
  bool has_failed_writes_ = false;
  Nanos core_ends_ = 0;
  std::deque<std::uint32_t> done_;  // slots whose flash work has ended, not yet handled
  Nanos done_at_ = 0;
  Nanos next_time_ = kNever;
};

}  // namespace spillway::ssd
