// The pool on a drive that holds data: which pages are written when, each once, and that every read returns the last
// write.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "pool/buffer_pool.h"
#include "pool_data_device.h"
#include "ssd/structures/random.h"

namespace spillway::pool {
namespace {

constexpr std::uint32_t kPageBytes = 4096;
constexpr std::uint64_t kPages = 64;

using Places = std::vector<Page>;

struct Bench {
  explicit Bench(Frame frames, std::uint32_t write_back = 1, std::uint32_t prefetch = 0, const char* policy = "lru")
      : pool(drive, spec(frames, write_back, prefetch), std::move(*make_policy(policy, frames))) {}

  // A write_back of 0: the pool tunes it, up to all of its pages.
  static PoolSpec spec(Frame frames, std::uint32_t write_back, std::uint32_t prefetch) {
    PoolSpec spec{kPageBytes, kPages, frames, std::max(write_back, 1U), prefetch};
    if (write_back == 0) spec.tune_most = frames;
    return spec;
  }

  void read(Page page) { EXPECT_TRUE(pool.fetch(page)); }
  void write(Page page) {
    auto pin = pool.fetch(page);
    ASSERT_TRUE(pin) << pin.status().message();
    pin->mark_dirty();
  }
  // The pages of each batch of that kind since the last call.
  std::vector<Places> batches(device::Opcode op) {
    std::vector<Places> found;
    for (const auto& batch : drive.batches) {
      if (batch.front().op != op) continue;
      found.emplace_back();
      for (const auto& io : batch) found.back().push_back(io.offset_bytes / kPageBytes);
    }
    return found;
  }

