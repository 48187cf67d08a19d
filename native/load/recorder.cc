#include "load/recorder.h"

#include <sys/resource.h>

#include <utility>

namespace spillway::load {

double process_cpu_seconds() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

Recorder::Recorder(MeasuredStore store, Clock& clock)
    : store_(std::move(store)),
      clock_(clock),
      run_begin_ns_(clock.now_ns()),
      last_ns_(run_begin_ns_),
      last_cpu_s_(process_cpu_seconds()) {
  if (store_.device != nullptr) last_drive_ = read(*store_.device);
}

Sample Recorder::sample(const Tally& tally) {
  Sample sample;
  const std::int64_t now_ns = clock_.now_ns();
  sample.begin_ns = last_ns_ - run_begin_ns_;
  sample.end_ns = now_ns - run_begin_ns_;
  sample.tally = &tally;
  if (store_.device != nullptr) {
    const DriveReading drive = read(*store_.device);
    sample.drive = between(last_drive_, drive, store_.device->info());
    last_drive_ = drive;
  }
  sample.engine = store_.engine.observe();
  sample.stall_time = stall_time_within(store_.engine.stalls(), last_ns_, now_ns);
  sample.space_bytes = store_.space_bytes ? store_.space_bytes() : 0;
  const double cpu_s = process_cpu_seconds();
  sample.cpu_s = cpu_s - last_cpu_s_;
  last_cpu_s_ = cpu_s;
  last_ns_ = now_ns;
  return sample;
}

std::vector<engine::Event> Recorder::new_events() {
  std::vector<engine::Event> events = store_.engine.take_events();
  for (engine::Event& event : events) event.at_ns -= run_begin_ns_;
  return events;
}

std::vector<engine::Stall> Recorder::new_stalls(bool all) {
  const std::int64_t now_ns = clock_.now_ns();  // read first: a stall in progress ends later than this
  const std::vector<engine::Stall> stalls = store_.engine.stalls();
  std::vector<engine::Stall> found;
  while (stalls_returned_ < stalls.size() && (all || stalls[stalls_returned_].end_ns < now_ns)) {
    engine::Stall stall = stalls[stalls_returned_++];
    stall.begin_ns -= run_begin_ns_;
    stall.end_ns -= run_begin_ns_;
    found.push_back(stall);
  }
  return found;
}

}  // namespace spillway::load
