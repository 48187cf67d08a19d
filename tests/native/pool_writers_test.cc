// How a batch gets to the drive: by which thread, when, and the outcome of each io.
#include <gtest/gtest.h>

#include <algorithm>
#include <mutex>
#include <set>
#include <thread>
#include <utility>
#include <vector>

#include "pool/writers.h"

namespace spillway::pool {
namespace {

using device::Device;
using device::Io;
using device::Nanos;

// Takes `serve_ns` for an io, whatever their number, in virtual time that only passes while a thread waits or is busy;
// or no time, for threads. Records which thread issued which io when. Fault envelope: ios with the tags in `bad` fail.
class Clockwork final : public Device {
 public:
  explicit Clockwork(bool is_virtual) { info_.time_scale = is_virtual ? 0 : 1; }

  const device::DeviceInfo& info() const override { return info_; }
  std::unique_ptr<device::Queue> open_queue() override { return std::make_unique<ClockworkQueue>(*this); }
  Nanos now() override { return now_; }
  Nanos issue_ns(const Io& /*io*/) const override { return issue; }
  void spend(Nanos for_ns) override { now_ += for_ns; }
  ssd::Counters counters() override { return {}; }

  Nanos serve_ns = 0;
  Nanos issue = 0;
  std::set<std::uint64_t> bad;
  std::vector<Nanos> issued;
  std::set<std::thread::id> issuers;

 private:
  class ClockworkQueue final : public device::Queue {
   public:
    explicit ClockworkQueue(Clockwork& drive) : drive_(drive) {}
    Status submit(std::span<const Io> ios) override {
      const std::lock_guard lock(drive_.mutex_);
      for (const Io& io : ios) {
        drive_.issued.push_back(drive_.now_);
        drive_.issuers.insert(std::this_thread::get_id());
        const Fault fault = drive_.bad.contains(io.tag) ? Fault::io_error : Fault::none;
        under_way_.push_back({io.tag, drive_.now_, drive_.now_ + drive_.serve_ns, fault});
      }
      return {};
    }
    std::size_t reap(std::span<device::Done> done, std::size_t at_least) override {
      const std::lock_guard lock(drive_.mutex_);
      for (std::size_t i = 0; i < at_least; ++i) {
        done[i] = under_way_.back();  // in reverse order, because no caller may rely on an order
        under_way_.pop_back();
        drive_.now_ = std::max(drive_.now_, done[i].completed);
      }
      return at_least;
    }
    std::size_t pending() const override { return under_way_.size(); }

   private:
    Clockwork& drive_;
    std::vector<device::Done> under_way_;
  };

