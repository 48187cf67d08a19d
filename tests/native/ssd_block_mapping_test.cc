// Block and hybrid mapping: write amplification against closed forms and against a simulation of the schemes' rules,
// and invariants for every host.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <list>
#include <string>
#include <vector>

#include "ssd/ssd.h"
#include "ssd/structures/random.h"

namespace spillway::ssd {
namespace {

constexpr std::uint32_t kUnitBytes = 4096;

// `rows` logical rows on each of two dies. One mapping unit is a super page unless planes or pages are larger.
SsdConfig drive(MappingScheme scheme, std::uint32_t rows, double spare_factor, std::uint32_t planes = 1,
                std::uint32_t units_per_page = 1) {
  SsdConfig config;
  config.geometry.channels = 2;
  config.geometry.dies_per_chip = 1;
  config.geometry.planes_per_die = planes;
  config.geometry.pages_per_block = 16;
  config.geometry.page_bytes = kUnitBytes * units_per_page;
  config.capacity.capacity_bytes = config.geometry.block_bytes() * planes * 2 * rows;
  config.capacity.spare_factor = spare_factor;
  config.mapping.scheme = scheme;
  config.write_cache.bytes = 0;
  config.wear_levelling.static_threshold_pe = 0;
  return config;
}

double write_amplification(const Counters& counters, std::uint64_t host_units) {
  return static_cast<double>(counters.nand_bytes_programmed_total()) / kUnitBytes / static_cast<double>(host_units);
}

std::uint64_t programmed(const Ssd& ssd, FlashCause cause) {
  return ssd.counters().nand_bytes_programmed[static_cast<std::size_t>(cause)];
}

// Submits one command after another, in time.
class Host {
 public:
  explicit Host(Ssd& ssd) : ssd_(ssd) {}

  void run(Opcode op, std::uint64_t unit, std::uint32_t units) {
    Command command;
    command.op = op;
    command.lba = unit * 8;
    command.lba_count = units * 8;
    ssd_.submit(now_, command);
    std::vector<Completion> done;
    while (const auto time = ssd_.next_event()) {
      now_ = *time;
      ssd_.advance(now_, done);
    }
    ASSERT_EQ(done.size(), 1U);
    EXPECT_EQ(done[0].outcome, Outcome::success);
  }

