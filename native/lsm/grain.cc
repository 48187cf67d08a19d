#include "lsm/grain.h"

#include <algorithm>
#include <utility>

#include "lsm/simulation.h"
#include "lsm/writer.h"

namespace spillway::lsm {
namespace {

// A load of this many bytes is simulated at grain 1: it takes some seconds.
constexpr double kFineLoadBytes = 4.0 * 1073741824;
constexpr double kLeastFileBytes = 1.0 * 1048576;  // of a coarse file: one request
constexpr std::uint32_t kLeastPagesPerBlock = 8;
constexpr std::uint64_t kQueryCapacityBytes = std::uint64_t{4} << 30;

constexpr double kLeastUnitsOfFile = 8;  // rounding up to whole units then adds a sixteenth on average

}  // namespace

bool too_coarse(const Spec& coarse, const device::Drive& coarse_drive) {
  const EntryBytes entry = entry_bytes(coarse);
  const double flushed = coarse.tree.write_buffer_size * (coarse.separates_values() ? entry.file / entry.memtable : 1);
  const double file = std::min(coarse.tree.target_file_size_base, flushed);
  return file < kLeastUnitsOfFile * coarse_drive.config.geometry.mapping_unit_bytes;
}

bool spill_too_coarse(const Spec& coarse, const device::Drive& coarse_drive) {
  if (coarse.spill.capacity_bytes <= 0) return false;
  const double page = std::max<double>(DriveFiles::kPageBytes, coarse_drive.config.geometry.mapping_unit_bytes);
  return coarse.spill.capacity_bytes < 2 * std::max(page, spill_chunk_bytes(coarse.spill, coarse.grain));
}

std::uint32_t choose_grain(const Spec& spec, const device::Drive& drive) {
  const double pair = spec.load.key_bytes + spec.load.value_bytes;
  const double before = spec.load.preload == Preload::none ? 0 : spec.load.keys;
  const double load = (spec.load.operations + before) * pair;
  const double file = std::min(spec.tree.target_file_size_base, spec.tree.write_buffer_size);
  const double least_file = std::max(kLeastFileBytes, pair);  // pairs are not divided
  const double spill = spec.spill.capacity_bytes > 0 ? spec.spill.capacity_bytes : 1e300;
  const bool is_disk = drive.layers().is_disk();
  const auto loses_addresses = [&](std::uint32_t coarse) {
    return spec.separates_values() && too_coarse(coarser(spec, coarse), coarser(drive, coarse));
  };
  std::uint32_t grain = 1;
  while (grain < kMostGrain && load / grain > kFineLoadBytes && file / (2 * grain) >= least_file &&
         spill / (2 * grain) >= least_spill_bytes(kLogChunkBytes, spec.load) &&
         (is_disk || drive.config.geometry.pages_per_block / (2 * grain) >= kLeastPagesPerBlock) &&
         !loses_addresses(2 * grain)) {
    grain *= 2;
  }
  return grain;
}

Spec coarser(const Spec& spec, std::uint32_t grain) {
  const double g = grain;
  Spec coarse = spec;
  coarse.grain = grain;
  TreeOptions& tree = coarse.tree;
  for (double* size :
       {&tree.write_buffer_size, &tree.target_file_size_base, &tree.max_bytes_for_level_base,
        &tree.soft_pending_compaction_bytes_limit, &tree.hard_pending_compaction_bytes_limit, &tree.blobs.file_size,
        &coarse.spill.capacity_bytes, &coarse.spill.generation_bytes, &coarse.load.keys, &coarse.load.operations,
        &coarse.sample_interval_s, &coarse.host.log_dirty_bytes}) {
    *size /= g;
  }
  for (auto* length : {&coarse.load.duration_s, &coarse.load.report_operations, &coarse.load.report_s}) {
    if (*length) **length /= g;
  }
  return coarse;
}

device::Drive coarser(const device::Drive& drive, std::uint32_t grain) {
  device::Drive coarse = drive;
  if (grain == 1) return coarse;
  ssd::SsdConfig& config = coarse.config;
  const std::uint64_t old_unit = config.geometry.mapping_unit_bytes;
  config.capacity.capacity_bytes /= grain;
  if (drive.layers().is_disk()) return coarse;
  ssd::Geometry& geometry = config.geometry;
  geometry.pages_per_block = std::max(kLeastPagesPerBlock, geometry.pages_per_block / grain);
  if (!config.compresses() && config.mapping.scheme == ssd::MappingScheme::page) {
    geometry.page_bytes *= geometry.planes_per_die;
    geometry.planes_per_die = 1;
    geometry.mapping_unit_bytes = geometry.page_bytes;
  }
  config.capacity.capacity_bytes -= config.capacity.capacity_bytes % geometry.mapping_unit_bytes;
  // At least two flash pages for each plane, or the planes could not work side by side.
  const std::uint64_t least_cache = std::uint64_t{2} * geometry.planes() * geometry.page_bytes;
  if (config.write_cache.bytes > 0) {
    config.write_cache.bytes =
        std::max(std::min(least_cache, config.write_cache.bytes), config.write_cache.bytes / grain);
  }
  config.mapping_cache.bytes = config.mapping_cache.bytes * old_unit / geometry.mapping_unit_bytes / grain;
  return coarse;
}

device::Drive for_queries(const device::Drive& drive) {
  device::Drive small = drive;
  ssd::Capacity& capacity = small.config.capacity;
  if (capacity.capacity_bytes > kQueryCapacityBytes) capacity.capacity_bytes = kQueryCapacityBytes;
  const ssd::Geometry& geometry = drive.config.geometry;
  // Some erase blocks in every plane, whatever their size.
  const std::uint64_t least = std::uint64_t{16} * geometry.planes() * geometry.block_bytes();
  if (capacity.capacity_bytes > 0) {
    capacity.capacity_bytes = std::min(drive.config.capacity.capacity_bytes, std::max(capacity.capacity_bytes, least));
  }
  return small;
}

Figures finer(Figures figures, std::uint32_t grain) {
  if (grain == 1) return figures;
  const double g = grain;
  for (double* value : {&figures.operations, &figures.load_seconds, &figures.settle_seconds, &figures.user_bytes,
                        &figures.preloaded_bytes, &figures.live_user_bytes, &figures.wal_bytes, &figures.flush_bytes,
                        &figures.compaction_bytes_read, &figures.compaction_bytes_written, &figures.spilled_operations,
                        &figures.spilled_bytes, &figures.rollback_bytes_written, &figures.worst_wait_s,
                        &figures.blobs.bytes, &figures.blobs.garbage_bytes, &figures.blobs.bytes_flushed,
                        &figures.blobs.bytes_relocated, &figures.blobs.bytes_read}) {
    *value *= g;
  }
  for (double& value : figures.delayed_s) value *= g;
  for (double& value : figures.stopped_s) value *= g;
  figures.held_bytes *= grain;
  figures.peak_held_bytes *= grain;
  for (LevelFigures& level : figures.levels) {
    level.bytes *= g;
    level.bytes_written *= g;
    level.bytes_read *= g;
  }
  for (Figures& report : figures.reports) report = finer(std::move(report), grain);
  ssd::Counters& drive = figures.drive;
  drive.host_bytes_read *= grain;
  drive.host_bytes_written *= grain;
  drive.host_bytes_deallocated *= grain;
  for (auto& bytes : drive.host_bytes_written_by_cause) bytes *= grain;
  for (auto& bytes : drive.host_bytes_read_by_cause) bytes *= grain;
  for (auto& bytes : drive.nand_bytes_programmed) bytes *= grain;
  return figures;
}

}  // namespace spillway::lsm
