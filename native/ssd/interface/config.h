// Configuration of a flash drive: geometry, timing, flash translation layer.
//
// Every field's name carries its unit. A preset (presets/*.toml) gives these fields with their sources. problem()
// checks the relations between them; a Layout exists for every config that it accepts.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace spillway::ssd {

// The drive's parallel structure. A die executes one operation at a time, on one or several of its planes.
struct Geometry {
  std::uint32_t channels = 8;
  std::uint32_t chips_per_channel = 1;
  std::uint32_t dies_per_chip = 2;
  std::uint32_t planes_per_die = 1;
  std::uint32_t pages_per_block = 256;      // flash pages in an erase block
  std::uint32_t page_bytes = 4096;          // flash page: what one plane senses or programs at once
  std::uint32_t mapping_unit_bytes = 4096;  // what one mapping entry describes
  std::uint32_t lba_bytes = 512;

  std::uint32_t dies() const { return channels * chips_per_channel * dies_per_chip; }
  std::uint32_t planes() const { return dies() * planes_per_die; }
  std::uint32_t units_per_page() const { return page_bytes / mapping_unit_bytes; }
  std::uint32_t units_per_block() const { return units_per_page() * pages_per_block; }
  std::uint64_t block_bytes() const { return std::uint64_t{page_bytes} * pages_per_block; }
};

// The size of the drive. Exactly one of capacity_bytes and blocks_per_plane is given; the other is 0.
struct Capacity {
  std::uint64_t capacity_bytes = 0;    // logical, as the host sees it
  std::uint32_t blocks_per_plane = 0;  // physical; the logical capacity follows from the spare factor
  // S_f = (T - U) / T: T = flash pages available to data (physical less the GC reserve), U = logical pages.
  // Over-provisioning (T - U) / U is converted on input: S_f = OP / (1 + OP).
  double spare_factor = 0.07;
};

