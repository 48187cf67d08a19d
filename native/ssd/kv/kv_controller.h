// Key-value commands and the one core that serves them (K15, K16), in time.
//
//   arrive → wait for the core → the core works: command, pairs, bytes → flash reads, if any → answer
//                                   └─ no room in the memtable: parked until its predecessor is on flash
//
// The core does one thing at a time, in the order of arrival, and its own work (a memtable's way to flash, compaction)
// waits in the same line, a flash page at a time: so writing faster than flash takes it ends in stores that wait, not
// in a queue without bounds. A command takes effect when the core begins with it.
//
// A store is complete when it is in the memtable, which outlives a loss of power; the memtable is let go when its run
// does, too.
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

// What the controller asks of the rest of the drive. Answers come as flash_done(), in an event of their own or at once.
class KvFlash {
 public:
  virtual ~KvFlash() = default;
  virtual void read(Nanos now, std::uint32_t slot, std::span<const UnitRange> ranges) = 0;
  virtual void write(Nanos now, std::uint32_t slot, UnitRange units) = 0;
  // Everything written before is programmed, or as safe as that.
  virtual void flush(Nanos now, std::uint32_t slot) = 0;
  virtual void deallocate(Nanos now, UnitRange units) = 0;
  // A slot for a read, write or flush of the controller's own, to be given back when that is done or failed.
  virtual std::uint32_t background_slot(Nanos now) = 0;
  virtual void give_back(std::uint32_t slot) = 0;
  // The command is done but for the way to the host.
  virtual void answer(Nanos now, std::uint32_t slot, Outcome outcome) = 0;
};

class KvController {
 public:
  KvController(const SsdConfig& config, const Layout& layout, Counters* counters, KvFlash* flash);

  // The command that travels as `slot`, from now until it is answered.
  void take(std::uint32_t slot, KvCommand command);
  const KvCommand& command(std::uint32_t slot) const { return requests_[slot].command; }
  std::uint64_t bytes_to_drive(std::uint32_t slot) const;
  std::uint32_t bytes_to_host(std::uint32_t slot) const;
  std::uint32_t result_bytes(std::uint32_t slot) const { return requests_[slot].result_bytes; }
  // It is fetched, and its data in the drive.
  void arrive(Nanos now, std::uint32_t slot);

  Nanos next_time() const { return next_time_; }
  // REQUIRES: now == next_time()
  void run_next(Nanos now);

  void flash_done(Nanos now, std::uint32_t slot);
  // The drive is stuck: this write of ours was given up, and what is parked will be. It is tried again when the next
  // command arrives.
  void flash_failed(std::uint32_t slot);
  void forget_parked();

  const KvCounters& counters() const { return kv_; }
  void set_counters(const KvCounters& counters) { kv_ = counters; }
  void reset_counters() { kv_ = {}; }
  const DevLsm& space(std::uint16_t kv_namespace) const { return spaces_[kv_namespace].lsm; }
  DevLsm& space(std::uint16_t kv_namespace) { return spaces_[kv_namespace].lsm; }
  bool merging() const;
  // After loading: what was on its way to flash sets out again with the next command.
  void restart();

 private:
  struct Request {
    KvCommand command;
    Outcome outcome = Outcome::success;
    std::uint32_t result_bytes = 0;
    std::uint32_t transfer_bytes = 0;  // to the host
    bool parsed = false;               // the core has seen it once
    std::vector<UnitRange> reads;
  };
  // A run that is being compacted: items [0, next) are merged, [next, read) were read, in all so many bytes.
  struct Source {
    DevLsm::Run* run = nullptr;
    std::size_t next = 0;
    std::size_t read = 0;
    std::uint64_t bytes_ahead = 0;
  };
  // A run on its way to flash: of a memtable, or of several runs.
  struct Job {
    DevLsm::Run* run = nullptr;
    std::vector<Source> sources;  // of a compaction
    std::uint32_t writes = 0;     // that flash has not done yet
    bool in_line = false;         // waits for the core, has it, or reads
    bool all_placed = false;
    bool flushing = false;
    std::vector<UnitRange> reads;
    std::vector<UnitRange> failed;  // writes that were given up
  };
  struct Space {
    DevLsm lsm;
    Job flush;
    Job merge;
    std::deque<std::uint32_t> parked;
  };
  enum class Work : std::uint8_t { command, flush, merge };
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

  // What the core does, at once; each returns how long that takes it.
  Nanos execute(Nanos now, std::uint32_t slot);
  Nanos store(Nanos now, Request& r, std::uint32_t slot);
  Nanos remove(Nanos now, Request& r, std::uint32_t slot);
  Nanos retrieve(Request& r);
  Nanos scan(Request& r);
  Nanos reset(Nanos now, Request& r, std::uint32_t slot);
  Nanos flush_chunk(Space& space);
  Nanos merge_chunk(Space& space);

  std::optional<Outcome> refusal(const Request& r) const;
  // Makes room in the memtable. False when the command has been parked or refused.
  bool make_room(Nanos now, Request& r, std::uint32_t slot, std::uint64_t bytes, bool is_removal);
  void line_up(Space& space, Job& job, Work work);
  void write_placed(Nanos now, Space& space, Job& job, Work work);
  void background_done(Nanos now, std::uint32_t slot);
  void go_on(Nanos now, Space& space, Job& job, Work work);
  void finish(Nanos now, Space& space, Job& job, Work work);
  void begin_merge(Nanos now, Space& space);
  void gather_merge_chunk(Nanos now, Space& space);
  void deallocate_freed(Nanos now, Space& space);
  void set_out_again(Nanos now);
  std::uint32_t background_slot(Nanos now, Space& space, Work work, bool is_read, UnitRange units);
  std::uint16_t index_of(const Space& space) const { return static_cast<std::uint16_t>(&space - spaces_.data()); }

  const NamespacesConfig config_;
  const std::uint32_t unit_bytes_;
  const std::uint32_t page_bytes_;  // of all planes of a die: what is programmed together
  const bool writes_are_safe_;      // when the write cache has them
  Counters* counters_;
  KvFlash* flash_;
  KvCounters kv_;
  std::vector<Space> spaces_;
  std::vector<Request> requests_;       // by slot
  std::vector<Background> background_;  // by slot
  std::deque<Task> line_;               // for the core
  Task at_work_;
  bool busy_ = false;
  bool cut_off_ = false;  // something was given up on its way to flash
  Nanos core_ends_ = 0;
  std::deque<std::uint32_t> done_;  // slots that flash is done with, not yet acted on
  Nanos done_at_ = 0;
  Nanos next_time_ = kNever;
};

}  // namespace spillway::ssd
