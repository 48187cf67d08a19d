// The two vendor extensions of a key-value namespace that a preset switches on: a retrieve from the middle of a value,
// and a batch retrieve. Their time on the core, their flash, and what a drive without them says.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "ssd/ssd.h"
#include "ssd/structures/random.h"

namespace spillway::ssd {
namespace {

constexpr Nanos kUs = 1000;
constexpr std::uint32_t kUnit = 4096;
constexpr std::uint32_t kValueBytes = 20'000;

// Eight dies on two channels, flash pages of two mapping units.
SsdConfig with_extensions() {
  SsdConfig c;
  c.geometry.channels = 2;
  c.geometry.dies_per_chip = 4;
  c.geometry.pages_per_block = 16;
  c.geometry.page_bytes = 2 * kUnit;
  c.geometry.mapping_unit_bytes = kUnit;
  c.capacity.capacity_bytes = 32 << 20;
  c.capacity.spare_factor = 0.2;
  c.timing.host_link_mb_s = 1000;
  c.namespaces.kv_share = 0.25;
  c.namespaces.vml_bytes = 32 * 1024;
  c.namespaces.memtable_bytes = 64 * 1024;
  c.namespaces.core_command_ns = 10 * kUs;
  c.namespaces.core_pair_ns = 20 * kUs;
  c.namespaces.retrieve_offset = true;
  c.namespaces.batch_retrieve_keys = 16;
  c.namespaces.core_batch_key_ns = 7 * kUs;
  return c;
}

KvKey key(std::uint64_t number) { return KvKey("k" + std::to_string(1000 + number)); }

KvCommand retrieve(std::uint64_t number, std::uint32_t offset, std::uint32_t buffer) {
  KvCommand c;
  c.op = Opcode::kv_retrieve;
  c.pair.key = key(number);
  c.offset_bytes = offset;
  c.buffer_bytes = buffer;
  return c;
}

KvCommand batch(std::vector<KvPart> parts) {
  KvCommand c;
  c.op = Opcode::kv_batch_retrieve;
  c.parts = std::move(parts);
  return c;
}

// A drive with the pairs 0, 1, ... on flash, and time enough between its commands for all that they start.
class Drive {
 public:
  explicit Drive(const SsdConfig& config, std::uint64_t pairs = 40) : ssd_(config, 1) {
    EXPECT_FALSE(problem(config)) << problem(config)->message;
    std::vector<KvPair> all;
    for (std::uint64_t i = 0; i < pairs; ++i) all.push_back({key(i), kValueBytes});
    EXPECT_TRUE(all.empty() || ssd_.bulk_load_kv(0, all));
    ssd_.reset_counters();
  }

  Completion perform(KvCommand command) {
    const Counters before = ssd_.counters();
    ssd_.submit_kv(clock_, std::move(command));
    std::vector<Completion> done;
    while (const auto time = ssd_.next_event()) ssd_.advance(*time, done);
    EXPECT_EQ(done.size(), 1U);
    clock_ = done.back().completed + 1'000'000'000;
    const auto host = static_cast<std::size_t>(FlashCause::host);
    flash_bytes = ssd_.counters().nand_bytes_read[host] - before.nand_bytes_read[host];
    link_bytes = ssd_.counters().host_bytes_read - before.host_bytes_read;
    return done.back();
  }
  std::uint64_t core_ns() const { return ssd_.kv_counters().core_busy_ns; }
  Ssd& ssd() { return ssd_; }

  std::uint64_t flash_bytes = 0;  // read by the last command
  std::uint64_t link_bytes = 0;   // to the host

