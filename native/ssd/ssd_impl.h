// The implementation of Ssd: the processing of commands.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "ssd/flash/flash_array.h"
#include "ssd/ftl/ftl.h"
#include "ssd/kv/kv_controller.h"
#include "ssd/ssd.h"
#include "ssd/structures/ring.h"
#include "ssd/structures/timed_queue.h"
#include "ssd/write_cache.h"

namespace spillway::ssd {

// The path of a command:
//
//   submit → submission queue → fetch → read:  (map read →) flash reads → host link → done
//                                       write: host link → arrival → (rest of unit read →) admission → done
// and after a write is done: write cache → step → program. Without a write cache a write is done when programmed. A
// key-value command crosses the link and waits for the controller's core, which reads and writes the units of its
// namespace on the same path (kv_controller.h).
class Ssd::Impl final : private KvFlash {
 public:
  static constexpr Nanos kNever = TimingWheel::kNever;

  Impl(const SsdConfig& config, std::uint64_t seed)
      : config_(config),
        layout_(ssd::layout(config)),
        unit_lbas_(config.geometry.mapping_unit_bytes / config.geometry.lba_bytes),
        step_units_(std::uint64_t{config.geometry.planes_per_die} * config.geometry.units_per_page()),
        folds_(layout_.slc_pages != 0),
        cache_units_(config.write_cache.bytes / config.geometry.mapping_unit_bytes),
        link_ns_per_byte_(1000.0 / config.timing.host_link_mb_s),
        array_(config, &counters_),
        ftl_(config, layout_, &counters_, seed),
        cache_(cache_units_ != 0 ? cache_units_ : kStagingSteps * step_units_) {
    if (layout_.kv_units > 0)
      kv_ = std::make_unique<KvController>(config_, layout_, &counters_, static_cast<KvFlash*>(this));
  }

  void submit(Nanos now, const Command& command);
  void submit_kv(Nanos now, KvCommand command);
  std::optional<Nanos> next_event() const {
    if (!done_.empty()) return done_.front().completed;
    const Nanos time = next_time();
    return time == kNever ? std::nullopt : std::optional<Nanos>(time);
  }
  void advance(Nanos now, std::vector<Completion>& done) {
    run_until(now);
    take_done(done);
  }
  void advance_to_completion(Nanos until, std::vector<Completion>& done) {
    run_until(until, true);
    take_done(done);
  }
  void take_done(std::vector<Completion>& done) {
    done.insert(done.end(), done_.begin(), done_.end());
    done_.clear();
  }

  void prefetch_entry(const Command& c) const {
    if (c.op != Opcode::read || c.lba / unit_lbas_ >= layout_.logical_units) return;
    cache_.prefetch(first_unit(c));
    ftl_.prefetch_entry(first_unit(c));
  }
  void prefetch_place(const Command& c) const {
    if (c.op == Opcode::read && c.lba / unit_lbas_ < layout_.logical_units) ftl_.prefetch_place(first_unit(c));
  }

  bool quiet() const { return in_flight_ == 0 && next_time() == kNever; }
  void quiesce();
  bool save(const StateSink& sink);
  std::optional<std::string> load(const StateSource& source);
  std::optional<std::string> audit() const;
  bool bulk_load_kv(std::uint16_t kv_namespace, const std::vector<KvPair>& pairs);
  KvController* kv() { return kv_.get(); }

  const SsdConfig config_;
  const Layout layout_;
  Counters counters_;
  std::size_t in_flight_ = 0;

 private:
  static constexpr std::uint32_t kNone = ~std::uint32_t{0};
  // A drive without a write cache assembles flash pages in page registers and buffers: this many steps.
  static constexpr std::uint64_t kStagingSteps = 4096;

  // The owner of a slot: a block command, a key-value command, or the key-value controller itself.
  enum class Role : std::uint8_t { block, kv, background };

  struct Slot {
    Command command;
    Nanos submitted = 0;
    std::uint32_t remaining = 0;    // flash reads (of a read, or of the rest of units) or units not yet programmed
    std::uint32_t admitted = 0;     // units of a write that are in the cache
    std::uint64_t flush_until = 0;  // of a flush: admissions that must have left the cache
    std::uint64_t flush_step = 0;   // the last host step that it waits for; 0: not known yet
    Outcome outcome = Outcome::success;
    Role role = Role::block;
  };
  bool load_kv(const std::function<bool(void* bytes, std::size_t size)>& visit);
  Nanos next_time() const;
  void run_until(Nanos now, bool to_completion = false);
  void fail_stuck_commands(Nanos now);

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

  void before_submit(Nanos now);
  void enqueue(Nanos now, std::uint32_t slot);
  void fetch(Nanos now, std::uint32_t slot);
  void fetch_kv(Nanos now, std::uint32_t slot);
  void fetch_next(Nanos now);