struct Timing {
  // One entry, or one per page type of a multi-bit cell; flash page i of an erase block takes entry i % size.
  std::vector<std::int64_t> read_ns = {50'000};      // tR
  std::vector<std::int64_t> program_ns = {500'000};  // tPROG
  std::int64_t erase_ns = 3'500'000;                 // tBERS
  double channel_mb_s = 800;                         // 10^6 bytes per second on one channel
  std::int64_t channel_command_ns = 0;               // command and address cycles before a transfer
  double host_link_mb_s = 4000;                      // each direction
  std::int64_t read_command_ns = 0;                  // firmware latency added to a command
  std::int64_t write_command_ns = 0;
  // The controller takes one command per this time: 1e9 / occupancy is its limit in commands per second. 0: no limit.
  std::int64_t read_occupancy_ns = 0;
  std::int64_t write_occupancy_ns = 0;
  // At most this many host reads start on a die before a queued program or erase. 0: strict order of arrival.
  std::uint32_t reads_overtake = 8;
  bool independent_plane_reads = false;  // one sense may serve queued reads on several planes of a die
};

// The granularity of the map (C15; docs/decisions/0019).
//   page    every mapping unit may be anywhere, and garbage is collected
//   block   every flash page has a fixed place in an erase block with its logical neighbours; an overwrite copies them
//   hybrid  the same, and a few erase blocks are logs that take overwrites first, each for one block of data (BAST)
enum class MappingScheme : std::uint8_t { page, block, hybrid };

struct MappingConfig {
  MappingScheme scheme = MappingScheme::page;
};

// A controller that compresses what it programs (C15; docs/decisions/0020). A mapping unit takes the share of its size
// that its write command states, rounded up to granules, and shares a flash page with others.
struct CompressionConfig {
  std::uint32_t granule_bytes = 0;  // divides geometry.mapping_unit_bytes. 0: the controller does not compress
};

struct WriteCacheConfig {
  std::uint64_t bytes = 256 * 1024;   // DRAM for written data not yet programmed. 0: completes when programmed
  bool power_loss_protection = true;  // a flush command then does not wait
};

// The logical-to-physical map. Translation pages have the size of a mapping unit and hold 4-byte entries (M8).
struct MappingCacheConfig {
  std::uint64_t bytes = 0;  // DRAM for mapping entries, 8 bytes each (logical and physical). 0: the whole map fits
};

// Erase blocks programmed with one bit per cell: pages_per_block / bits_per_cell pages, faster. Host data goes there
// while there is room, and is folded into the main blocks later (docs/decisions/0006). Shares are of the logical
// capacity, so a drive with fewer erase blocks has the same proportions.
struct SlcCacheConfig {
  double share = 0;          // permanent part, in flash of its own, at least one block in each plane. 0: no cache
  double dynamic_share = 0;  // additional part on an empty drive, in flash that main data does not use yet
  double dynamic_until =
      1;  // data in the main blocks, as a share of the capacity, from which on there is no dynamic part
  std::uint32_t bits_per_cell = 4;  // of the main blocks
  std::int64_t read_ns = 30'000;
  std::int64_t program_ns = 200'000;
  // After this time without commands, the drive folds until low_watermark is in use.
  std::int64_t idle_ns = 100'000'000;
  double low_watermark = 0;   // both are shares of the cache's current size
  double high_watermark = 1;  // above this it folds while host commands run
  // True: host data goes to the main blocks while the cache is full; false: the host waits for a fold.
  bool bypass = true;
};

enum class GcPolicy : std::uint8_t { greedy, fifo, d_choices, cost_benefit };

struct GarbageCollection {
  GcPolicy policy = GcPolicy::greedy;
  std::uint32_t choices = 10;  // d of d-choices
  // Collection starts when clean space falls below the reserve and continues until reserve + (high - low) is clean. The
  // reserve is what open erase blocks and a collection in progress need, plus low_watermark x T; it is not part of T.
  // Both watermarks are shares of T.
  double low_watermark = 0.0;
  double high_watermark = 0.0;  // >= low_watermark
  // Relocated data goes to separate erase blocks. An explicit FIFO geometry has one log by default.
  bool separate_streams = true;
};

struct WearLevelling {
  bool dynamic = true;  // a stream opens the free erase block with the fewest erases
  std::uint32_t static_threshold_pe =
      200;  // move the least worn block's data when the spread of P/E cycles exceeds this; 0: never
  std::uint32_t rated_pe_cycles = 3000;  // endurance behind "percentage used"
};

// Key-value namespaces and block namespaces on one translation layer (K11, K14-K16; docs/decisions/0008). The logical
// range of block commands ends at the *disaggregation point*. The units above it hold the sorted runs of a Dev-LSM.
struct NamespacesConfig {
  double kv_share = 0;  // of the logical range, above the disaggregation point. 0: block commands only
  // Of each kind: block namespace i and key-value namespace i belong to one tenant.
  std::uint32_t count = 1;
  std::uint32_t kml_bytes = 16;         // KML: longest key
  std::uint32_t vml_bytes = 64 * 1024;  // VML: longest value
  std::uint32_t memtable_bytes =
      8 * 1024 * 1024;  // power-loss-protected DRAM of a namespace, twice: one fills, one flushes
  // One core does all of it, one thing at a time. It takes this long for each command, for each pair that is stored or
  // found by its key, for each pair that is transferred in order (scan, flush, compaction), and for their bytes. 0: no
  // time.
  std::int64_t core_command_ns = 10'000;
  std::int64_t core_pair_ns = 15'000;
  std::int64_t core_scan_pair_ns = 5'000;
  double core_mb_s = 0;
  // Vendor extensions (kv_command.h). A retrieve may begin in the middle of a value; flash is read for the part alone.
  bool retrieve_offset = false;
  // Most keys of a batch retrieve; 0: the drive has none. Each key takes the core this long, instead of core_pair_ns.
  std::uint32_t batch_retrieve_keys = 0;
  std::int64_t core_batch_key_ns = 10'000;
  // This many runs of a similar size are compacted into one. 0: no compaction (Fig 12).
  std::uint32_t compaction_runs = 0;
};

struct SsdConfig {
  std::string name = "explicit";
  Geometry geometry;
  Capacity capacity;
  Timing timing;
  MappingConfig mapping;
  CompressionConfig compression;
  WriteCacheConfig write_cache;
  MappingCacheConfig mapping_cache;
  SlcCacheConfig slc_cache;
  GarbageCollection gc;
  WearLevelling wear_levelling;
  NamespacesConfig namespaces;

  bool compresses() const { return compression.granule_bytes != 0; }
  // Flash is allocated in slots: mapping units, or granules of them if the controller compresses.
  std::uint32_t slots_per_unit() const {
    return compresses() ? geometry.mapping_unit_bytes / compression.granule_bytes : 1;
  }
};

// The compressed share, in 1/256, of data that does not compress.
inline constexpr std::uint16_t kIncompressible = 256;

// The sizes that follow from a config, in mapping units and erase blocks.
struct Layout {
  std::uint64_t logical_units = 0;        // U
  std::uint64_t data_units = 0;           // T
  std::uint64_t reserve_units = 0;        // kept clean for open blocks and for collection in progress
  std::uint64_t collect_until_units = 0;  // collection in progress ends when this much is clean; >= reserve_units
  std::uint64_t physical_units = 0;       // T + reserve + translation units and their spare + slc_blocks
  std::uint64_t translation_units = 0;    // flash that the map itself takes; 0 if the whole map fits DRAM
  std::uint32_t blocks = 0;               // erase blocks in all; plane p holds those with index % planes == p
  std::uint32_t slc_pages = 0;            // flash pages of an erase block in SLC mode; 0: no SLC cache
  std::uint32_t slc_blocks = 0;           // erase blocks that it always has, as many in each plane
  std::uint32_t slc_dynamic_blocks = 0;   // additional ones on an empty drive, part of T
  std::uint32_t data_rows = 0;       // of each die under block and hybrid mapping: rows that hold its logical units,
  std::uint32_t log_rows = 0;        // and rows that take overwrites; one more is kept to merge into
  std::uint64_t block_units = 0;     // U of the block namespaces, all together: the disaggregation point
  std::uint64_t kv_units = 0;        // U of one key-value namespace
  std::uint64_t capacity_bytes = 0;  // of the block namespaces, all together
};

struct ConfigProblem {
  std::string key;      // dotted, as in a preset: "capacity.spare_factor"
  std::string message;  // what is wrong and how to fix it; no trailing full stop
};

// The first violated relation, or nothing.
std::optional<ConfigProblem> problem(const SsdConfig& config);

// REQUIRES: !problem(config)
Layout layout(const SsdConfig& config);

}  // namespace spillway::ssd
