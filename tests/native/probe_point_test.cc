// Which points are valid, where their jobs' ios go, and which completions the window counts.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "probe/job.h"
#include "probe/point.h"
#include "probe/window.h"

namespace spillway::probe {
namespace {

constexpr Extent kExtent = {.range_bytes = 1 << 20, .lba_bytes = 512, .writable = true};
constexpr std::uint64_t kSeed = 7;

Point point_of(Pattern pattern, std::uint32_t numjobs = 1) {
  Point point;
  point.id = 3;
  point.pattern = pattern;
  point.numjobs = numjobs;
  point.ios = 100;
  return point;
}

std::vector<std::uint64_t> places(Job job, std::size_t count, std::uint64_t bs_bytes = 4096) {
  std::vector<std::uint64_t> result;
  while (result.size() < count && job.has_more()) {
    const device::Io io = job.next();
    EXPECT_EQ(io.offset_bytes % bs_bytes, 0U);
    EXPECT_EQ(io.length_bytes, bs_bytes);
    result.push_back(io.offset_bytes / bs_bytes);
  }
  return result;
}

TEST(Point, TakesWhatCanBeMeasured) {
  for (const Pattern pattern : {Pattern::random, Pattern::sequential, Pattern::staggered}) {
    EXPECT_TRUE(check(point_of(pattern, 8), kExtent));
  }
}

struct Refusal {
  void (*spoil)(Point&);
  const char* sentence;  // its beginning, after the point's id
};

TEST(Point, RefusesInOneSentenceThatNamesPointAndKey) {
  const Refusal refusals[] = {
      {[](Point& point) { point.ios.reset(); }, "ios and seconds are both missing"},
      {[](Point& point) { point.bs_bytes = 1000; },
       "bs_bytes is 1000; it takes a multiple of the target's 512-byte logical blocks"},
      {[](Point& point) { point.bs_bytes = 2 << 20; }, "range holds 1048576 bytes, too small for 1 x bs_bytes 2097152"},
      {[](Point& point) { point.range = 0.001; }, "range holds 1048 bytes, too small for 1 x bs_bytes 4096"},
      {[](Point& point) { point.numjobs = 1024, point.iodepth = 65; }, "numjobs x iodepth is 66560; it takes at most"},
      {[](Point& point) { point.engine = Engine::sync, point.iodepth = 2; }, "iodepth is 2, and engine sync does one"},
      {[](Point& point) { point.pattern = Pattern::sequential, point.numjobs = 257; },
       "range holds 1048576 bytes, too small for 257 x bs_bytes 4096"},
      {[](Point& point) { point.pattern = Pattern::staggered, point.ramp_ios = 1; }, "ramp_s and ramp_ios do not go"},
      {[](Point& point) { point.pattern = Pattern::staggered, point.numjobs = 101; }, "ios is 100, which gives some"},
  };
  for (const Refusal& refusal : refusals) {
    Point point = point_of(Pattern::random);
    refusal.spoil(point);
    const Status status = check(point, kExtent);
    EXPECT_EQ(status.fault(), Fault::bad_input) << refusal.sentence;
    EXPECT_TRUE(status.message().starts_with(std::string("point 3: ") + refusal.sentence)) << status.message();
  }
}

TEST(Point, WritesOnlyWithPermission) {
  Extent extent = kExtent;
  extent.writable = false;
  Point point = point_of(Pattern::random);
  EXPECT_TRUE(check(point, extent));
  point.read_share = 0.99;
  EXPECT_EQ(check(point, extent).message(),
            "point 3: read_share is below 1, and the target may not be written; set target.destroy_data");
}

TEST(Job, RandomPlacesAreUniformOverTheRange) {
  constexpr std::size_t kPlaces = 256;
  constexpr std::size_t kDraws = 256'000;
  std::vector<double> hits(kPlaces);
  for (const std::uint64_t place : places(Job(point_of(Pattern::random), 1 << 20, 0, kSeed), kDraws)) {
    ASSERT_LT(place, kPlaces);
    hits[place] += 1;
  }
  // Poisson: of 256 counts around 1000, one beyond 6 sigma occurs once in two million draws.
  for (const double count : hits) EXPECT_NEAR(count, 1000, 6 * std::sqrt(1000.0));
}

TEST(Job, RandomJobsDoNotFollowEachOther) {
  const Point point = point_of(Pattern::random, 2);
  EXPECT_NE(places(Job(point, 1 << 20, 0, kSeed), 20), places(Job(point, 1 << 20, 1, kSeed), 20));
  EXPECT_EQ(places(Job(point, 1 << 20, 0, kSeed), 20), places(Job(point, 1 << 20, 0, kSeed), 20));
  EXPECT_NE(places(Job(point, 1 << 20, 0, kSeed), 20), places(Job(point, 1 << 20, 0, kSeed + 1), 20));
}

// Reads in the order of earlier writes would find several of a flash page in a row, and dies that stand idle.
TEST(Job, NoPointFollowsAnother) {
  constexpr std::uint64_t kRange = std::uint64_t{1} << 60;  // so large that two draws are equal by design only
  std::set<std::uint64_t> first_places;
  std::size_t jobs = 0;
  for (const Pattern pattern : {Pattern::random, Pattern::staggered}) {
    for (std::uint64_t id = 0; id < 20; ++id) {
      Point point = point_of(pattern, pattern == Pattern::random ? 20 : 1);
      point.id = pattern == Pattern::random ? id : 20 + id;
      for (std::uint32_t index = 0; index < point.numjobs; ++index, ++jobs) {
        first_places.insert(places(Job(point, kRange, index, kSeed), 1).front());
      }
    }
  }
  EXPECT_EQ(first_places.size(), jobs);
}

TEST(Job, SequentialJobsGoThroughPartsOfTheirOwnAndBegin) {
  const Point point = point_of(Pattern::sequential, 3);  // 256 places: 85 each, one left over
  std::set<std::uint64_t> seen;
  for (std::uint32_t index = 0; index < 3; ++index) {
    const auto first = places(Job(point, 1 << 20, index, kSeed), 85);
    EXPECT_TRUE(std::is_sorted(first.begin(), first.end()));
    EXPECT_EQ(first.back() - first.front(), 84U);
    seen.insert(first.begin(), first.end());
    const auto longer = places(Job(point, 1 << 20, index, kSeed), 86);
    EXPECT_EQ(longer.back(), longer.front()) << "after its part it begins again";
  }
  EXPECT_EQ(seen.size(), 3 * 85U) << "no two jobs share a place";
}

TEST(Job, StaggeredJobsNeverMeetAtTheSameStepAndEndWithTheirShare) {
  Point point = point_of(Pattern::staggered, 7);
  point.ios = 1000;
  std::vector<std::vector<std::uint64_t>> all;
  std::size_t total = 0;
  for (std::uint32_t index = 0; index < 7; ++index) {
    all.push_back(places(Job(point, 1 << 20, index, kSeed), 10'000));
    total += all.back().size();
    EXPECT_NEAR(static_cast<double>(all.back().size()), 1000.0 / 7, 1);
  }
  EXPECT_EQ(total, 1000U);
  for (std::size_t step = 0; step < 142; ++step) {
    std::set<std::uint64_t> at_once;
    for (const auto& one : all) at_once.insert(one[step]);
    EXPECT_EQ(at_once.size(), 7U) << "step " << step;
  }
  EXPECT_GT(std::set<std::uint64_t>(all[0].begin(), all[0].end()).size(), 70U) << "and they do move about";
}

TEST(Job, DrawsReadsByTheirShare) {
  Point point = point_of(Pattern::random);
  for (const double share : {0.0, 0.05, 0.65, 1.0}) {
    point.read_share = share;
    Job job(point, 1 << 20, 0, kSeed);
    double reads = 0;
    for (int i = 0; i < 10'000; ++i) {
      const device::Io io = job.next();
      EXPECT_EQ(Job::is_read(io.tag), io.op == device::Opcode::read);
      reads += Job::is_read(io.tag) ? 1 : 0;
    }
    EXPECT_NEAR(reads / 10'000, share, 5 * std::sqrt(share * (1 - share) / 10'000));
  }
}

TEST(Window, CountsUpToTheNumberOfIosAndEndsThere) {
  Window window(point_of(Pattern::random), 1000);
  for (Nanos i = 1; i <= 100; ++i) {
    EXPECT_TRUE(window.is_open());
    EXPECT_TRUE(window.completed(1000 + i));
  }
  EXPECT_FALSE(window.is_open());
  EXPECT_FALSE(window.completed(1101));
  EXPECT_EQ(window.length_ns(), 100);
  EXPECT_FALSE(window.was_cut());
}

TEST(Window, EndsAfterItsSecondsNoMatterWhenSomethingCompletes) {
  Point point = point_of(Pattern::random);
  point.seconds = 1e-6;
  Window window(point, 5000);
  EXPECT_TRUE(window.completed(5999));
  EXPECT_TRUE(window.completed(6000));
  EXPECT_FALSE(window.completed(6400));
  EXPECT_FALSE(window.is_open());
  EXPECT_EQ(window.length_ns(), 1000);
  EXPECT_EQ(window.counted(), 2U);
}

TEST(Window, LeavesOutTheRampAndTheCompletionThatEndsIt) {
  Point point = point_of(Pattern::random);
  point.ios = 2;
  point.ramp_ios = 3;
  point.ramp_s = 1e-6;
  Window window(point, 0);
  for (const Nanos at : {10, 20, 30, 999}) EXPECT_FALSE(window.completed(at));  // enough ios, not enough time
  EXPECT_FALSE(window.completed(1005));                                         // the ramp ends here
  EXPECT_TRUE(window.completed(1010));
  EXPECT_TRUE(window.completed(1025));
  EXPECT_EQ(window.length_ns(), 20);
}

TEST(Window, ReportsThatItWasCut) {
  Window window(point_of(Pattern::random), 0);
  EXPECT_TRUE(window.completed(10));
  window.cut(50);
  EXPECT_FALSE(window.is_open());
  EXPECT_TRUE(window.was_cut());
  EXPECT_EQ(window.length_ns(), 50);
  Window done(point_of(Pattern::random), 0);
  for (Nanos i = 1; i <= 100; ++i) EXPECT_TRUE(done.completed(i));
  done.cut(500);
  EXPECT_FALSE(done.was_cut()) << "it had what it wanted";
  EXPECT_EQ(done.length_ns(), 100);
}

}  // namespace
}  // namespace spillway::probe
