// Hosts of a drive in virtual time, and their measurements.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "device/model/drive_model.h"
#include "ssd/structures/random.h"

namespace spillway::device {

using ssd::Command;
using ssd::Completion;
using ssd::Nanos;
using ssd::Opcode;

inline constexpr std::uint32_t kLbasIn4k = 8;

struct Measured {
  double iops = 0;
  double mean_latency_ns = 0;
  std::vector<Completion> completions;
};

using NextCommand = std::function<Command()>;

// Keeps `concurrency` commands in flight until `count` are complete.
inline Measured closed_loop(DriveModel& model, std::uint32_t concurrency, std::uint64_t count,
                            const NextCommand& next) {
  Measured result;
  std::vector<Completion> done;
  std::uint64_t issued = 0;
  Nanos now = 0;
  double latency = 0;
  for (; issued < concurrency; ++issued) model.submit(now, next());
  while (model.in_flight() > 0) {
    now = *model.next_event();
    done.clear();
    model.advance(now, done);
    for (const Completion& one : done) {
      result.completions.push_back(one);
      latency += static_cast<double>(one.completed - one.submitted);
      if (issued++ < count) model.submit(now, next());
    }
  }
  const auto total = static_cast<double>(result.completions.size());
  result.iops = total * 1e9 / static_cast<double>(now);
  result.mean_latency_ns = latency / total;
  return result;
}

inline NextCommand random_4k(Opcode op, std::uint64_t capacity_bytes, std::uint64_t seed = 1) {
  auto random = std::make_shared<ssd::Random>(ssd::mix(seed));
  return [=] {
    return Command{.op = op, .lba_count = kLbasIn4k, .lba = random->below(capacity_bytes / 4096) * kLbasIn4k};
  };
}

inline void expect_same(const std::vector<Completion>& actual, const std::vector<Completion>& expected) {
  ASSERT_EQ(actual.size(), expected.size());
  for (std::size_t i = 0; i < actual.size(); ++i) {
    ASSERT_EQ(actual[i].tag, expected[i].tag) << i;
    ASSERT_EQ(actual[i].submitted, expected[i].submitted) << i;
    ASSERT_EQ(actual[i].completed, expected[i].completed) << i;
  }
}

}  // namespace spillway::device