 private:
  Ssd& ssd_;
  Nanos now_ = 0;
};

class BothSchemes : public testing::TestWithParam<MappingScheme> {};

TEST_P(BothSchemes, OverwritingInOrderCopiesNothing) {
  for (const std::uint64_t cache_bytes : {0U, 1U << 18}) {
    SsdConfig config = drive(GetParam(), 8, 0.2, 2, 4);
    config.write_cache.bytes = cache_bytes;
    Ssd ssd(config, 1);
    Host host(ssd);
    const std::uint64_t units = ssd.layout().logical_units;
    ssd.write_sequentially(0, units);
    ssd.reset_counters();
    for (std::uint64_t unit = 0; unit < units; unit += 16) host.run(Opcode::write, unit, 16);
    EXPECT_EQ(write_amplification(ssd.counters(), units), 1.0);
    EXPECT_EQ(ssd.counters().switch_merges, 16U);
    EXPECT_EQ(ssd.counters().partial_merges + ssd.counters().full_merges, 0U);
    EXPECT_EQ(ssd.audit(), std::nullopt);
  }
}

TEST_P(BothSchemes, WritingAnEmptyDriveCopiesNothing) {
  Ssd ssd(drive(GetParam(), 8, 0.1), 1);
  Host host(ssd);
  const std::uint64_t units = ssd.layout().logical_units;
  for (std::uint64_t unit = 0; unit < units; unit += 2) host.run(Opcode::write, unit, 2);
  EXPECT_EQ(write_amplification(ssd.counters(), units), 1.0);
  EXPECT_EQ(ssd.counters().erases, 0U);
}

// Deallocated units are not copied. A log that skips super pages is merged only with what it holds.
TEST_P(BothSchemes, DeallocatedUnitsAreNotCopied) {
  Ssd ssd(drive(GetParam(), 8, 0.1), 1);
  Host host(ssd);
  const std::uint64_t units = ssd.layout().logical_units;
  ssd.write_sequentially(0, units);
  host.run(Opcode::deallocate, 0, static_cast<std::uint32_t>(units));
  EXPECT_EQ(ssd.mapped_units(), 0U);
  ssd.reset_counters();
  for (std::uint64_t unit = 0; unit < units; unit += 4) host.run(Opcode::write, unit, 2);
  EXPECT_EQ(programmed(ssd, FlashCause::host), units / 2 * kUnitBytes);
  EXPECT_LE(programmed(ssd, FlashCause::gc), GetParam() == MappingScheme::block ? 0 : units / 2 * kUnitBytes);
  EXPECT_EQ(ssd.audit(), std::nullopt);
}

// A unit that is written again while its super page is open replaces the first, and takes no more room in the cache.
// Holes from units deallocated in the cache leave a super page open that is not complete.
TEST_P(BothSchemes, RewritingAUnitOfAnOpenSuperPageNeedsNoRoom) {
  SsdConfig config = drive(GetParam(), 8, 0.1, 2, 4);
  config.write_cache.bytes = 8 * kUnitBytes;
  Ssd ssd(config, 1);
  std::uint64_t commands = 0;
  const auto submit = [&](Opcode op, std::uint64_t unit) {
    Command command;
    command.op = op;
    command.lba = unit * 8;
    command.lba_count = 8;
    ssd.submit(0, command);
    ++commands;
  };
  for (std::uint64_t unit = 0; unit < 4; ++unit) submit(Opcode::write, unit);
  for (std::uint64_t unit = 8; unit < 12; ++unit) submit(Opcode::write, unit);
  for (std::uint64_t unit = 8; unit < 12; ++unit) submit(Opcode::deallocate, unit);
  for (std::uint64_t i = 0; i < 100; ++i) submit(Opcode::write, i % 4);
  std::vector<Completion> done;
  while (const auto time = ssd.next_event()) ssd.advance(*time, done);
  EXPECT_EQ(done.size(), commands);
  EXPECT_TRUE(std::all_of(done.begin(), done.end(), [](const auto& c) { return c.outcome == Outcome::success; }));
  EXPECT_EQ(ssd.audit(), std::nullopt);
}

// A skipped page must not make the pages after it look as if they were still in the controller.
TEST_P(BothSchemes, DataAfterAGapIsReadFromFlash) {
  Ssd ssd(drive(GetParam(), 8, 0.1), 1);
  Host host(ssd);
  host.run(Opcode::write, 20, 1);
  host.run(Opcode::read, 20, 1);
  EXPECT_EQ(ssd.counters().nand_bytes_read[static_cast<std::size_t>(FlashCause::host)], kUnitBytes);
  EXPECT_EQ(ssd.counters().unmapped_reads, 0U);
}

// Commands in time and overwrites without it, the same seed twice, and a drive that was saved halfway: the same bytes.
TEST_P(BothSchemes, TheSameWritesProgramTheSameBytes) {
  SsdConfig config = drive(GetParam(), 12, 0.2);
  config.wear_levelling.static_threshold_pe = 3;
  const auto run = [&config](bool in_time, bool saved) {
    Ssd ssd(config, 9);
    const std::uint64_t units = ssd.layout().logical_units;
    ssd.assume_steady(units);
    ssd.reset_counters();
    Random random(4);
    Host host(ssd);
    for (int i = 0; i < 500; ++i) {
      const std::uint64_t unit = random.below(units);
      if (in_time) {
        host.run(Opcode::write, unit, 1);
      } else {
        ssd.overwrite(unit);
      }
    }
    if (!saved) return std::vector<std::uint64_t>{ssd.counters().nand_bytes_programmed_total(), ssd.counters().erases};
    std::vector<char> state;
    EXPECT_TRUE(ssd.save([&state](const void* bytes, std::size_t size) {
      state.insert(state.end(), static_cast<const char*>(bytes), static_cast<const char*>(bytes) + size);
      return true;
    }));
    Ssd other(config, 1);
    std::size_t at = 0;
    EXPECT_EQ(other.load([&](void* bytes, std::size_t size) {
      if (at + size > state.size()) return false;
      std::memcpy(bytes, state.data() + at, size);
      at += size;
      return true;
    }),
              std::nullopt);
    EXPECT_EQ(other.audit(), std::nullopt);
    for (Ssd* const each : {&ssd, &other}) {
      Random same(5);
      for (int i = 0; i < 500; ++i) each->overwrite(same.below(units));
    }
    EXPECT_EQ(ssd.counters().nand_bytes_programmed, other.counters().nand_bytes_programmed);
    EXPECT_EQ(ssd.counters().erases, other.counters().erases);
    return std::vector<std::uint64_t>{ssd.counters().nand_bytes_programmed_total(), ssd.counters().erases};
  };
  const auto expected = run(true, false);
  EXPECT_EQ(run(true, false), expected);
  EXPECT_EQ(run(false, false), expected);
  run(false, true);
  run(true, true);
}

// A row that is never written again is moved when the others are worn.
TEST_P(BothSchemes, StaticWearLevellingMovesColdRows) {
  SsdConfig config = drive(GetParam(), 8, 0.2);
  const auto spread = [&config](std::uint32_t threshold) {
    config.wear_levelling.static_threshold_pe = threshold;
    Ssd ssd(config, 1);
    ssd.write_sequentially(0, ssd.layout().logical_units);
    Random random(3);
    for (int i = 0; i < 20000; ++i) ssd.overwrite(random.below(32));
    EXPECT_EQ(ssd.audit(), std::nullopt);
    EXPECT_EQ(ssd.counters().wear_moves > 0, threshold != 0);
    EXPECT_EQ(programmed(ssd, FlashCause::wear) > 0, threshold != 0);
    return ssd.max_pe_cycles() - ssd.mean_pe_cycles();
  };
  EXPECT_LT(spread(5), 10);
  EXPECT_GT(spread(0), 100);
}

INSTANTIATE_TEST_SUITE_P(BlockMapping, BothSchemes, testing::Values(MappingScheme::block, MappingScheme::hybrid),
                         [](const auto& scheme) {
                           return scheme.param == MappingScheme::block ? std::string("Block") : std::string("Hybrid");
                         });

// A cycle of b super pages for each write that does not continue after the last one in the same row: A = b (1 - (b - 1)
// / (2 b N)), except for terms in 1/N^2.
TEST(BlockMapping, ARandomOverwriteCostsARow) {
  const std::uint32_t b = 16;
  for (const std::uint32_t rows : {32U, 128U}) {
    Ssd ssd(drive(MappingScheme::block, rows, 0.07), 1);
    const std::uint64_t units = ssd.layout().logical_units;
    ssd.assume_steady(units);
    ssd.reset_counters();
    Random random(2);
    const std::uint64_t writes = 60'000;
    for (std::uint64_t i = 0; i < writes; ++i) ssd.overwrite(random.below(units));
    const double expected = b * (1 - (b - 1.0) / (2.0 * b * rows));
    EXPECT_NEAR(write_amplification(ssd.counters(), writes), expected, 0.001 * expected);
    EXPECT_EQ(programmed(ssd, FlashCause::host) / kUnitBytes + programmed(ssd, FlashCause::gc) / kUnitBytes,
              ssd.counters().nand_pages_programmed);
  }
}

// A mapping unit is a sixteenth of a super page here, and the rest of it is copied too.
TEST(BlockMapping, ARandomOverwriteOfAUnitCostsARowOfUnits) {
  const double b = 16;
  const double in_super_page = 16;
  const double rows = 64;
  Ssd ssd(drive(MappingScheme::block, 64, 0.07, 2, 8), 1);
  Host host(ssd);
  const std::uint64_t units = ssd.layout().logical_units;
  ssd.assume_steady(units);
  ssd.reset_counters();
  Random random(2);
  const std::uint64_t writes = 4000;
  for (std::uint64_t i = 0; i < writes; ++i) host.run(Opcode::write, random.below(units), 1);
  const double expected = b * in_super_page * (1 - (b - 1) / (2 * b * rows));
  EXPECT_NEAR(write_amplification(ssd.counters(), writes), expected, 0.01 * expected);
}

// A simulation of BAST's rules for one die: the super pages in each log, the least recently used log first.
class Bast {
 public:
  Bast(std::uint32_t super_pages, std::uint32_t logs) : b_(super_pages), logs_(logs) {}

