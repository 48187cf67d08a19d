#include "probe/measure.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <latch>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <thread>
#include <utility>
#include <vector>

#include "probe/job.h"
#include "probe/window.h"

namespace spillway::probe {
namespace {

using device::Done;
using device::Io;

constexpr std::uint64_t kIosBetweenLooks = 8192;                // in virtual time: some milliseconds of work
constexpr std::size_t kReapedAtOnce = 256;                      // in virtual time
constexpr auto kLookInterval = std::chrono::milliseconds(100);  // in real time

// What one loop has observed.
struct Tally {
  Histogram read_latency;
  Histogram write_latency;
  Status failure;
};

Status failed(const Point& point, const Done& done) {
  const std::string what = "point " + std::to_string(point.id) + ": ";
  if (done.fault == Fault::drive_full) {
    return Status::error(Fault::drive_full, what +
                                                "the drive has no clean erase block left and garbage collection "
                                                "cannot make one; raise capacity.spare_factor or lower initial.fill");
  }
  return Status::error(done.fault, what + (Job::is_read(done.tag) ? "a read" : "a write") + " failed on the drive");
}

// Submits one by one, as fio does. If neighbouring I/Os were submitted together, the operating system would merge them,
// and the drive would see fewer and larger I/Os than the point says.
void submit_each(device::Device& device, device::Queue& queue, std::vector<Io>& wanted, Window& window, Tally& tally) {
  for (const Io& io : wanted) {
    Status status = queue.submit({&io, 1});
    if (status) continue;
    if (tally.failure) tally.failure = std::move(status);
    window.cut(device.now());
    break;
  }
  wanted.clear();
}

// Keeps the jobs' I/Os in flight on one queue until the window closes or no job has any left. The thread that loops
// calls `look` at intervals.
template <class Look>
void loop(device::Device& device, device::Queue& queue, std::span<Job> jobs, const Point& point, Window& window,
          Tally& tally, Look look) {
  std::vector<Io> wanted;
  // In real time an I/O is replaced before the next completion is reaped, as in fio. The drive does not wait while a
  // batch of completions is processed, and a job that has fallen behind finds completions without sleeping.
  const bool in_real_time = device.info().time_scale > 0;
  std::vector<Done> done(in_real_time ? 1 : std::min<std::size_t>(kReapedAtOnce, point.in_flight()));
  const std::uint32_t first_job = jobs.front().index();
  for (std::uint32_t depth = 0; depth < point.iodepth; ++depth) {
    for (Job& job : jobs) {
      if (job.has_more()) wanted.push_back(job.next());
    }
  }
  for (;;) {
    submit_each(device, queue, wanted, window, tally);
    if (queue.pending() == 0) break;
    const std::size_t count = queue.reap(done, 1);
    for (const Done& one : std::span(done).first(count)) {
      if (one.fault != Fault::none) {
        if (tally.failure) tally.failure = failed(point, one);
        window.cut(one.completed);
      } else if (window.completed(one.completed)) {
        (Job::is_read(one.tag) ? tally.read_latency : tally.write_latency).record(one.completed - one.submitted);
      }
      Job& job = jobs[Job::index_of(one.tag) - first_job];
      if (window.is_open() && job.has_more()) wanted.push_back(job.next());
    }
    look(count);
  }
}

std::vector<Job> make_jobs(const Point& point, std::uint64_t range_bytes, std::uint64_t seed) {
  std::vector<Job> jobs;
  for (std::uint32_t i = 0; i < point.numjobs; ++i) jobs.emplace_back(point, range_bytes, i, seed);
  return jobs;
}

Result<Measurement> measurement_of(const Window& window, std::span<const Tally> tallies) {
  Measurement result;
  for (const Tally& tally : tallies) {
    if (!tally.failure) return tally.failure;
    result.read_latency.merge(tally.read_latency);
    result.write_latency.merge(tally.write_latency);
  }
  result.length_ns = window.length_ns();
  result.complete = !window.was_cut();
  return result;
}

Result<Measurement> in_virtual_time(device::Device& device, const Point& point, std::span<Job> jobs,
                                    const Watch& watch) {
  std::vector<Tally> tally(1);
  Window window(point, device.now());
  const auto queue = device.open_queue();
  std::uint64_t done = 0;
  std::uint64_t next_look = kIosBetweenLooks;
  loop(device, *queue, jobs, point, window, tally.front(), [&](std::size_t count) {
    done += count;
    if (done < next_look) return;
    next_look = done + kIosBetweenLooks;
    if (!watch(window.counted())) window.cut(device.now());
  });
  return measurement_of(window, tally);
}

// The threads of a point in real time. They set up their queues before the clock is read, because queues with
// registered buffers take long to create.
class Threads {
 public:
  Threads(device::Device& device, const Point& point, std::span<Job> jobs)
      : device_(device), point_(point), tallies_(jobs.size()), running_(jobs.size()), ready_(jobs.size()) {
    for (std::size_t i = 0; i < jobs.size(); ++i) {
      threads_.emplace_back([this, &job = jobs[i], &tally = tallies_[i]] { run(job, tally); });
    }
    ready_.wait();
    window_.emplace(point, device.now());
    begin_.count_down();
  }

  Result<Measurement> wait(const Watch& watch) {
    std::unique_lock lock(mutex_);
    while (!ended_.wait_for(lock, kLookInterval, [this] { return running_ == 0; })) {
      lock.unlock();
      if (!watch(window_->counted())) window_->cut(device_.now());
      lock.lock();
    }
    lock.unlock();
    for (std::thread& thread : threads_) thread.join();
    return measurement_of(*window_, tallies_);
  }

 private:
  void run(Job& job, Tally& tally) {
    {
      const auto queue = device_.open_queue();
      ready_.count_down();
      begin_.wait();
      loop(device_, *queue, {&job, 1}, point_, *window_, tally, [](std::size_t) {});
    }
    const std::lock_guard lock(mutex_);
    if (--running_ == 0) ended_.notify_one();
  }

  device::Device& device_;
  const Point& point_;
  std::vector<Tally> tallies_;
  std::optional<Window> window_;
  std::mutex mutex_;
  std::condition_variable ended_;
  std::size_t running_;
  std::latch ready_;
  std::latch begin_{1};
  std::vector<std::thread> threads_;
};

}  // namespace

Result<Measurement> measure(device::Device& device, const Point& point, const Extent& extent, std::uint64_t seed,
                            const Watch& watch) {
  std::vector<Job> jobs = make_jobs(point, range_of(point, extent), seed);
  if (!watch(0)) return Measurement{};
  if (device.info().time_scale == 0) return in_virtual_time(device, point, jobs, watch);
  return Threads(device, point, jobs).wait(watch);
}

}  // namespace spillway::probe
