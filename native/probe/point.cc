#include "probe/point.h"

#include <string>

namespace spillway::probe {
namespace {

Status refuse(const Point& point, const std::string& sentence) {
  return Status::bad_input("point " + std::to_string(point.id) + ": " + sentence);
}

Status check_shape(const Point& point) {
  if (!point.ios && !point.seconds) return refuse(point, "ios and seconds are both missing; give one, or both");
  if (point.engine == Engine::sync && point.iodepth != 1) {
    return refuse(point, "iodepth is " + std::to_string(point.iodepth) +
                             ", and engine sync does one io at a time; give iodepth 1 and more numjobs, or io_uring");
  }
  if (point.in_flight() > kMostInFlight) {
    return refuse(point, "numjobs x iodepth is " + std::to_string(point.in_flight()) + "; it takes at most " +
                             std::to_string(kMostInFlight));
  }
  if (point.pattern == Pattern::staggered && (point.ramp_s > 0 || point.ramp_ios > 0)) {
    return refuse(point, "ramp_s and ramp_ios do not go with pattern staggered, which measures whole shares");
  }
  if (point.pattern == Pattern::staggered && point.ios && *point.ios < point.numjobs) {
    return refuse(point, "ios is " + std::to_string(*point.ios) +
                             ", which gives some jobs no share; give at least as many as numjobs");
  }
  return {};
}

}  // namespace

Status check(const Point& point, const Extent& extent) {
  if (Status status = check_shape(point); !status) return status;
  if (point.writes() && !extent.writable) {
    return refuse(point, "read_share is below 1, and the target may not be written; set target.destroy_data");
  }
  if (point.bs_bytes % extent.lba_bytes != 0) {
    return refuse(point, "bs_bytes is " + std::to_string(point.bs_bytes) + "; it takes a multiple of the target's " +
                             std::to_string(extent.lba_bytes) + "-byte logical blocks");
  }
  const std::uint64_t range = range_of(point, extent);
  // Sequential and staggered jobs must not overlap, so each needs at least one address of its own.
  const std::uint64_t places = point.pattern == Pattern::random ? 1 : point.numjobs;
  if (range / point.bs_bytes < places) {
    return refuse(point, "range holds " + std::to_string(range) + " bytes, too small for " + std::to_string(places) +
                             " x bs_bytes " + std::to_string(point.bs_bytes) +
                             "; make range or the target larger, or bs_bytes or numjobs smaller");
  }
  return {};
}

std::uint64_t range_of(const Point& point, const Extent& extent) {
  return static_cast<std::uint64_t>(point.range * static_cast<double>(extent.range_bytes));
}

}  // namespace spillway::probe
