// Replays a page trace through a buffer pool on a drive, to measure the gain of writing several pages back at once
// (P22).
#include "tool/pool/command.h"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>

#include "device/counters_json.h"
#include "pool/buffer_pool.h"
#include "pool/replay.h"
#include "pool/trace.h"
#include "probe/point.h"
#include "probe/target.h"
#include "ssd/structures/random.h"
#include "tool/pool/request.h"
#include "tool/protocol/drive_request.h"
#include "tool/protocol/progress_reporter.h"

namespace spillway::tool {
namespace {

// This many references fill a pool and bring its share of dirty pages to a steady value, even with hits.
constexpr std::uint64_t kWarmupsPerFrame = 4;  // Source: guess
constexpr std::uint64_t kOperations = 100'000;

// A point with the most that the pool will need of the drive. The target checks whether it offers that.
probe::Point largest_point_of(const BufferpoolRequest& request) {
  probe::Point point;
  point.bs_bytes = request.pool.page_bytes;
  point.ios = 1;
  if (request.pool.writers == pool::WritersKind::queue) {
    point.iodepth = request.pool.at_once();
  } else {
    // Each thread has one io at a time and waits for it, as pwrite does.
    point.numjobs = request.pool.at_once();
    point.engine = probe::Engine::sync;
  }
  const bool only_reads = request.trace.empty() && request.workload.read_fraction >= 1;
  point.read_share = only_reads ? 1 : 0.5;
  return point;
}

// Turns a target's error about a probe's point into one about the pool.
Status as_pool_error(const Status& status) {
  std::string message = status.message();
  const std::string where = "point 0: ";
  if (message.starts_with(where)) message.erase(0, where.size());
  const auto say = [&](const std::string& of_probe, const std::string& of_pool) {
    if (const auto at = message.find(of_probe); at != std::string::npos) message.replace(at, of_probe.size(), of_pool);
  };
  say("read_share is below 1", "the workload writes");
  say("numjobs x iodepth x bs_bytes", "pool.write_back x pool.page_bytes");
  say("bs_bytes", "pool.page_bytes");
  say("engine is io_uring, which", "pool.writers is queue, which takes io_uring, and that");
  say("take sync", "take threads");
  return Status::error(status.fault(), message);
}

class Session {
 public:
  Session(BufferpoolRequest request, Events& events, const std::atomic<bool>& stop)
      : request_(std::move(request)), events_(events), stop_(stop) {}

  Status run() {
    auto opened = open();
    if (!opened) return opened.status();
    if (!opened.value()) {
      events_.result(figures(pool::ReplayResult{}), false);
      return {};
    }
    const probe::Point reach = largest_point_of(request_);
    if (Status status = admit(reach); !status) return status;
    device::Device& device = target_->device_for(reach);
    request_.pool.pages = pages();
    if (Status status = pool::check(request_.pool, device.info()); !status) return status;
    auto trace = make_trace();
    if (!trace) return trace.status();
    return replay(device, **trace);
  }

 private:
  // False: the command was stopped before the target was ready.
  Result<bool> open() {
    auto* const emulated = std::get_if<probe::EmulatedSpec>(&request_.target.target);
    const std::uint64_t seed = request_.target.seed;
    events_.started("bufferpool", emulated != nullptr ? shown(emulated->drive) : Json(nullptr));
    ProgressReporter progress(events_, "prepare", "bytes");
    const probe::WriteWatch watch = [&](std::uint64_t done, std::uint64_t total) {
      progress.report(done, total);
      return !stop_;
    };
    auto made = emulated != nullptr
                    ? probe::make_emulated(std::move(*emulated), watch)
                    : probe::make_direct(std::get<device::DirectFileSpec>(request_.target.target), seed, watch);
    if (made.status().fault() == Fault::stopped) return false;
    if (!made) return made.status();
    target_ = std::move(made->target);
    return true;
  }

  Status admit(const probe::Point& reach) {
    Status status = probe::check(reach, target_->info().extent());
    if (status) status = target_->admits(reach);
    return status ? status : as_pool_error(status);
  }

  std::uint64_t pages() const {
    const std::uint64_t there = target_->info().range_bytes / request_.pool.page_bytes;
    return request_.workload.pages == 0 ? there : request_.workload.pages;
  }

  Result<std::unique_ptr<pool::Trace>> make_trace() {
    if (request_.trace.empty()) {
      request_.workload.pages = request_.pool.pages;
      return pool::make_synthetic(request_.workload, request_.target.seed);
    }
    auto references = pool::read_trace(request_.trace, request_.pool.pages);
    if (!references) return references.status();
    const std::uint64_t count = references->size();
    // A trace is replayed from its first line to its last, unless the request says otherwise.
    if (!request_.warmup_operations) request_.warmup_operations = 0;
    if (!request_.operations) request_.operations = count;
    if (*request_.warmup_operations >= count) {
      return Status::bad_input("workload.warmup_operations is " + std::to_string(*request_.warmup_operations) +
                               " and " + request_.trace + " has " + std::to_string(count) +
                               " references; leave some to measure");
    }
    return pool::make_recorded(std::move(*references));
  }