  void start_read(Nanos now, std::uint32_t slot);
  void read_units(Nanos now, std::uint32_t slot, std::uint64_t lba, std::uint32_t lba_count);
  std::uint32_t read_unit(std::uint32_t slot, std::uint32_t physical, std::uint32_t bytes, std::uint32_t previous);
  void finish_read(Nanos now, std::uint32_t slot);

  void arrive(Nanos now, std::uint32_t slot);
  void arrive_write(Nanos now, std::uint32_t slot);
  std::uint8_t slots_of_write(std::uint32_t slot, std::uint32_t unit) const;
  void read_rest_of_unit(Nanos now, std::uint32_t slot, std::uint32_t unit);
  void admit(Nanos now);
  bool admit_command(Nanos now, std::uint32_t slot);
  bool room_in_cache() const {
    return cache_.has_slot() && (cache_units_ == 0 || cache_.waiting() + in_program_ < cache_units_);
  }
  void credit(Nanos now, std::uint32_t slot);
  void finish_write(Nanos now, std::uint32_t slot) {
    if (slots_[slot].role == Role::background) {
      kv_->flash_done(now, slot);
    } else {
      write_done_.push(now + config_.timing.write_command_ns, slot);
    }
  }
  void deallocate(Nanos now, std::uint32_t slot);
  void deallocate_units(Nanos now, std::uint32_t begin, std::uint32_t end);

  // For the key-value controller.
  void read(Nanos now, std::uint32_t slot, std::span<const UnitRange> ranges) override;
  void write(Nanos now, std::uint32_t slot, UnitRange units) override;
  void flush(Nanos now, std::uint32_t slot) override;
  void deallocate(Nanos now, UnitRange units) override;
  std::uint32_t background_slot(Nanos now) override;
  void release_slot(std::uint32_t slot) override { unused_slots_.push_back(slot); }
  void answer(Nanos now, std::uint32_t slot, Outcome outcome) override;

  // Whether waiting units are programmed although they do not fill a step: for a flush, without a write cache, or if
  // deallocated units take up a full ring.
  bool draining() const {
    if (cache_units_ == 0 || !cache_.has_slot()) return true;
    return !flushes_.empty() && cache_.taken() < slots_[flushes_.front()].flush_until;
  }
  bool open_host_step(Nanos now);
  void program_waiting(Nanos now);
  void program_pages(FlashContext context);
  void program_rows(FlashContext context, BlockMapping& rows);
  // Whether the open step is programmed although no more units wait for it.
  bool completes_step() const {
    const bool flushing = !flushes_.empty() && cache_.taken() >= slots_[flushes_.front()].flush_until;
    return cache_.waiting() == 0 && (cache_units_ == 0 || flushing);
  }
  void finish_flushes(Nanos now);
  void host_step_done(std::uint64_t sequence);

  // The SLC cache is folded while the drive is idle, and during host commands if it is too full.
  void arm_idle_timer(Nanos now) { wake_at_ = ftl_.needs_fold(true) ? now + config_.slc_cache.idle_ns : kNever; }
  void start_idle_fold(Nanos now);
  void fold(Nanos now);

  void make_progress(Nanos now);
  void operation_done(Nanos now, std::uint32_t id);
  void program_done(Nanos now, std::uint32_t id);

  const std::uint32_t unit_lbas_;
  const std::uint64_t step_units_;
  const bool folds_;  // has an SLC cache
  const std::uint64_t cache_units_;
  const double link_ns_per_byte_;

 public:
  FlashArray array_;
  Ftl ftl_;

 private:
  WriteCache cache_;
  std::unique_ptr<KvController> kv_;  // nullptr without key-value namespaces
  std::uint64_t in_program_ = 0;      // units being programmed, which still take room in the cache

  std::vector<Slot> slots_;
  std::vector<std::uint32_t> unused_slots_;
  std::vector<Ring<std::uint32_t>> submission_queues_;
  std::uint32_t queued_ = 0;
  std::uint32_t next_queue_ = 0;
  Nanos controller_free_at_ = 0;
  Nanos wake_at_ = kNever;  // when the controller fetches the next command; with none in flight, when folding starts
  Nanos link_up_free_at_ = 0;
  Nanos link_down_free_at_ = 0;
  TimedQueue arrivals_;    // writes, flushes and deallocations, by the time at which they have crossed the link
  TimedQueue read_done_;   // completions of reads, in order of time
  TimedQueue write_done_;  // completions of everything else, in order of time
  Ring<std::uint32_t> admissions_;
  Ring<std::uint32_t> flushes_;
  std::deque<bool> host_steps_done_;    // from oldest_host_step_ on
  std::uint64_t oldest_host_step_ = 1;  // steps are numbered from 1
  std::uint32_t next_die_ = 0;
  bool programming_ = false;
  bool idle_ = false;  // no command for slc_cache.idle_ns
  std::vector<Completion> done_;
};

}  // namespace spillway::ssd
