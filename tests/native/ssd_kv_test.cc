// Key-value namespaces of the drive model: outcomes of commands, their times, and their cost in flash.
#include <gtest/gtest.h>

#include <cstring>
#include <iterator>
#include <map>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "ssd/ssd.h"
#include "ssd/structures/random.h"

namespace spillway::ssd {
namespace {

constexpr Nanos kUs = 1000;
constexpr std::uint32_t kUnit = 4096;

// Four dies, 32 MiB, a quarter of it above the disaggregation point, memtables of 64 KiB.
SsdConfig with_kv() {
  SsdConfig c;
  c.geometry.channels = 2;
  c.geometry.dies_per_chip = 2;
  c.geometry.pages_per_block = 16;
  c.capacity.capacity_bytes = 32 << 20;
  c.capacity.spare_factor = 0.2;
  c.timing.read_ns = {50 * kUs};
  c.timing.program_ns = {200 * kUs};
  c.timing.host_link_mb_s = 1000;
  c.write_cache.bytes = 16 * kUnit;
  c.namespaces.kv_share = 0.25;
  c.namespaces.vml_bytes = 32 * 1024;
  c.namespaces.memtable_bytes = 64 * 1024;
  c.namespaces.core_command_ns = 10 * kUs;
  c.namespaces.core_pair_ns = 20 * kUs;
  c.namespaces.core_scan_pair_ns = 5 * kUs;
  return c;
}

KvKey key(std::uint64_t number) {
  std::string text = std::to_string(number);
  return KvKey("k" + std::string(8 - text.size(), '0') + text);
}

KvCommand kv(Opcode op, const KvKey& of = {}, std::uint32_t bytes = 0) {
  KvCommand c;
  c.op = op;
  c.pair = {of, op == Opcode::kv_store ? bytes : 0};
  c.buffer_bytes = bytes;
  return c;
}

std::vector<Completion> finish(Ssd& ssd) {
  std::vector<Completion> done;
  while (const auto time = ssd.next_event()) ssd.advance(*time, done);
  return done;
}

// Runs one command on an idle drive, at a time when nothing else happens.
Completion perform(Ssd& ssd, KvCommand command, Nanos* clock) {
  ssd.submit_kv(*clock, std::move(command));
  std::vector<Completion> done = finish(ssd);
  EXPECT_EQ(done.size(), 1U);
  *clock = std::max(*clock, done.back().completed) + 1'000'000'000;
  return done.back();
}

void expect_laws(const Ssd& ssd) {
  EXPECT_EQ(ssd.audit().value_or(""), "");
  const Counters& k = ssd.counters();
  EXPECT_EQ(k.nand_pages_programmed * ssd.config().geometry.page_bytes, k.nand_bytes_programmed_total());
  if (ssd.next_event()) return;  // some of it is still in progress
  // The host's programmed bytes include the runs, except what was dropped before, or is not programmed yet.
  const KvCounters n = ssd.kv_counters();
  const std::uint64_t dropped = (k.write_cache_overwrites + k.write_cache_deallocated) * kUnit;
  EXPECT_LE(n.bytes_flushed + n.bytes_compacted, k.nand_bytes_programmed[static_cast<std::size_t>(FlashCause::host)] +
                                                     dropped + ssd.config().write_cache.bytes + kUnit);
}

TEST(Kv, AStoreCrossesTheLinkAndTakesTheCoreForACommandAndAPair) {
  Ssd ssd(with_kv(), 1);
  Nanos clock = 0;
  const Completion stored = perform(ssd, kv(Opcode::kv_store, key(1), 4087), &clock);
  EXPECT_EQ(stored.completed - stored.submitted, 4096 + 30 * kUs);
  EXPECT_EQ(ssd.counters().host_bytes_written, 4096U);
  EXPECT_EQ(ssd.counters().nand_pages_programmed, 0U);  // durable in the memtable

  const Completion found = perform(ssd, kv(Opcode::kv_retrieve, key(1), 1 << 20), &clock);
  EXPECT_EQ(found.kv_bytes, 4087U);
  EXPECT_EQ(found.completed - found.submitted, 30 * kUs + 4087);
  EXPECT_EQ(ssd.kv_counters().answered_from_dram, 1U);
}

TEST(Kv, ARunIsReadFromFlash) {
  Ssd ssd(with_kv(), 1);
  Nanos clock = 0;
  ASSERT_TRUE(ssd.bulk_load_kv(0, {{key(1), 4000}, {key(2), 4000}, {key(3), 100}}));
  expect_laws(ssd);
  // Two units on two dies, read in parallel: the pair spans two units.
  const Completion found = perform(ssd, kv(Opcode::kv_retrieve, key(2), 1 << 20), &clock);
  EXPECT_EQ(found.kv_bytes, 4000U);
  const Nanos transfer = static_cast<Nanos>(kUnit * 1000.0 / ssd.config().timing.channel_mb_s);
  EXPECT_GE(found.completed - found.submitted, 30 * kUs + 50 * kUs + transfer + 4000);
  EXPECT_LE(found.completed - found.submitted, 30 * kUs + 50 * kUs + 2 * transfer + 4000 + 1);
  EXPECT_EQ(ssd.kv_counters().answered_from_dram, 0U);
  // What does not fit the host's buffer does not cross the link. The value's full length is reported.
  const std::uint64_t before = ssd.counters().host_bytes_read;
  EXPECT_EQ(perform(ssd, kv(Opcode::kv_retrieve, key(1), 10), &clock).kv_bytes, 4000U);
  EXPECT_EQ(ssd.counters().host_bytes_read, before + 10);
}

TEST(Kv, LimitsAndStatusCodesAreTheCommandSets) {
  Ssd ssd(with_kv(), 1);
  Nanos clock = 0;
  const auto status = [&](KvCommand command) { return nvme_status(perform(ssd, std::move(command), &clock).outcome); };
  const std::uint32_t vml = ssd.config().namespaces.vml_bytes;
  EXPECT_EQ(status(kv(Opcode::kv_store, key(1), vml)), 0x00);
  EXPECT_EQ(status(kv(Opcode::kv_store, key(1), vml + 1)), 0x85);
  EXPECT_EQ(status(kv(Opcode::kv_store, KvKey(), 1)), 0x86);
  EXPECT_EQ(status(kv(Opcode::kv_retrieve, KvKey(), 1)), 0x86);
  EXPECT_EQ(status(kv(Opcode::kv_retrieve, key(2), 1)), 0x87);
  EXPECT_EQ(status(kv(Opcode::kv_exist, key(2))), 0x87);
  EXPECT_EQ(status(kv(Opcode::kv_exist, key(1))), 0x00);
  EXPECT_EQ(status(kv(Opcode::kv_delete, key(2))), 0x87);

  KvCommand conditional = kv(Opcode::kv_store, key(1), 5);
  conditional.condition = KvCondition::only_if_not_exists;
  EXPECT_EQ(status(conditional), 0x89);
  conditional.condition = KvCondition::only_if_exists;
  EXPECT_EQ(status(conditional), 0x00);
  conditional.pair.key = key(2);
  EXPECT_EQ(status(conditional), 0x87);
  EXPECT_EQ(status(kv(Opcode::kv_delete, key(1))), 0x00);
  EXPECT_EQ(status(kv(Opcode::kv_retrieve, key(1), 1)), 0x87);

  KvCommand elsewhere = kv(Opcode::kv_store, key(1), 1);
  elsewhere.kv_namespace = 1;
  EXPECT_EQ(status(elsewhere), 0x0B);
  KvCommand batch = kv(Opcode::kv_batch_store);
  batch.pairs.assign(3, {key(7), vml});  // more than a memtable
  EXPECT_EQ(status(batch), 0x85);
  batch.pairs = {{key(7), 1}, {key(8), vml + 1}};  // none of it is stored
  EXPECT_EQ(status(batch), 0x85);
  EXPECT_TRUE(ssd.kv_pairs(0).empty());

  SsdConfig short_keys = with_kv();
  short_keys.namespaces.kml_bytes = 8;
  Ssd other(short_keys, 1);
  clock = 0;
  EXPECT_EQ(nvme_status(perform(other, kv(Opcode::kv_store, key(1), 1), &clock).outcome), 0x86);
}

TEST(Kv, BlockCommandsEndAtTheDisaggregationPoint) {
  SsdConfig config = with_kv();
  Ssd ssd(config, 1);
  const Layout& l = ssd.layout();
  EXPECT_EQ(l.capacity_bytes, 24U << 20);
  EXPECT_EQ(l.kv_units, (8U << 20) / kUnit);
  EXPECT_EQ(l.block_units + l.kv_units, l.logical_units);
  Command beyond;
  beyond.op = Opcode::deallocate;
  beyond.lba = l.block_units * 8;
  beyond.lba_count = 8;
  ssd.submit(0, beyond);
  EXPECT_EQ(finish(ssd).at(0).outcome, Outcome::lba_out_of_range);
  config.namespaces.kv_share = 0;
  EXPECT_EQ(layout(config).capacity_bytes, 32U << 20);
  EXPECT_EQ(layout(config).data_units, l.data_units);  // the flash is the same
}

TEST(Kv, AFullNamespaceReportsItCanBeEmptiedAndReusesItsSpace) {
  SsdConfig config = with_kv();
  config.namespaces.kv_share = 0.05;
  Ssd ssd(config, 1);
  ssd.write_sequentially(0, ssd.layout().block_units);
  Nanos clock = 0;
  for (int round = 0; round < 3; ++round) {
    std::uint64_t stored = 0;
    while (perform(ssd, kv(Opcode::kv_store, key(stored), 4000), &clock).outcome == Outcome::success) ++stored;
    EXPECT_GT(stored * 4000, ssd.layout().kv_units * kUnit * 8 / 10);
    EXPECT_LT(stored * 4000, ssd.layout().kv_units * kUnit);
    EXPECT_EQ(perform(ssd, kv(Opcode::kv_store, key(stored), 4000), &clock).outcome, Outcome::kv_capacity_exceeded);
    expect_laws(ssd);
    EXPECT_EQ(ssd.kv_pairs(0).size(), stored);  // it keeps what it has
    if (round == 1) {
      for (std::uint64_t i = 0; i < stored; ++i) {
        ASSERT_EQ(perform(ssd, kv(Opcode::kv_delete, key(i)), &clock).outcome, Outcome::success) << i;
      }
    } else {
      EXPECT_EQ(perform(ssd, kv(Opcode::kv_reset), &clock).outcome, Outcome::success);
    }
    EXPECT_TRUE(ssd.kv_pairs(0).empty());
    EXPECT_EQ(ssd.mapped_units(), ssd.layout().block_units);  // its flash is available to the block namespace
    expect_laws(ssd);
  }
}

TEST(Kv, OneCoreBoundsTheRateHoweverManyAsk) {
  const auto pairs_per_second = [](std::uint32_t batch) {
    Ssd ssd(with_kv(), 1);
    const std::uint64_t commands = 960 / batch;
    for (std::uint64_t i = 0; i < commands; ++i) {
      KvCommand c = kv(Opcode::kv_batch_store);
      for (std::uint64_t k = 0; k < batch; ++k) c.pairs.push_back({key(i * batch + k), 1000});
      c.queue = static_cast<std::uint16_t>(i % 4);
      ssd.submit_kv(0, std::move(c));
    }
    const Nanos last = finish(ssd).back().completed;
    return 960.0 * 1e9 / static_cast<double>(last);
  };
  EXPECT_LT(pairs_per_second(1), 1e9 / (30 * kUs));
  EXPECT_GT(pairs_per_second(1), 1e9 / (38 * kUs));  // the flush takes core time, too: 5 us per pair
  EXPECT_GT(pairs_per_second(16), 1e9 / (28 * kUs));
}

// A model of the drive's expected contents, one map per namespace, and the flash that it may use.
class Random16 {
 public:
  Random16(SsdConfig config, std::uint64_t seed) : ssd_(config, seed), random_(seed), held_(config.namespaces.count) {}

