// What an LSM shape simulation is told: the tree's options, the load, the processor's costs.
//
// Names and defaults of the tree's options are RocksDB's. Sizes in bytes.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace spillway::lsm {

enum class Shape : std::uint8_t {
  leveled,      // tiered L0, leveled L1 and deeper (M28)
  universal,    // tiered: sorted runs of falling age
  single_level  // L0 is compacted at once into one level without a limit: C = 0, F >= N (M30)
};

// Which file of a level is compacted next.
enum class CompactionPri : std::uint8_t { min_overlapping_ratio, by_compensated_size };

struct UniversalOptions {
  double size_ratio = 1;  // percent
  std::uint32_t min_merge_width = 2;
  double max_size_amplification_percent = 200;
};

// Values that lie apart from the tree, in blob files (RocksDB's integrated BlobDB).
struct BlobOptions {
  bool enabled = false;                // enable_blob_files
  double min_blob_size = 0;            // of a value that is separated
  double file_size = 256.0 * 1048576;  // blob_file_size
  bool garbage_collection = false;     // enable_blob_garbage_collection
  double age_cutoff = 0.25;            // blob_garbage_collection_age_cutoff
  double force_threshold = 1;          // blob_garbage_collection_force_threshold; 1: none
};

struct TreeOptions {
  Shape shape = Shape::leveled;
  CompactionPri compaction_pri = CompactionPri::min_overlapping_ratio;
  double fanout = 10;  // max_bytes_for_level_multiplier (F)
  std::uint32_t levels = 7;
  std::uint32_t level0_file_num_compaction_trigger = 4;  // C
  std::uint32_t level0_slowdown_writes_trigger = 20;
  std::uint32_t level0_stop_writes_trigger = 36;
  double write_buffer_size = 64.0 * 1048576;
  std::uint32_t max_write_buffer_number = 2;
  double target_file_size_base = 64.0 * 1048576;  // T
  double target_file_size_multiplier = 1;
  double max_bytes_for_level_base = 256.0 * 1048576;
  bool level_compaction_dynamic_level_bytes = false;
  bool level_compaction_dynamic_file_size = true;
  std::uint32_t compaction_threads = 1;
  std::uint32_t flush_threads = 1;
  std::uint32_t max_subcompactions = 1;
  double soft_pending_compaction_bytes_limit = 64.0 * 1073741824;
  double hard_pending_compaction_bytes_limit = 256.0 * 1073741824;
  double delayed_write_rate = 16.0 * 1048576;  // bytes per second
  bool slowdown = true;                        // false: only stops, as the papers' "no slowdown"
  bool trivial_moves = true;
  bool wal = true;
  bool discard = true;
  double block_size = 4096;  // B'
  double bits_per_key = 0;   // of a Bloom filter; 0: none
  UniversalOptions universal;
  BlobOptions blobs;

  double max_compaction_bytes() const { return 25 * target_file_size_base; }
};

// The spill store as a policy: in a stall, writes go to a log of at most this size, and come back as files in L0.
struct SpillPolicy {
  double capacity_bytes = 0;    // 0: none
  double generation_bytes = 0;  // what comes back at a time; 0: an eighth of the capacity
};

// The processor's part, and the page cache's. Threads beyond `cores` share them. The costs are guesses of the size that
// RocksDB 7.8 has on one server core; scripts/lsm_host_costs.py measures those of a machine.
struct HostCosts {
  double put_ns = 2500;         // one put by a writer, the log's record included. Source: guess
  double put_byte_ns = 0;       // and its key's and value's bytes. Source: guess
  double flush_entry_ns = 350;  // one entry that a flush writes. Source: guess, as of a compaction
  double flush_byte_ns = 0.25;  // and its bytes: copy, checksum. Source: guess, as of a compaction
  double merge_entry_ns = 350;  // one entry that a compaction reads. Source: guess
  double merge_byte_ns = 0.25;  // and its bytes. Source: guess
  double get_ns = 3000;         // one query. Source: guess
  double probe_ns = 1500;       // each sorted run that it looks into. Source: guess
  double next_ns = 400;         // each pair that a scan passes. Source: guess
  double cores = 2;
  // Most bytes of the log that wait in memory; the writer waits beyond. Source: fs/volume.h, dirty_bytes
  double log_dirty_bytes = 64.0 * 1048576;
};

// Where on the drive the tree lies: other data has the rest. Bytes, not divided by the grain.
struct DriveRegion {
  std::uint64_t begin = 0;
  std::uint64_t end = ~std::uint64_t{0};  // beyond the drive's end: up to it
};

enum class KeyOrder : std::uint8_t { unique_random, sequential, uniform, zipfian };

// What the tree holds before the load begins, of which nothing is counted.
enum class Preload : std::uint8_t {
  none,
  in_order,  // every key, loaded in order and compacted into one level (lsm/preload.h)
  unsettled  // every key, put after put in order: memtables, L0 and compactions are as the last of them leaves them
};

struct LoadSpec {
  double key_bytes = 16;
  double value_bytes = 100;
  double keys = 1e6;        // of the key space; a sequential or unique load ends with them
  double operations = 1e6;  // puts, at most
  KeyOrder order = KeyOrder::unique_random;
  Preload preload = Preload::none;  // REQUIRES: none of a load that writes each key once
  double zipfian_constant = 0.99;
  double zipfian_ranks = 0;          // that a hash puts on the keys (lsm/key_space.h); 0: each key has a rank
  std::optional<double> rate_ops_s;  // an open loop; none: as fast as the store takes them
  std::optional<double> duration_s;  // after which the load ends, however many puts were done
  // When Figures::reports has its first one: so many puts, or so long, after the load began. REQUIRES: at most one
  std::optional<double> report_operations;
  std::optional<double> report_s;
  bool settle = true;  // go on until nothing is left to compact
};

struct QuerySpec {
  enum class Kind : std::uint8_t { point, scan };
  Kind kind = Kind::point;
  std::uint32_t threads = 1;
  std::uint64_t operations = 100'000;
  double seek_nexts = 128;
};

struct Spec {
  // All values of a load have one size: all of them are separated, or none.
  bool separates_values() const {
    return tree.blobs.enabled && load.value_bytes > 0 && load.value_bytes >= tree.blobs.min_blob_size;
  }

  TreeOptions tree;
  SpillPolicy spill;
  HostCosts host;
  LoadSpec load;
  DriveRegion region;
  std::vector<QuerySpec> queries;
  std::uint64_t seed = 1;
  double sample_interval_s = 0;  // 0: no samples
  std::uint32_t grain = 1;       // of this specification: lsm/grain.h sets it
  // Whoever asks has divided all sizes of the tree and of the load by it already, and multiplies times by it.
  double divided_by = 1;
};

}  // namespace spillway::lsm
