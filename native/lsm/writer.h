// The writer: a flow of puts into memtables and their logs, or, in a stall, into the spill store's log. Of a tree that
// is loaded before (Preload::unsettled) it first puts every key in order; the memtable goes on in the load.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "lsm/agenda.h"
#include "lsm/background.h"
#include "lsm/drive_files.h"
#include "lsm/processor.h"
#include "lsm/stall.h"

namespace spillway::lsm {

inline constexpr double kLogChunkBytes = 1.0 * 1048576;  // of a log, written back when as many have gathered

// What the spill store's log is written by: a log's chunk, or less where a coarse grain has made the store small.
double spill_chunk_bytes(const SpillPolicy& spill, std::uint32_t grain);
// A smaller spill store would never take a write: one chunk gathers while another one is written, and a pair must fit.
double least_spill_bytes(double chunk_bytes, const LoadSpec& load);

// Whether RocksDB takes what was spilled without a stall: writers run freely, and sorted runs, of which one more comes,
// are no more than those from which on it compacts. In a universal tree those are in every level.
bool has_room_for_rollback(const Tree& tree, const StallState& stall);

class Writer {
 public:
  Writer(const Spec& spec, const KeySpace& keys, DriveFiles& files, Agenda& agenda, Processor& processor,
         Background& background, Figures& figures);

  // Begins a load; `before`: the one that puts every key in order. REQUIRES: done(), or nothing was begun
  void start(Nanos now, bool before);
  // The stall conditions may have changed.
  void set_stall(Nanos now, const StallState& stall);
  // An agenda item with this id. True if a memtable became full, or the last put was done.
  bool timer(Nanos now, std::uint64_t id);
  // The log's (or the spill store's) request is complete.
  void written(Nanos now, Owner owner);
  // Others may have begun or ceased to compute beside it.
  void follow_processor(Nanos now);
  // Brings back what was spilled, if RocksDB has room, or in any case if `all`.
  void roll_back(Nanos now, const StallState& stall, bool all);

  double operations() const { return operations_; }
  // The load has come to where it asks for a report.
  bool reaches_report(Nanos now) const;
  // That writers had to wait at a time, the wait that goes on included.
  double worst_wait_s(Nanos now) const;
  bool done() const { return finished_; }
  bool has_spilled() const { return !generations_.empty() || open_.puts > 0; }
  bool drive_is_full() const { return drive_is_full_; }
  // Flushes the active memtable: the load has ended.
  void close() { end_memtable(); }

 private:
  struct Generation {
    double puts = 0;
    fs::ExtentList place;
  };
  // Bytes of a log that are not written yet, and the owners of its writes in flight.
  struct Log {
    double pending_bytes = 0;
    std::vector<Owner> free;  // for further writes
    double chunk_bytes = 0;   // of a request
    double most_pending_bytes = 0;
    bool full() const { return free.empty() && pending_bytes >= most_pending_bytes - kAlmostBytes; }
    static constexpr double kAlmostBytes = 1e-6;  // what rounding may leave
  };

  void advance(Nanos now);
  void plan(Nanos now);
  bool in_order() const { return before_ || keys_.sequential(); }
  Nanos next_deed(Nanos now) const;
  double next_stop() const;
  double elapsed_ns(Nanos now) const { return static_cast<double>(now - began_); }
  double rate() const;  // puts per nanosecond
  bool diverts() const;
  double spilled_bytes() const;
  double put_ns() const;
  double until_log_acts(const Log& log) const;  // bytes
  // False: the drive is full.
  bool send(Nanos now, Log& log, fs::ExtentList& place);
  bool write_log(Nanos now, Log& log, fs::ExtentList& place);
  bool write_logs(Nanos now);
  bool end_full_generation(Nanos now);
  bool end_generation(Nanos now);
  bool end_memtable();
  void take_in_order(Memtable& memtable);
  void count_wait(Nanos now);

  const Spec& spec_;
  const KeySpace& keys_;
  DriveFiles& files_;
  Agenda& agenda_;
  Processor& processor_;
  Background& background_;
  Figures& figures_;
  const EntryBytes entry_;
  const double memtable_puts_;  // of a full one
  StallState stall_;
  bool before_ = false;  // the load that puts every key in order
  Nanos began_ = 0;
  Nanos ends_ = 0;
  Nanos reports_ = 0;
  double most_operations_ = 0;
  std::optional<double> rate_ops_s_;
  double operations_ = 0;
  double puts_ = 0;            // in the active memtable
  double ordered_puts_ = 0;    // those of them that were in order
  double sequential_end_ = 0;  // where the next memtable of a sequential load begins
  fs::ExtentList log_place_;
  Log log_;
  Log spill_log_;
  double generation_bytes_ = 0;  // from which on one ends
  Generation open_;              // the generation that is written
  std::deque<Generation> generations_;
  double rate_ = 0;
  double load_ = 0;      // of the processor
  double slowdown_ = 1;  // by the processor, in rate_
  std::uint64_t seen_changes_ = 0;
  bool diverting_ = false;
  Nanos since_ = 0;
  std::uint64_t plan_ = 0;  // id of the valid agenda item
  std::optional<Nanos> waits_since_;
  bool finished_ = false;
  bool drive_is_full_ = false;
};

}  // namespace spillway::lsm