  void step() {
    KvCommand c;
    const auto space = static_cast<std::uint16_t>(random_.below(held_.size()));
    auto& held = held_[space];
    const KvKey k = key(random_.below(300));
    const auto bytes = static_cast<std::uint32_t>(random_.below(random_.below(8) == 0 ? 30'000 : 3'000));
    const std::uint64_t what = random_.below(100);
    Outcome expected = Outcome::success;
    std::uint64_t expected_bytes = 0;
    const bool is_there = held.contains(k);
    if (what < 45) {
      c = kv(Opcode::kv_store, k, bytes);
    } else if (what < 60) {
      c.op = Opcode::kv_batch_store;
      for (std::uint64_t i = 0; i < 1 + random_.below(6); ++i) {
        c.pairs.push_back({key(random_.below(300)), static_cast<std::uint32_t>(random_.below(5000))});
      }
    } else if (what < 75) {
      c = kv(Opcode::kv_delete, k);
      if (!is_there) expected = Outcome::kv_key_does_not_exist;
    } else if (what < 88) {
      c = kv(Opcode::kv_retrieve, k, 1 << 20);
      if (!is_there) expected = Outcome::kv_key_does_not_exist;
      if (is_there) expected_bytes = held[k];
    } else if (what < 99) {
      c.op = what < 92 ? Opcode::kv_list : what < 96 ? Opcode::kv_iterate : Opcode::kv_bulk_scan;
      c.range = {k, what % 2 == 0 ? KvKey() : key(200), what % 3 == 0};
      c.buffer_bytes = 60'000;
      expected_bytes = scanned_bytes(c, held);
    } else {
      c.op = Opcode::kv_reset;
      if (random_.below(2) == 0) c.range = {k, key(280), false};
    }
    c.kv_namespace = space;
    const Outcome outcome = submit(c, expected_bytes);
    if (outcome == Outcome::kv_capacity_exceeded && !is_kv_read(c.op)) return;
    ASSERT_EQ(outcome, expected) << static_cast<int>(c.op);
    if (outcome == Outcome::success) remember(c, held);
  }

