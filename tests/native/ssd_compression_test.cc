// A controller that compresses: NAND bytes against the arithmetic of packing and the closed forms of collection.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "ssd/ssd.h"
#include "ssd/structures/random.h"

namespace spillway::ssd {
namespace {

constexpr std::uint64_t kUnitBytes = 4096;
constexpr std::uint64_t kUnitsPerPage = 4;

SsdConfig drive(std::uint32_t granule_bytes, double spare_factor = 0.1) {
  SsdConfig config;
  config.geometry.channels = 4;
  config.geometry.dies_per_chip = 1;
  config.geometry.pages_per_block = 16;
  config.geometry.page_bytes = kUnitsPerPage * kUnitBytes;
  config.capacity.capacity_bytes = config.geometry.block_bytes() * 1024;
  config.capacity.spare_factor = spare_factor;
  config.compression.granule_bytes = granule_bytes;
  return config;
}

double wa_device(const Ssd& ssd, std::uint64_t host_units) {
  return static_cast<double>(ssd.counters().nand_bytes_programmed_total()) /
         static_cast<double>(host_units * kUnitBytes);
}

// Commands of one size, one after another or 16 at a time, in time.
void write_all(Ssd& ssd, const std::vector<Command>& commands) {
  std::vector<Completion> done;
  std::size_t next = 0;
  Nanos now = 0;
  while (next < commands.size() && next < 16) ssd.submit(now, commands[next++]);
  while (const auto time = ssd.next_event()) {
    now = *time;
    done.clear();
    ssd.advance(now, done);
    for (const Completion& completion : done) {
      ASSERT_EQ(completion.outcome, Outcome::success);
      if (next < commands.size()) ssd.submit(now, commands[next++]);
    }
  }
}

Command write(std::uint64_t lba, std::uint32_t lbas, std::uint16_t share) {
  Command command;
  command.op = Opcode::write;
  command.lba = lba;
  command.lba_count = lbas;
  command.compressed_share = share;
  return command;
}

std::vector<Command> in_order(const Ssd& ssd, std::uint16_t share) {
  std::vector<Command> commands;
  for (std::uint64_t unit = 0; unit < ssd.layout().logical_units; unit += 8)
    commands.push_back(write(unit * 8, 64, share));
  return commands;
}

// floor(n / k) units share a page: exactly the share if k divides n and the granule divides the unit's share.
TEST(Compression, WritingInOrderTakesTheShareAndThePackingLoss) {
  struct Case {
    std::uint32_t granule_bytes;
    std::uint16_t share;
    double expected;  // units_per_page / floor(n / k)
  };
  for (const Case& c : {Case{1024, 256, 1.0}, Case{1024, 128, 0.5}, Case{1024, 64, 0.25}, Case{1024, 1, 0.25},
                        Case{1024, 192, 4.0 / 5}, Case{512, 192, 4.0 / 5}, Case{512, 96, 4.0 / 10},
                        Case{512, 129, 4.0 / 6}, Case{4096, 128, 1.0}, Case{256, 16, 1.0 / 16}}) {
    Ssd ssd(drive(c.granule_bytes), 1);
    write_all(ssd, in_order(ssd, c.share));
    const Counters& k = ssd.counters();
    // At the end less than a step on each die, and in the cache, is not programmed yet.
    EXPECT_NEAR(wa_device(ssd, ssd.layout().logical_units), c.expected, 0.01 * c.expected)
        << c.granule_bytes << " B, share " << c.share;
    const double loss = 1 - c.share / 256.0 / c.expected;
    EXPECT_GE(loss, -0.01);
    EXPECT_EQ(k.nand_bytes_programmed_total(), k.nand_pages_programmed * kUnitsPerPage * kUnitBytes);
    EXPECT_EQ(ssd.audit(), std::nullopt);
  }
}

// Units of mixed sizes: the programmed bytes are those of the units and of the counted padding, at most one granule
// less than a whole unit per page.
TEST(Compression, NandBytesAreStoredBytesAndPadding) {
  Ssd ssd(drive(512), 1);
  Random random(3);
  std::vector<Command> commands;
  std::uint64_t stored = 0;
  for (std::uint64_t unit = 0; unit < ssd.layout().logical_units; ++unit) {
    const auto share = static_cast<std::uint16_t>(1 + random.below(256));
    stored += (share * 8 + 255) / 256 * 512;
    commands.push_back(write(unit * 8, 8, share));
  }
  write_all(ssd, commands);
  const Counters& k = ssd.counters();
  const std::uint64_t data = k.nand_bytes_programmed_total() - k.nand_bytes_padded;
  EXPECT_LE(data, stored);
  EXPECT_GE(static_cast<double>(data), 0.99 * static_cast<double>(stored));
  EXPECT_LE(k.nand_bytes_padded, k.nand_pages_programmed * (kUnitBytes - 512));
  EXPECT_GT(k.nand_bytes_padded, 0U);
}

// With compression enabled and incompressible data, bytes and times are the same as without compression.
TEST(Compression, IncompressibleDataMakesTheSameDrive) {
  for (const GcPolicy policy : {GcPolicy::greedy, GcPolicy::fifo, GcPolicy::d_choices, GcPolicy::cost_benefit}) {
    std::vector<Nanos> times[2];
    std::vector<Counters> counters;
    for (const std::uint32_t granule : {0U, 512U}) {
      SsdConfig config = drive(granule);
      config.gc.policy = policy;
      config.mapping_cache.bytes = 4096;
      Ssd ssd(config, 5);
      const std::uint64_t units = ssd.layout().logical_units;
      ssd.assume_steady(units);
      for (std::uint64_t i = 0; i < units / 2; ++i) ssd.overwrite(i * 7919 % units);
      ssd.reset_counters();
      Random random(6);
      std::vector<Completion> done;
      Nanos now = 0;
      for (int i = 0; i < 20'000; ++i) {
        Command command = write(random.below(units * 8 - 16), static_cast<std::uint32_t>(1 + random.below(16)), 256);
        if (random.below(3) == 0) command.op = Opcode::read;
        ssd.submit(now, command);
        ssd.advance(now += 20'000, done);
      }
      while (const auto time = ssd.next_event()) ssd.advance(*time, done);
      for (const Completion& completion : done) times[granule != 0].push_back(completion.completed);
      counters.push_back(ssd.counters());
    }
    EXPECT_EQ(times[0], times[1]) << "policy " << static_cast<int>(policy);
    EXPECT_EQ(std::memcmp(&counters[0], &counters[1], sizeof(Counters)), 0) << "policy " << static_cast<int>(policy);
  }
}

// Units of one size give a drive with smaller units and more of them in a block: FIFO's closed form for its alpha,
// times the size of a unit.
TEST(Compression, RandomOverwritesFollowTheClosedFormOfTheLargerDrive) {
  for (const unsigned part : {256U, 224U, 192U, 128U}) {
    const auto share = static_cast<std::uint16_t>(part);
    SsdConfig config = drive(512, 0.1);
    config.gc.policy = GcPolicy::fifo;
    config.gc.separate_streams = false;
    Ssd ssd(config, 1);
    const std::uint64_t units = ssd.layout().logical_units;
    ssd.assume_steady(units, share);
    EXPECT_EQ(ssd.audit(), std::nullopt);
    Random random(2);
    const auto overwrite = [&](std::uint64_t count) {
      for (std::uint64_t i = 0; i < count; ++i) ssd.overwrite(random.below(units), share);
    };
    overwrite(units);
    ssd.reset_counters();
    overwrite(2 * units);
    const double in_a_page = 32 / ((share * 8 + 255) / 256);
    const double alpha =
        static_cast<double>(ssd.layout().data_units) * in_a_page / kUnitsPerPage / static_cast<double>(units);
    double a = 100;
    for (int i = 0; i < 1000; ++i) a = 1 / (1 - std::exp(-alpha / a));
    const double expected = a * kUnitsPerPage / in_a_page;
    EXPECT_NEAR(wa_device(ssd, 2 * units), expected, 0.01 * expected) << "share " << share;
    EXPECT_EQ(ssd.audit(), std::nullopt);
  }
}

// A law: data that compresses better never costs more, with any policy; and a full drive of mixed data never gets
// stuck.
TEST(Compression, BetterCompressionNeverRaisesWriteAmplification) {
  for (const GcPolicy policy : {GcPolicy::greedy, GcPolicy::d_choices, GcPolicy::cost_benefit}) {
    double previous = 0;
    for (const unsigned part : {32U, 128U, 192U, 224U, 256U}) {
      const auto share = static_cast<std::uint16_t>(part);
      SsdConfig config = drive(512, 0.05);
      config.capacity.capacity_bytes /= 8;
      config.gc.policy = policy;
      Ssd ssd(config, 1);
      const std::uint64_t units = ssd.layout().logical_units;
      ssd.assume_steady(units);  // incompressible at first, so it has to be collected to be replaced
      Random random(2);
      for (std::uint64_t i = 0; i < units * 2; ++i) {
        ssd.overwrite(random.below(units), static_cast<std::uint16_t>(1 + random.below(256)));
      }
      for (std::uint64_t i = 0; i < units * 3; ++i) ssd.overwrite(random.below(units), share);
      ssd.reset_counters();
      for (std::uint64_t i = 0; i < units; ++i) ssd.overwrite(random.below(units), share);
      const double wa = wa_device(ssd, units);
      EXPECT_GT(wa, previous) << "policy " << static_cast<int>(policy) << ", share " << share;
      previous = wa;
      EXPECT_EQ(ssd.audit(), std::nullopt);
    }
  }
}

// A write of half a unit does not change the other half.
TEST(Compression, PartOfAUnitIsAveragedWithTheRest) {
  SsdConfig config = drive(512);
  config.write_cache.bytes = 0;
  Ssd ssd(config, 1);
  write_all(ssd, {write(0, 8, 256)});
  const auto stored = [&ssd] {
    return ssd.counters().nand_bytes_programmed_total() - ssd.counters().nand_bytes_padded;
  };
  EXPECT_EQ(stored(), kUnitBytes);
  write_all(ssd, {write(0, 4, 64)});
  EXPECT_EQ(stored(), kUnitBytes + (8 * 4 + 2 * 4) / 8 * 512);
  // The rest is read in its stored size, completely.
  EXPECT_EQ(ssd.counters().nand_bytes_read[static_cast<std::size_t>(FlashCause::host)], kUnitBytes);
  Command read = write(0, 1, 256);
  read.op = Opcode::read;
  write_all(ssd, {read});
  EXPECT_EQ(ssd.counters().nand_bytes_read[static_cast<std::size_t>(FlashCause::host)], kUnitBytes + 5 * 512);
}

TEST(Compression, ASavedDriveContinuesUnchanged) {
  Ssd ssd(drive(512), 1);
  const std::uint64_t units = ssd.layout().logical_units;
  ssd.assume_steady(units, 100);
  Random random(4);
  for (int i = 0; i < 1000; ++i) ssd.overwrite(random.below(units), 200);
  std::vector<char> state;
  ASSERT_TRUE(ssd.save([&state](const void* bytes, std::size_t size) {
    state.insert(state.end(), static_cast<const char*>(bytes), static_cast<const char*>(bytes) + size);
    return true;
  }));
  const auto load = [&state](Ssd& into) {
    std::size_t at = 0;
    return into.load([&state, &at](void* bytes, std::size_t size) {
      if (at + size > state.size()) return false;
      std::memcpy(bytes, state.data() + at, size);
      at += size;
      return true;
    });
  };
  Ssd other(drive(512), 2);
  ASSERT_EQ(load(other), std::nullopt);
  for (Ssd* const each : {&ssd, &other}) {
    Random same(5);
    for (std::uint64_t i = 0; i < units; ++i) each->overwrite(same.below(units), 50);
  }
  EXPECT_EQ(ssd.counters().nand_bytes_programmed, other.counters().nand_bytes_programmed);
  EXPECT_EQ(ssd.counters().nand_bytes_padded, other.counters().nand_bytes_padded);
  Ssd coarser(drive(1024), 1);
  EXPECT_NE(load(coarser).value_or("").find("compression.granule_bytes"), std::string::npos);
}

TEST(Compression, RefusesWhatItCannotBeCombinedWith) {
  const auto refused = [](auto change) {
    SsdConfig config = drive(512);
    change(config);
    const auto found = problem(config);
    return found ? found->key : "";
  };
  EXPECT_EQ(refused([](SsdConfig&) {}), "");
  EXPECT_EQ(refused([](SsdConfig& c) { c.compression.granule_bytes = 1000; }), "compression.granule_bytes");
  EXPECT_EQ(refused([](SsdConfig& c) { c.compression.granule_bytes = 32; }), "compression.granule_bytes");
  EXPECT_EQ(refused([](SsdConfig& c) { c.mapping.scheme = MappingScheme::block; }), "compression.granule_bytes");
  EXPECT_EQ(refused([](SsdConfig& c) { c.slc_cache.share = 0.1; }), "compression.granule_bytes");
  EXPECT_EQ(refused([](SsdConfig& c) { c.write_cache.bytes = 7 * 16384; }), "write_cache.bytes");
}

}  // namespace
}  // namespace spillway::ssd
