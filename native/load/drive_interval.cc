#include "load/drive_interval.h"

#include <functional>

namespace spillway::load {
namespace {

// Every counter of `a` and `b` under one operation: the list of fields stands here and nowhere else.
template <typename Operation>
ssd::Counters combined(const ssd::Counters& a, const ssd::Counters& b, const Operation& operation) {
  ssd::Counters out;
  const auto one = [&](std::uint64_t ssd::Counters::*field) { out.*field = operation(a.*field, b.*field); };
  const auto many = [&](auto field) {
    for (std::size_t i = 0; i < (out.*field).size(); ++i) (out.*field)[i] = operation((a.*field)[i], (b.*field)[i]);
  };
  using C = ssd::Counters;
  for (auto field : {&C::host_reads,
                     &C::host_writes,
                     &C::host_flushes,
                     &C::host_deallocates,
                     &C::host_bytes_read,
                     &C::host_bytes_written,
                     &C::host_bytes_deallocated,
                     &C::nand_bytes_padded,
                     &C::erases,
                     &C::gc_victims,
                     &C::gc_victim_valid_units,
                     &C::wear_moves,
                     &C::unmapped_reads,
                     &C::write_cache_read_hits,
                     &C::write_cache_overwrites,
                     &C::mapping_cache_hits,
                     &C::mapping_cache_misses,
                     &C::sub_unit_writes,
                     &C::die_read_busy_ns,
                     &C::die_program_busy_ns,
                     &C::die_erase_busy_ns,
                     &C::channel_busy_ns}) {
    one(field);
  }
  many(&C::host_bytes_written_by_cause);
  many(&C::host_bytes_read_by_cause);
  many(&C::nand_bytes_programmed);
  many(&C::nand_bytes_read);
  return out;
}

// 22 single counters and the four arrays: a field that is added to Counters has to be added above.
static_assert(sizeof(ssd::Counters) == sizeof(std::uint64_t) * (22 + 2 * ssd::kHostCauses + 2 * ssd::kFlashCauses));

double fraction(double part, double whole) { return whole > 0 ? part / whole : 0; }

}  // namespace

ssd::Counters growth(const ssd::Counters& before, const ssd::Counters& after) {
  return combined(after, before, std::minus<>());
}

ssd::Counters sum(const ssd::Counters& a, const ssd::Counters& b) { return combined(a, b, std::plus<>()); }

DriveReading read(device::Device& device) {
  DriveReading reading;
  reading.counters = device.counters();
  reading.now = device.now();
  return reading;
}

DriveInterval between(const DriveReading& before, const DriveReading& after, const device::DeviceInfo& info) {
  DriveInterval interval;
  interval.growth = growth(before.counters, after.counters);
  const ssd::Counters& d = interval.growth;
  const auto elapsed_ns = static_cast<double>(after.now - before.now);
  const auto die_busy_ns = static_cast<double>(d.die_read_busy_ns + d.die_program_busy_ns + d.die_erase_busy_ns);
  interval.die_busy = fraction(die_busy_ns, elapsed_ns * info.dies);
  interval.channel_busy = fraction(static_cast<double>(d.channel_busy_ns), elapsed_ns * info.channels);
  // 1 MB/s is 10^-3 bytes a nanosecond.
  const double link_bytes = info.host_link_mb_s * 1e-3 * elapsed_ns;
  interval.link_write_utilisation = fraction(static_cast<double>(d.host_bytes_written), link_bytes);
  interval.link_read_utilisation = fraction(static_cast<double>(d.host_bytes_read), link_bytes);
  return interval;
}

}  // namespace spillway::load
