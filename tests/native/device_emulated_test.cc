// What every emulated device promises, in virtual and in real time; and that both are the same model.
#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <functional>
#include <mutex>
#include <set>
#include <thread>

#include "device/emulated/emulated.h"
#include "device/faulty_device.h"
#include "device_small_drive.h"
#include "ssd/structures/random.h"
#include "temporary_directory.h"

namespace spillway::device {
namespace {

constexpr std::uint64_t kSeed = 3;
constexpr std::uint64_t kUnit = 4096;

ssd::Ssd filled_drive(const ssd::SsdConfig& config = small_drive()) {
  ssd::Ssd ssd(config, kSeed);
  ssd.assume_steady(ssd.layout().logical_units);
  return ssd;
}

struct Maker {
  const char* name;
  std::function<std::unique_ptr<EmulatedDevice>()> make;
};

class EmulatedDeviceTest : public testing::TestWithParam<Maker> {};

INSTANTIATE_TEST_SUITE_P(Both, EmulatedDeviceTest,
                         testing::Values(Maker{"simulated", [] { return make_simulated(filled_drive()); }},
                                         Maker{"paced", [] { return make_paced(filled_drive(), 1.0); }},
                                         Maker{"dilated", [] { return make_paced(filled_drive(), 2.5); }}),
                         [](const auto& one) { return std::string(one.param.name); });

// A mix of reads and writes at random places.
Io random_io(ssd::Random& random, const DeviceInfo& info, std::uint64_t tag) {
  Io io;
  io.tag = tag;
  io.op = random.below(3) == 0 ? Opcode::write : Opcode::read;
  io.cause = static_cast<Cause>(random.below(kCauses));
  io.length_bytes = kUnit * (1 + random.below(4));
  io.offset_bytes = random.below((info.capacity_bytes - io.length_bytes) / kUnit) * kUnit;
  return io;
}

TEST_P(EmulatedDeviceTest, CompletesOneIo) {
  const auto device = GetParam().make();
  const auto queue = device->open_queue();
  const auto done = run(*queue, {.tag = 42, .op = Opcode::read, .offset_bytes = kUnit, .length_bytes = kUnit});
  ASSERT_TRUE(done) << done.status().message();
  EXPECT_EQ(done.value().tag, 42U);
  EXPECT_EQ(done.value().fault, Fault::none);
  EXPECT_GE(done.value().completed - done.value().submitted, small_drive().timing.read_ns[0]);
  EXPECT_GE(device->now(), done.value().completed) << "nothing is handed out before its time";
  EXPECT_EQ(queue->pending(), 0U);
  EXPECT_EQ(device->counters().host_reads, 1U);
}

TEST_P(EmulatedDeviceTest, ReportsItsInfo) {
  const auto device = GetParam().make();
  EXPECT_EQ(device->info().name, "small");
  EXPECT_EQ(device->info().capacity_bytes, std::uint64_t{32} << 20);
  EXPECT_EQ(device->info().dies, 4U);
  EXPECT_EQ(device->info().channels, 2U);
  EXPECT_FALSE(device->info().carries_data);
  EXPECT_EQ(device->wear().rated_pe_cycles, 3000U);
}

TEST_P(EmulatedDeviceTest, TakesAllOrNone) {
  const auto device = GetParam().make();
  const auto queue = device->open_queue();
  const std::array<Io, 2> ios = {Io{.tag = 1, .length_bytes = kUnit},
                                 Io{.tag = 2, .offset_bytes = 100, .length_bytes = kUnit}};
  const Status status = queue->submit(ios);
  EXPECT_EQ(status.fault(), Fault::bad_input);
  EXPECT_NE(status.message().find("multiples of 512 bytes"), std::string::npos) << status.message();
  EXPECT_EQ(queue->pending(), 0U);
  EXPECT_EQ(device->counters().host_reads, 0U);
  for (const Io& io : {Io{.length_bytes = 0}, Io{.length_bytes = (std::uint64_t{1} << 30) + 512}}) {
    EXPECT_FALSE(queue->submit({&io, 1}));
  }
}

TEST_P(EmulatedDeviceTest, AnIoBeyondTheEndFailsAlone) {
  const auto device = GetParam().make();
  const auto queue = device->open_queue();
  const auto done = run(*queue, {.tag = 9, .offset_bytes = device->info().capacity_bytes, .length_bytes = kUnit});
  ASSERT_TRUE(done);
  EXPECT_EQ(done.value().fault, Fault::bad_input);
  EXPECT_EQ(run(*queue, {.tag = 10, .length_bytes = kUnit}).value().fault, Fault::none);
}

TEST_P(EmulatedDeviceTest, TakesFlushAndDeallocate) {
  const auto device = GetParam().make();
  const auto queue = device->open_queue();
  EXPECT_EQ(run(*queue, {.op = Opcode::flush}).value().fault, Fault::none);
  EXPECT_EQ(run(*queue, {.op = Opcode::deallocate, .length_bytes = device->info().capacity_bytes}).value().fault,
            Fault::none);
  EXPECT_EQ(device->model().mapped_units(), 0U);
  EXPECT_EQ(device->counters().host_flushes, 1U);
}

TEST_P(EmulatedDeviceTest, PollsComeToAnEnd) {
  const auto device = GetParam().make();
  const auto queue = device->open_queue();
  const Io io{.tag = 5, .length_bytes = kUnit};
  std::array<Done, 4> done;
  EXPECT_EQ(queue->reap(done, 0), 0U) << "nothing pending, nothing done";
  ASSERT_TRUE(queue->submit({&io, 1}));
  while (queue->reap(done, 0) == 0) std::this_thread::yield();
  EXPECT_EQ(done[0].tag, 5U);
}

TEST_P(EmulatedDeviceTest, ManyPendingIosComeBackOnceEach) {
  const auto device = GetParam().make();
  const auto queue = device->open_queue();
  ssd::Random random(1);
  std::vector<Io> ios;
  for (std::uint64_t tag = 0; tag < 200; ++tag) ios.push_back(random_io(random, device->info(), 1'000'000 + tag));
  ASSERT_TRUE(queue->submit(std::span(ios).first(100)));
  ASSERT_TRUE(queue->submit(std::span(ios).subspan(100)));
  EXPECT_EQ(queue->pending(), 200U);
  std::set<std::uint64_t> tags;
  std::array<Done, 7> done;  // fewer than are pending, so several reaps are needed
  while (queue->pending() > 0) {
    const std::size_t count = queue->reap(done, 1);
    ASSERT_GE(count, 1U);
    for (const Done& one : std::span(done).first(count)) EXPECT_TRUE(tags.insert(one.tag).second);
  }
  EXPECT_EQ(tags.size(), 200U);
  EXPECT_EQ(*tags.begin(), 1'000'000U);
}

TEST_P(EmulatedDeviceTest, ThreadsShareItAndGetWhatTheySubmitted) {
  constexpr std::uint64_t threads = 8;
  constexpr std::uint64_t rounds = 60;
  const auto device = GetParam().make();
  std::vector<std::thread> workers;
  std::array<std::uint64_t, threads> completed{};
  for (std::uint64_t t = 0; t < threads; ++t) {
    workers.emplace_back([&, t] {
      const auto queue = device->open_queue();
      ssd::Random random(t);
      std::uint64_t next = 0;
      std::vector<Done> done(8);
      std::set<std::uint64_t> outstanding;
      for (std::uint64_t round = 0; round < rounds; ++round) {
        while (queue->pending() < 1 + t % 4) {
          const Io io = random_io(random, device->info(), t * 1000 + next++);
          outstanding.insert(io.tag);
          ASSERT_TRUE(queue->submit({&io, 1}));
        }
        // Half of the threads wait for one of their ios, the others for all.
        const std::size_t count = queue->reap(done, t % 2 == 0 ? 1 : queue->pending());
        for (const Done& one : std::span(done).first(count)) {
          EXPECT_EQ(outstanding.erase(one.tag), 1U);
          EXPECT_EQ(one.fault, Fault::none);
          EXPECT_GE(one.completed, one.submitted);
        }
        completed[t] += count;
      }
      completed[t] += queue->pending();  // closing a queue waits for its pending ios
    });
  }
  for (auto& worker : workers) worker.join();
  std::uint64_t sum = 0;
  for (const std::uint64_t count : completed) sum += count;
  const ssd::Counters counters = device->counters();
  EXPECT_EQ(counters.host_reads + counters.host_writes, sum);
  EXPECT_EQ(device->model().audit(), std::nullopt);
}

TEST_P(EmulatedDeviceTest, CountsByCause) {
  const auto device = GetParam().make();
  const auto queue = device->open_queue();
  ASSERT_TRUE(run(*queue, {.op = Opcode::write, .cause = Cause::compaction, .length_bytes = 3 * kUnit}));
  ASSERT_TRUE(run(*queue, {.op = Opcode::write, .cause = Cause::wal, .length_bytes = kUnit}));
  const auto by_cause = device->counters().host_bytes_written_by_cause;
  EXPECT_EQ(by_cause[static_cast<std::size_t>(Cause::compaction)], 3 * kUnit);
  EXPECT_EQ(by_cause[static_cast<std::size_t>(Cause::wal)], kUnit);
  EXPECT_STREQ(name_of(Cause::compaction), "compaction");
}

TEST_P(EmulatedDeviceTest, TheModelCanBeUsedBetweenIos) {
  const auto device = GetParam().make();
  const auto queue = device->open_queue();
  const TemporaryDirectory directory;
  for (int i = 0; i < 3; ++i) {
    for (std::uint64_t j = 0; j < 40; ++j) {
      ASSERT_TRUE(run(*queue, {.op = Opcode::write, .offset_bytes = j * kUnit * 3, .length_bytes = kUnit * 3}));
    }
    ASSERT_TRUE(save_state(device->model(), directory.path("state")));
  }
  EXPECT_EQ(device->model().audit(), std::nullopt);
}

// --- One model, with either owner of time

struct Trace {
  std::vector<Arrival> arrivals;
  std::vector<ssd::Completion> completions;
};

std::vector<ssd::Completion> replay(const Trace& trace, const ssd::SsdConfig& config) {
  ssd::Ssd ssd = filled_drive(config);
  std::vector<ssd::Completion> done;
  for (const Arrival& arrival : trace.arrivals) {
    for (auto next = ssd.next_event(); next && *next <= arrival.now; next = ssd.next_event()) ssd.advance(*next, done);
    ssd.submit(arrival.now, arrival.command);
  }
  while (const auto next = ssd.next_event()) ssd.advance(*next, done);
  return done;
}

void expect_same(const std::vector<ssd::Completion>& actual, const std::vector<ssd::Completion>& expected) {
  ASSERT_EQ(actual.size(), expected.size());
  for (std::size_t i = 0; i < actual.size(); ++i) {
    ASSERT_EQ(actual[i].tag, expected[i].tag) << i;
    ASSERT_EQ(actual[i].submitted, expected[i].submitted) << i;
    ASSERT_EQ(actual[i].completed, expected[i].completed) << i;
    ASSERT_EQ(actual[i].outcome, expected[i].outcome) << i;
  }
}

// Records threads of every kind on one device.
Trace record(EmulatedDevice& device, std::uint64_t threads, std::uint64_t rounds) {
  Trace trace;
  device.record_trace(&trace.arrivals, &trace.completions);
  std::vector<std::thread> workers;
  for (std::uint64_t t = 0; t < threads; ++t) {
    workers.emplace_back([&device, t, rounds] {
      const auto queue = device.open_queue();
      ssd::Random random(100 + t);
      std::vector<Done> done(16);
      for (std::uint64_t round = 0; round < rounds; ++round) {
        std::vector<Io> ios;
        for (std::uint64_t i = 0; i < 1 + t; ++i) ios.push_back(random_io(random, device.info(), i));
        ASSERT_TRUE(queue->submit(ios));
        while (queue->pending() > t / 2) queue->reap(done, 1);
      }
    });
  }
  for (auto& worker : workers) worker.join();
  device.record_trace(nullptr, nullptr);
  return trace;
}

TEST(PacedDevice, ARecordedRunReplaysInVirtualTimeToTheNanosecond) {
  for (const double time_scale : {1.0, 3.0, 0.5}) {
    const auto device = make_paced(filled_drive(), time_scale);
    const Trace trace = record(*device, 4, 60);
    ASSERT_EQ(trace.arrivals.size(), 60U * (1 + 2 + 3 + 4));
    for (std::size_t i = 1; i < trace.arrivals.size(); ++i) ASSERT_GE(trace.arrivals[i].now, trace.arrivals[i - 1].now);
    expect_same(trace.completions, replay(trace, small_drive()));
  }
}

TEST(PacedDevice, ReplaysAWriteThroughDriveThatCollectsGarbage) {
  ssd::SsdConfig config = small_drive();
  config.write_cache.bytes = 0;
  config.mapping_cache.bytes = 4096;
  const auto device = make_paced(filled_drive(config), 1.0);
  const Trace trace = record(*device, 3, 80);
  EXPECT_GT(device->counters().gc_victims, 0U);
  expect_same(trace.completions, replay(trace, config));
}

TEST(SimulatedDevice, ARecordedRunReplays) {
  const auto device = make_simulated(filled_drive());
  const Trace trace = record(*device, 4, 200);
  expect_same(trace.completions, replay(trace, small_drive()));
}

TEST(SimulatedDevice, SameIosSameTimes) {
  const auto completions = [] {
    const auto device = make_simulated(filled_drive());
    return record(*device, 1, 500).completions;
  };
  expect_same(completions(), completions());
}

TEST(SimulatedDevice, TimeJumpsToTheCompletionAndNoFurther) {
  const auto device = make_simulated(filled_drive());
  const auto queue = device->open_queue();
  for (std::uint64_t i = 0; i < 10; ++i) {
    const auto done = run(*queue, {.offset_bytes = i * kUnit, .length_bytes = kUnit});
    ASSERT_TRUE(done);
    EXPECT_EQ(device->now(), done.value().completed);
  }
  EXPECT_EQ(device->info().time_scale, 0);
}

// --- Properties of real time that hold on a slow machine, too

TEST(PacedDevice, NoIoIsReturnedEarlyAndEachIsInThePacingReport) {
  constexpr double time_scale = 2.0;
  const auto began = std::chrono::steady_clock::now();
  const auto device = make_paced(filled_drive(), time_scale);
  {
    const auto queue = device->open_queue();
    for (std::uint64_t i = 0; i < 50; ++i) {
      const auto done = run(*queue, {.offset_bytes = i * kUnit, .length_bytes = kUnit});
      ASSERT_TRUE(done);
      const std::chrono::nanoseconds real = std::chrono::steady_clock::now() - began;
      EXPECT_GE(static_cast<double>(real.count()), static_cast<double>(done.value().completed) * time_scale);
    }
    EXPECT_EQ(device->pacing().error.count(), 50U) << "of queues that are open";
  }
  EXPECT_EQ(device->pacing().error.count(), 50U) << "and of those that were closed";
}

// The leader sleeps for a slow io while another thread submits fast ones, which must not wait for the slow one.
TEST(PacedDevice, AnEarlierEventIsNotSleptThrough) {
  ssd::SsdConfig config = small_drive();
  config.write_cache.bytes = 0;
  config.timing.program_ns = {1'000'000'000};
  ssd::Ssd ssd(config, kSeed);
  ssd.write_sequentially(0, ssd.layout().logical_units);  // full, so nothing to collect: one write programs one die
  const auto device = make_paced(std::move(ssd), 1.0);
  std::atomic<bool> slow_done{false};
  std::thread slow([&] {
    const auto queue = device->open_queue();
    EXPECT_TRUE(run(*queue, {.op = Opcode::write, .length_bytes = kUnit}));
    slow_done = true;
  });
  while (device->counters().host_writes == 0) std::this_thread::yield();
  const auto queue = device->open_queue();
  // Places all over the drive, so most are on the three dies that are not programming for a second.
  std::vector<Io> ios;
  for (std::uint64_t i = 1; i <= 32; ++i)
    ios.push_back({.tag = i, .offset_bytes = i * 211 * kUnit, .length_bytes = kUnit});
  ASSERT_TRUE(queue->submit(ios));
  std::vector<Done> done(ios.size());
  EXPECT_GE(queue->reap(done, 1), 1U);
  EXPECT_FALSE(slow_done);
  slow.join();
}

// --- Injected faults

TEST(FaultyDevice, FailsDelaysAndRefusesTheChosenIos) {
  const auto below = make_simulated(filled_drive());
  FaultyDevice device(*below, [](const Io& io) -> IoFault {
    if (io.tag == 1) return {.fault = Fault::io_error};
    if (io.tag == 2) return {.fault = Fault::drive_full, .at_submit = true};
    if (io.tag == 3) return {.delay = std::chrono::milliseconds(1)};
    return {};
  });
  const auto queue = device.open_queue();
  const auto io = [](std::uint64_t tag) { return Io{.tag = tag, .length_bytes = kUnit}; };
  EXPECT_EQ(run(*queue, io(0)).value().fault, Fault::none);
  EXPECT_EQ(run(*queue, io(1)).value().fault, Fault::io_error);
  EXPECT_EQ(run(*queue, io(2)).status().fault(), Fault::drive_full);
  const auto began = std::chrono::steady_clock::now();
  EXPECT_EQ(run(*queue, io(3)).value().fault, Fault::none);
  EXPECT_GE(std::chrono::steady_clock::now() - began, std::chrono::milliseconds(1));
  EXPECT_EQ(device.counters().host_reads, 3U) << "the refused one never reached the drive";
}

}  // namespace
}  // namespace spillway::device
