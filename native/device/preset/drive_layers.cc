#include "device/preset/drive_layers.h"

#include <array>
#include <cmath>
#include <utility>

namespace spillway::device {
namespace {

constexpr std::int64_t kMostNs = 1'000'000'000;
constexpr std::uint32_t kMostQueueDepth = 1024;  // each choice examines all of them

using Problem = std::optional<LayerProblem>;

template <std::size_t kTimes, std::size_t kRates>
Problem range_problem(const std::array<std::pair<const char*, std::int64_t>, kTimes>& times,
                      const std::array<std::pair<const char*, double>, kRates>& rates) {
  for (const auto& [key, ns] : times) {
    if (ns < 0 || ns > kMostNs) return LayerProblem{key, "must be between 0 and 1000000000 ns"};
  }
  for (const auto& [key, rate] : rates) {
    if (!(std::isfinite(rate) && rate >= 0)) return LayerProblem{key, "must be 0 (no limit) or more"};
  }
  return std::nullopt;
}

}  // namespace

Problem problem(const Cap& cap) {
  return range_problem<4, 2>({{{"cap.burst_ns", cap.burst_ns},
                               {"cap.read_network_ns", cap.read_network_ns},
                               {"cap.write_network_ns", cap.write_network_ns},
                               {"cap.commit_ns", cap.commit_ns}}},
                             {{{"cap.iops", cap.iops}, {"cap.bandwidth_mb_s", cap.bandwidth_mb_s}}});
}

Problem problem(const Mechanics& disk) {
  if (disk.revolution_ns == 0) return std::nullopt;
  if (Problem found =
          range_problem<6, 2>({{{"disk.revolution_ns", disk.revolution_ns},
                                {"disk.track_seek_ns", disk.track_seek_ns},
                                {"disk.full_seek_ns", disk.full_seek_ns},
                                {"disk.write_settle_ns", disk.write_settle_ns},
                                {"disk.command_ns", disk.command_ns},
                                {"disk.age_limit_ns", disk.age_limit_ns}}},
                              {{{"disk.outer_mb_s", disk.outer_mb_s}, {"disk.inner_mb_s", disk.inner_mb_s}}})) {
    return found;
  }
  if (disk.full_seek_ns < disk.track_seek_ns) {
    return LayerProblem{"disk.full_seek_ns", "must be at least disk.track_seek_ns"};
  }
  if (disk.queue_depth < 1 || disk.queue_depth > kMostQueueDepth) {
    return LayerProblem{"disk.queue_depth", "must be between 1 and 1024"};
  }
  if (!(disk.outer_mb_s > 0)) return LayerProblem{"disk.outer_mb_s", "must be above 0"};
  if (!(disk.inner_mb_s > 0)) return LayerProblem{"disk.inner_mb_s", "must be above 0"};
  return std::nullopt;
}

Problem problem(const HostStack& s) {
  return range_problem<10, 6>({{{"read_submit_ns", s.read_submit_ns},
                                {"write_submit_ns", s.write_submit_ns},
                                {"read_complete_ns", s.read_complete_ns},
                                {"write_complete_ns", s.write_complete_ns},
                                {"read_turn_ns", s.read_turn_ns},
                                {"write_turn_ns", s.write_turn_ns},
                                {"read_wake_ns", s.read_wake_ns},
                                {"write_wake_ns", s.write_wake_ns},
                                {"read_serial_ns", s.read_serial_ns},
                                {"write_serial_ns", s.write_serial_ns}}},
                              {{{"read_copy_mb_s", s.read_copy_mb_s},
                                {"write_copy_mb_s", s.write_copy_mb_s},
                                {"read_wake_mb_s", s.read_wake_mb_s},
                                {"write_wake_mb_s", s.write_wake_mb_s},
                                {"read_serial_mb_s", s.read_serial_mb_s},
                                {"write_serial_mb_s", s.write_serial_mb_s}}});
}

}  // namespace spillway::device
