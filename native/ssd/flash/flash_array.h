// Dies and channels in time: which operation runs on which die, and when its data crosses the channel. Bytes are
// counted where the operations are ordered: Ftl::finish_step (ssd/ftl/ftl.cc).
//
//   host link ── controller ── channel ── die ── planes
//                              one transfer      one operation (several planes of it at once)
//                              at a time         at a time
//
// A read senses (tR) and then waits for the channel. Its die is free when the data has left the page register. A
// program takes the channel first and then the die for tPROG. Host reads wait in a queue of their own and may overtake
// queued programs, erases and relocation reads, at most Timing::reads_overtake of them in a row. An operation that has
// begun is never interrupted. Programs, erases and relocation reads of a die run in the order in which they were
// queued.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "ssd/interface/config.h"
#include "ssd/interface/counters.h"
#include "ssd/structures/timing_wheel.h"

namespace spillway::ssd {

inline constexpr std::uint32_t kMaxPlanes = 8;
inline constexpr std::uint32_t kNoStep = ~std::uint32_t{0};
inline constexpr std::uint32_t kNoOp = ~std::uint32_t{0};
inline constexpr std::uint32_t kNoCommand = ~std::uint32_t{0};
inline constexpr std::uint32_t kNoDie = ~std::uint32_t{0};
// A host program is queued on a die with at most one other operation, which runs while the program's data crosses the
// channel. A longer die queue would bind data to a die that may turn out slower than its neighbours.
inline constexpr std::uint32_t kProgramsAhead = 2;

class FlashArray;

// The time at which flash operations are queued, and the array. Without an array they take no time (preconditioning).
struct FlashContext {
  std::int64_t now = 0;
  FlashArray* array = nullptr;
};

// One erase block in each of several planes of a die, programmed together page by page.
struct Row {
  std::array<std::uint32_t, kMaxPlanes> blocks{};
  std::uint32_t planes = 0;  // 0: none
  std::uint32_t page = 0;    // the next page to program
};

// One (multi-plane) program: page `page` of each of `blocks`. It may start when its data is complete and every flash
// read that supplies data for it is done.
struct ProgramStep {
  std::array<std::uint32_t, kMaxPlanes> blocks{};
  std::array<std::uint32_t, kMaxPlanes>
      erase_counts{};  // of the blocks; a different count means that the block was erased meanwhile
  std::uint32_t planes = 0;
  std::uint32_t die = 0;
  std::uint32_t page = 0;
  std::uint32_t pages = 1;  // pages of each block up to `page`: skipped pages count as programmed
  std::uint32_t reads_pending = 0;
  std::uint32_t host_units = 0;  // units that leave the write cache when the program is done
  std::uint64_t sequence = 0;    // number of the host step; a flush waits for all up to one
  bool complete = false;
  bool slc = false;                   // blocks in SLC mode
  bool folds = false;                 // holds data folded out of the SLC cache
  std::vector<std::uint32_t> owners;  // commands that this program completes (drives without a write cache)
};

enum class OpKind : std::uint8_t { read, program, erase };
// The purpose of a flash read.
enum class ReadPurpose : std::uint8_t { host, mapping, rest_of_unit, relocation, background };

struct FlashOp {
  OpKind kind = OpKind::read;
  ReadPurpose purpose = ReadPurpose::host;
  bool frees_die = true;
  bool sensed = false;  // of a read: its sense phase is over
  std::uint32_t die = 0;
  std::uint8_t plane = 0;
  bool slc = false;  // of a block in SLC mode
  std::uint32_t bytes = 0;
  std::uint32_t page = 0;
  std::uint32_t flash_page = 0;        // its number within the drive
  std::uint32_t command = kNoCommand;  // the host command that a read serves
  std::uint32_t chain = kNoOp;         // list of the reads that wait for this mapping read
  std::array<std::uint32_t, 2> steps{kNoStep,
                                     kNoStep};  // that a relocation read feeds; of a program, steps[0] is its step
  std::uint32_t next = kNoOp;                   // next operation in its queue, chain or group
  std::uint32_t group = kNoOp;                  // list of the reads sensed together with this one
  std::int64_t started = 0;
};

class FlashArray {
 public:
  FlashArray(const SsdConfig& config, Counters* counters);