  void expect_whole() {
    expect_laws(ssd_);
    for (std::uint16_t i = 0; i < held_.size(); ++i) {
      std::map<KvKey, std::uint32_t> there;
      for (const KvPair& pair : ssd_.kv_pairs(i)) there.emplace(pair.key, pair.value_bytes);
      EXPECT_TRUE(there == held_[i]);
    }
  }

  void power_cycle(std::uint64_t seed) {
    std::string state;
    ASSERT_TRUE(ssd_.save([&state](const void* bytes, std::size_t size) {
      state.append(static_cast<const char*>(bytes), size);
      return true;
    }));
    expect_laws(ssd_);
    const auto source_of = [](const std::string& bytes, std::size_t* at) {
      return [&bytes, at](void* to, std::size_t size) {
        if (bytes.size() - *at < size) return false;
        if (size > 0) std::memcpy(to, bytes.data() + *at, size);
        *at += size;
        return true;
      };
    };
    Ssd other(ssd_.config(), seed);
    std::size_t at = 0;
    ASSERT_EQ(other.load(source_of(state, &at)).value_or(""), "");
    EXPECT_EQ(at, state.size());
    const std::string half = state.substr(0, state.size() - 1 - random_.below(2000));
    at = 0;
    Ssd third(ssd_.config(), seed);
    EXPECT_NE(third.load(source_of(half, &at)).value_or(""), "");
    ssd_ = std::move(other);
  }

