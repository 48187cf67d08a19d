#include "device/preset/drive_keys.h"

namespace spillway::device {

namespace {

std::vector<DriveKey> geometry_keys(ssd::Geometry& geometry, ssd::Capacity& capacity) {
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
  };
}

std::vector<DriveKey> timing_keys(ssd::Timing& timing) {
  return {
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
  };
}

std::vector<DriveKey> slc_cache_keys(ssd::SlcCacheConfig& slc) {
  return {
      {"slc_cache.share", &slc.share},
      {"slc_cache.dynamic_share", &slc.dynamic_share},
      {"slc_cache.dynamic_until", &slc.dynamic_until},
      {"slc_cache.bits_per_cell", &slc.bits_per_cell},
      {"slc_cache.read_ns", &slc.read_ns},
      {"slc_cache.program_ns", &slc.program_ns},
      {"slc_cache.idle_ns", &slc.idle_ns},
      {"slc_cache.low_watermark", &slc.low_watermark},
      {"slc_cache.high_watermark", &slc.high_watermark},
      {"slc_cache.bypass", &slc.bypass},
  };
}

std::vector<DriveKey> collection_keys(ssd::GarbageCollection& gc, ssd::WearLevelling& wear) {
  return {
      {"gc.policy", PolicySlot{&gc}},
      {"gc.low_watermark", &gc.low_watermark},
      {"gc.high_watermark", &gc.high_watermark},
      {"gc.separate_streams", &gc.separate_streams},
      {"wear_levelling.dynamic", &wear.dynamic},
      {"wear_levelling.static_threshold_pe", &wear.static_threshold_pe},
      {"wear_levelling.rated_pe_cycles", &wear.rated_pe_cycles},
  };
}

std::vector<DriveKey> namespace_keys(ssd::NamespacesConfig& namespaces) {
  return {
      {"namespaces.kv_share", &namespaces.kv_share},
      {"namespaces.count", &namespaces.count},
      {"namespaces.kml_bytes", &namespaces.kml_bytes},
      {"namespaces.vml_bytes", &namespaces.vml_bytes},
      {"namespaces.memtable_bytes", &namespaces.memtable_bytes},
      {"namespaces.core_command_ns", &namespaces.core_command_ns},
      {"namespaces.core_pair_ns", &namespaces.core_pair_ns},
      {"namespaces.core_scan_pair_ns", &namespaces.core_scan_pair_ns},
      {"namespaces.core_mb_s", &namespaces.core_mb_s},
      {"namespaces.retrieve_offset", &namespaces.retrieve_offset},
      {"namespaces.batch_retrieve_keys", &namespaces.batch_retrieve_keys},
      {"namespaces.core_batch_key_ns", &namespaces.core_batch_key_ns},
      {"namespaces.compaction_runs", &namespaces.compaction_runs},
  };
}

}  // namespace

std::vector<DriveKey> drive_keys(ssd::SsdConfig& config) {
  // Names every field, so that a new field without a key does not compile.
  auto& [name, geometry, capacity, timing, mapping, compression, write_cache, mapping_cache, slc, gc, wear,
         namespaces] = config;
  std::vector<DriveKey> keys;
  const auto append = [&keys](std::vector<DriveKey> more) { keys.insert(keys.end(), more.begin(), more.end()); };
  append(geometry_keys(geometry, capacity));
  append(timing_keys(timing));
  append({
      {"mapping.scheme", SchemeSlot{&mapping.scheme}},
      {"compression.granule_bytes", &compression.granule_bytes},
      {"write_cache.bytes", SizeSlot{&write_cache.bytes}},
      {"write_cache.power_loss_protection", &write_cache.power_loss_protection},
      {"mapping_cache.bytes", SizeSlot{&mapping_cache.bytes}},
  });
  append(slc_cache_keys(slc));
  append(collection_keys(gc, wear));
  append(namespace_keys(namespaces));
  return keys;
}

