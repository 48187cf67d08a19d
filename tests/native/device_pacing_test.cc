// The pacing error says how late a paced drive is, and nothing else.
#include <gtest/gtest.h>
#include <pthread.h>
#include <time.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <thread>
#include <vector>

#include "device/emulated/emulated.h"
#include "device_small_drive.h"

namespace spillway::device {
namespace {

constexpr std::uint64_t kPageBytes = 4096;
constexpr std::int64_t kProgramNs = 100'000'000;

// Full, with nothing to collect and without a write cache: each write programs one of four dies.
std::unique_ptr<EmulatedDevice> slow_writer() {
  ssd::SsdConfig config = small_drive();
  config.write_cache.bytes = 0;
  config.timing.program_ns = {kProgramNs};
  ssd::Ssd ssd(config, 3);
  ssd.write_sequentially(0, ssd.layout().logical_units);
  return make_paced(std::move(ssd), 1.0);
}

std::vector<Io> reads_and_a_write() {
  std::vector<Io> ios = {{.op = Opcode::write, .length_bytes = kPageBytes}};
  for (std::uint64_t i = 1; i <= 8; ++i)
    ios.push_back({.tag = i, .offset_bytes = i * 211 * kPageBytes, .length_bytes = kPageBytes});
  return ios;
}

// The fast ones of a batch that is waited for as a whole are not late: their owner did not ask for them earlier.
TEST(PacingError, OfABatchBeginsWithTheLastOfIt) {
  const auto device = slow_writer();
  const auto queue = device->open_queue();
  const auto ios = reads_and_a_write();
  ASSERT_TRUE(queue->submit(ios));
  std::vector<Done> done(ios.size());
  ASSERT_EQ(queue->reap(done, ios.size()), ios.size());
  // Most are reads of dies that do not program, complete 100 ms before the write.
  const PacingReport report = device->pacing();
  ASSERT_EQ(report.error.count(), ios.size());
  EXPECT_LT(report.error.quantile_ns(0.5), kProgramNs / 2);
}

TEST(PacingError, OfAnOwnerWhoAsksLateIsNone) {
  const auto device = slow_writer();
  const auto queue = device->open_queue();
  const auto ios = reads_and_a_write();
  ASSERT_TRUE(queue->submit(ios));
  std::this_thread::sleep_for(std::chrono::nanoseconds(3 * kProgramNs));
  std::vector<Done> done(ios.size());
  EXPECT_EQ(queue->reap(done, 1), ios.size()) << "all that is due is returned";
  EXPECT_LT(device->pacing().error.quantile_ns(0.5), kProgramNs / 2);
}

// Keeps the thread that it is sent to from running for 200 ms, as a loaded machine would.
void starve(int) {
  const timespec time{.tv_sec = 0, .tv_nsec = 2 * kProgramNs};
  ::nanosleep(&time, nullptr);
}

// A thread that is to be served, and one that serves another: who is starved makes the drive late, and that shows.
TEST(PacingError, OfAStarvedThreadShows) {
  struct sigaction action {};
  struct sigaction before {};
  action.sa_handler = starve;
  ASSERT_EQ(::sigaction(SIGUSR1, &action, &before), 0);
  for (const bool has_follower : {false, true}) {
    const auto device = slow_writer();
    std::atomic<int> waiting{0};
    const auto write = [&](std::uint64_t place) {
      const auto queue = device->open_queue();
      const Io io{.op = Opcode::write, .offset_bytes = place * kPageBytes, .length_bytes = kPageBytes};
      ASSERT_TRUE(queue->submit({&io, 1}));
      ++waiting;
      Done done;
      EXPECT_EQ(queue->reap({&done, 1}, 1), 1U);
    };
    std::thread leader(write, 1);
    while (waiting < 1) std::this_thread::yield();
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    std::thread follower;
    if (has_follower) follower = std::thread(write, 2);
    while (waiting < (has_follower ? 2 : 1)) std::this_thread::yield();
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    ASSERT_EQ(::pthread_kill(leader.native_handle(), SIGUSR1), 0);
    leader.join();
    if (has_follower) follower.join();
    const Histogram error = device->pacing().error;
    ASSERT_EQ(error.count(), has_follower ? 2U : 1U);
    EXPECT_GT(error.quantile_ns(0), kProgramNs / 2);
  }
  ::sigaction(SIGUSR1, &before, nullptr);
}

// A thread is starved while it holds up another one in submit(): what that one waits for is late, although it asks for
// it only then. The first thread is in submit() nearly all the time, with many commands of which the last is refused.
// Where the signal comes is up to chance nevertheless, so the test goes on until it has met that.
TEST(PacingError, OfAThreadThatIsHeldUpInSubmitShows) {
  struct sigaction action {};
  struct sigaction before {};
  action.sa_handler = starve;
  ASSERT_EQ(::sigaction(SIGUSR1, &action, &before), 0);
  bool has_met = false;
  for (int attempt = 0; attempt < 50 && !has_met; ++attempt) {
    const auto device = slow_writer();
    std::atomic<bool> ends{false};
    std::atomic<int> batches{0};
    std::thread holder([&] {
      const auto queue = device->open_queue();
      std::vector<Io> ios(1 << 18, Io{.op = Opcode::read, .length_bytes = kPageBytes});
      ios.back().length_bytes = 0;
      for (; !ends; ++batches) ASSERT_FALSE(queue->submit(ios));
    });
    while (batches < 2) std::this_thread::yield();
    const auto queue = device->open_queue();
    const Io io{.op = Opcode::read, .offset_bytes = 8 * kPageBytes, .length_bytes = kPageBytes};
    Done done;
    ASSERT_TRUE(queue->submit({&io, 1}));
    for (const int before_it = batches; batches < before_it + 2;) std::this_thread::yield();  // it has the lock again
    ASSERT_EQ(::pthread_kill(holder.native_handle(), SIGUSR1), 0);
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    const auto began = std::chrono::steady_clock::now();
    ASSERT_TRUE(queue->submit({&io, 1}));
    has_met = std::chrono::steady_clock::now() - began > std::chrono::nanoseconds(kProgramNs);
    for (int i = 0; i < 2; ++i) ASSERT_EQ(queue->reap({&done, 1}, 1), 1U);
    ends = true;
    holder.join();
    if (has_met) {
      EXPECT_GT(device->pacing().error.quantile_ns(1), kProgramNs / 2);
    }
  }
  EXPECT_TRUE(has_met);
  ::sigaction(SIGUSR1, &before, nullptr);
}

}  // namespace
}  // namespace spillway::device
