// A flush, a compaction or a rollback while it runs: lanes that read, compute and write in turns.
//
// As in RocksDB, a lane (the job itself, or one of its subcompactions) has one request at the drive at a time: it reads
// ahead a chunk, merges it, writes when a chunk has gathered or a file is complete, and waits for each. A complete file
// is made durable before the next one begins. Then each output is opened (its index is read), one after another, and
// the change of the tree is recorded in the manifest. Values that are relocated out of blob files are read one at a
// time, each when its address is merged, as RocksDB does without blob_compaction_readahead_size. A trivial move is only
// such a record. Flushes are recorded in the order of their memtables: one that is done before an older one leaves its
// record to that one, and its thread is free.
#pragma once

#include <cstdint>
#include <vector>

#include "lsm/blobs.h"
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
  File in_order;  // beside `entries`, the last keys of a load in order; null: none
  fs::ExtentList log;
};

struct Lane {
  enum class Step : std::uint8_t { reading, merging, fetching, writing, syncing, opening, recording, committing, done };
  std::size_t job = 0;  // index of its job
  Step step = Step::done;
  std::uint64_t read_pages = 0;  // left
  std::uint64_t write_pages = 0;
  std::size_t piece = 0;         // index of the file that it writes
  std::uint64_t file_pages = 0;  // left of it
  bool unsynced = false;         // something of it is not durable yet
  double pages_out_of_page_in = 0;
  double gathered_pages = 0;      // merged, not yet written
  std::uint64_t chunk_pages = 0;  // of the read in flight
  double values_a_page = 0;       // that are relocated, for each page that is read
  double pages_a_value = 0;       // that are written for each of them
  double values_due = 0;          // of the chunk that was merged, not yet fetched
};

// A file that a job writes. The job holds it.
struct Piece {
  fs::ExtentList* place = nullptr;
  double bytes = 0;
  bool has_values = false;  // a blob file
};

struct Job {
  enum class Kind : std::uint8_t { flush, compaction, rollback };
  Kind kind = Kind::flush;
  bool running = false;
  Compaction compaction;            // of a compaction
  std::vector<Memtable> memtables;  // of a flush
  fs::ExtentList spilled;           // of a rollback: what it reads
  Files outputs;
  std::vector<Entries> values;          // of each output, if values are separated: those that go into blob files
  std::vector<Blob> blobs;              // that it writes
  std::vector<Relocation> relocations;  // values that it moves out of other blob files
  std::vector<Piece> pieces;            // all files that it writes, those of each lane together
  fs::ExtentList input;                 // sorted files that it reads, one after another
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
