// The drive in time, feature by feature, on drives that are small enough to compute results by hand.
#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "ssd/ssd.h"
#include "ssd/structures/random.h"

namespace spillway::ssd {
namespace {

constexpr Nanos kUs = 1000;

// One channel, one die, one plane; a link and a channel that move 4 KiB in 4.096 and 40.96 us.
SsdConfig one_die() {
  SsdConfig c;
  c.geometry.channels = 1;
  c.geometry.chips_per_channel = 1;
  c.geometry.dies_per_chip = 1;
  c.geometry.planes_per_die = 1;
  c.geometry.pages_per_block = 16;
  c.capacity.capacity_bytes = 64 * 16 * 4096;
  c.capacity.spare_factor = 0.2;
  c.timing.read_ns = {50 * kUs};
  c.timing.program_ns = {500 * kUs};
  c.timing.erase_ns = 3000 * kUs;
  c.timing.channel_mb_s = 100;
  c.timing.host_link_mb_s = 1000;
  c.write_cache.bytes = 16 * 4096;
  return c;
}

Command io(Opcode op, std::uint64_t unit, std::uint32_t units = 1, std::uint64_t tag = 0) {
  Command c;
  c.op = op;
  c.lba = unit * 8;
  c.lba_count = units * 8;
  c.tag = tag;
  return c;
}

// Runs the drive until it is idle. Returns completions by tag.
std::map<std::uint64_t, Completion> finish(Ssd& ssd) {
  std::map<std::uint64_t, Completion> all;
  std::vector<Completion> done;
  while (const auto time = ssd.next_event()) {
    done.clear();
    ssd.advance(*time, done);
    for (const Completion& c : done) all[c.tag] = c;
  }
  return all;
}

Nanos latency(Ssd& ssd, Nanos now, const Command& command) {
  ssd.submit(now, command);
  const Completion c = finish(ssd).at(command.tag);
  EXPECT_EQ(c.outcome, Outcome::success);
  return c.completed - c.submitted;
}

TEST(Drive, AReadSensesCrossesTheChannelAndThenTheLink) {
  Ssd ssd(one_die(), 1);
  ssd.write_sequentially(0, 64);
  EXPECT_EQ(latency(ssd, 0, io(Opcode::read, 3)), 50 * kUs + 40960 + 4096);
  EXPECT_EQ(ssd.counters().unmapped_reads, 0U);
  EXPECT_EQ(ssd.counters().host_bytes_read, 4096U);
}

TEST(Drive, AReadOfWhatWasNeverWrittenIsCountedAndCostsNoFlash) {
  Ssd ssd(one_die(), 1);
  EXPECT_EQ(latency(ssd, 0, io(Opcode::read, 3)), 4096);
  EXPECT_EQ(ssd.counters().unmapped_reads, 1U);
  EXPECT_EQ(ssd.counters().die_read_busy_ns, 0U);
}

TEST(Drive, ReadsOfOneDieQueueAndReadsOfTwoDiesDoNot) {
  SsdConfig c = one_die();
  c.geometry.channels = 2;
  Ssd ssd(c, 1);
  ssd.write_sequentially(0, 64);  // units alternate between the dies
  ssd.submit(0, io(Opcode::read, 0, 1, 1));
  ssd.submit(0, io(Opcode::read, 1, 1, 2));
  ssd.submit(0, io(Opcode::read, 2, 1, 3));
  const auto done = finish(ssd);
  EXPECT_EQ(done.at(1).completed, 50 * kUs + 40960 + 4096);
  EXPECT_EQ(done.at(2).completed, 50 * kUs + 40960 + 2 * 4096);  // the link is shared
  EXPECT_EQ(done.at(3).completed, 2 * (50 * kUs + 40960) + 4096);
}

TEST(Drive, IndependentPlanesSenseTogether) {
  SsdConfig c = one_die();
  c.geometry.planes_per_die = 2;
  c.timing.independent_plane_reads = true;
  Ssd ssd(c, 1);
  ssd.write_sequentially(0, 64);             // a step has units 2i and 2i + 1, one in each plane
  ssd.submit(0, io(Opcode::read, 4, 1, 1));  // starts alone, because no other read waits yet
  ssd.submit(0, io(Opcode::read, 0, 1, 2));
  ssd.submit(0, io(Opcode::read, 3, 1, 3));
  const auto done = finish(ssd);
  const Nanos first = 50 * kUs + 40960;
  EXPECT_EQ(done.at(2).completed, first + 50 * kUs + 40960 + 4096);
  EXPECT_EQ(done.at(3).completed, first + 50 * kUs + 2 * 40960 + 4096);
}

TEST(Drive, AWriteIsDoneWhenItsDataIsInTheProtectedCache) {
  Ssd ssd(one_die(), 1);
  EXPECT_EQ(latency(ssd, 0, io(Opcode::write, 7)), 4096);
  EXPECT_EQ(ssd.counters().nand_bytes_programmed[0], 4096U);
  EXPECT_EQ(latency(ssd, 10'000'000, io(Opcode::read, 7)), 50 * kUs + 40960 + 4096);
}

TEST(Drive, WithoutAWriteCacheAWriteIsDoneWhenProgrammed) {
  SsdConfig c = one_die();
  c.write_cache.bytes = 0;
  Ssd ssd(c, 1);
  EXPECT_EQ(latency(ssd, 0, io(Opcode::write, 7)), 4096 + 40960 + 500 * kUs);
}

TEST(Drive, AFullCacheHoldsWritersToTheSpeedOfPrograms) {
  SsdConfig c = one_die();
  c.write_cache.bytes = 2 * 4096;
  Ssd ssd(c, 1);
  for (std::uint64_t i = 0; i < 6; ++i) ssd.submit(0, io(Opcode::write, i, 1, i));
  const auto done = finish(ssd);
  const Nanos first_program = 4096 + 40960 + 500 * kUs;
  EXPECT_EQ(done.at(1).completed, 2 * 4096);
  EXPECT_EQ(done.at(2).completed, first_program);
  // The second page crosses the channel only after the first program: one page register. Each write adds one program.
  EXPECT_EQ(done.at(3).completed, first_program + 40960 + 500 * kUs);
}

TEST(Drive, AFlushWaitsForProgramsUnlessPowerLossIsCovered) {
  SsdConfig c = one_die();
  c.geometry.page_bytes = 8192;  // one write leaves half a flash page of padding
  for (const bool covered : {true, false}) {
    c.write_cache.power_loss_protection = covered;
    Ssd ssd(c, 1);
    ssd.submit(0, io(Opcode::write, 7, 1, 1));
    Command flush;
    flush.op = Opcode::flush;
    flush.tag = 2;
    ssd.submit(0, flush);
    const auto done = finish(ssd);
    EXPECT_EQ(done.at(1).completed, 4096);
    EXPECT_EQ(done.at(2).completed, covered ? 4096 : 4096 + 2 * 40960 + 500 * kUs);
    EXPECT_EQ(ssd.counters().nand_bytes_padded, covered ? 0U : 4096U);
    EXPECT_EQ(ssd.counters().nand_bytes_programmed[0], covered ? 0U : 8192U);
  }
}

TEST(Drive, WaitingUnitsWrittenAgainReachFlashOnce) {
  SsdConfig c = one_die();
  c.geometry.page_bytes = 4 * 4096;
  Ssd ssd(c, 1);
  for (int i = 0; i < 10; ++i) ssd.submit(0, io(Opcode::write, 5));
  finish(ssd);
  EXPECT_EQ(ssd.counters().write_cache_overwrites, 9U);
  EXPECT_EQ(ssd.counters().nand_bytes_programmed_total(), 0U);  // one unit does not fill the flash page
}

// P28: a write smaller than the mapping unit first reads the rest of it.
TEST(Drive, ASubUnitWriteReadsTheRestOfItsUnit) {
  Ssd ssd(one_die(), 1);
  ssd.write_sequentially(0, 64);
  ssd.reset_counters();
  Command write;
  write.op = Opcode::write;
  write.lba = 8 * 9 + 2;
  write.lba_count = 2;
  EXPECT_EQ(latency(ssd, 0, write), 1024 + 50 * kUs + 40960);
  EXPECT_EQ(ssd.counters().sub_unit_writes, 1U);
  EXPECT_EQ(ssd.counters().host_bytes_written, 1024U);
  EXPECT_EQ(ssd.counters().nand_bytes_programmed[0], 4096U);
}

TEST(Drive, HostReadsOvertakeQueuedProgramsButNotTheOneThatRuns) {
  for (const std::uint32_t overtake : {0U, 8U}) {
    SsdConfig c = one_die();
    c.timing.reads_overtake = overtake;
    Ssd ssd(c, 1);
    ssd.write_sequentially(0, 64);
    for (std::uint64_t i = 0; i < 4; ++i) ssd.submit(0, io(Opcode::write, 100 + i, 1, i));
    std::vector<Completion> ignored;
    ssd.advance(100 * kUs, ignored);  // one program runs, one is queued on the die
    ssd.submit(100 * kUs, io(Opcode::read, 3, 1, 9));
    const Nanos completed = finish(ssd).at(9).completed;
    const Nanos running_ends = 4096 + 40960 + 500 * kUs;
    const Nanos queued_ends = running_ends + 40960 + 500 * kUs;
    EXPECT_EQ(completed, (overtake == 0 ? queued_ends : running_ends) + 50 * kUs + 40960 + 4096);
  }
}

TEST(Drive, MultiPlaneProgramsShareTheirTime) {
  SsdConfig c = one_die();
  c.geometry.planes_per_die = 4;
  c.write_cache.power_loss_protection = false;
  Ssd ssd(c, 1);
  ssd.submit(0, io(Opcode::write, 0, 4, 1));
  Command flush;
  flush.op = Opcode::flush;
  flush.tag = 2;
  ssd.submit(0, flush);
  EXPECT_EQ(finish(ssd).at(2).completed, 4 * 4096 + 4 * 40960 + 500 * kUs);
  EXPECT_EQ(ssd.counters().nand_pages_programmed, 4U);
}

TEST(Drive, PagesOfAMultiBitCellTakeTheirOwnTimes) {
  SsdConfig c = one_die();
  c.timing.read_ns = {10 * kUs, 20 * kUs, 30 * kUs};
  Ssd ssd(c, 1);
  ssd.write_sequentially(0, 16);
  for (std::uint64_t page = 0; page < 6; ++page) {
    const Nanos start = static_cast<Nanos>(page) * 1'000'000;
    EXPECT_EQ(latency(ssd, start, io(Opcode::read, page)), static_cast<Nanos>(page % 3 + 1) * 10 * kUs + 40960 + 4096);
  }
}

TEST(Drive, TheControllerServesQueuesInTurn) {
  SsdConfig c = one_die();
  c.timing.read_occupancy_ns = 10 * kUs;
  Ssd ssd(c, 1);  // nothing written, so only the controller takes time
  for (std::uint64_t i = 0; i < 4; ++i) {
    Command read = io(Opcode::read, i, 1, i);
    read.queue = 1;
    ssd.submit(0, read);
  }
  Command other = io(Opcode::read, 9, 1, 9);
  other.queue = 2;
  ssd.submit(0, other);
  const auto done = finish(ssd);
  EXPECT_EQ(done.at(0).completed, 4096);
  EXPECT_LT(done.at(9).completed, done.at(2).completed);  // it did not wait for the whole other queue
  EXPECT_EQ(done.at(3).completed, 4 * 10 * kUs + 4096);
}

TEST(Drive, DeallocatedDataIsGoneAndCollectionDoesNotMoveIt) {
  SsdConfig c = one_die();
  double wa[2];
  for (const bool trim : {false, true}) {
    Ssd ssd(c, 1);
    const std::uint64_t units = ssd.layout().logical_units;
    ssd.write_sequentially(0, units);
    if (trim) {
      latency(ssd, 0, io(Opcode::deallocate, 0, static_cast<std::uint32_t>(units / 2)));
      EXPECT_EQ(ssd.mapped_units(), units - units / 2);
    }
    ssd.reset_counters();
    Random random(3);
    for (std::uint64_t i = 0; i < 8 * units; ++i) ssd.overwrite(units / 2 + random.below(units - units / 2));
    wa[trim] =
        static_cast<double>(ssd.counters().nand_bytes_programmed_total()) / static_cast<double>(8 * units * 4096);
    EXPECT_EQ(ssd.audit(), std::nullopt);
  }
  EXPECT_LT(wa[1], 0.9 * wa[0]);
}

TEST(Drive, AMappingMissReadsTheMapFirst) {
  SsdConfig c = one_die();
  c.mapping_cache.bytes = 512;  // 64 entries
  Ssd ssd(c, 1);
  ssd.write_sequentially(0, 1024);
  const Nanos flash = 50 * kUs + 40960;
  EXPECT_EQ(latency(ssd, 0, io(Opcode::read, 3)), 2 * flash + 4096);
  EXPECT_EQ(latency(ssd, 1'000'000, io(Opcode::read, 3)), flash + 4096);
  EXPECT_EQ(ssd.counters().mapping_cache_misses, 1U);
  EXPECT_EQ(ssd.counters().mapping_cache_hits, 1U);
}

// M8: with the whole map in DRAM no translation page is written; with a small cache random writes cost some.
TEST(Drive, RandomWritesPayForAMapThatDoesNotFit) {
  for (const std::uint64_t cache : {0U, 512U}) {
    SsdConfig c = one_die();
    c.capacity.capacity_bytes = 16 * c.capacity.capacity_bytes;
    c.mapping_cache.bytes = cache;
    Ssd ssd(c, 1);
    const std::uint64_t units = ssd.layout().logical_units;
    ssd.assume_steady(units);
    ssd.reset_counters();
    Random random(3);
    Nanos now = 0;
    for (int i = 0; i < 2000; ++i, now += 5'000'000) latency(ssd, now, io(Opcode::write, random.below(units)));
    const auto mapping = ssd.counters().nand_bytes_programmed[static_cast<std::size_t>(FlashCause::mapping)];
    // The map has K = 16 translation units, and n = 64 of its entries are cached. A write-back of a unit includes all
    // its cached entries. On average one of its entries enters the cache K writes later, and is evicted n writes after
    // that. So each unit is written back once in K + n writes, and the map costs K / (K + n) per write.
    if (cache == 0) {
      EXPECT_EQ(mapping, 0U);
    } else {
      EXPECT_NEAR(static_cast<double>(mapping) / 4096, 2000 * 16.0 / (16 + 64), 20);
    }
  }
}

TEST(Drive, StaticWearLevellingClosesTheSpread) {
  std::uint64_t moves[2];
  double spread[2];
  constexpr std::uint32_t kThreshold = 20;
  double least_without = 0;
  for (const bool on : {false, true}) {
    SsdConfig c = one_die();
    c.wear_levelling.static_threshold_pe = on ? kThreshold : 0;
    Ssd ssd(c, 1);
    const std::uint64_t units = ssd.layout().logical_units;
    ssd.write_sequentially(0, units);
    Random random(3);
    for (std::uint64_t i = 0; i < 100 * units; ++i) ssd.overwrite(random.below(units / 16));  // the rest never changes
    moves[on] = ssd.counters().wear_moves;
    spread[on] = ssd.max_pe_cycles() - ssd.mean_pe_cycles();
    // Blocks with nothing but units that never change are not erased, so all erases are of the others.
    const double cold = static_cast<double>(units - units / 16) / c.geometry.pages_per_block;
    if (!on) least_without = ssd.mean_pe_cycles() * cold / (static_cast<double>(ssd.layout().blocks) - cold);
    EXPECT_EQ(ssd.audit(), std::nullopt);
    EXPECT_EQ(ssd.counters().nand_bytes_programmed[static_cast<std::size_t>(FlashCause::wear)] > 0, on);
  }
  EXPECT_EQ(moves[0], 0U);
  EXPECT_GT(moves[1], 0U);
  EXPECT_GE(spread[0], least_without);
  EXPECT_GT(least_without, 2 * kThreshold) << "there was a spread to close";
  EXPECT_LE(spread[1], kThreshold) << "the most worn block is within the threshold of the least worn one";
}

TEST(Drive, RelocatedDataKeptApartFromHotDataLowersWriteAmplification) {
  double wa[2];
  for (const bool separate : {false, true}) {
    SsdConfig c = one_die();
    c.gc.separate_streams = separate;
    c.capacity.capacity_bytes *= 8;
    Ssd ssd(c, 1);
    const std::uint64_t units = ssd.layout().logical_units;
    ssd.write_sequentially(0, units);
    Random random(3);
    const auto overwrite = [&](std::uint64_t count) {
      for (std::uint64_t i = 0; i < count; ++i) {
        const bool hot = random.below(10) != 0;  // nine writes in ten go to a tenth of the units
        ssd.overwrite(hot ? random.below(units / 10) : units / 10 + random.below(units - units / 10));
      }
    };
    overwrite(6 * units);
    ssd.reset_counters();
    overwrite(2 * units);
    wa[separate] =
        static_cast<double>(ssd.counters().nand_bytes_programmed_total()) / static_cast<double>(2 * units * 4096);
  }
  EXPECT_LT(wa[1], 0.97 * wa[0]);
}

TEST(Drive, AWatermarkKeepsMoreCleanOnTopOfTheData) {
  SsdConfig c = one_die();
  const Layout plain = layout(c);
  c.gc.low_watermark = 0.1;
  c.gc.high_watermark = 0.15;
  const Layout with = layout(c);
  EXPECT_EQ(with.data_units, plain.data_units);
  EXPECT_NEAR(static_cast<double>(with.physical_units - plain.physical_units),
              0.1 * static_cast<double>(plain.data_units), 16);
  EXPECT_NEAR(static_cast<double>(with.collect_until_units - with.reserve_units),
              0.05 * static_cast<double>(plain.data_units), 1);
}

TEST(Drive, OutOfRangeCommandsFailByName) {
  Ssd ssd(one_die(), 1);
  ssd.submit(0, io(Opcode::read, ssd.layout().logical_units, 1, 1));
  ssd.submit(0, io(Opcode::write, ssd.layout().logical_units - 1, 2, 2));
  const auto done = finish(ssd);
  EXPECT_EQ(done.at(1).outcome, Outcome::lba_out_of_range);
  EXPECT_EQ(done.at(2).outcome, Outcome::lba_out_of_range);
  EXPECT_EQ(ssd.counters().host_bytes_written, 0U);
}

// --- Laws

std::vector<Completion> run_mixed(Ssd& ssd, std::uint64_t seed, int commands) {
  Random random(seed);
  std::vector<Completion> all;
  Nanos now = 0;
  for (int i = 0; i < commands; ++i) {
    now += static_cast<Nanos>(random.below(100'000));
    const auto op = random.below(3) == 0 ? Opcode::read : Opcode::write;
    ssd.submit(now, io(op, random.below(ssd.layout().logical_units), 1, static_cast<std::uint64_t>(i)));
    ssd.advance(now, all);
  }
  while (const auto time = ssd.next_event()) ssd.advance(*time, all);
  return all;
}

bool same(const std::vector<Completion>& a, const std::vector<Completion>& b) {
  if (a.size() != b.size()) return false;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (a[i].tag != b[i].tag || a[i].completed != b[i].completed || a[i].outcome != b[i].outcome) return false;
  }
  return true;
}

TEST(Laws, TheSameSeedAndTraceGiveTheSameCompletions) {
  SsdConfig c = one_die();
  c.gc.policy = GcPolicy::d_choices;
  Ssd a(c, 5);
  Ssd b(c, 5);
  for (Ssd* ssd : {&a, &b}) ssd->assume_steady(ssd->layout().logical_units);
  const auto first = run_mixed(a, 9, 5000);
  EXPECT_TRUE(same(first, run_mixed(b, 9, 5000)));
  Ssd other(c, 6);
  other.assume_steady(other.layout().logical_units);
  EXPECT_FALSE(same(first, run_mixed(other, 9, 5000)));  // the result depends on the seed
}

TEST(Laws, HowOftenTheDriveIsLookedAtChangesNothing) {
  Ssd a(one_die(), 5);
  Ssd b(one_die(), 5);
  for (Ssd* ssd : {&a, &b}) ssd->assume_steady(ssd->layout().logical_units);
  std::vector<Completion> looked_often;
  std::vector<Completion> looked_once;
  Random random(4);
  Nanos now = 0;
  for (int i = 0; i < 2000; ++i) {
    const Nanos next = now + static_cast<Nanos>(random.below(200'000));
    for (Nanos t = now; t < next; t += 10'000) a.advance(t, looked_often);
    now = next;
    const Command write = io(Opcode::write, random.below(a.layout().logical_units), 1, static_cast<std::uint64_t>(i));
    a.submit(now, write);
    b.submit(now, write);
  }
  while (const auto time = a.next_event()) a.advance(*time, looked_often);
  b.advance(now + 60'000'000'000, looked_once);
  EXPECT_TRUE(same(looked_often, looked_once));
}

TEST(Laws, ASavedDriveContinuesUnchanged) {
  Ssd a(one_die(), 5);
  a.assume_steady(a.layout().logical_units);
  run_mixed(a, 1, 3000);
  std::vector<std::uint8_t> state;
  ASSERT_TRUE(a.save([&state](const void* bytes, std::size_t size) {
    const auto* from = static_cast<const std::uint8_t*>(bytes);
    state.insert(state.end(), from, from + size);
    return true;
  }));
  const auto load = [&state](Ssd& ssd) {
    std::size_t at = 0;
    return ssd.load([&](void* bytes, std::size_t size) {
      if (state.size() - at < size) return false;
      std::memcpy(bytes, state.data() + at, size);
      at += size;
      return true;
    });
  };
  Ssd b(one_die(), 99);
  ASSERT_EQ(load(b), std::nullopt);
  Ssd c(one_die(), 98);
  ASSERT_EQ(load(c), std::nullopt);
  EXPECT_EQ(b.mapped_units(), a.mapped_units());
  EXPECT_EQ(b.mean_pe_cycles(), a.mean_pe_cycles());
  EXPECT_EQ(b.counters().nand_pages_programmed, a.counters().nand_pages_programmed);
  EXPECT_TRUE(same(run_mixed(b, 2, 3000), run_mixed(c, 2, 3000)));

  SsdConfig other = one_die();
  other.geometry.pages_per_block = 8;
  Ssd elsewhere(other, 1);
  const auto refused = load(elsewhere);
  ASSERT_TRUE(refused.has_value());
  EXPECT_EQ(*refused, "was made for another drive: its geometry.pages_per_block is 16, not 8");
  state.resize(state.size() / 2);
  Ssd d(one_die(), 1);
  EXPECT_EQ(load(d), "is truncated");
}

TEST(Config, RefusesWhatCannotBeByKeyAndMend) {
  struct Case {
    void (*spoil)(SsdConfig&);
    const char* key;
    const char* words;
  };
  const Case cases[] = {
      {[](SsdConfig& c) { c.geometry.channels = 0; }, "geometry.channels", "at least 1"},
      {[](SsdConfig& c) { c.geometry.page_bytes = 6000; }, "geometry.page_bytes", "multiple of mapping_unit_bytes"},
      {[](SsdConfig& c) { c.capacity.spare_factor = 1.0; }, "capacity.spare_factor", "below 1"},
      {[](SsdConfig& c) { c.capacity.capacity_bytes = 4096; }, "capacity.capacity_bytes", "one erase block per plane"},
      {[](SsdConfig& c) { c.capacity.blocks_per_plane = 9; }, "capacity.capacity_bytes", "exactly one of"},
      {[](SsdConfig& c) {
         c.capacity = {0, 2, 0.1};
       },
       "capacity.blocks_per_plane", "give at least"},
      {[](SsdConfig& c) { c.timing.channel_mb_s = 0; }, "timing.channel_mb_s", "above 0"},
      {[](SsdConfig& c) { c.timing.read_ns = {}; }, "timing.read_ns", "at least one"},
      {[](SsdConfig& c) { c.write_cache.bytes = 100; }, "write_cache.bytes", "4096"},
      {[](SsdConfig& c) { c.gc.low_watermark = 0.2; }, "gc.high_watermark", "between"},
      {[](SsdConfig& c) { c.capacity.capacity_bytes = 1ULL << 46; }, "capacity.capacity_bytes", "mapping_unit_bytes"},
  };
  EXPECT_FALSE(problem(one_die()).has_value());
  for (const Case& test : cases) {
    SsdConfig c = one_die();
    test.spoil(c);
    const auto found = problem(c);
    ASSERT_TRUE(found.has_value()) << test.key;
    EXPECT_EQ(found->key, test.key);
    EXPECT_NE(found->message.find(test.words), std::string::npos) << found->message;
  }
}

TEST(Config, SpareFactorIsOfTheDataPagesAndTheReserveComesOnTop) {
  for (const double spare : {0.07, 0.2, 0.4}) {
    SsdConfig c = one_die();
    c.capacity.spare_factor = spare;
    const Layout l = layout(c);
    EXPECT_EQ(l.capacity_bytes, c.capacity.capacity_bytes);
    EXPECT_NEAR(static_cast<double>(l.data_units - l.logical_units) / static_cast<double>(l.data_units), spare, 1e-3);
    EXPECT_EQ(l.data_units + l.reserve_units, l.physical_units);
  }
}

}  // namespace
}  // namespace spillway::ssd