  DataDevice drive{kPages * kPageBytes};
  BufferPool pool;
};

TEST(BufferPool, ReadsAPageOnceWhileItIsThere) {
  Bench bench(2);
  for (const Page page : {5, 6, 5, 6, 5}) bench.read(page);
  EXPECT_EQ(bench.batches(device::Opcode::read), (std::vector<Places>{{5}, {6}}));
  EXPECT_EQ(bench.pool.counters().hits, 3U);
  EXPECT_EQ(bench.pool.counters().misses, 2U);
}

TEST(BufferPool, CleanVictimCostsOneRead) {
  Bench bench(2, /*write_back=*/2);
  for (const Page page : {1, 2, 3}) bench.read(page);
  EXPECT_TRUE(bench.batches(device::Opcode::write).empty());
  EXPECT_EQ(bench.pool.counters().evictions, 1U);
  bench.read(2);
  EXPECT_EQ(bench.pool.counters().hits, 1U);
}

// A dirty page after a clean victim is not written: writes wait until one is needed.
TEST(BufferPool, WritesOnlyWhenTheVictimIsDirty) {
  Bench bench(3, /*write_back=*/2);
  bench.read(1);
  bench.write(2);
  bench.write(3);
  bench.read(4);
  EXPECT_TRUE(bench.batches(device::Opcode::write).empty());
  bench.read(5);
  EXPECT_EQ(bench.batches(device::Opcode::write), (std::vector<Places>{{2, 3}}));
}

TEST(BufferPool, DirtyVictimIsWrittenWithTheNextDirtyPagesAndOneIsEvicted) {
  Bench bench(5, /*write_back=*/3);
  bench.write(10);
  bench.read(11);
  bench.write(12);
  bench.write(13);
  bench.write(14);
  bench.read(20);
  // The clean page between them is skipped, and the fourth dirty one is not in the batch.
  EXPECT_EQ(bench.batches(device::Opcode::write), (std::vector<Places>{{10, 12, 13}}));
  EXPECT_EQ(bench.pool.counters().evictions, 1U);
  EXPECT_EQ(bench.pool.dirty_pages(), 1U);
  // The others are still resident and clean: they are evicted without another write.
  for (const Page page : {11, 12, 13}) bench.read(page);
  EXPECT_EQ(bench.pool.counters().hits, 3U);
}

TEST(BufferPool, EveryDirtyingIsWrittenOnce) {
  Bench bench(4, /*write_back=*/4);
  for (const Page page : {0, 1, 2, 3}) bench.write(page);
  for (Page page = 10; page < 30; ++page) bench.read(page);
  EXPECT_EQ(bench.batches(device::Opcode::write), (std::vector<Places>{{0, 1, 2, 3}}));
  EXPECT_EQ(bench.pool.counters().pages_written, 4U);
  EXPECT_EQ(bench.pool.counters().write_batches, 1U);
}

TEST(BufferPool, PrefetchEvictsAsManyAsItReads) {
  Bench bench(4, /*write_back=*/4, /*prefetch=*/2);
  for (const Page page : {0, 1, 2, 3}) bench.write(page);
  bench.read(10);
  EXPECT_EQ(bench.batches(device::Opcode::write), (std::vector<Places>{{0, 1, 2, 3}}));
  EXPECT_EQ(bench.batches(device::Opcode::read).back(), (Places{10, 11, 12}));
  EXPECT_EQ(bench.pool.counters().evictions, 3U);
  EXPECT_EQ(bench.pool.counters().pages_prefetched, 2U);
  bench.read(11);
  bench.read(11);
  bench.read(3);
  EXPECT_EQ(bench.pool.counters().hits, 3U);
  EXPECT_EQ(bench.pool.counters().prefetched_hits, 1U);
}

TEST(BufferPool, PrefetchesOnlyAbsentPagesWithinTheDrive) {
  Bench bench(4, /*write_back=*/4, /*prefetch=*/3);
  bench.write(0);
  for (const Page page : {1, 2}) bench.write(page);
  bench.write(kPages - 2);
  bench.read(kPages - 3);  // of the next three, one is resident and one is past the end
  EXPECT_EQ(bench.batches(device::Opcode::read).back(), (Places{kPages - 3, kPages - 1}));
  EXPECT_EQ(bench.pool.counters().evictions, 2U);
}

TEST(BufferPool, CountsPagesThatWereWrittenTooEarly) {
  Bench bench(4, /*write_back=*/4);
  for (const Page page : {0, 1, 2, 3}) bench.write(page);
  bench.read(10);  // writes all four and evicts page 0
  EXPECT_EQ(bench.pool.counters().pages_written_in_vain, 0U);
  bench.write(1);
  bench.write(1);
  EXPECT_EQ(bench.pool.counters().pages_written_in_vain, 1U) << "once for each time that it was written";
  bench.write(0);  // it was evicted in between: its write was not in vain
  EXPECT_EQ(bench.pool.counters().pages_written_in_vain, 1U);
}

TEST(BufferPool, PinnedPagesStay) {
  Bench bench(2, /*write_back=*/2);
  auto held = bench.pool.fetch(1);
  ASSERT_TRUE(held);
  held->mark_dirty();
  bench.write(2);
  bench.read(3);
  // The pinned page is not written either, because its holder may be changing it.
  EXPECT_EQ(bench.batches(device::Opcode::write), (std::vector<Places>{{2}}));
  auto second = bench.pool.fetch(3);
  ASSERT_TRUE(second);
  const auto third = bench.pool.fetch(4);
  ASSERT_FALSE(third);
  EXPECT_EQ(third.status().fault(), Fault::bad_input);
  EXPECT_EQ(third.status().message(), "all 2 pages of the pool are pinned; make it larger");
  { const Pin moved = std::move(*second); }
  bench.read(4);
}

TEST(BufferPool, FlushWritesDirtyPagesInOrderOfAddress) {
  Bench bench(6, /*write_back=*/2);
  for (const Page page : {9, 3, 7, 1}) bench.write(page);
  bench.read(5);
  ASSERT_TRUE(bench.pool.flush());
  EXPECT_EQ(bench.batches(device::Opcode::write), (std::vector<Places>{{1, 3}, {7, 9}}));
  ASSERT_TRUE(bench.pool.flush());
  EXPECT_EQ(bench.pool.counters().pages_written, 4U);
}

TEST(BufferPool, AFailedWriteLosesNothing) {
  Bench bench(2, /*write_back=*/2);
  bench.drive.fate = [](const device::Io& io) {
    return io.op == device::Opcode::write && io.offset_bytes == kPageBytes ? Fault::io_error : Fault::none;
  };
  for (const Page page : {1, 2}) {
    auto pin = bench.pool.fetch(page);
    ASSERT_TRUE(pin);
    pin->bytes()[0] = std::byte{static_cast<unsigned char>(page)};
    pin->mark_dirty();
  }
  const auto failed = bench.pool.fetch(3);
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.status().fault(), Fault::io_error);
  EXPECT_EQ(failed.status().message(), "page 1 could not be written: the drive failed");
  EXPECT_EQ(bench.pool.dirty_pages(), 1U);
  bench.drive.fate = [](const device::Io&) { return Fault::none; };
  bench.read(3);
  bench.read(4);
  EXPECT_EQ(bench.drive.media[1 * kPageBytes], std::byte{1});
  EXPECT_EQ(bench.drive.media[2 * kPageBytes], std::byte{2});
}

TEST(BufferPool, AFailedReadLeavesItsFrameToOthers) {
  Bench bench(1);
  bench.drive.fate = [](const device::Io& io) { return io.offset_bytes == 0 ? Fault::io_error : Fault::none; };
  for (int i = 0; i < 3; ++i) {
    const auto failed = bench.pool.fetch(0);
    ASSERT_FALSE(failed);
    EXPECT_EQ(failed.status().message(), "page 0 could not be read: the drive failed");
  }
  bench.read(1);
  EXPECT_EQ(bench.pool.counters().pages_read, 1U);
}

TEST(BufferPool, AFailedPrefetchIsNoFailure) {
  Bench bench(2, /*write_back=*/2, /*prefetch=*/1);
  bench.drive.fate = [](const device::Io& io) {
    return io.op == device::Opcode::read && io.offset_bytes == 11 * kPageBytes ? Fault::io_error : Fault::none;
  };
  bench.write(0);
  bench.write(1);
  bench.read(10);
  EXPECT_EQ(bench.pool.counters().pages_prefetched, 0U);
  EXPECT_FALSE(bench.pool.fetch(11));
  bench.read(12);
}

// Against a map of each page's last content, for all policies, batches and prefetch; some pages are pinned meanwhile.
// A write_back of 0: tuned.
class Integrity : public testing::TestWithParam<std::tuple<const char*, std::uint32_t, std::uint32_t>> {};

TEST_P(Integrity, EveryReadSeesTheLastWrite) {
  const auto [policy, write_back, prefetch] = GetParam();
  ssd::Random random(11);
  std::map<Page, std::uint64_t> last;
  {
    Bench bench(12, write_back, prefetch, policy);
    std::vector<Pin> held;
    for (std::uint64_t step = 1; step <= 20000; ++step) {
      const Page page = random.below(random.uniform() < 0.5 ? kPages : 16);
      auto pin = bench.pool.fetch(page);
      ASSERT_TRUE(pin) << pin.status().message();
      // The stamp is at the page's end, so that a transfer of a wrong place or length is noticed.
      std::uint64_t* const stamp = reinterpret_cast<std::uint64_t*>(pin->bytes().data() + kPageBytes) - 1;
      ASSERT_EQ(*stamp, last[page]) << "page " << page << " at step " << step;
      if (random.uniform() < 0.5) {
        *stamp = last[page] = step;
        pin->mark_dirty();
      }
      if (random.uniform() < 0.1) held.push_back(std::move(*pin));
      if (held.size() > 4) held.erase(held.begin());
    }
    held.clear();
    ASSERT_TRUE(bench.pool.flush());
    EXPECT_EQ(bench.pool.dirty_pages(), 0U);
    for (const auto& [page, stamp] : last) {
      std::uint64_t found = 0;
      std::memcpy(&found, bench.drive.media.data() + (page + 1) * kPageBytes - sizeof found, sizeof found);
      EXPECT_EQ(found, stamp) << "page " << page << " on the drive";
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Pool, Integrity,
                         testing::Values(std::tuple{"lru", 1U, 0U}, std::tuple{"lru", 8U, 0U},
                                         std::tuple{"lru", 8U, 7U}, std::tuple{"clock-sweep", 1U, 0U},
                                         std::tuple{"clock-sweep", 8U, 0U}, std::tuple{"clock-sweep", 8U, 7U},
                                         std::tuple{"clock-sweep", 12U, 3U}, std::tuple{"clock-sweep", 0U, 0U},
                                         std::tuple{"lru", 0U, 3U}));

TEST(PoolSpec, NamesTheErrorAndItsFix) {
  DataDevice drive(kPages * kPageBytes);
  const auto said = [&](const PoolSpec& spec) { return check(spec, drive.info()).message(); };
  EXPECT_EQ(said({kPageBytes, kPages, 4, 2, 1}), "");
  EXPECT_EQ(said({1000, kPages, 4, 1, 0}), "pool.page_bytes is 1000; on this target it takes a multiple of 4096");
  EXPECT_EQ(said({kPageBytes, kPages + 1, 4, 1, 0}),
            "workload.pages is 65; the target has 64 pages of 4096 bytes, and one is the least");
  EXPECT_EQ(said({kPageBytes, kPages, 0, 1, 0}), "pool.pages is 0; it takes at least 1");
  EXPECT_EQ(said({kPageBytes, kPages, 4, 0, 0}), "pool.write_back is 0; it takes at least 1");
  EXPECT_EQ(said({kPageBytes, kPages, 4, 5, 0}),
            "pool.write_back is 5 and pool.pages 4; a pool writes back at most all of its pages at once");
  EXPECT_EQ(said({kPageBytes, kPages, 4, 2, 2}),
            "pool.prefetch is 2 and pool.write_back 2; room for prefetched pages comes from those written back, so it "
            "takes less than that");
  const auto tuned = [](std::uint32_t most, std::uint32_t prefetch) {
    PoolSpec spec{kPageBytes, kPages, 4, 1, prefetch};
    spec.tune_most = most;
    return spec;
  };
  EXPECT_EQ(said(tuned(4, 3)), "");
  EXPECT_EQ(said(tuned(5, 0)),
            "pool.tune.most is 5 and pool.pages 4; a pool writes back at most all of its pages at once");
  EXPECT_EQ(said(tuned(3, 3)),
            "pool.prefetch is 3 and pool.tune.most 3; room for prefetched pages comes from those written back, so it "
            "takes less than that");
}

}  // namespace
}  // namespace spillway::pool
