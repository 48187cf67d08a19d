// The SLC cache on drives that are small enough to compute results by hand: fast until it is full, fast again after a
// pause, and overwritten data is not folded.
#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <vector>

#include "ssd/ssd.h"

namespace spillway::ssd {
namespace {

constexpr Nanos kMs = 1'000'000;

// Two dies of one plane; blocks of 16 pages, 4 of them in SLC mode. The cache has 16 blocks, which hold 64 units.
SsdConfig with_slc_cache() {
  SsdConfig c;
  c.geometry.channels = 2;
  c.geometry.chips_per_channel = 1;
  c.geometry.dies_per_chip = 1;
  c.geometry.pages_per_block = 16;
  c.capacity.capacity_bytes = 1024 * 4096;
  c.capacity.spare_factor = 0.2;
  c.timing.program_ns = {2 * kMs};
  c.timing.erase_ns = 3 * kMs;
  c.timing.channel_mb_s = 800;
  c.write_cache.bytes = 2 * 4096;
  c.slc_cache.share = 1.0 / 16;
  c.slc_cache.bits_per_cell = 4;
  c.slc_cache.program_ns = kMs / 5;
  c.slc_cache.idle_ns = 100 * kMs;
  return c;
}

constexpr std::uint64_t kCached = 64;
constexpr std::size_t kHost = static_cast<std::size_t>(FlashCause::host);
constexpr std::size_t kFold = static_cast<std::size_t>(FlashCause::fold);

Command io(Opcode op, std::uint64_t unit, std::uint32_t units = 1) {
  Command c;
  c.op = op;
  c.lba = unit * 8;
  c.lba_count = units * 8;
  return c;
}

// Runs the drive until nothing is in flight. Returns the time of the last completion.
Nanos complete(Ssd& ssd, Nanos now) {
  std::vector<Completion> done;
  while (ssd.in_flight() > 0) ssd.advance(*ssd.next_event(), done);
  for (const Completion& c : done) EXPECT_EQ(c.outcome, Outcome::success);
  return done.empty() ? now : done.back().completed;
}

// Writes units one after another, one in flight. Returns the time it takes.
Nanos write(Ssd& ssd, Nanos& now, std::uint64_t first, std::uint64_t count) {
  const Nanos began = now;
  for (std::uint64_t unit = first; unit < first + count; ++unit) {
    ssd.submit(now, io(Opcode::write, unit));
    now = complete(ssd, now);
  }
  return now - began;
}

void pause(Ssd& ssd, Nanos& now, Nanos length) {
  std::vector<Completion> done;
  now += length;
  ssd.advance(now, done);
}

void check_laws(const Ssd& ssd) {
  EXPECT_EQ(ssd.audit(), std::nullopt);
  const Counters& k = ssd.counters();
  EXPECT_EQ(k.nand_pages_programmed * ssd.config().geometry.page_bytes, k.nand_bytes_programmed_total());
}

TEST(SlcCache, LayoutReservesItsBlocks) {
  SsdConfig c = with_slc_cache();
  const Layout with = layout(c);
  c.slc_cache.share = 0;
  const Layout without = layout(c);
  EXPECT_EQ(with.slc_pages, 4U);
  EXPECT_EQ(with.slc_blocks, kCached / 4);
  EXPECT_EQ(with.blocks, without.blocks + kCached / 4);
  EXPECT_EQ(with.data_units, without.data_units);
  EXPECT_EQ(with.reserve_units, without.reserve_units);
  EXPECT_EQ(without.slc_pages, 0U);
}

TEST(SlcCache, WritesAreFastUntilItIsFullAndThenAtTheSpeedOfTheMainBlocks) {
  Ssd ssd(with_slc_cache(), 1);
  Nanos now = 0;
  const Nanos fast = write(ssd, now, 0, kCached);
  EXPECT_EQ(ssd.counters().slc_bytes_programmed, kCached * 4096);
  const Nanos slow = write(ssd, now, kCached, kCached);
  EXPECT_EQ(ssd.counters().slc_bytes_programmed, kCached * 4096);
  EXPECT_EQ(ssd.counters().nand_bytes_programmed[kFold], 0U);
  // Two dies program one page each at a time, 0.2 ms in SLC mode and 2 ms else.
  EXPECT_LT(fast, static_cast<Nanos>(kCached / 2) * kMs / 4);
  EXPECT_GT(slow, static_cast<Nanos>(kCached / 2 - 4) * 2 * kMs);
  check_laws(ssd);
}

TEST(SlcCache, APauseFoldsItAndGivesTheSpeedBack) {
  Ssd ssd(with_slc_cache(), 1);
  Nanos now = 0;
  const Nanos fast = write(ssd, now, 0, kCached);
  write(ssd, now, kCached, 8);
  pause(ssd, now, 50 * kMs);  // not yet idle
  EXPECT_EQ(ssd.counters().nand_bytes_programmed[kFold], 0U);
  pause(ssd, now, 1000 * kMs);
  EXPECT_EQ(ssd.counters().slc_blocks_folded, kCached / 4);
  EXPECT_EQ(ssd.counters().nand_bytes_programmed[kFold], kCached * 4096);
  EXPECT_EQ(ssd.mapped_units(), kCached + 8);
  EXPECT_EQ(ssd.next_event(), std::nullopt);
  check_laws(ssd);
  const std::uint64_t before = ssd.counters().slc_bytes_programmed;
  EXPECT_LT(write(ssd, now, 512, kCached), fast * 5 / 4);
  EXPECT_EQ(ssd.counters().slc_bytes_programmed - before, kCached * 4096);
  check_laws(ssd);
}

TEST(SlcCache, FoldingStopsAtTheLowWatermarkAndWhenACommandComes) {
  SsdConfig c = with_slc_cache();
  c.slc_cache.low_watermark = 0.5;
  Ssd ssd(c, 1);
  Nanos now = 0;
  write(ssd, now, 0, kCached + 2);
  pause(ssd, now, 1000 * kMs);
  EXPECT_EQ(ssd.counters().slc_blocks_folded, kCached / 4 / 2);

  Ssd other(with_slc_cache(), 1);
  now = 0;
  write(other, now, 0, kCached + 2);
  pause(other, now, 105 * kMs);
  other.submit(now, io(Opcode::read, 900));  // never written: served at once
  now = complete(other, now);
  pause(other, now, 50 * kMs);
  const std::uint64_t folded = other.counters().slc_blocks_folded;
  EXPECT_GT(folded, 0U);
  EXPECT_LT(folded, kCached / 4);
  pause(other, now, 1000 * kMs);
  EXPECT_EQ(other.counters().slc_blocks_folded, kCached / 4);
}

// The cache's benefit: short-lived data costs only one program, with one bit per cell.
TEST(SlcCache, WhatWasWrittenAgainOrDeallocatedIsNotFolded) {
  SsdConfig c = with_slc_cache();
  c.geometry.channels = 1;  // one open row, full when the last round ends
  Ssd ssd(c, 1);
  Nanos now = 0;
  for (int round = 0; round < 4; ++round) write(ssd, now, 0, kCached / 4);
  ssd.submit(now, io(Opcode::deallocate, 0, 4));
  now = complete(ssd, now);
  pause(ssd, now, 1000 * kMs);
  const Counters& k = ssd.counters();
  EXPECT_EQ(k.nand_bytes_programmed[kHost], kCached * 4096);
  EXPECT_EQ(k.nand_bytes_programmed[kFold], (kCached / 4 - 4) * 4096);
  EXPECT_EQ(k.slc_blocks_folded, kCached / 4);
  EXPECT_EQ(ssd.mapped_units(), kCached / 4 - 4);
  check_laws(ssd);
}

// Only overwrites of a few units: rows have no valid data before they are folded, and the cache is reused for ever.
TEST(SlcCache, DeadRowsAreErasedAndTheCacheIsReused) {
  Ssd ssd(with_slc_cache(), 1);
  Nanos now = 0;
  for (int round = 0; round < 40; ++round) write(ssd, now, 0, kCached / 4);
  const Counters& k = ssd.counters();
  EXPECT_EQ(k.slc_bytes_programmed, k.nand_bytes_programmed[kHost]);
  EXPECT_EQ(k.nand_bytes_programmed_total(), k.slc_bytes_programmed);
  check_laws(ssd);
}

TEST(SlcCache, AboveTheHighWatermarkItFoldsDuringHostCommands) {
  SsdConfig c = with_slc_cache();
  Nanos now = 0;
  std::uint64_t fast[2];
  std::uint64_t folded = 0;
  for (const bool beside : {false, true}) {
    c.slc_cache.high_watermark = beside ? 0.5 : 1;
    Ssd ssd(c, 1);
    write(ssd, now, 0, 6 * kCached);
    fast[beside] = ssd.counters().slc_bytes_programmed;
    folded = ssd.counters().nand_bytes_programmed[kFold];
    EXPECT_EQ(folded > 0, beside);
    check_laws(ssd);
  }
  EXPECT_EQ(fast[0], kCached * 4096) << "filled once";
  // What it took beyond its size was folded first, and all data is valid. No closed form says how often it is filled
  // again: whether a die takes a program of the host or of a fold next depends on both queues.
  EXPECT_LE(fast[1], kCached * 4096 + folded);
  EXPECT_GT(fast[1], 2 * fast[0]);
}

TEST(SlcCache, WithoutABypassEverythingGoesThroughIt) {
  SsdConfig c = with_slc_cache();
  c.slc_cache.bypass = false;
  Ssd ssd(c, 1);
  Nanos now = 0;
  const Nanos fast = write(ssd, now, 0, kCached / 2);
  write(ssd, now, kCached / 2, 6 * kCached);
  const Nanos slow = write(ssd, now, 7 * kCached, kCached / 2);
  // Now a unit waits until another was folded, which takes 2 ms of one of two dies, but for those that the cache's open
  // rows (a row of 4 pages on each die) and the write cache take.
  EXPECT_LT(fast, static_cast<Nanos>(kCached / 4) * kMs / 4);
  EXPECT_GT(slow, static_cast<Nanos>((kCached / 2 - 8 - 2) / 2) * 2 * kMs);
  const Counters& k = ssd.counters();
  EXPECT_EQ(k.slc_bytes_programmed, k.nand_bytes_programmed[kHost]);
  // The last units are not programmed yet.
  EXPECT_LE(k.host_bytes_written - k.slc_bytes_programmed, c.write_cache.bytes);
  const std::uint64_t left = kCached * 4096;
  EXPECT_GE(k.nand_bytes_programmed[kFold] + left, k.host_bytes_written);  // each unit was written once
  EXPECT_LE(k.nand_bytes_programmed[kFold] + left / 4, k.host_bytes_written);
  check_laws(ssd);
}

TEST(SlcCache, WithoutABypassAFullDriveIsWrittenAnyHow) {
  for (const double share : {1.0 / 1024, 1.0 / 16}) {  // the smallest cache: one block in each plane
    for (const std::uint32_t planes : {1U, 2U}) {
      SsdConfig c = with_slc_cache();
      c.geometry.planes_per_die = planes;
      c.write_cache.bytes = planes * 2 * 4096;
      c.slc_cache.share = share;
      c.slc_cache.bypass = false;
      c.slc_cache.high_watermark = 0.8;
      Ssd ssd(c, 1);
      const std::uint64_t units = c.capacity.capacity_bytes / 4096;
      Nanos now = 0;
      write(ssd, now, 0, units);
      std::mt19937_64 random(7);
      std::vector<Completion> done;
      for (std::uint64_t i = 0; i < 6 * units; ++i) {  // several in flight
        ssd.submit(now, io(random() % 8 == 0 ? Opcode::deallocate : Opcode::write, random() % units));
        while (ssd.in_flight() > 7) {
          const auto next = ssd.next_event();
          ASSERT_TRUE(next) << "it waits for ever, write " << i;
          now = *next;
          ssd.advance(now, done);
        }
      }
      complete(ssd, now);
      const Counters& k = ssd.counters();
      EXPECT_EQ(k.slc_bytes_programmed, k.nand_bytes_programmed[kHost]);
      check_laws(ssd);
    }
  }
}

TEST(SlcCache, TheDynamicPartShrinksAsTheMainBlocksFill) {
  SsdConfig c = with_slc_cache();
  c.slc_cache.dynamic_share = 0.125;  // 128 units on an empty drive, none from half full on
  c.slc_cache.dynamic_until = 0.5;
  std::vector<std::uint64_t> held;
  for (const std::uint64_t fill : {0U, 256U, 512U, 800U}) {
    Ssd ssd(c, 1);
    ssd.write_sequentially(0, fill);
    ssd.reset_counters();
    Nanos now = 0;
    write(ssd, now, 800, 200);
    held.push_back(ssd.counters().slc_bytes_programmed / 4096);
    check_laws(ssd);
  }
  EXPECT_EQ(held[0], kCached + 128);
  EXPECT_EQ(held[1], kCached + 64);
  EXPECT_EQ(held[2], kCached);
  EXPECT_EQ(held[3], kCached);
}

// It takes nearly all flash of an empty drive, and keeps it. Preconditioning takes no time, so nothing is folded during
// it.
TEST(SlcCache, ItsDynamicPartIsReleasedWhenMainDataNeedsIt) {
  SsdConfig c = with_slc_cache();
  c.slc_cache.dynamic_share = 0.25;
  c.slc_cache.low_watermark = 1;
  Ssd ssd(c, 1);
  Nanos now = 0;
  write(ssd, now, 700, kCached + 256);
  pause(ssd, now, 1000 * kMs);
  EXPECT_EQ(ssd.counters().slc_bytes_programmed, (kCached + 256) * 4096);
  ssd.write_sequentially(0, 700);
  check_laws(ssd);
  EXPECT_EQ(ssd.mapped_units(), 700 + kCached + 256);
  EXPECT_GT(ssd.counters().nand_bytes_programmed[kFold], 0U);
  for (std::uint64_t unit = 0; unit < 3 * 1024; ++unit) ssd.overwrite(unit * 7 % 1024);
  check_laws(ssd);
  EXPECT_EQ(ssd.mapped_units(), 1024U);
}

TEST(SlcCache, ReadsOfItTakeItsOwnTime) {
  SsdConfig c = with_slc_cache();
  c.timing.read_ns = {130'000};
  c.slc_cache.read_ns = 30'000;
  Ssd ssd(c, 1);
  Nanos now = 0;
  write(ssd, now, 0, 8);
  Nanos latency[2];
  for (const bool folded : {false, true}) {
    pause(ssd, now, folded ? 1000 * kMs : 10 * kMs);
    const Nanos began = now;
    ssd.submit(now, io(Opcode::read, 0));
    now = complete(ssd, now);
    latency[folded] = now - began;
    write(ssd, now, 8, 10);  // so that the row of unit 0 is full, and is folded in the next pause
  }
  EXPECT_EQ(latency[1] - latency[0], 100'000);
}

TEST(SlcCache, OutlivesAPowerCycleWithWhatItHolds) {
  SsdConfig keeping = with_slc_cache();
  keeping.slc_cache.low_watermark = 0.25;
  Ssd ssd(keeping, 1);
  Nanos now = 0;
  write(ssd, now, 0, kCached / 2 + 1);
  pause(ssd, now, 1000 * kMs);
  std::vector<std::uint8_t> state;
  ASSERT_TRUE(ssd.save([&state](const void* bytes, std::size_t size) {
    const auto* from = static_cast<const std::uint8_t*>(bytes);
    state.insert(state.end(), from, from + size);
    return true;
  }));
  const auto load = [&state](Ssd& other) {
    std::size_t at = 0;
    return other.load([&state, &at](void* bytes, std::size_t size) {
      if (state.size() - at < size) return false;
      if (size == 0) return true;
      std::memcpy(bytes, state.data() + at, size);
      at += size;
      return true;
    });
  };
  SsdConfig eager = with_slc_cache();  // the same flash, but folds all of it
  Ssd other(eager, 1);
  ASSERT_EQ(load(other), std::nullopt);
  const std::uint64_t folded = other.counters().slc_blocks_folded;
  now = 0;
  write(other, now, 900, 1);
  pause(other, now, 1000 * kMs);
  EXPECT_GT(other.counters().slc_blocks_folded, folded);
  check_laws(other);
  SsdConfig larger = with_slc_cache();
  larger.slc_cache.share *= 2;
  Ssd another(larger, 1);
  EXPECT_TRUE(load(another).has_value());
}

TEST(SlcCache, AskingForWhatCannotBeIsRefusedByKey) {
  const auto refused = [](auto change) {
    SsdConfig c = with_slc_cache();
    change(c);
    const auto found = problem(c);
    return found ? found->key : "";
  };
  EXPECT_EQ(refused([](SsdConfig&) {}), "");
  EXPECT_EQ(refused([](SsdConfig& c) { c.slc_cache.share = 0.6; }), "slc_cache.share");
  EXPECT_EQ(refused([](SsdConfig& c) { c.slc_cache.bits_per_cell = 1; }), "slc_cache.bits_per_cell");
  EXPECT_EQ(refused([](SsdConfig& c) { c.geometry.pages_per_block = 3; }), "slc_cache.bits_per_cell");
  EXPECT_EQ(refused([](SsdConfig& c) { c.slc_cache.dynamic_share = 0.26; }), "slc_cache.dynamic_share");
  EXPECT_EQ(refused([](SsdConfig& c) { c.slc_cache.dynamic_until = 0; }), "slc_cache.dynamic_until");
  EXPECT_EQ(refused([](SsdConfig& c) { c.slc_cache.low_watermark = 1.1; }), "slc_cache.low_watermark");
  EXPECT_EQ(refused([](SsdConfig& c) { c.slc_cache.high_watermark = 1.1; }), "slc_cache.high_watermark");
  EXPECT_EQ(refused([](SsdConfig& c) { c.gc.separate_streams = false; }), "slc_cache.share");
  const auto borrowing_without_a_bypass = [](SsdConfig& c) {
    c.slc_cache.dynamic_share = 0.1;
    c.slc_cache.bypass = false;
  };
  EXPECT_EQ(refused(borrowing_without_a_bypass), "slc_cache.bypass");
  EXPECT_EQ(refused([](SsdConfig& c) { c.capacity.spare_factor = 0; }), "slc_cache.share");
}

}  // namespace
}  // namespace spillway::ssd