  // --- Operations. The caller creates one, sets its fields and queues it.
  std::uint32_t new_op();
  FlashOp& op(std::uint32_t id) { return ops_[id]; }
  void free_op(std::uint32_t id);
  void enqueue(std::int64_t now, std::uint32_t id);
  // Number of programs, erases and background reads that a die has queued or in progress.
  std::uint32_t load(std::uint32_t die) const { return dies_[die].load; }
  // The first die at or after `from`, cyclically, that is writable and has a load below kProgramsAhead; kNoDie if there
  // is none.
  std::uint32_t next_ready_die(std::uint32_t from) const;
  bool any_ready() const { return ready_dies_ != 0; }
  bool is_ready(std::uint32_t die) const { return (ready_[die / 64] >> (die % 64) & 1) != 0; }
  // Whether the die has an open or clean erase block for host data. Dies start writable.
  void set_writable(std::uint32_t die, bool writable);

  // Whether a host command waits for this read. If such reads may overtake, they are not part of the load.
  bool is_host_read(const FlashOp& op) const;

  std::uint32_t new_step();
  ProgramStep& step(std::uint32_t id) { return steps_[id]; }
  void free_step(std::uint32_t id);
  // Queues the program once the step is complete and all reads that feed it are done.
  void program_if_ready(std::int64_t now, std::uint32_t step);

  // --- Time
  std::int64_t next_time() const { return wheel_.next_time(); }
  // Handles the earliest event. Returns the operation that it finished, for the caller to free, or kNoOp.
  // REQUIRES: next_time() != TimingWheel::kNever
  std::uint32_t run_next();
  bool quiet() const { return wheel_.next_time() == TimingWheel::kNever; }

 private:
  struct OpQueue {
    std::uint32_t head = kNoOp;
    std::uint32_t tail = kNoOp;
  };
  struct Die {
    OpQueue reads;  // host reads, and mapping reads that they wait for
    OpQueue rest;
    std::uint32_t load = 0;
    std::uint32_t overtaken = 0;  // reads started ahead of the head of `rest`
    bool busy = false;
    bool writable = true;
  };

  void change_load(std::uint32_t die, std::int32_t by);
  void update_ready(std::uint32_t die);
  void push(OpQueue& queue, std::uint32_t id);
  std::uint32_t pop(OpQueue& queue);
  void start_next(std::int64_t now, std::uint32_t index);
  void start(std::int64_t now, std::uint32_t id);
  void gather_other_planes(std::uint32_t id);
  std::int64_t transfer(std::int64_t now, std::uint32_t die, std::uint32_t bytes);
  void end_of_sense(std::int64_t now, std::uint32_t id);
  void free_die(std::int64_t now, const FlashOp& op);

  const Timing timing_;
  const std::int64_t slc_read_ns_;
  const std::int64_t slc_program_ns_;
  const std::uint32_t channels_;
  const std::uint32_t page_bytes_;
  const double channel_ns_per_byte_;
  Counters* counters_;
  std::vector<Die> dies_;
  std::vector<std::uint64_t> ready_;  // bit per die: writable, and load < kProgramsAhead
  std::uint32_t ready_dies_ = 0;      // bits set
  std::vector<std::int64_t> channel_free_at_;
  std::vector<FlashOp> ops_;
  std::vector<std::uint32_t> unused_ops_;
  std::vector<ProgramStep> steps_;
  std::vector<std::uint32_t> unused_steps_;
  TimingWheel wheel_;
};

}  // namespace spillway::ssd