std::vector<DriveKey> layer_keys(Drive& drive) {
  auto& [iops, bandwidth_mb_s, burst_ns, read_network_ns, write_network_ns, commit_ns] = drive.cap;
  auto& disk = drive.disk;
  std::vector<DriveKey> keys = {
      {"cap.iops", &iops},
      {"cap.bandwidth_mb_s", &bandwidth_mb_s},
      {"cap.burst_ns", &burst_ns},
      {"cap.read_network_ns", &read_network_ns},
      {"cap.write_network_ns", &write_network_ns},
      {"cap.commit_ns", &commit_ns},
      {"disk.revolution_ns", &disk.revolution_ns},
      {"disk.track_seek_ns", &disk.track_seek_ns},
      {"disk.full_seek_ns", &disk.full_seek_ns},
      {"disk.write_settle_ns", &disk.write_settle_ns},
      {"disk.command_ns", &disk.command_ns},
      {"disk.outer_mb_s", &disk.outer_mb_s},
      {"disk.inner_mb_s", &disk.inner_mb_s},
      {"disk.queue_depth", &disk.queue_depth},
      {"disk.age_limit_ns", &disk.age_limit_ns},
  };
  for (auto& [name, s] : drive.host_stacks) {
    const std::string prefix = "host_stack." + name + ".";
    keys.insert(keys.end(), {{prefix + "read_submit_ns", &s.read_submit_ns},
                             {prefix + "write_submit_ns", &s.write_submit_ns},
                             {prefix + "read_complete_ns", &s.read_complete_ns},
                             {prefix + "write_complete_ns", &s.write_complete_ns},
                             {prefix + "read_copy_mb_s", &s.read_copy_mb_s},
                             {prefix + "write_copy_mb_s", &s.write_copy_mb_s},
                             {prefix + "read_turn_ns", &s.read_turn_ns},
                             {prefix + "write_turn_ns", &s.write_turn_ns},
                             {prefix + "read_wake_ns", &s.read_wake_ns},
                             {prefix + "write_wake_ns", &s.write_wake_ns},
                             {prefix + "read_wake_mb_s", &s.read_wake_mb_s},
                             {prefix + "write_wake_mb_s", &s.write_wake_mb_s},
                             {prefix + "read_serial_ns", &s.read_serial_ns},
                             {prefix + "write_serial_ns", &s.write_serial_ns},
                             {prefix + "read_serial_mb_s", &s.read_serial_mb_s},
                             {prefix + "write_serial_mb_s", &s.write_serial_mb_s},
                             {prefix + "block_bytes", &s.block_bytes}});
  }
  return keys;
}

std::vector<DriveKey> keys_in_use(Drive& drive) {
  const Layers layers = drive.layers();
  std::vector<DriveKey> keys = drive_keys(drive.config);
  if (layers.is_disk()) {
    std::erase_if(keys, [](const DriveKey& k) {
      return k.key != "capacity.capacity_bytes" && k.key != "geometry.lba_bytes" &&
             k.key != "geometry.mapping_unit_bytes" && k.key != "timing.host_link_mb_s" &&
             !k.key.starts_with("write_cache.");
    });
  }
  if (drive.config.mapping.scheme == ssd::MappingScheme::page) {
    std::erase_if(keys, [](const DriveKey& k) { return k.key.starts_with("mapping."); });
  }
  if (!drive.config.compresses()) {
    std::erase_if(keys, [](const DriveKey& k) { return k.key.starts_with("compression."); });
  }
  if (drive.config.slc_cache.share == 0) {
    std::erase_if(keys, [](const DriveKey& k) { return k.key.starts_with("slc_cache."); });
  }
  if (drive.config.namespaces.kv_share == 0) {
    std::erase_if(keys, [](const DriveKey& k) { return k.key.starts_with("namespaces."); });
  }
  for (const DriveKey& key : layer_keys(drive)) {
    if (key.key.starts_with("cap.") && !layers.has_cap()) continue;
    if (key.key.starts_with("disk.") && !layers.is_disk()) continue;
    keys.push_back(key);
  }
  return keys;
}

std::string spelling(ssd::MappingScheme scheme) {
  switch (scheme) {
    case ssd::MappingScheme::page:
      return "page";
    case ssd::MappingScheme::block:
      return "block";
    case ssd::MappingScheme::hybrid:
      return "hybrid";
  }
  return "";
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
