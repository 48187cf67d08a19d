#include "load/drive_interval.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <functional>
#include <type_traits>

namespace spillway::load {
namespace {

// Counters consist only of 64-bit counts, alone and in arrays, so one loop handles all of them, including later
// additions.
using Words = std::array<std::uint64_t, sizeof(ssd::Counters) / sizeof(std::uint64_t)>;
static_assert(sizeof(Words) == sizeof(ssd::Counters) && std::has_unique_object_representations_v<ssd::Counters>);

template <typename Operation>
ssd::Counters combined(const ssd::Counters& a, const ssd::Counters& b, const Operation& operation) {
  auto words = std::bit_cast<Words>(a);
  std::ranges::transform(words, std::bit_cast<Words>(b), words.begin(), operation);
  return std::bit_cast<ssd::Counters>(words);
}

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
  // 1 MB/s is 10^-3 bytes per nanosecond.
  const double link_bytes = info.host_link_mb_s * 1e-3 * elapsed_ns;
  interval.link_write_utilisation = fraction(static_cast<double>(d.host_bytes_written), link_bytes);
  interval.link_read_utilisation = fraction(static_cast<double>(d.host_bytes_read), link_bytes);
  return interval;
}

}  // namespace spillway::load
