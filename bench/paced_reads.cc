// What paced emulation sustains: 4 KiB random reads from several threads, the processor time they cost, and how late
// they are. Prints one JSON document, and to standard error a line for each configuration as it ends.
//
//   bench_paced_reads [SECONDS [PRESET [THREADS DEPTH]]]      default: 2 seconds each, mqsim-default, several of both
//
// `blocking` threads have one read in flight and sleep until it is done; `async` threads have several.
#include <sched.h>
#include <sys/resource.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <iostream>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "device/emulated/emulated.h"
#include "device/preset/preset.h"
#include "ssd/structures/random.h"
#include "tool/protocol/drive_request.h"

namespace {

using namespace spillway;
using Json = nlohmann::ordered_json;

constexpr std::uint64_t kReadBytes = 4096;

struct Setup {
  unsigned threads;
  unsigned depth;         // 1: blocking
  bool one_core = false;  // all threads on one processor, so that what is measured is what one core can do
};

constexpr Setup kSetups[] = {{1, 1},        {4, 1},  {16, 1}, {32, 1}, {64, 1},
                             {64, 1, true}, {1, 32}, {2, 32}, {4, 16}, {4, 16, true}};

struct Usage {
  double user_s = 0;
  double system_s = 0;
  std::int64_t voluntary_switches = 0;
};

Usage usage_now() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) / 1e6;
  };
  return {seconds(usage.ru_utime), seconds(usage.ru_stime), usage.ru_nvcsw};
}

void read_until(device::Device& device, unsigned depth, std::uint64_t seed, const std::atomic<bool>& stop,
                std::atomic<std::uint64_t>& reads, Histogram& latency) {
  auto queue = device.open_queue();
  ssd::Random random(seed);
  const std::uint64_t places = device.info().capacity_bytes / kReadBytes;
  std::vector<device::Io> ios(depth);
  std::vector<device::Done> done(depth);
  std::uint64_t count = 0;
  std::size_t free = depth;
  while (!stop) {
    for (std::size_t i = 0; i < free; ++i)
      ios[i] = {.offset_bytes = random.below(places) * kReadBytes, .length_bytes = kReadBytes};
    if (!queue->submit({ios.data(), free})) std::abort();
    free = queue->reap(done, 1);
    for (std::size_t i = 0; i < free; ++i) latency.record(done[i].completed - done[i].submitted);
    count += free;
  }
  reads += count;
}

// Keeps the calling thread, and those that it starts, on one processor while it lives.
class OneCore {
 public:
  explicit OneCore(bool wanted) {
    sched_getaffinity(0, sizeof before_, &before_);
    cpu_set_t one;
    CPU_ZERO(&one);
    for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
      if (!CPU_ISSET(cpu, &before_)) continue;
      CPU_SET(cpu, &one);
      break;
    }
    if (wanted) sched_setaffinity(0, sizeof one, &one);
  }
  ~OneCore() { sched_setaffinity(0, sizeof before_, &before_); }
  OneCore(const OneCore&) = delete;
  OneCore& operator=(const OneCore&) = delete;

 private:
  cpu_set_t before_;
};

Json measure(const ssd::SsdConfig& config, Setup setup, double seconds) {
  ssd::Ssd ssd(config, 1);
  ssd.write_sequentially(0, ssd.layout().logical_units);
  const auto device = device::make_paced(std::move(ssd), 1.0);
  std::atomic<bool> stop{false};
  std::atomic<std::uint64_t> reads{0};
  std::vector<Histogram> latencies(setup.threads);
  std::vector<std::thread> threads;
  const OneCore one_core(setup.one_core);
  const Usage before = usage_now();
  const auto began = std::chrono::steady_clock::now();
  for (unsigned i = 0; i < setup.threads; ++i) {
    threads.emplace_back([&, i] { read_until(*device, setup.depth, i + 1, stop, reads, latencies[i]); });
  }
  std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
  stop = true;
  for (auto& thread : threads) thread.join();
  const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - began;
  const Usage after = usage_now();
  Histogram latency;
  for (const auto& one : latencies) latency.merge(one);
  const Histogram error = device->pacing().error;
  const double cpu = after.user_s - before.user_s + after.system_s - before.system_s;
  const auto count = static_cast<double>(reads.load());
  return {{"threads", setup.threads},
          {"depth", setup.depth},
          {"kind", setup.depth == 1 ? "blocking" : "async"},
          {"one_core", setup.one_core},
          {"seconds", elapsed.count()},
          {"reads_per_s", count / elapsed.count()},
          {"cores_used", cpu / elapsed.count()},
          {"user_cores", (after.user_s - before.user_s) / elapsed.count()},
          {"system_cores", (after.system_s - before.system_s) / elapsed.count()},
          {"reads_per_cpu_s", count / cpu},
          {"switches_per_read", static_cast<double>(after.voluntary_switches - before.voluntary_switches) / count},
          {"modelled_latency_us", {{"p50", latency.quantile_ns(0.5) / 1e3}, {"p99", latency.quantile_ns(0.99) / 1e3}}},
          {"pacing_error_us",
           {{"p50", error.quantile_ns(0.5) / 1e3},
            {"p99", error.quantile_ns(0.99) / 1e3},
            {"max", static_cast<double>(error.max_ns()) / 1e3}}}};
}

}  // namespace

int main(int argc, char** argv) {
  const double seconds = argc > 1 ? std::stod(argv[1]) : 2.0;
  device::DriveSpec spec;
  spec.preset = argc > 2 ? argv[2] : "mqsim-default";
  spec.preset_dirs = device::default_preset_dirs();
  spec.set = {{"capacity.capacity_bytes", "8GiB"}, {"mapping_cache.bytes", "0"}};
  const auto drive = device::resolve(spec);
  if (!drive) {
    std::cerr << drive.status().message() << "\n";
    return 2;
  }
  std::vector<Setup> setups(std::begin(kSetups), std::end(kSetups));
  if (argc > 4) setups = {{static_cast<unsigned>(std::stoul(argv[3])), static_cast<unsigned>(std::stoul(argv[4]))}};
  Json results = Json::array();
  for (const Setup setup : setups) {
    results.push_back(measure(drive.value().config, setup, seconds));
    std::cerr << results.back().dump() << std::endl;
  }
  std::cout << results.dump(1) << std::endl;
  return 0;
}
