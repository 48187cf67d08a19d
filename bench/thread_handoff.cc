// What it costs a buffer pool to hand n writes to n threads and to be told that all are done, with a drive that answers
// at once: all of it is the software's. Prints one JSON document.
//
//   bench_thread_handoff [BATCHES]      default: 2000 of each
//
// `threads` wait for work, `new-threads` are started for each batch. Between batches the caller sleeps for as long as a
// pool is at its reads. For each n, over the batches: from the beginning until the first io was issued and until the
// last was, from then until the caller went on (told), and all of it. The medians are what native/pool/writers.cc
// charges in virtual time. With fewer processors than threads they take turns: more processors make all of it shorter
// but for what the caller does itself, a wake-up or a start for each thread.
#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <exception>
#include <iostream>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "device/real_time.h"
#include "pool/writers.h"

namespace {

using namespace spillway;
using Json = nlohmann::ordered_json;

constexpr std::uint32_t kMost = 64;
constexpr std::array<std::uint32_t, 12> kCounts = {1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, kMost};
constexpr std::chrono::microseconds kBetween(100);  // Source: guess, some reads of a fast drive
constexpr int kWarmups = 50;
constexpr int kRounds = 10;  // every n in each: a slow moment of the machine meets them all

// Answers at once and notes when each io of a batch came.
class NoDrive final : public device::Device {
 public:
  const device::DeviceInfo& info() const override { return info_; }
  std::unique_ptr<device::Queue> open_queue() override { return std::make_unique<NoQueue>(*this); }
  device::Nanos now() override { return device::real_now(); }
  ssd::Counters counters() override { return {}; }

  std::array<std::atomic<device::Nanos>, kMost> came{};

 private:
  class NoQueue final : public device::Queue {
   public:
    explicit NoQueue(NoDrive& drive) : drive_(drive) {}
    Status submit(std::span<const device::Io> ios) override {
      tag_ = ios.front().tag;
      drive_.came[tag_].store(device::real_now(), std::memory_order_relaxed);
      pending_ = 1;
      return {};
    }
    std::size_t reap(std::span<device::Done> done, std::size_t /*at_least*/) override {
      pending_ = 0;
      done[0] = {.tag = tag_};
      return 1;
    }
    std::size_t pending() const override { return pending_; }

   private:
    NoDrive& drive_;
    std::uint64_t tag_ = 0;
    std::size_t pending_ = 0;
  };

  device::DeviceInfo info_;
};

double quantile(std::vector<double>& values, double share) {
  const auto at = static_cast<std::ptrdiff_t>(share * static_cast<double>(values.size() - 1));
  std::nth_element(values.begin(), values.begin() + at, values.end());
  return values[static_cast<std::size_t>(at)];
}

Json spread(std::vector<double> us) {
  return {{"p50", quantile(us, 0.5)},
          {"p25", quantile(us, 0.25)},
          {"p75", quantile(us, 0.75)},
          {"p99", quantile(us, 0.99)}};
}

struct Samples {
  std::vector<double> first;
  std::vector<double> last;
  std::vector<double> told;
  std::vector<double> all;
};

void measure(pool::WritersKind kind, std::uint32_t n, int batches, Samples& samples) {
  NoDrive drive;
  auto writers = pool::make_writers(drive, kind, n, {});
  if (!writers) throw std::runtime_error(writers.status().message());
  std::vector<device::Io> ios(n);
  for (std::uint32_t i = 0; i < n; ++i) ios[i].tag = i;
  std::vector<Fault> faults(n);
  for (int batch = -kWarmups; batch < batches; ++batch) {
    std::this_thread::sleep_for(kBetween);
    const device::Nanos began = device::real_now();
    (*writers)->transfer(ios, faults);
    const device::Nanos ended = device::real_now();
    if (batch < 0) continue;
    const auto came = [&](std::uint32_t i) { return drive.came[i].load(std::memory_order_relaxed); };
    device::Nanos earliest = came(0);
    device::Nanos latest = came(0);
    for (std::uint32_t i = 1; i < n; ++i) {
      earliest = std::min(earliest, came(i));
      latest = std::max(latest, came(i));
    }
    samples.first.push_back(static_cast<double>(earliest - began) / 1e3);
    samples.last.push_back(static_cast<double>(latest - began) / 1e3);
    samples.told.push_back(static_cast<double>(ended - latest) / 1e3);
    samples.all.push_back(static_cast<double>(ended - began) / 1e3);
  }
}

void run(int batches) {
  Json result = {{"batches", batches}, {"rounds", kRounds}, {"between_us", kBetween.count()}};
  for (const pool::WritersKind kind : {pool::WritersKind::threads, pool::WritersKind::new_threads}) {
    std::array<Samples, kCounts.size()> samples;
    for (int round = 0; round < kRounds; ++round) {
      for (std::size_t i = 0; i < kCounts.size(); ++i) measure(kind, kCounts[i], batches / kRounds, samples[i]);
    }
    Json points = Json::array();
    for (std::size_t i = 0; i < kCounts.size(); ++i) {
      const Samples& one = samples[i];
      points.push_back({{"n", kCounts[i]},
                        {"first_us", spread(one.first)},
                        {"last_us", spread(one.last)},
                        {"told_us", spread(one.told)},
                        {"all_us", spread(one.all)}});
    }
    result[pool::name_of(kind)] = points;
  }
  std::cout << result.dump(1) << std::endl;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    run(argc > 1 ? std::stoi(argv[1]) : 2000);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "bench_thread_handoff: %s\n", error.what());
    return 1;
  }
  return 0;
}