  Ssd& ssd() { return ssd_; }

 private:
  using Held = std::map<KvKey, std::uint32_t>;

  static std::uint64_t scanned_bytes(const KvCommand& c, const Held& held) {
    const std::uint64_t most = c.op == Opcode::kv_bulk_scan ? kScanChunkBytes : c.buffer_bytes;
    std::uint64_t bytes = 0;
    auto at = c.range.after_begin ? held.upper_bound(c.range.begin) : held.lower_bound(c.range.begin);
    for (; at != held.end() && c.range.reaches(at->first); ++at) {
      const std::uint64_t pair = 8 + at->first.size + (c.op == Opcode::kv_list ? 0 : at->second);
      if (bytes + pair > most) break;
      bytes += pair;
    }
    return bytes;
  }

  Outcome submit(const KvCommand& c, std::uint64_t expected_bytes) {
    ssd_.submit_kv(clock_, c);
    std::vector<Completion> done;
    while (done.empty()) ssd_.advance(*ssd_.next_event(), done);  // background work continues
    clock_ = std::max(clock_, done[0].completed);
    EXPECT_EQ(done[0].kv_bytes, expected_bytes);
    return done[0].outcome;
  }

  static void remember(const KvCommand& c, Held& held) {
    if (c.op == Opcode::kv_store) held[c.pair.key] = c.pair.value_bytes;
    for (const KvPair& pair : c.pairs) held[pair.key] = pair.value_bytes;
    if (c.op == Opcode::kv_delete) held.erase(c.pair.key);
    if (c.op != Opcode::kv_reset) return;
    auto at = held.lower_bound(c.range.begin);
    while (at != held.end() && c.range.reaches(at->first)) at = held.erase(at);
  }

