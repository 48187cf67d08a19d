// How fast the drive model runs, and what it holds: simulated 4 KiB ios per CPU-second, memory per GiB of drive, and
// what a 512 GiB drive costs to bring to its steady state. Prints one JSON document.
//
//   bench_ssd_speed [IOS]      default: 2 million of each kind
//
// MQSim's default geometry with spare factor 20 %: the preset as it is, and the same drive with DRAM for its whole map,
// which costs the model no translation pages. Seven rounds of each, in turns; the median and the spread are printed.
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "device/emulated/emulated.h"
#include "device/preset/preset.h"
#include "tool/protocol/drive_request.h"
#include "tool/ssd/closed_loop.h"

namespace {

using namespace spillway;
using Json = nlohmann::ordered_json;

constexpr int kRounds = 7;
constexpr double kBytesPerGib = 1024.0 * 1024 * 1024;

std::uint64_t resident_bytes() {
  std::uint64_t pages = 0;
  std::uint64_t resident = 0;
  std::ifstream("/proc/self/statm") >> pages >> resident;
  return resident * static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
}

ssd::SsdConfig drive_of(const std::string& capacity, const std::string& mapping_cache) {
  device::DriveSpec spec;
  spec.preset = "mqsim-default";
  spec.preset_dirs = device::default_preset_dirs();
  spec.set = {{"capacity.spare_factor", "0.2"}};
  if (!capacity.empty()) spec.set["capacity.capacity_bytes"] = capacity;
  if (!mapping_cache.empty()) spec.set["mapping_cache.bytes"] = mapping_cache;
  const auto drive = device::resolve(spec);
  if (!drive) {
    std::cerr << drive.status().message() << "\n";
    std::exit(2);
  }
  return drive.value().config;
}

double ios_per_cpu_second(const ssd::SsdConfig& config, tool::Pattern pattern, std::uint64_t ios) {
  ssd::Ssd ssd(config, 1);
  ssd.assume_steady(ssd.layout().logical_units);
  tool::Workload workload;
  workload.pattern = pattern;
  workload.range_bytes = ssd.layout().capacity_bytes;
  const double began = tool::cpu_seconds();
  device::DriveModel drive(std::move(ssd));
  const tool::LoopResult loop = tool::run_closed_loop(drive, workload, ios, 1, [](std::uint64_t) { return true; });
  return static_cast<double>(loop.ios) / (tool::cpu_seconds() - began);
}

Json measure_speed(std::uint64_t ios) {
  struct Arm {
    const char* mapping_cache;
    tool::Pattern pattern;
    const char* name;
    std::vector<double> rates;
  };
  std::vector<Arm> arms = {{"", tool::Pattern::randread, "random reads, preset as it is", {}},
                           {"", tool::Pattern::randwrite, "steady random writes, preset as it is", {}},
                           {"0", tool::Pattern::randread, "random reads, whole map in DRAM", {}},
                           {"0", tool::Pattern::randwrite, "steady random writes, whole map in DRAM", {}}};
  for (int round = 0; round < kRounds; ++round) {
    for (Arm& arm : arms) arm.rates.push_back(ios_per_cpu_second(drive_of("", arm.mapping_cache), arm.pattern, ios));
  }
  Json result = Json::object();
  for (Arm& arm : arms) {
    std::sort(arm.rates.begin(), arm.rates.end());
    result[arm.name] = {{"ios", ios},
                        {"ios_per_cpu_second", arm.rates[kRounds / 2]},
                        {"min", arm.rates.front()},
                        {"max", arm.rates.back()}};
  }
  return result;
}

Json measure_steady(const std::string& capacity) {
  const ssd::SsdConfig config = drive_of(capacity, "");
  const std::uint64_t before = resident_bytes();
  const double began = tool::cpu_seconds();
  ssd::Ssd ssd(config, 1);
  ssd.assume_steady(ssd.layout().logical_units);
  const double cpu = tool::cpu_seconds() - began;
  const std::uint64_t bytes = resident_bytes() - before;
  return {{"capacity", capacity},
          {"cpu_seconds", cpu},
          {"resident_bytes", bytes},
          {"resident_mb_per_gib",
           static_cast<double>(bytes) / 1e6 / (static_cast<double>(ssd.layout().capacity_bytes) / kBytesPerGib)}};
}

}  // namespace

int main(int argc, char** argv) {
  const std::uint64_t ios = argc > 1 ? std::stoull(argv[1]) : 2'000'000;
  // Memory first: what the later drives leave behind in the allocator would hide it.
  Json result;
  result["steady_state"] = {measure_steady("512GiB")};
  result["speed"] = measure_speed(ios);
  std::cout << result.dump(1) << std::endl;
  return 0;
}
