// A flush, a compaction or a rollback while it runs: lanes that read, compute and write in turns.
//
// As in RocksDB, a lane (the job itself, or one of its subcompactions) has one request at the drive at a time: it reads
// ahead a chunk, merges it, writes when a chunk has gathered or a file is complete, and waits for each. A complete file
// is made durable before the next one begins. Then each output is opened (its index is read), one after another, and
// the change of the tree is recorded in the manifest. A trivial move is only such a record. Flushes are recorded in the
// order of their memtables: one that is done before an older one leaves its record to that one, and its thread is free.
#pragma once

#include <cstdint>
#include <vector>

#include "lsm/picker.h"
#include "lsm/tree.h"

namespace spillway::lsm {

inline constexpr double kReadChunkBytes = 2.0 * 1048576;   // compaction_readahead_size with direct reads
inline constexpr double kWriteChunkBytes = 1.0 * 1048576;  // writable_file_max_buffer_size

// A full memtable and its log.
struct Memtable {
  Entries entries;
  double puts = 0;
  double low = 0;
  double high = 1;
  fs::ExtentList log;
};

struct Lane {
  enum class Step : std::uint8_t { reading, merging, writing, syncing, opening, recording, committing, done };
  std::size_t job = 0;  // index of its job
  Step step = Step::done;
  std::uint64_t read_pages = 0;  // left
  std::uint64_t write_pages = 0;
  std::size_t file = 0;          // index of the output that it writes
  std::uint64_t file_pages = 0;  // left of it
  bool unsynced = false;         // something of it is not durable yet
  double pages_out_of_page_in = 0;
  double gathered_pages = 0;      // merged, not yet written
  std::uint64_t chunk_pages = 0;  // of the read in flight
};

struct Job {
  enum class Kind : std::uint8_t { flush, compaction, rollback };
  Kind kind = Kind::flush;
  bool running = false;
  Compaction compaction;            // of a compaction
  std::vector<Memtable> memtables;  // of a flush
  fs::ExtentList spilled;           // of a rollback: what it reads
  Files outputs;
  fs::ExtentList input;    // all that it reads, one file after another
  fs::ExtentList written;  // its outputs, one file after another
  std::uint64_t next_read = 0;
  double merge_ns = 0;           // in all
  std::uint64_t chunk_unit = 0;  // pages over which merge_ns is spread: read, or else written
  std::vector<double> cuts;      // keys between its lanes
  double lane_share = 1;         // of the input: what each lane but the last one reads
  std::size_t lanes_left = 0;
  std::size_t opened = 0;  // outputs
  bool complete = false;   // a flush: only the record is left
};

}  // namespace spillway::lsm