  void write(std::uint32_t row, std::uint32_t page) {
    const auto of_row = [row](const Log& log) { return log.row == row; };
    auto log = std::find_if(list_.begin(), list_.end(), of_row);
    if (log != list_.end() && log->pages.size() == b_) {
      merge(log);
      log = list_.end();
    }
    if (log == list_.end()) {
      if (list_.size() == logs_) merge(list_.begin());
      list_.push_back({row, {}});
    } else {
      list_.splice(list_.end(), list_, log);
    }
    list_.back().pages.push_back(page);
    ++programs_;
    if (list_.back().pages.size() == b_ && in_order(list_.back())) merge(std::prev(list_.end()));
  }
  std::uint64_t programs() const { return programs_; }

 private:
  struct Log {
    std::uint32_t row;
    std::vector<std::uint32_t> pages;
  };
  static bool in_order(const Log& log) {
    for (std::uint32_t i = 0; i < log.pages.size(); ++i) {
      if (log.pages[i] != i) return false;
    }
    return true;
  }
  void merge(std::list<Log>::iterator log) {
    programs_ += b_ - (in_order(*log) ? log->pages.size() : 0);
    list_.erase(log);
  }

  const std::size_t b_;
  const std::size_t logs_;
  std::list<Log> list_;
  std::uint64_t programs_ = 0;
};

// Uniform writes, a hot spot, and runs in order between random writes.
TEST(HybridMapping, ProgramsWhatTheRulesOfBastSay) {
  const std::uint32_t b = 16;
  const std::uint32_t rows = 40;
  for (const int kind : {0, 1, 2}) {
    SsdConfig config = drive(MappingScheme::hybrid, rows, 0.2);
    Ssd ssd(config, 1);
    ASSERT_EQ(ssd.layout().log_rows, 10U);
    const std::uint64_t units = ssd.layout().logical_units;
    ssd.write_sequentially(0, units);
    ssd.overwrite(0);  // completes the last super page of the sequential writes
    std::vector<Bast> expected(2, Bast(b, ssd.layout().log_rows));
    expected[0].write(0, 0);
    const std::uint64_t before = ssd.counters().nand_pages_programmed;
    Random random(6);
    std::uint64_t last = 0;
    for (int i = 0; i < 50'000; ++i) {
      std::uint64_t unit = random.below(units);
      if (kind == 1 && random.below(10) != 0) unit %= units / 10;
      if (kind == 2 && random.below(50) != 0) unit = (last + 1) % units;
      if (unit == last) continue;  // it would be added to the open super page
      last = unit;
      ssd.overwrite(unit);
      const auto in_die = static_cast<std::uint32_t>(unit / 2);
      expected[unit % 2].write(in_die / b, in_die % b);
    }
    // The first write counts in both; a super page of one unit is complete with it.
    EXPECT_EQ(ssd.counters().nand_pages_programmed - before + 1, expected[0].programs() + expected[1].programs())
        << "kind " << kind;
    EXPECT_GT(ssd.counters().full_merges, 0U);
    EXPECT_EQ(ssd.audit(), std::nullopt);
  }
}

// A = 1 + b (1 - L / N), if logs are merged long before they are full.
TEST(HybridMapping, ARandomOverwriteCostsARowUnlessItHasALog) {
  for (const double spare : {0.05, 0.1, 0.3}) {
    Ssd ssd(drive(MappingScheme::hybrid, 200, spare), 1);
    const std::uint64_t units = ssd.layout().logical_units;
    ssd.assume_steady(units);
    ssd.reset_counters();
    Random random(8);
    const std::uint64_t writes = 60'000;
    for (std::uint64_t i = 0; i < writes; ++i) ssd.overwrite(random.below(units));
    const double expected = 1 + 16 * (1 - ssd.layout().log_rows / 200.0);
    EXPECT_NEAR(write_amplification(ssd.counters(), writes), expected, 0.01 * expected) << "spare factor " << spare;
  }
}

TEST(BlockMapping, RefusesWhatItCannotBeCombinedWith) {
  for (const MappingScheme scheme : {MappingScheme::block, MappingScheme::hybrid}) {
    SsdConfig config = drive(scheme, 8, 0.1);
    ASSERT_FALSE(problem(config));
    config.mapping_cache.bytes = 4096;
    EXPECT_EQ(problem(config)->key, "mapping_cache.bytes");
    config.mapping_cache.bytes = 0;
    config.slc_cache.share = 0.1;
    EXPECT_EQ(problem(config)->key, "slc_cache.share");
    config.slc_cache.share = 0;
    config.capacity = {0, 2, 0.1};
    EXPECT_EQ(problem(config)->key, "capacity.blocks_per_plane");
    config.capacity.blocks_per_plane = 3;
    EXPECT_FALSE(problem(config));
  }
}

}  // namespace
}  // namespace spillway::ssd
