#include "device/counters_json.h"

#include <cstdint>

#include "device/device.h"

namespace spillway::device {

using Json = nlohmann::ordered_json;

Json by_host_cause(const std::array<std::uint64_t, ssd::kHostCauses>& bytes) {
  Json json = Json::object();
  for (std::size_t i = 0; i < kCauses; ++i) json[name_of(static_cast<Cause>(i))] = bytes[i];
  return json;
}

Json by_flash_cause(const std::array<std::uint64_t, ssd::kFlashCauses>& bytes) {
  const auto of = [&bytes](ssd::FlashCause cause) { return bytes[static_cast<std::size_t>(cause)]; };
  return {{"host", of(ssd::FlashCause::host)},
          {"gc", of(ssd::FlashCause::gc)},
          {"mapping", of(ssd::FlashCause::mapping)},
          {"wear", of(ssd::FlashCause::wear)},
          {"fold", of(ssd::FlashCause::fold)}};
}

Json to_json(const ssd::Counters& c) {
  return {{"host_reads", c.host_reads},
          {"host_writes", c.host_writes},
          {"host_flushes", c.host_flushes},
          {"host_deallocates", c.host_deallocates},
          {"host_bytes_read", c.host_bytes_read},
          {"host_bytes_written", c.host_bytes_written},
          {"host_bytes_deallocated", c.host_bytes_deallocated},
          {"host_bytes_written_by_cause", by_host_cause(c.host_bytes_written_by_cause)},
          {"host_bytes_read_by_cause", by_host_cause(c.host_bytes_read_by_cause)},
          {"nand_pages_programmed", c.nand_pages_programmed},
          {"nand_bytes_programmed", by_flash_cause(c.nand_bytes_programmed)},
          {"nand_bytes_read", by_flash_cause(c.nand_bytes_read)},
          {"nand_bytes_padded", c.nand_bytes_padded},
          {"erases", c.erases},
          {"gc_victims", c.gc_victims},
          {"gc_victim_valid_units", c.gc_victim_valid_units},
          {"wear_moves", c.wear_moves},
          {"switch_merges", c.switch_merges},
          {"partial_merges", c.partial_merges},
          {"full_merges", c.full_merges},
          {"slc_bytes_programmed", c.slc_bytes_programmed},
          {"slc_blocks_folded", c.slc_blocks_folded},
          {"unmapped_reads", c.unmapped_reads},
          {"write_cache_read_hits", c.write_cache_read_hits},
          {"write_cache_overwrites", c.write_cache_overwrites},
          {"write_cache_deallocated", c.write_cache_deallocated},
          {"mapping_cache_hits", c.mapping_cache_hits},
          {"mapping_cache_misses", c.mapping_cache_misses},
          {"sub_unit_writes", c.sub_unit_writes},
          {"die_read_busy_ns", c.die_read_busy_ns},
          {"die_program_busy_ns", c.die_program_busy_ns},
          {"die_erase_busy_ns", c.die_erase_busy_ns},
          {"channel_busy_ns", c.channel_busy_ns}};
}

Json to_json(const ssd::KvCounters& c) {
  return {{"stores", c.stores},
          {"stored_pairs", c.stored_pairs},
          {"retrieves", c.retrieves},
          {"deletes", c.deletes},
          {"exists", c.exists},
          {"lists", c.lists},
          {"scans", c.scans},
          {"scanned_pairs", c.scanned_pairs},
          {"resets", c.resets},
          {"refused_for_capacity", c.refused_for_capacity},
          {"stores_that_waited", c.stores_that_waited},
          {"answered_from_dram", c.answered_from_dram},
          {"flushes", c.flushes},
          {"compactions", c.compactions},
          {"bytes_flushed", c.bytes_flushed},
          {"bytes_compacted", c.bytes_compacted},
          {"core_busy_ns", c.core_busy_ns}};
}

Json difference(const Json& now, const Json& before) {
  if (!now.is_object()) return now.get<std::uint64_t>() - before.get<std::uint64_t>();
  Json result = Json::object();
  for (const auto& [name, value] : now.items()) result[name] = difference(value, before.at(name));
  return result;
}

}  // namespace spillway::device