  Ssd ssd_;
  Random random_;
  std::vector<Held> held_;
  Nanos clock_ = 0;
};

TEST(Kv, HoldsWhatAnOrderedMapHolds) {
  for (const std::uint32_t variant : {0U, 1U, 2U, 3U}) {
    SCOPED_TRACE(variant);
    SsdConfig config = with_kv();
    config.namespaces.compaction_runs = variant % 2 == 0 ? 0 : 3;
    config.namespaces.kv_share = variant == 3 ? 0.3 : 0.12;
    config.namespaces.count = variant == 0 ? 1 : 2;
    config.write_cache.power_loss_protection = variant != 1;
    if (variant == 2) config.write_cache.bytes = 0;
    if (variant == 3) config.mapping_cache.bytes = 4096;
    ASSERT_FALSE(problem(config)) << problem(config)->message;
    Random16 drive(config, variant + 1);
    drive.ssd().assume_steady(drive.ssd().layout().block_units);
    for (int round = 0; round < 4; ++round) {
      for (int i = 0; i < 700; ++i) drive.step();
      drive.expect_whole();
      finish(drive.ssd());
      drive.expect_whole();
      drive.power_cycle(variant);
      drive.expect_whole();
    }
    EXPECT_GT(drive.ssd().kv_counters().flushes, 10U);
    EXPECT_EQ(drive.ssd().kv_counters().compactions > 0, variant % 2 == 1);
  }
}

TEST(Kv, CompactionPaysInFlashAndGivesBackWhatWasReplaced) {
  const auto units_taken = [](std::uint32_t runs, std::uint64_t* compacted) {
    SsdConfig config = with_kv();
    config.namespaces.compaction_runs = runs;
    Ssd ssd(config, 1);
    Nanos clock = 0;
    // One pair in sixteen stays, and keeps its run.
    for (std::uint64_t i = 0; i < 800; ++i) {
      perform(ssd, kv(Opcode::kv_store, key(i % 16 == 0 ? 1000 + i : i % 10), 4000), &clock);
    }
    expect_laws(ssd);
    *compacted = ssd.kv_counters().bytes_compacted;
    EXPECT_EQ(ssd.kv_pairs(0).size(), 60U);
    return ssd.mapped_units();
  };
  std::uint64_t without = 0;
  std::uint64_t with = 0;
  const std::uint64_t left = units_taken(0, &without);
  EXPECT_LT(units_taken(2, &with), left / 2);
  EXPECT_EQ(without, 0U);
  EXPECT_GT(with, 0U);
}

TEST(Kv, FlashTrafficAddsUpWithBlockWrites) {
  SsdConfig config = with_kv();
  config.write_cache.bytes = 0;
  Ssd ssd(config, 1);
  ssd.assume_steady(ssd.layout().block_units);
  Random random(5);
  Nanos now = 0;
  std::uint64_t block_bytes = 0;
  std::uint64_t pair_bytes = 0;
  for (std::uint64_t i = 0; i < 3000; ++i, now += 30 * kUs) {
    Command write;
    write.op = Opcode::write;
    write.lba = random.below(ssd.layout().block_units) * 8;
    write.lba_count = 8;
    ssd.submit(now, write);
    block_bytes += kUnit;
    ssd.submit_kv(now, kv(Opcode::kv_store, key(random.below(900)), 4000));
    pair_bytes += 9 + 4000;
  }
  finish(ssd);
  expect_laws(ssd);
  const Counters& k = ssd.counters();
  EXPECT_EQ(k.host_bytes_written, block_bytes + pair_bytes);
  EXPECT_GT(k.gc_victims, 0U);
  // The host's programmed bytes are its writes, the runs, and padding; less what was overwritten before it was
  // programmed.
  EXPECT_EQ(
      k.nand_bytes_programmed[static_cast<std::size_t>(FlashCause::host)] - k.nand_bytes_padded,
      block_bytes + ssd.kv_counters().bytes_flushed - (k.write_cache_overwrites + k.write_cache_deallocated) * kUnit);
}

TEST(Kv, TheSameCommandsAtTheSameTimesGiveTheSameCompletionsHoweverTimeIsAdvanced) {
  const auto run = [](Nanos stride) {
    SsdConfig config = with_kv();
    config.namespaces.compaction_runs = 2;
    config.write_cache.power_loss_protection = false;
    Ssd ssd(config, 1);
    ssd.assume_steady(ssd.layout().block_units);
    Random random(9);
    std::vector<Completion> done;
    Nanos now = 0;
    for (std::uint64_t i = 0; i < 2000; ++i) {
      const auto next = now + static_cast<Nanos>(random.below(80 * kUs));
      for (Nanos t = now; stride > 0 && t < next; t += stride) ssd.advance(t, done);
      now = next;
      KvCommand c = kv(random.below(3) == 0 ? Opcode::kv_retrieve : Opcode::kv_store, key(random.below(200)), 3000);
      c.tag = i;
      c.queue = static_cast<std::uint16_t>(i % 3);
      ssd.submit_kv(now, c);
      if (i % 4 != 0) continue;
      Command read;
      read.tag = 1'000'000 + i;
      read.lba = random.below(ssd.layout().block_units) * 8;
      read.lba_count = 8;
      ssd.submit(now, read);
    }
    while (const auto time = ssd.next_event()) ssd.advance(*time, done);
    return done;
  };
  const std::vector<Completion> once = run(0);
  const std::vector<Completion> often = run(7 * kUs);
  ASSERT_EQ(once.size(), often.size());
  for (std::size_t i = 0; i < once.size(); ++i) {
    ASSERT_EQ(once[i].tag, often[i].tag);
    ASSERT_EQ(once[i].completed, often[i].completed);
    ASSERT_EQ(once[i].outcome, often[i].outcome);
    ASSERT_EQ(once[i].kv_bytes, often[i].kv_bytes);
  }
}

TEST(Kv, RelationsThatDoNotHoldAreRefusedByKey) {
  const auto key_of = [](auto change) {
    SsdConfig config = with_kv();
    change(config.namespaces);
    const auto found = problem(config);
    return found ? found->key : "";
  };
  EXPECT_EQ(key_of([](NamespacesConfig&) {}), "");
  EXPECT_EQ(key_of([](NamespacesConfig& n) { n.kv_share = 1; }), "namespaces.kv_share");
  EXPECT_EQ(key_of([](NamespacesConfig& n) { n.kv_share = 0.001; }), "namespaces.kv_share");
  EXPECT_EQ(key_of([](NamespacesConfig& n) { n.count = 0; }), "namespaces.count");
  EXPECT_EQ(key_of([](NamespacesConfig& n) { n.kml_bytes = 17; }), "namespaces.kml_bytes");
  EXPECT_EQ(key_of([](NamespacesConfig& n) { n.vml_bytes = 512 * 1024; }), "namespaces.vml_bytes");
  EXPECT_EQ(key_of([](NamespacesConfig& n) { n.memtable_bytes = n.vml_bytes; }), "namespaces.memtable_bytes");
  EXPECT_EQ(key_of([](NamespacesConfig& n) { n.core_pair_ns = -1; }), "namespaces.core_pair_ns");
  EXPECT_EQ(key_of([](NamespacesConfig& n) { n.core_mb_s = -1; }), "namespaces.core_mb_s");
  EXPECT_EQ(key_of([](NamespacesConfig& n) { n.compaction_runs = 1; }), "namespaces.compaction_runs");
}

}  // namespace
}  // namespace spillway::ssd