 private:
  Ssd ssd_;
  Nanos clock_ = 0;
};

// Where the bulk load has put a pair's value, in the bytes of its run.
std::uint64_t value_at(std::uint64_t number) {
  const std::uint64_t head = kPairHeaderBytes + key(0).size;
  return number * (head + kValueBytes) + head;
}

TEST(KvRetrieve, APartReadsTheUnitsThatHoldItAndNoMore) {
  Drive drive(with_extensions());
  Random random(1);
  for (int i = 0; i < 300; ++i) {
    const std::uint64_t number = random.below(40);
    const auto offset = static_cast<std::uint32_t>(random.below(kValueBytes));
    const auto buffer = static_cast<std::uint32_t>(1 + random.below(i % 2 == 0 ? 9000 : 2 * kValueBytes));
    const std::uint32_t bytes = std::min(buffer, kValueBytes - offset);
    const Completion done = drive.perform(retrieve(number, offset, buffer));
    EXPECT_EQ(done.outcome, Outcome::success);
    EXPECT_EQ(done.kv_bytes, kValueBytes);  // of the whole value
    EXPECT_EQ(drive.link_bytes, bytes);
    const std::uint64_t first = (value_at(number) + offset) / kUnit;
    const std::uint64_t last = (value_at(number) + offset + bytes - 1) / kUnit;
    EXPECT_EQ(drive.flash_bytes, (last - first + 1) * kUnit) << number << " " << offset << " " << bytes;
  }
}

TEST(KvRetrieve, ThereIsNothingAtOrBeyondTheEndOfAValueAndItCostsNoFlash) {
  Drive drive(with_extensions());
  const auto expect_nothing = [&](std::uint32_t offset, std::uint32_t buffer) {
    const Completion done = drive.perform(retrieve(3, offset, buffer));
    EXPECT_EQ(done.outcome, Outcome::success) << offset;
    EXPECT_EQ(done.kv_bytes, kValueBytes);
    EXPECT_EQ(drive.link_bytes, 0U);
    EXPECT_EQ(drive.flash_bytes, 0U);
    EXPECT_EQ(done.completed - done.submitted, 30 * kUs);
  };
  for (const std::uint32_t offset : {kValueBytes, kValueBytes + 1, ~std::uint32_t{0}}) expect_nothing(offset, 4096);
  expect_nothing(0, 0);
  expect_nothing(kValueBytes - 1, 0);
  drive.perform(retrieve(3, kValueBytes - 1, ~std::uint32_t{0}));  // a buffer that ends beyond 4 GiB
  EXPECT_EQ(drive.link_bytes, 1U);
  EXPECT_EQ(drive.flash_bytes, kUnit);
}

TEST(KvRetrieve, AnOffsetSavesFlashAndLinkAndNotTheCore) {
  SsdConfig config = with_extensions();
  Drive with(config);
  config.namespaces.retrieve_offset = false;
  Drive without(config);
  const Completion part = with.perform(retrieve(5, 16'000, 4000));
  const Completion whole = without.perform(retrieve(5, 0, 20'000));
  EXPECT_LT(part.completed - part.submitted, whole.completed - whole.submitted);
  EXPECT_LT(with.flash_bytes, without.flash_bytes);
  EXPECT_EQ(with.core_ns(), without.core_ns());
  // Without it the whole pair is read, however small the buffer.
  without.perform(retrieve(5, 0, 10));
  EXPECT_GE(without.flash_bytes, std::uint64_t{kValueBytes} / kUnit * kUnit);
}

TEST(KvRetrieve, ABatchTakesTheCoreForOneCommandAndForEachKey) {
  for (const std::size_t keys : {1U, 2U, 7U, 16U}) {
    SCOPED_TRACE(keys);
    Drive drive(with_extensions(), 0);
    for (std::size_t i = 0; i < keys; ++i) {
      KvCommand store;
      store.op = Opcode::kv_store;
      store.pair = {key(i), 1000};
      drive.perform(store);  // fits the memtable: no flash in the times below
    }
    const std::uint64_t before = drive.core_ns();
    std::vector<KvPart> parts;
    for (std::size_t i = 0; i < keys; ++i) parts.push_back({key(i), 100, 500});
    const Completion done = drive.perform(batch(parts));
    EXPECT_EQ(drive.core_ns() - before, static_cast<std::uint64_t>(10 * kUs) + keys * 7 * kUs);
    EXPECT_EQ(drive.link_bytes, keys * (kPartHeaderBytes + 500));
    EXPECT_EQ(done.kv_bytes, keys * (kPartHeaderBytes + 500));
    // The link takes a nanosecond for a byte.
    EXPECT_EQ(done.completed - done.submitted, 10 * kUs + static_cast<Nanos>(keys) * (7 * kUs + 508));
    EXPECT_EQ(drive.ssd().kv_counters().retrieves, keys);
    EXPECT_EQ(drive.ssd().kv_counters().answered_from_dram, keys);
    EXPECT_EQ(drive.ssd().counters().host_reads, 1U);
  }
}

// Whatever is in a batch: the host gets the same bytes as with single retrieves, no more flash is read, and the core
// works less.
TEST(KvRetrieve, ABatchIsItsRetrievesAndCheaper) {
  Random random(2);
  for (int round = 0; round < 60; ++round) {
    SsdConfig config = with_extensions();
    config.namespaces.retrieve_offset = round % 3 != 0;
    config.namespaces.core_mb_s = round % 2 == 0 ? 0 : 100;
    Drive single(config);
    Drive together(config);
    std::vector<KvPart> parts(2 + random.below(15));
    std::uint64_t flash = 0;
    std::uint64_t link = 0;
    for (KvPart& part : parts) {
      part.key = key(random.below(50));  // a fifth of them is not there
      if (config.namespaces.retrieve_offset) part.offset_bytes = static_cast<std::uint32_t>(random.below(25'000));
      part.buffer_bytes = static_cast<std::uint32_t>(random.below(25'000));
      KvCommand one = retrieve(0, part.offset_bytes, part.buffer_bytes);
      one.pair.key = part.key;
      single.perform(one);
      flash += single.flash_bytes;
      link += single.link_bytes;
    }
    const std::size_t keys = parts.size();
    EXPECT_EQ(together.perform(batch(parts)).outcome, Outcome::success);
    EXPECT_EQ(together.link_bytes, link + keys * kPartHeaderBytes);
    EXPECT_LE(together.flash_bytes, flash);
    EXPECT_EQ(together.flash_bytes > 0, flash > 0);
    EXPECT_LT(together.core_ns(), single.core_ns());
    EXPECT_EQ(together.ssd().kv_counters().retrieves, single.ssd().kv_counters().retrieves);
    EXPECT_EQ(together.ssd().audit().value_or(""), "");
  }
}

TEST(KvRetrieve, AKeyThatIsMissingIsAnAnswerOfTheBatch) {
  Drive drive(with_extensions());
  const Completion none = drive.perform(batch({{key(100), 0, 4096}, {key(101), 5, 4096}}));
  EXPECT_EQ(none.outcome, Outcome::success);
  EXPECT_EQ(none.kv_bytes, 2 * kPartHeaderBytes);
  EXPECT_EQ(drive.flash_bytes, 0U);
  EXPECT_EQ(none.completed - none.submitted, 24 * kUs + 2 * kPartHeaderBytes);
  const Completion one = drive.perform(batch({{key(100), 0, 4096}, {key(1), 0, 4096}}));
  EXPECT_EQ(one.kv_bytes, 2 * kPartHeaderBytes + 4096);
  EXPECT_GT(drive.flash_bytes, 0U);
}

TEST(KvRetrieve, WhatADriveDoesNotHaveIsRefusedAndCostsTheCommandAlone) {
  const SsdConfig both = with_extensions();
  SsdConfig no_offset = both;
  no_offset.namespaces.retrieve_offset = false;
  SsdConfig no_batch = both;
  no_batch.namespaces.batch_retrieve_keys = 0;
  const auto expect_refused = [](const SsdConfig& config, KvCommand command, int status) {
    Drive drive(config);
    const Completion done = drive.perform(std::move(command));
    EXPECT_EQ(nvme_status(done.outcome), status);
    EXPECT_EQ(done.completed - done.submitted, 10 * kUs);
    EXPECT_EQ(drive.flash_bytes + drive.link_bytes + drive.ssd().kv_counters().retrieves, 0U);
  };
  expect_refused(no_offset, retrieve(1, 1, 10), 0x02);
  expect_refused(no_offset, batch({{key(1), 0, 10}, {key(2), 1, 10}}), 0x02);
  expect_refused(no_batch, batch({{key(1), 0, 10}, {key(2), 0, 10}}), 0x01);
  expect_refused(both, batch({}), 0x02);
  expect_refused(both, batch(std::vector<KvPart>(17, {key(1), 0, 10})), 0x02);
  expect_refused(both, batch({{key(1), 0, 10}, {KvKey(), 0, 10}}), 0x86);
  // An answer is one transfer, of 512 KiB at most.
  const std::uint32_t half = kScanChunkBytes / 2 - kPartHeaderBytes;
  expect_refused(both, batch({{key(1), 0, half}, {key(2), 0, half + 1}}), 0x02);
  EXPECT_EQ(Drive(both).perform(batch({{key(1), 0, half}, {key(2), 0, half}})).outcome, Outcome::success);
  EXPECT_EQ(Drive(no_offset).perform(batch({{key(1), 0, 10}, {key(2), 0, 10}})).outcome, Outcome::success);
}

// A pair has the newest version's length and place, wherever that lies: memtable, flush in progress, compacted run, and
// after the state was saved and loaded.
TEST(KvRetrieve, PartsFollowTheirPairThroughOverwritesCompactionsAndPowerCycles) {
  SsdConfig config = with_extensions();
  config.namespaces.compaction_runs = 2;
  config.write_cache.power_loss_protection = true;
  Ssd ssd(config, 1);
  Random random(4);
  std::map<KvKey, std::uint32_t> held;
  Nanos clock = 0;
  const auto perform = [&](const KvCommand& command) {
    ssd.submit_kv(clock, command);
    std::vector<Completion> done;
    while (done.empty()) ssd.advance(*ssd.next_event(), done);  // flushes and compactions go on
    clock = std::max(clock, done[0].completed);
    return done[0];
  };
  for (int i = 0; i < 3000; ++i) {
    KvCommand store;
    store.op = Opcode::kv_store;
    store.pair = {key(random.below(60)), static_cast<std::uint32_t>(random.below(9000))};
    ASSERT_EQ(perform(store).outcome, Outcome::success);
    held[store.pair.key] = store.pair.value_bytes;
    std::uint64_t expected = 0;
    std::vector<KvPart> parts(1 + random.below(16));
    for (KvPart& part : parts) {
      part = {key(random.below(70)), static_cast<std::uint32_t>(random.below(9000)),
              static_cast<std::uint32_t>(random.below(9000))};
      const auto at = held.find(part.key);
      const std::uint32_t there = at == held.end() ? 0 : at->second;
      expected += kPartHeaderBytes;
      if (there > part.offset_bytes) expected += std::min(there - part.offset_bytes, part.buffer_bytes);
    }
    ASSERT_EQ(perform(batch(parts)).kv_bytes, expected);
    if (i % 1000 != 999) continue;
    std::string state;
    std::vector<Completion> done;
    while (const auto time = ssd.next_event()) ssd.advance(*time, done);
    ASSERT_TRUE(ssd.save([&state](const void* bytes, std::size_t size) {
      state.append(static_cast<const char*>(bytes), size);
      return true;
    }));
    Ssd next(config, 2);
    std::size_t at = 0;
    const auto refused = next.load([&](void* to, std::size_t size) {
      if (state.size() - at < size) return false;
      std::copy_n(state.data() + at, size, static_cast<char*>(to));
      at += size;
      return true;
    });
    ASSERT_EQ(refused.value_or(""), "");
    ssd = std::move(next);
  }
  EXPECT_GT(ssd.kv_counters().compactions, 0U);
  EXPECT_EQ(ssd.audit().value_or(""), "");
}

TEST(KvRetrieve, ImpossibleSettingsAreRefusedByKey) {
  const auto refused = [](auto change) {
    SsdConfig config = with_extensions();
    change(config.namespaces);
    const auto found = problem(config);
    return found ? found->key : "";
  };
  EXPECT_EQ(refused([](NamespacesConfig&) {}), "");
  EXPECT_EQ(refused([](NamespacesConfig& n) { n.batch_retrieve_keys = 0; }), "");
  EXPECT_EQ(refused([](NamespacesConfig& n) { n.batch_retrieve_keys = 1; }), "namespaces.batch_retrieve_keys");
  EXPECT_EQ(refused([](NamespacesConfig& n) { n.batch_retrieve_keys = kMostBatchKeys; }), "");
  EXPECT_EQ(refused([](NamespacesConfig& n) { n.batch_retrieve_keys = kMostBatchKeys + 1; }),
            "namespaces.batch_retrieve_keys");
  EXPECT_EQ(refused([](NamespacesConfig& n) { n.core_batch_key_ns = -1; }), "namespaces.core_batch_key_ns");
  EXPECT_EQ(refused([](NamespacesConfig& n) { n.core_batch_key_ns = n.core_pair_ns; }), "");
  EXPECT_EQ(refused([](NamespacesConfig& n) { n.core_batch_key_ns = n.core_pair_ns + 1; }),
            "namespaces.core_batch_key_ns");
}

}  // namespace
}  // namespace spillway::ssd