  std::mutex mutex_;
  Nanos now_ = 0;
  device::DeviceInfo info_;
};

std::vector<Fault> transfer(Clockwork& drive, WritersKind kind, std::size_t count, const HandOffTable& hand_off = {}) {
  std::vector<Io> ios(count);
  for (std::size_t i = 0; i < count; ++i) ios[i].tag = i;
  std::vector<Fault> faults(count, Fault::drive_full);
  const auto writers = make_writers(drive, kind, 8, hand_off);
  EXPECT_TRUE(writers) << writers.status().message();
  writers.value()->transfer(ios, faults);
  return faults;
}

constexpr WritersKind kKinds[] = {WritersKind::queue, WritersKind::threads, WritersKind::new_threads};

TEST(Writers, OutcomesAreInTheOrderOfTheIos) {
  for (const WritersKind kind : kKinds) {
    for (const bool is_virtual : {true, false}) {
      Clockwork drive(is_virtual);
      drive.bad = {0, 4};
      const Fault bad = Fault::io_error;
      const Fault good = Fault::none;
      EXPECT_EQ(transfer(drive, kind, 6), (std::vector<Fault>{bad, good, good, good, bad, good})) << name_of(kind);
    }
  }
}

TEST(Writers, EachIoHasAThreadOfItsOwnWhereTimePassesByItself) {
  for (const WritersKind kind : kKinds) {
    Clockwork drive(/*is_virtual=*/false);
    transfer(drive, kind, 6);
    EXPECT_EQ(drive.issued.size(), 6U);
    const bool here = drive.issuers.contains(std::this_thread::get_id());
    EXPECT_EQ(here, kind == WritersKind::queue) << name_of(kind);
    // A new thread may get the id of one that has ended.
    if (kind == WritersKind::threads) {
      EXPECT_EQ(drive.issuers.size(), 6U);
    }
  }
}

TEST(Writers, WaitingThreadsTakeOneBatchAfterAnother) {
  Clockwork drive(/*is_virtual=*/false);
  const auto writers = make_writers(drive, WritersKind::threads, 8, {});
  ASSERT_TRUE(writers);
  std::vector<Io> ios(8);
  std::size_t wanted = 0;
  for (std::size_t batch = 0; batch < 400; ++batch) {
    const std::size_t count = 1 + batch % 8;
    for (std::size_t i = 0; i < count; ++i) ios[i].tag = i;
    drive.bad = {batch % 8};
    std::vector<Fault> faults(count);
    writers.value()->transfer(std::span(ios).first(count), faults);
    for (std::size_t i = 0; i < count; ++i) EXPECT_EQ(faults[i] != Fault::none, i == batch % 8);
    wanted += count;
  }
  EXPECT_EQ(drive.issued.size(), wanted);
}

// If the host takes no time, all are issued at once and complete together.
TEST(Writers, OneQueueHandsAllOverAtOnce) {
  Clockwork drive(/*is_virtual=*/true);
  drive.serve_ns = 1000;
  transfer(drive, WritersKind::queue, 4);
  EXPECT_EQ(drive.issued, (std::vector<Nanos>{0, 0, 0, 0}));
  EXPECT_EQ(drive.now(), 1000);
}

TEST(Writers, OneThreadIssuesOneAfterAnother) {
  Clockwork drive(/*is_virtual=*/true);
  drive.serve_ns = 1000;
  drive.issue = 30;
  transfer(drive, WritersKind::queue, 4);
  EXPECT_EQ(drive.issued, (std::vector<Nanos>{0, 30, 60, 90}));
  EXPECT_EQ(drive.now(), 1090);
}

TEST(Writers, ThreadsBeginAsTheyAreHandedTheirIo) {
  Clockwork drive(/*is_virtual=*/true);
  drive.serve_ns = 1000;
  drive.issue = 30;  // each thread has this cost
  transfer(drive, WritersKind::threads, 4, {{4, 5, 26, 11}});
  EXPECT_EQ(drive.issued, (std::vector<Nanos>{5, 12, 19, 26}));
  EXPECT_EQ(drive.now(), 26 + 1000 + 11);
}

TEST(Writers, TheTableIsInterpolatedLinearly) {
  const HandOffTable table = {{2, 10, 20, 4}, {4, 30, 60, 8}};
  EXPECT_EQ(hand_off_of(table, 3).first_ns, 20);
  EXPECT_EQ(hand_off_of(table, 3).last_ns, 40);
  EXPECT_EQ(hand_off_of(table, 3).told_ns, 6);
  EXPECT_EQ(hand_off_of(table, 1).last_ns, 20) << "what is below the first is as the first";
  EXPECT_EQ(hand_off_of(table, 8).last_ns, 120) << "what is beyond the last costs as much each";
  EXPECT_EQ(hand_off_of({}, 8).last_ns, 0);
}

TEST(Writers, MeasuredThreadsCostMoreWhenTheyAreMoreAndWhenTheyAreNew) {
  const HandOffTable& waiting = measured_hand_off(WritersKind::threads);
  const HandOffTable& fresh = measured_hand_off(WritersKind::new_threads);
  for (const std::uint32_t n : {2U, 8U, 32U, 64U}) {
    EXPECT_GT(hand_off_of(waiting, 2 * n).last_ns, hand_off_of(waiting, n).last_ns) << n;
    EXPECT_GT(hand_off_of(fresh, n).last_ns, hand_off_of(waiting, n).last_ns) << n;
  }
  EXPECT_TRUE(measured_hand_off(WritersKind::queue).empty());
}

TEST(Writers, Names) {
  for (const WritersKind kind : kKinds) EXPECT_EQ(writers_named(name_of(kind)), kind);
  EXPECT_FALSE(writers_named("thread"));
}

}  // namespace
}  // namespace spillway::pool
