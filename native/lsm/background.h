// Flushes, compactions and rollbacks: which run, and how each goes on.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <vector>

#include "lsm/background_job.h"
#include "lsm/blobs.h"
#include "lsm/drive_files.h"
#include "lsm/figures.h"
#include "lsm/merge.h"
#include "lsm/picker.h"
#include "lsm/processor.h"
#include "lsm/simulation.h"
#include "ssd/structures/random.h"

namespace spillway::lsm {

// The owners of requests at the drive.
inline constexpr Owner kLogRequests = 8;  // of the log, in flight together: fs/volume.h, outstanding_bytes
inline constexpr Owner kSpillOwner = kLogRequests;
inline constexpr Owner kFirstLane = kSpillOwner + 1;

class Background {
 public:
  Background(const Spec& spec, const KeySpace& keys, DriveFiles& files, Processor& processor, Figures& figures);

  // A full memtable; it is flushed when a thread is free.
  void add_immutable(Memtable memtable) { immutable_.push_back({std::move(memtable), false}); }
  // Brings spilled writes back into L0. REQUIRES: !rolling_back()
  void roll_back(Nanos now, fs::ExtentList spilled, double puts);

  // Puts every key into the tree, before time begins. Returns the sorted files; they and the blob files take no place
  // yet.
  Files preload();

  // Starts what may run. `speed_up`: compactions may run side by side (StallState).
  void schedule(Nanos now, bool speed_up);
  // A lane's request is complete, or its merging is. True if the tree or the memtables have changed.
  bool continue_lane(Nanos now, std::uint32_t id);

  const Tree& tree() const { return tree_; }
  const BlobFiles& blob_files() const { return blobs_; }
  std::size_t immutable_memtables() const { return immutable_.size(); }
  bool rolling_back() const { return rollbacks_ > 0; }
  // Nothing runs, and nothing is left to flush. (Compactions that are blocked or not needed do not count.)
  bool idle() const { return flushes_ + compactions_ + rollbacks_ == 0 && immutable_.empty(); }
  bool drive_is_full() const { return drive_is_full_; }

 private:
  struct Immutable {
    Memtable memtable;
    bool in_flush = false;
  };

  void start_flush(Nanos now);
  void start_compaction(Nanos now, Compaction compaction);
  MergeSpec merge_spec(const Compaction& compaction) const;
  std::size_t new_job(Job::Kind kind);
  double range_bytes_of(const Compaction& compaction, double input_bytes) const;
  std::vector<Lane> planned_lanes(std::size_t index);
  void add_pieces(Job& job, Lane& lane, std::size_t first, std::size_t end);
  void start_lanes(Nanos now, std::size_t index);
  std::uint32_t free_lane();

  void step(Nanos now, std::uint32_t id);
  void read_chunk(Nanos now, std::uint32_t id);
  void merge_chunk(Nanos now, std::uint32_t id, std::uint64_t pages);
  void fetch_value(Nanos now, std::uint32_t id);
  void write_chunk(Nanos now, std::uint32_t id);
  void close_lane(Nanos now, std::uint32_t id);
  void open_or_record(Nanos now, std::uint32_t id);
  bool leaves_record(std::size_t flush);
  void record(Nanos now, std::uint32_t id);
  std::uint64_t index_pages(const File& file) const;
  // What takes a time of its own for each file or job, and whether it is due: once in so many times as a simulation is
  // smaller than what it stands for, since its times stand for so many times as long.
  enum class Fixed : std::uint8_t { sync, open, record };
  bool due(Fixed what) { return ++fixed_[static_cast<std::size_t>(what)] % fixed_once_in_ == 0; }
  void finish(Nanos now, std::uint32_t id);
  void finish_flushes(Nanos now, std::uint32_t id);
  void install_flush(Nanos now, Job& job);
  std::size_t complete_flushes() const;
  void finish_compaction(Nanos now, Job& job);
  void finish_rollback(Nanos now, Job& job);
  std::uint64_t pages_of(const Piece& piece) const { return files_.pages_for(piece.bytes); }
  double replace_blobs(Nanos now, const Files& removed, Job& job);
  void release(Nanos now, const fs::ExtentList& place) { files_.release(now, place, spec_.tree.discard); }

  const Spec& spec_;
  const KeySpace& keys_;
  DriveFiles& files_;
  Processor& processor_;
  Figures& figures_;
  const EntryBytes entry_;
  ssd::Random random_;
  Tree tree_;
  BlobFiles blobs_;
  std::deque<Immutable> immutable_;  // oldest first
  std::deque<Job> jobs_;             // slots are used again
  std::deque<Lane> lanes_;
  std::deque<std::size_t> flush_order_;  // jobs whose memtables are still there, in their order
  std::size_t recorded_flushes_ = 0;     // the first so many of them are in the record that is written
  fs::ExtentList manifest_;              // its last page, which each record rewrites
  std::array<std::uint64_t, 3> fixed_{};
  const std::uint64_t fixed_once_in_;
  std::uint32_t flushes_ = 0;  // that have a thread
  std::uint32_t compactions_ = 0;
  std::uint32_t rollbacks_ = 0;
  bool changed_ = false;
  bool drive_is_full_ = false;
};

}  // namespace spillway::lsm
