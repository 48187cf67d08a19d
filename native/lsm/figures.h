// What a simulation counts. Bytes and counts are stored; ratios are derived by readers.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <vector>

#include "base/histogram.h"
#include "lsm/stall.h"
#include "ssd/interface/counters.h"

namespace spillway::lsm {

struct LevelFigures {
  std::size_t files = 0;
  double bytes = 0;
  double bytes_written = 0;  // by flushes and compactions into it
  double bytes_read = 0;     // from it, by compactions
};

// Compactions out of a level that were not trivial moves.
struct CompactionFigures {
  std::uint64_t compactions = 0;
  std::uint64_t files_touched = 0;  // read, of both levels
};

// Of separated values.
struct BlobFigures {
  std::size_t files = 0;     // at the end
  double bytes = 0;          // in them
  double garbage_bytes = 0;  // of these, to which nothing in the tree refers any more
  double bytes_flushed = 0;
  double bytes_relocated = 0;  // written by compactions
  double bytes_read = 0;       // by compactions
};

struct QueryFigures {
  std::uint64_t operations = 0;
  double seconds = 0;
  double block_reads = 0;
  Histogram latency;
};

struct Figures {
  double operations = 0;
  double load_seconds = 0;
  double settle_seconds = 0;
  double preloaded_bytes = 0;  // in files, before the load; they are in no other count of bytes written
  double user_bytes = 0;
  double live_user_bytes = 0;
  double wal_bytes = 0;
  double flush_bytes = 0;
  double compaction_bytes_read = 0;
  double compaction_bytes_written = 0;
  double spilled_operations = 0;
  double spilled_bytes = 0;
  double rollback_bytes_written = 0;
  std::uint64_t flushes = 0;
  std::uint64_t files_written = 0;  // by flushes, compactions and rollbacks
  std::uint64_t compactions = 0;
  std::uint64_t trivial_moves = 0;
  std::uint64_t intra_l0_compactions = 0;
  std::uint64_t rollbacks = 0;
  std::array<double, kStallCauses> delayed_s{};
  std::array<double, kStallCauses> stopped_s{};
  double worst_wait_s = 0;
  std::uint64_t held_bytes = 0;
  std::uint64_t peak_held_bytes = 0;
  BlobFigures blobs;
  std::vector<LevelFigures> levels;
  std::vector<CompactionFigures> compactions_from;  // by start level
  std::vector<QueryFigures> queries;
  ssd::Counters drive;
  // If the load asks for a report: what was counted then, and when the load had ended. What the drive had not begun or
  // had in its write cache at that time is not in them.
  std::vector<Figures> reports;
  bool complete = false;
};

struct Sample {
  double seconds = 0;
  double operations = 0;
  std::size_t l0_files = 0;
  std::size_t immutable_memtables = 0;
  double pending_compaction_bytes = 0;
  std::vector<double> level_bytes;
  std::uint64_t host_bytes_written = 0;
  std::uint64_t nand_bytes_programmed = 0;
  bool delayed = false;
  bool stopped = false;
};

// Told from time to time. Returns false to end the simulation early.
struct Watch {
  std::function<bool(double operations)> progress;
  std::function<void(const Sample&)> sample;
};

}  // namespace spillway::lsm
