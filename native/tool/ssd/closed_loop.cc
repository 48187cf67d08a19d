#include "tool/ssd/closed_loop.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "device/device.h"

namespace spillway::tool {
namespace {

constexpr std::uint64_t kIosBetweenLooks = 4096;  // some milliseconds of work
constexpr std::size_t kDrawnAhead = 8;

ssd::Command command_for(const AddressStream::Target& target, std::uint32_t lba_bytes, std::uint32_t lbas,
                         std::uint16_t compressed_share) {
  ssd::Command command;
  command.op = target.is_write ? ssd::Opcode::write : ssd::Opcode::read;
  command.lba = target.offset_bytes / lba_bytes;
  command.lba_count = lbas;
  command.compressed_share = compressed_share;
  return command;
}

}  // namespace

AddressStream::AddressStream(const Workload& workload, std::uint64_t seed)
    : workload_(workload), places_(workload.range_bytes / workload.bs_bytes), random_(ssd::mix(seed)) {
  const auto hot = static_cast<std::uint64_t>(std::llround(workload.hot_space * static_cast<double>(places_)));
  hot_places_ = std::clamp<std::uint64_t>(hot, 1, std::max<std::uint64_t>(1, places_ - 1));
}

AddressStream::Target AddressStream::next() {
  bool is_write = true;
  std::uint64_t place = 0;
  switch (workload_.pattern) {
    case Pattern::randread:
      is_write = false;
      [[fallthrough]];
    case Pattern::randwrite:
      place = anywhere();
      break;
    case Pattern::seqread:
      is_write = false;
      [[fallthrough]];
    case Pattern::seqwrite:
      place = cursor_;
      cursor_ = cursor_ + 1 == places_ ? 0 : cursor_ + 1;
      break;
    case Pattern::mixed:
      is_write = random_.uniform() >= workload_.read_share;
      place = anywhere();
      break;
    case Pattern::hotcold:
      if (places_ == 1 || random_.uniform() < workload_.hot_traffic) {
        place = random_.below(hot_places_);
      } else {
        place = hot_places_ + random_.below(places_ - hot_places_);
      }
      break;
  }
  return {is_write, place * workload_.bs_bytes};
}

LoopResult run_closed_loop(device::DriveModel& drive, const Workload& workload, std::uint64_t ios, std::uint64_t seed,
                           const LoopWatch& watch) {
  AddressStream addresses(workload, seed);
  const std::uint32_t lba_bytes = drive.lba_bytes();
  const auto lbas = static_cast<std::uint32_t>(workload.bs_bytes / lba_bytes);
  LoopResult result;
  std::vector<ssd::Completion> done;
  std::uint64_t issued = 0;
  std::uint64_t next_look = kIosBetweenLooks;
  ssd::Nanos now = 0;
  bool go_on = true;
  // Addresses are drawn a few commands ahead, so that the model can prefetch what they need.
  std::array<ssd::Command, kDrawnAhead> ahead;
  const std::uint16_t share = device::share_of(workload.compression_ratio);
  for (ssd::Command& command : ahead) command = command_for(addresses.next(), lba_bytes, lbas, share);
  const auto issue = [&] {
    ssd::Command& slot = ahead[issued % kDrawnAhead];
    drive.submit(now, slot);
    slot = command_for(addresses.next(), lba_bytes, lbas, share);
    drive.prefetch_entry(slot);
    drive.prefetch_place(ahead[(issued + kDrawnAhead / 2) % kDrawnAhead]);
    ++issued;
  };

  while (issued < std::min<std::uint64_t>(ios, workload.iodepth)) issue();
  while (drive.in_flight() > 0) {
    now = *drive.next_event();
    done.clear();
    drive.advance(now, done);
    for (const ssd::Completion& completion : done) {
      ++result.ios;
      if (completion.outcome == ssd::Outcome::success) {
        result.latency.record(completion.completed - completion.submitted);
      } else if (result.failed++ == 0) {
        result.first_failure = completion.outcome;
        go_on = false;  // a drive that has refused a command refuses later ones, too
      }
      if (go_on && issued < ios) issue();
    }
    if (result.ios >= next_look) {
      next_look = result.ios + kIosBetweenLooks;
      go_on = go_on && watch(result.ios);
    }
  }
  result.duration_ns = now;
  // The workload wrote the remaining contents of the write cache, so programming them is part of its cost.
  while (const auto next = drive.next_event()) drive.advance(*next, done);
  result.complete = result.ios == ios && result.failed == 0;
  return result;
}

}  // namespace spillway::tool
