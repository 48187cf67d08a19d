#include "ssd/interface/config.h"

#include <algorithm>
#include <cmath>
#include <initializer_list>

#include "ssd/interface/kv_command.h"

namespace spillway::ssd {
namespace {

using Problem = std::optional<ConfigProblem>;

// Rows of a die with block and hybrid mapping: data, overwrites, and one to merge into.
constexpr std::uint64_t kLeastRows = 3;

std::string number(std::uint64_t value) { return std::to_string(value); }

Problem geometry_problem(const Geometry& g) {
  struct Field {
    const char* key;
    std::uint32_t value;
  };
  for (const Field& field : std::initializer_list<Field>{{"geometry.channels", g.channels},
                                                         {"geometry.chips_per_channel", g.chips_per_channel},
                                                         {"geometry.dies_per_chip", g.dies_per_chip},
                                                         {"geometry.planes_per_die", g.planes_per_die},
                                                         {"geometry.pages_per_block", g.pages_per_block},
                                                         {"geometry.page_bytes", g.page_bytes},
                                                         {"geometry.mapping_unit_bytes", g.mapping_unit_bytes},
                                                         {"geometry.lba_bytes", g.lba_bytes}}) {
    if (field.value == 0) return ConfigProblem{field.key, "must be at least 1"};
  }
  if (g.planes_per_die > 8) return ConfigProblem{"geometry.planes_per_die", "must be at most 8"};
  if (std::uint64_t{g.channels} * g.chips_per_channel * g.dies_per_chip > 4096) {
    return ConfigProblem{"geometry.channels", "makes more than 4096 dies; lower channels, chips or dies"};
  }
  if (g.mapping_unit_bytes % g.lba_bytes != 0) {
    return ConfigProblem{"geometry.mapping_unit_bytes", "must be a multiple of lba_bytes " + number(g.lba_bytes)};
  }
  if (g.page_bytes % g.mapping_unit_bytes != 0) {
    return ConfigProblem{"geometry.page_bytes",
                         "must be a multiple of mapping_unit_bytes " + number(g.mapping_unit_bytes)};
  }
  if (g.units_per_page() > 64) return ConfigProblem{"geometry.page_bytes", "must hold at most 64 mapping units"};
  if (g.pages_per_block > 16384) return ConfigProblem{"geometry.pages_per_block", "must be at most 16384"};
  return std::nullopt;
}

bool positive(double value) { return std::isfinite(value) && value > 0; }

Problem timing_problem(const Timing& t) {
  for (const auto* list : {&t.read_ns, &t.program_ns}) {
    const char* key = list == &t.read_ns ? "timing.read_ns" : "timing.program_ns";
    if (list->empty()) return ConfigProblem{key, "needs at least one duration"};
    for (const auto ns : *list) {
      if (ns < 0 || ns > 1'000'000'000) return ConfigProblem{key, "must be between 0 and 1000000000 ns"};
    }
  }
  struct Field {
    const char* key;
    std::int64_t value;
  };
  for (const Field& field : std::initializer_list<Field>{{"timing.erase_ns", t.erase_ns},
                                                         {"timing.channel_command_ns", t.channel_command_ns},
                                                         {"timing.read_command_ns", t.read_command_ns},
                                                         {"timing.write_command_ns", t.write_command_ns},
                                                         {"timing.read_occupancy_ns", t.read_occupancy_ns},
                                                         {"timing.write_occupancy_ns", t.write_occupancy_ns}}) {
    if (field.value < 0 || field.value > 10'000'000'000) {
      return ConfigProblem{field.key, "must be between 0 and 10000000000 ns"};
    }
  }
  if (!positive(t.channel_mb_s)) return ConfigProblem{"timing.channel_mb_s", "must be above 0"};
  if (!positive(t.host_link_mb_s)) return ConfigProblem{"timing.host_link_mb_s", "must be above 0"};
  return std::nullopt;
}

Problem ftl_problem(const SsdConfig& c) {
  if (!(c.capacity.spare_factor >= 0 && c.capacity.spare_factor < 1)) {
    return ConfigProblem{"capacity.spare_factor", "must be at least 0 and below 1: (T - U) / T"};
  }
  if (c.gc.policy == GcPolicy::d_choices && (c.gc.choices == 0 || c.gc.choices > 1000)) {
    return ConfigProblem{"gc.policy", "d-choices needs a d between 1 and 1000"};
  }
  if (!(c.gc.low_watermark >= 0 && c.gc.low_watermark <= 0.5)) {
    return ConfigProblem{"gc.low_watermark", "must be between 0 and 0.5 of the data pages"};
  }
  if (!(c.gc.high_watermark >= c.gc.low_watermark && c.gc.high_watermark <= 0.5)) {
    return ConfigProblem{"gc.high_watermark", "must be between gc.low_watermark and 0.5"};
  }
  if (c.wear_levelling.rated_pe_cycles == 0) {
    return ConfigProblem{"wear_levelling.rated_pe_cycles", "must be at least 1"};
  }
  const std::uint64_t step = std::uint64_t{c.geometry.page_bytes} * c.geometry.planes_per_die;
  if (c.write_cache.bytes != 0 && c.write_cache.bytes < step) {
    return ConfigProblem{"write_cache.bytes",
                         "must be 0 or hold at least one multi-plane flash page, " + number(step) + " bytes"};
  }
  if (c.mapping_cache.bytes != 0 && c.mapping_cache.bytes < 512) {
    return ConfigProblem{"mapping_cache.bytes", "must be 0 (the whole map fits) or at least 512"};
  }
  return std::nullopt;
}

Problem slc_cache_problem(const SsdConfig& c) {
  const SlcCacheConfig& s = c.slc_cache;
  if (!(s.share >= 0 && s.share <= 0.5)) return ConfigProblem{"slc_cache.share", "must be between 0 and 0.5"};
  if (s.share == 0) return std::nullopt;
  if (s.bits_per_cell < 2 || s.bits_per_cell > 8) {
    return ConfigProblem{"slc_cache.bits_per_cell", "must be between 2 and 8"};
  }
  if (c.geometry.pages_per_block < s.bits_per_cell) {
    return ConfigProblem{"slc_cache.bits_per_cell",
                         "must be at most geometry.pages_per_block " + number(c.geometry.pages_per_block)};
  }
  if (!(s.dynamic_share >= 0 && s.dynamic_share * s.bits_per_cell <= 1)) {
    return ConfigProblem{"slc_cache.dynamic_share",
                         "must be between 0 and 1 / bits_per_cell: with one bit a cell the "
                         "whole drive holds no more"};
  }
  if (!(s.dynamic_until > 0 && s.dynamic_until <= 1)) {
    return ConfigProblem{"slc_cache.dynamic_until", "must be above 0 and at most 1"};
  }
  if (s.read_ns < 0 || s.read_ns > 1'000'000'000) {
    return ConfigProblem{"slc_cache.read_ns", "must be between 0 and 1000000000 ns"};
  }
  if (s.program_ns < 0 || s.program_ns > 1'000'000'000) {
    return ConfigProblem{"slc_cache.program_ns", "must be between 0 and 1000000000 ns"};
  }
  if (s.idle_ns < 0) return ConfigProblem{"slc_cache.idle_ns", "must be at least 0"};
  if (!(s.low_watermark >= 0 && s.low_watermark <= s.high_watermark)) {
    return ConfigProblem{"slc_cache.low_watermark", "must be between 0 and slc_cache.high_watermark"};
  }
  if (!(s.high_watermark <= 1)) return ConfigProblem{"slc_cache.high_watermark", "must be at most 1"};
  if (!s.bypass && s.dynamic_share != 0) {
    return ConfigProblem{"slc_cache.bypass",
                         "must be true with a slc_cache.dynamic_share: what such a cache has borrowed may have to go "
                         "back before the host's data"};
  }
  if (!c.gc.separate_streams) {
    return ConfigProblem{"slc_cache.share",
                         "needs gc.separate_streams = true: folded data goes where relocated data does"};
  }
  if (c.capacity.spare_factor < 0.01) {
    return ConfigProblem{"slc_cache.share",
                         "needs a capacity.spare_factor of at least 0.01: folding changes the order "
                         "of data, and that takes spare flash"};
  }
  return std::nullopt;
}

Problem compression_problem(const SsdConfig& c) {
  if (!c.compresses()) return std::nullopt;
  if (c.geometry.mapping_unit_bytes % c.compression.granule_bytes != 0 || c.slots_per_unit() > 64) {
    return ConfigProblem{"compression.granule_bytes", "must divide geometry.mapping_unit_bytes " +
                                                          number(c.geometry.mapping_unit_bytes) +
                                                          " into at most 64 parts; 0: no compression"};
  }
  if (c.mapping.scheme != MappingScheme::page) {
    return ConfigProblem{"compression.granule_bytes",
                         "must be 0 with mapping.scheme block or hybrid, which give every unit a fixed place"};
  }
  if (c.slc_cache.share != 0) {
    return ConfigProblem{"compression.granule_bytes",
                         "must be 0 on a drive with an SLC cache; give slc_cache.share = 0"};
  }
  const std::uint64_t step = std::uint64_t{c.geometry.page_bytes} * c.geometry.planes_per_die * c.slots_per_unit();
  if (c.write_cache.bytes != 0 && c.write_cache.bytes < step) {
    return ConfigProblem{"write_cache.bytes",
                         "must be 0 or hold what fits a multi-plane flash page after compression, " + number(step) +
                             " bytes; or enlarge compression.granule_bytes"};
  }
  return std::nullopt;
}

Problem mapping_problem(const SsdConfig& c) {
  if (c.mapping.scheme == MappingScheme::page) return std::nullopt;
  if (c.slc_cache.share != 0) {
    return ConfigProblem{"slc_cache.share", "must be 0 with mapping.scheme block or hybrid, which know no SLC cache"};
  }
  if (c.mapping_cache.bytes != 0) {
    return ConfigProblem{"mapping_cache.bytes",
                         "must be 0 (the whole map fits) with mapping.scheme block or hybrid: such maps are small"};
  }
  return std::nullopt;
}

// Blocks that may be open or in transition at once: one for each plane and stream, and two more for each plane, so that
// a plane whose victims come late still has one.
std::uint64_t working_blocks(const SsdConfig& c) {
  const std::uint64_t planes = c.geometry.planes();
  const std::uint64_t streams = c.gc.separate_streams ? 2 : 1;
  const std::uint64_t mapping = c.mapping_cache.bytes == 0 ? 0 : c.geometry.planes_per_die;
  return planes * (streams + 2) + mapping;
}

std::uint32_t slc_pages(const SsdConfig& c) {
  return c.slc_cache.share == 0 ? 0 : c.geometry.pages_per_block / c.slc_cache.bits_per_cell;
}

// The erase blocks that the cache always has, the same number in each plane.
std::uint32_t fixed_slc_blocks(const SsdConfig& c, std::uint64_t logical_units) {
  if (slc_pages(c) == 0) return 0;
  const std::uint64_t units_per_slc_block = std::uint64_t{slc_pages(c)} * c.geometry.units_per_page();
  const double in_plane = c.slc_cache.share * static_cast<double>(logical_units) /
                          static_cast<double>(units_per_slc_block * c.geometry.planes());
  return static_cast<std::uint32_t>(std::max(1.0, std::ceil(in_plane))) * c.geometry.planes();
}

std::uint64_t entries_per_translation_unit(const Geometry& g) { return g.mapping_unit_bytes / 4; }

std::uint64_t translation_units(const SsdConfig& c, std::uint64_t logical_units) {
  if (c.mapping_cache.bytes == 0) return 0;
  const std::uint64_t entries = entries_per_translation_unit(c.geometry);
  return (logical_units + entries - 1) / entries;
}

// Derives the physical capacity from the logical one.
Layout layout_from_capacity(const SsdConfig& c) {
  const Geometry& g = c.geometry;
  Layout out;
  out.logical_units = c.capacity.capacity_bytes / g.mapping_unit_bytes;
  out.data_units = static_cast<std::uint64_t>(
      std::llround(static_cast<double>(out.logical_units) / (1.0 - c.capacity.spare_factor)));
  out.translation_units = translation_units(c, out.logical_units);
  const auto translation_space = static_cast<std::uint64_t>(
      std::ceil(static_cast<double>(out.translation_units) / (1.0 - c.capacity.spare_factor)));
  const auto watermark = static_cast<std::uint64_t>(c.gc.low_watermark * static_cast<double>(out.data_units));
  out.slc_blocks = fixed_slc_blocks(c, out.logical_units);
  const std::uint64_t slc_space = std::uint64_t{out.slc_blocks} * g.units_per_block();
  const std::uint64_t wanted =
      out.data_units + translation_space + watermark + slc_space + working_blocks(c) * g.units_per_block();
  out.blocks = static_cast<std::uint32_t>((wanted + g.units_per_block() - 1) / g.units_per_block());
  out.physical_units = std::uint64_t{out.blocks} * g.units_per_block();
  out.reserve_units = out.physical_units - out.data_units - translation_space - slc_space;
  return out;
}

// Derives the logical capacity from the physical one. T is 0 if the drive is too small for its open blocks.
Layout layout_from_blocks(const SsdConfig& c) {
  const Geometry& g = c.geometry;
  Layout out;
  out.blocks = c.capacity.blocks_per_plane * g.planes();
  out.physical_units = std::uint64_t{out.blocks} * g.units_per_block();
  const std::uint64_t working = working_blocks(c) * g.units_per_block();
  if (out.physical_units <= working) return out;
  const double per_translation =
      c.mapping_cache.bytes == 0 ? 0.0 : 1.0 / static_cast<double>(entries_per_translation_unit(g));
  const double flash_per_data = 1.0 + c.gc.low_watermark + per_translation;
  double data = static_cast<double>(out.physical_units - working) / flash_per_data;
  std::uint64_t slc_space = 0;
  if (slc_pages(c) != 0) {
    const double density = static_cast<double>(g.pages_per_block) / slc_pages(c);
    const double slc_per_data = c.slc_cache.share * density * (1.0 - c.capacity.spare_factor);
    data *= flash_per_data / (flash_per_data + slc_per_data);
    out.slc_blocks = fixed_slc_blocks(c, static_cast<std::uint64_t>(data * (1.0 - c.capacity.spare_factor)));
    slc_space = std::uint64_t{out.slc_blocks} * g.units_per_block();
    if (out.physical_units <= working + slc_space) return out;
    data = std::min(data, static_cast<double>(out.physical_units - working - slc_space) / flash_per_data);
  }
  out.data_units = static_cast<std::uint64_t>(data);
  out.logical_units = static_cast<std::uint64_t>(data * (1.0 - c.capacity.spare_factor));
  out.translation_units = translation_units(c, out.logical_units);
  const auto translation_space = static_cast<std::uint64_t>(
      std::ceil(static_cast<double>(out.translation_units) / (1.0 - c.capacity.spare_factor)));
  const std::uint64_t beside_data = out.physical_units - slc_space - out.data_units;
  out.reserve_units = beside_data - std::min(translation_space, beside_data);
  return out;
}

// The layout with block and hybrid mapping, from either capacity. Everything is in rows of a die, one erase block in
// each of its planes: rows for the die's share of the logical units, rows for overwrites, and one to merge into. With
// hybrid mapping spare flash is for overwrites; with block mapping it is used only for wear levelling.
Layout layout_in_rows(const SsdConfig& c) {
  const Geometry& g = c.geometry;
  const std::uint64_t row_units = std::uint64_t{g.planes_per_die} * g.units_per_block() * g.dies();
  const std::uint64_t step_units = std::uint64_t{g.planes_per_die} * g.units_per_page() * g.dies();
  const auto rows_for = [row_units](std::uint64_t units) { return (units + row_units - 1) / row_units; };
  const double kept = 1.0 - c.capacity.spare_factor;
  Layout out;
  if (c.capacity.capacity_bytes != 0) {
    out.logical_units = c.capacity.capacity_bytes / g.mapping_unit_bytes;
    out.data_units = static_cast<std::uint64_t>(std::llround(static_cast<double>(out.logical_units) / kept));
  } else {
    const std::uint64_t rows = c.capacity.blocks_per_plane;
    if (rows < kLeastRows) return out;
    out.data_units = (rows - 1) * row_units;
    out.logical_units =
        std::min(static_cast<std::uint64_t>(static_cast<double>(out.data_units) * kept), (rows - 2) * row_units);
  }
  const std::uint64_t steps = (out.logical_units + step_units - 1) / step_units;
  out.data_rows = static_cast<std::uint32_t>((steps + g.pages_per_block - 1) / g.pages_per_block);
  const std::uint64_t spare_rows =
      rows_for(out.data_units) - std::min(rows_for(out.data_units), std::uint64_t{out.data_rows});
  const bool logs = c.mapping.scheme == MappingScheme::hybrid;
  out.log_rows = logs ? static_cast<std::uint32_t>(std::max<std::uint64_t>(1, spare_rows)) : 1;
  const std::uint64_t rows = std::max(rows_for(out.data_units), std::uint64_t{out.data_rows} + out.log_rows) + 1;
  out.blocks = static_cast<std::uint32_t>(rows * g.planes());
  out.physical_units = std::uint64_t{out.blocks} * g.units_per_block();
  out.reserve_units = out.physical_units - out.data_units;
  return out;
}

Layout flash_layout(const SsdConfig& c) {
  if (c.mapping.scheme != MappingScheme::page) return layout_in_rows(c);
  return c.capacity.capacity_bytes != 0 ? layout_from_capacity(c) : layout_from_blocks(c);
}

Layout raw_layout(const SsdConfig& c) {
  Layout out = flash_layout(c);
  const NamespacesConfig& n = c.namespaces;
  if (n.kv_share > 0)
    out.kv_units = static_cast<std::uint64_t>(n.kv_share * static_cast<double>(out.logical_units) / n.count);
  out.block_units = out.logical_units - out.kv_units * n.count;
  if (n.count > 1) out.block_units -= out.block_units % n.count;
  out.capacity_bytes = out.block_units * c.geometry.mapping_unit_bytes;
  out.collect_until_units = out.reserve_units + static_cast<std::uint64_t>((c.gc.high_watermark - c.gc.low_watermark) *
                                                                           static_cast<double>(out.data_units));
  out.slc_pages = slc_pages(c);
  if (out.slc_pages != 0) {
    // At most bits_per_cell times as much flash as data, although an SLC block's pages are rounded down.
    const double flash_share = c.slc_cache.dynamic_share * c.slc_cache.bits_per_cell;
    out.slc_dynamic_blocks =
        static_cast<std::uint32_t>(flash_share * static_cast<double>(out.logical_units) / c.geometry.units_per_block());
  }
  return out;
}

Problem namespaces_problem(const SsdConfig& c) {
  const NamespacesConfig& n = c.namespaces;
  if (!(n.kv_share >= 0 && n.kv_share <= 0.9)) return ConfigProblem{"namespaces.kv_share", "must be between 0 and 0.9"};
  if (n.count == 0 || n.count > 256) return ConfigProblem{"namespaces.count", "must be between 1 and 256"};
  if (n.kml_bytes == 0 || n.kml_bytes > kMaxKeyBytes) {
    return ConfigProblem{"namespaces.kml_bytes", "must be between 1 and " + number(kMaxKeyBytes)};
  }
  const std::uint32_t longest = kScanChunkBytes - kPairHeaderBytes - kMaxKeyBytes;
  if (n.vml_bytes > longest) {
    return ConfigProblem{"namespaces.vml_bytes",
                         "must be at most " + number(longest) + ", so that every pair fits a bulk scan's chunk"};
  }
  const std::uint64_t pair = std::uint64_t{kPairHeaderBytes} + n.kml_bytes + n.vml_bytes;
  if (n.memtable_bytes < pair || n.memtable_bytes > (1U << 30)) {
    return ConfigProblem{"namespaces.memtable_bytes",
                         "must hold the longest pair, " + number(pair) + " bytes, and be at most 1 GiB"};
  }
  for (const auto& [key, ns] : {std::pair{"namespaces.core_command_ns", n.core_command_ns},
                                std::pair{"namespaces.core_pair_ns", n.core_pair_ns},
                                std::pair{"namespaces.core_scan_pair_ns", n.core_scan_pair_ns},
                                std::pair{"namespaces.core_batch_key_ns", n.core_batch_key_ns}}) {
    if (ns < 0 || ns > 1'000'000'000) return ConfigProblem{key, "must be between 0 and 1000000000 ns"};
  }
  if (!(std::isfinite(n.core_mb_s) && n.core_mb_s >= 0)) {
    return ConfigProblem{"namespaces.core_mb_s", "must be 0 (no limit) or more"};
  }
  if (n.batch_retrieve_keys == 1 || n.batch_retrieve_keys > kMostBatchKeys) {
    return ConfigProblem{"namespaces.batch_retrieve_keys",
                         "must be 0 (no batch retrieve) or between 2 and " + number(kMostBatchKeys)};
  }
  if (n.batch_retrieve_keys > 0 && n.core_batch_key_ns > n.core_pair_ns) {
    return ConfigProblem{"namespaces.core_batch_key_ns", "must be at most namespaces.core_pair_ns, " +
                                                             number(static_cast<std::uint64_t>(n.core_pair_ns)) +
                                                             ": a key of a batch costs no more than one of its own"};
  }
  if (n.compaction_runs == 1 || n.compaction_runs > 64) {
    return ConfigProblem{"namespaces.compaction_runs", "must be 0 (never) or between 2 and 64"};
  }
  if (n.kv_share == 0) {
    if (n.count > 1) return ConfigProblem{"namespaces.count", "needs namespaces.kv_share above 0"};
    return std::nullopt;
  }
  const Layout out = raw_layout(c);
  const std::uint64_t least =
      2 * (n.memtable_bytes / c.geometry.mapping_unit_bytes + 2) + kv_reserve_units(out.kv_units);
  if (out.kv_units < least) {
    return ConfigProblem{"namespaces.kv_share", "leaves " + number(out.kv_units) +
                                                    " mapping units to a key-value namespace, and two memtables take " +
                                                    number(least) + "; raise it or lower namespaces.memtable_bytes"};
  }
  if (out.block_units < n.count) return ConfigProblem{"namespaces.kv_share", "leaves nothing to the block namespaces"};
  return std::nullopt;
}

Problem capacity_problem(const SsdConfig& c) {
  const Geometry& g = c.geometry;
  const bool by_bytes = c.capacity.capacity_bytes != 0;
  if (by_bytes == (c.capacity.blocks_per_plane != 0)) {
    return ConfigProblem{"capacity.capacity_bytes", "give exactly one of capacity_bytes and blocks_per_plane"};
  }
  const std::uint64_t smallest = g.block_bytes() * g.planes();
  if (by_bytes && c.capacity.capacity_bytes < smallest) {
    return ConfigProblem{"capacity.capacity_bytes", number(c.capacity.capacity_bytes) +
                                                        " is smaller than one erase block per plane; give at least " +
                                                        number(smallest)};
  }
  if (by_bytes && c.capacity.capacity_bytes % g.mapping_unit_bytes != 0) {
    return ConfigProblem{"capacity.capacity_bytes",
                         "must be a multiple of mapping_unit_bytes " + number(g.mapping_unit_bytes)};
  }
  if (static_cast<double>(by_bytes ? c.capacity.capacity_bytes : smallest * c.capacity.blocks_per_plane) /
          (1.0 - c.capacity.spare_factor) / g.mapping_unit_bytes *
          (1.0 + c.slc_cache.share * c.slc_cache.bits_per_cell) * c.slots_per_unit() >
      4.2e9) {
    return ConfigProblem{"capacity.capacity_bytes",
                         "needs more than 2^32 mapping units (or granules of compression); lower it or enlarge "
                         "geometry.mapping_unit_bytes"};
  }
  const Layout out = raw_layout(c);
  if (out.logical_units == 0) {
    return ConfigProblem{
        "capacity.blocks_per_plane",
        "leaves no room for data beside the open erase blocks; give at least " +
            number(c.mapping.scheme == MappingScheme::page ? working_blocks(c) / g.planes() + 2 : kLeastRows)};
  }
  return std::nullopt;
}

}  // namespace

std::optional<ConfigProblem> problem(const SsdConfig& config) {
  if (auto p = geometry_problem(config.geometry)) return p;
  if (auto p = timing_problem(config.timing)) return p;
  if (auto p = ftl_problem(config)) return p;
  if (auto p = slc_cache_problem(config)) return p;
  if (auto p = mapping_problem(config)) return p;
  if (auto p = compression_problem(config)) return p;
  if (auto p = capacity_problem(config)) return p;
  return namespaces_problem(config);
}

Layout layout(const SsdConfig& config) { return raw_layout(config); }

}  // namespace spillway::ssd