  Status replay(device::Device& device, pool::Trace& trace) {
    auto policy = pool::make_policy(request_.policy, request_.pool.frames);
    auto writers = pool::make_writers(device, request_.pool.writers, request_.pool.at_once(), request_.pool.hand_off);
    if (!writers) return writers.status();
    pool::BufferPool buffers(device, request_.pool, std::move(*policy), std::move(*writers));
    pool::ReplayEnds ends;
    ends.warmup = request_.warmup_operations.value_or(kWarmupsPerFrame * request_.pool.frames);
    ends.operations = request_.operations.value_or(kOperations);
    const double began = cpu_seconds();
    ProgressReporter progress(events_, "bufferpool", "operations");
    const auto replayed = pool::replay(device, buffers, trace, ends, [&](std::uint64_t done) {
      progress.report(done, ends.warmup + ends.operations);
      return !stop_;
    });
    if (!replayed) return replayed.status();
    Json result = figures(replayed.value());
    add_tuning(result, buffers.tuner());
    result["cpu_seconds"] = cpu_seconds() - began;
    result["peak_rss_bytes"] = peak_rss_bytes();
    if (replayed.value().operations > 0) {
      const Json before = device::to_json(replayed.value().drive_before);
      result["counters"] = device::difference(device::to_json(device.counters()), before);
    }
    events_.result(std::move(result), replayed.value().complete);
    return {};
  }

  Json figures(const pool::ReplayResult& result) const {
    const double seconds = static_cast<double>(result.duration_ns) / 1e9;
    const pool::PoolCounters& counters = result.counters;
    const auto per_second = [&](std::uint64_t count) {
      return seconds > 0 ? static_cast<double>(count) / seconds : 0.0;
    };
    Json json = {{"target", target_fields()},
                 {"pool",
                  {{"pages", request_.pool.frames},
                   {"page_bytes", request_.pool.page_bytes},
                   {"policy", request_.policy},
                   {"write_back", request_.pool.write_back},
                   {"prefetch", request_.pool.prefetch},
                   {"writers", pool::name_of(request_.pool.writers)},
                   {"hand_off", hand_off()}}},
                 {"pages", request_.pool.pages},
                 {"operations", result.operations},
                 {"writes", result.writes},
                 {"seconds", seconds},
                 {"operations_per_s", per_second(result.operations)},
                 {"latency_us", latency_us(result.latency)},
                 {"miss_latency_us", latency_us(result.miss_latency)},
                 {"hits", counters.hits},
                 {"misses", counters.misses},
                 {"evictions", counters.evictions},
                 {"pages_read", counters.pages_read},
                 {"pages_written", counters.pages_written},
                 {"pages_written_in_vain", counters.pages_written_in_vain},
                 {"pages_prefetched", counters.pages_prefetched},
                 {"prefetched_hits", counters.prefetched_hits},
                 {"write_batches", counters.write_batches},
                 {"read_wait_s", static_cast<double>(counters.read_wait_ns) / 1e9},
                 {"write_wait_s", static_cast<double>(counters.write_wait_ns) / 1e9}};
    json["tuning"] = nullptr;
    return json;
  }

  // Of a pool that tuned itself, pool.write_back is what it has found.
  static void add_tuning(Json& result, const pool::WriteBackTuner* tuner) {
    if (tuner == nullptr) return;
    result["pool"]["write_back"] = tuner->held();
    result["tuning"] = {{"epochs", tuner->epochs()}, {"path", tuner->path()}};
  }

  // The charged costs of a whole batch of threads; null if none were charged: real threads, or no threads.
  Json hand_off() const {
    const bool virtual_time = target_ != nullptr && target_->info().time_scale == 0;
    const bool threads = request_.pool.writers != pool::WritersKind::queue && request_.pool.at_once() > 1;
    if (!virtual_time || !threads) return nullptr;
    const pool::HandOff cost = pool::hand_off_of(request_.pool.hand_off, request_.pool.at_once());
    return {{"first_ns", cost.first_ns}, {"last_ns", cost.last_ns}, {"told_ns", cost.told_ns}};
  }

  Json target_fields() const {
    if (target_ == nullptr) return nullptr;
    const probe::TargetInfo info = target_->info();
    return {{"kind", info.kind},           {"size_bytes", info.size_bytes}, {"range_bytes", info.range_bytes},
            {"lba_bytes", info.lba_bytes}, {"direct", info.direct},         {"preset", info.preset},
            {"path", info.path},           {"time_scale", info.time_scale}};
  }

  BufferpoolRequest request_;
  Events& events_;
  const std::atomic<bool>& stop_;
  std::unique_ptr<probe::Target> target_;
};

}  // namespace

Status bufferpool(const Json& request, Events& events, const std::atomic<bool>& stop) {
  auto read = read_bufferpool_request(request);
  if (!read) return read.status();
  return Session(std::move(*read), events, stop).run();
}

}  // namespace spillway::tool
