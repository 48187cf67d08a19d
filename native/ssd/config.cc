#include "ssd/config.h"

#include <algorithm>
#include <cmath>
#include <initializer_list>

namespace spillway::ssd {
namespace {

using Problem = std::optional<ConfigProblem>;

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

// Blocks that may be open or on their way at once: one for each plane and stream, and two for each plane so that a
// plane whose victims come late is not left without.
std::uint64_t working_blocks(const SsdConfig& c) {
  const std::uint64_t planes = c.geometry.planes();
  const std::uint64_t streams = c.gc.separate_streams ? 2 : 1;
  const std::uint64_t mapping = c.mapping_cache.bytes == 0 ? 0 : c.geometry.planes_per_die;
  return planes * (streams + 2) + mapping;
}

std::uint64_t entries_per_translation_unit(const Geometry& g) { return g.mapping_unit_bytes / 4; }

std::uint64_t translation_units(const SsdConfig& c, std::uint64_t logical_units) {
  if (c.mapping_cache.bytes == 0) return 0;
  const std::uint64_t entries = entries_per_translation_unit(c.geometry);
  return (logical_units + entries - 1) / entries;
}

// From the logical capacity up to the physical one.
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
  const std::uint64_t wanted = out.data_units + translation_space + watermark + working_blocks(c) * g.units_per_block();
  out.blocks = static_cast<std::uint32_t>((wanted + g.units_per_block() - 1) / g.units_per_block());
  out.physical_units = std::uint64_t{out.blocks} * g.units_per_block();
  out.reserve_units = out.physical_units - out.data_units - translation_space;
  return out;
}

// From the physical capacity down to the logical one. T is 0 when the drive is too small for its open blocks.
Layout layout_from_blocks(const SsdConfig& c) {
  const Geometry& g = c.geometry;
  Layout out;
  out.blocks = c.capacity.blocks_per_plane * g.planes();
  out.physical_units = std::uint64_t{out.blocks} * g.units_per_block();
  const std::uint64_t working = working_blocks(c) * g.units_per_block();
  if (out.physical_units <= working) return out;
  const double per_translation =
      c.mapping_cache.bytes == 0 ? 0.0 : 1.0 / static_cast<double>(entries_per_translation_unit(g));
  const double data = static_cast<double>(out.physical_units - working) / (1.0 + c.gc.low_watermark + per_translation);
  out.data_units = static_cast<std::uint64_t>(data);
  out.logical_units = static_cast<std::uint64_t>(data * (1.0 - c.capacity.spare_factor));
  out.translation_units = translation_units(c, out.logical_units);
  const auto translation_space = static_cast<std::uint64_t>(
      std::ceil(static_cast<double>(out.translation_units) / (1.0 - c.capacity.spare_factor)));
  out.reserve_units =
      out.physical_units - out.data_units - std::min(translation_space, out.physical_units - out.data_units);
  return out;
}

Layout raw_layout(const SsdConfig& c) {
  Layout out = c.capacity.capacity_bytes != 0 ? layout_from_capacity(c) : layout_from_blocks(c);
  out.capacity_bytes = out.logical_units * c.geometry.mapping_unit_bytes;
  out.collect_until_units = out.reserve_units + static_cast<std::uint64_t>((c.gc.high_watermark - c.gc.low_watermark) *
                                                                           static_cast<double>(out.data_units));
  return out;
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
          (1.0 - c.capacity.spare_factor) / g.mapping_unit_bytes >
      4.2e9) {
    return ConfigProblem{"capacity.capacity_bytes",
                         "needs more than 2^32 mapping units; lower it or enlarge geometry.mapping_unit_bytes"};
  }
  const Layout out = raw_layout(c);
  if (out.logical_units == 0) {
    return ConfigProblem{"capacity.blocks_per_plane",
                         "leaves no room for data beside the open erase blocks; give at least " +
                             number(working_blocks(c) / g.planes() + 2)};
  }
  return std::nullopt;
}

}  // namespace

std::optional<ConfigProblem> problem(const SsdConfig& config) {
  if (auto p = geometry_problem(config.geometry)) return p;
  if (auto p = timing_problem(config.timing)) return p;
  if (auto p = ftl_problem(config)) return p;
  return capacity_problem(config);
}

Layout layout(const SsdConfig& config) { return raw_layout(config); }

}  // namespace spillway::ssd
