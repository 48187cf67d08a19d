#include "device/drive_keys.h"

namespace spillway::device {

std::vector<DriveKey> drive_keys(ssd::SsdConfig& config) {
  auto& [name, geometry, capacity, timing, write_cache, mapping_cache, gc, wear] = config;
  return {
      {"geometry.channels", &geometry.channels},
      {"geometry.chips_per_channel", &geometry.chips_per_channel},
      {"geometry.dies_per_chip", &geometry.dies_per_chip},
      {"geometry.planes_per_die", &geometry.planes_per_die},
      {"geometry.pages_per_block", &geometry.pages_per_block},
      {"geometry.page_bytes", &geometry.page_bytes},
      {"geometry.mapping_unit_bytes", &geometry.mapping_unit_bytes},
      {"geometry.lba_bytes", &geometry.lba_bytes},
      {"capacity.capacity_bytes", SizeSlot{&capacity.capacity_bytes}},
      {"capacity.blocks_per_plane", &capacity.blocks_per_plane},
      {"capacity.spare_factor", &capacity.spare_factor},
      {"timing.read_ns", &timing.read_ns},
      {"timing.program_ns", &timing.program_ns},
      {"timing.erase_ns", &timing.erase_ns},
      {"timing.channel_mb_s", &timing.channel_mb_s},
      {"timing.channel_command_ns", &timing.channel_command_ns},
      {"timing.host_link_mb_s", &timing.host_link_mb_s},
      {"timing.read_command_ns", &timing.read_command_ns},
      {"timing.write_command_ns", &timing.write_command_ns},
      {"timing.read_occupancy_ns", &timing.read_occupancy_ns},
      {"timing.write_occupancy_ns", &timing.write_occupancy_ns},
      {"timing.reads_overtake", &timing.reads_overtake},
      {"timing.independent_plane_reads", &timing.independent_plane_reads},
      {"write_cache.bytes", SizeSlot{&write_cache.bytes}},
      {"write_cache.power_loss_protection", &write_cache.power_loss_protection},
      {"mapping_cache.bytes", SizeSlot{&mapping_cache.bytes}},
      {"gc.policy", PolicySlot{&gc}},
      {"gc.low_watermark", &gc.low_watermark},
      {"gc.high_watermark", &gc.high_watermark},
      {"gc.separate_streams", &gc.separate_streams},
      {"wear_levelling.dynamic", &wear.dynamic},
      {"wear_levelling.static_threshold_pe", &wear.static_threshold_pe},
      {"wear_levelling.rated_pe_cycles", &wear.rated_pe_cycles},
  };
}

std::string spelling(const ssd::GarbageCollection& gc) {
  switch (gc.policy) {
    case ssd::GcPolicy::greedy:
      return "greedy";
    case ssd::GcPolicy::fifo:
      return "fifo";
    case ssd::GcPolicy::d_choices:
      return "d-choices:" + std::to_string(gc.choices);
    case ssd::GcPolicy::cost_benefit:
      return "cost-benefit";
  }
  return "";
}

}  // namespace spillway::device
