// The host's processor: threads share its cores, and its time adds up.
#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "lsm/processor.h"
#include "lsm_simulations.h"
#include "ssd/structures/random.h"

namespace spillway::lsm {
namespace {

// Ends of pieces of work, in their order.
std::vector<std::pair<Nanos, std::uint32_t>> ends(Processor& processor) {
  std::vector<std::pair<Nanos, std::uint32_t>> found;
  while (const auto next = processor.next_done()) {
    std::vector<std::uint32_t> ids;
    processor.take_done(*next, ids);
    for (const std::uint32_t id : ids) found.emplace_back(*next, id);
  }
  return found;
}

TEST(LsmProcessor, WorkIsSlowedWhileThereIsMoreOfItThanCores) {
  using Ends = std::vector<std::pair<Nanos, std::uint32_t>>;
  Processor one(1);
  one.begin(0, 10, 1);
  one.begin(5, 10, 2);  // the first one has half left, for which it has half a core
  EXPECT_EQ(ends(one), (Ends{{15, 1}, {20, 2}}));
  Processor two(2);
  two.begin(0, 10, 1);
  two.begin(0, 10, 2);
  two.begin(0, 4, 3);
  EXPECT_EQ(ends(two), (Ends{{6, 3}, {12, 1}, {12, 2}}));
}

TEST(LsmProcessor, ThreadsThatWaitAreAPartOfTheLoad) {
  Processor processor(1);
  EXPECT_EQ(processor.slowdown(1), 1);
  processor.enter(0, 0.5);
  EXPECT_EQ(processor.slowdown(), 1);
  EXPECT_EQ(processor.slowdown(1), 1.5);
  processor.begin(0, 100, 7);
  EXPECT_EQ(processor.next_done(), 150);
  processor.leave(75, 0.5);
  EXPECT_EQ(processor.next_done(), 125);
}

// However work comes: no core is idle while there is some for it, and none does more than a second's in a second.
TEST(LsmProcessor, CoresDoAllThatTheyCan) {
  ssd::Random random(9);
  for (const double cores : {1.0, 2.0, 7.0}) {
    Processor processor(cores);
    std::vector<std::uint32_t> done;
    double work = 0;
    for (std::uint32_t id = 0; id < 200; ++id) {
      const auto ns = static_cast<double>(random.below(1000) + 1000);
      processor.begin(static_cast<Nanos>(id), ns, id);
      work += ns;
    }
    Nanos now = 0;
    while (done.size() < 200) {
      now = std::max(now, *processor.next_done());
      processor.take_done(now, done);
    }
    EXPECT_NEAR(static_cast<double>(now) * cores, work, 2000 * cores);
  }
}

// Whatever runs at once: what puts, flushes and compactions compute is no more than the cores have in that time.
TEST(LsmSimulation, TheProcessorsTimeAddsUp) {
  for (const double cores : {1.0, 2.0}) {
    for (const std::uint32_t threads : {1U, 4U}) {
      SCOPED_TRACE(testing::Message() << cores << ' ' << threads);
      Spec spec = small_spec();
      spec.load.order = KeyOrder::unique_random;
      spec.tree.compaction_threads = threads;
      spec.tree.level0_slowdown_writes_trigger = spec.tree.level0_stop_writes_trigger = 36;
      spec.host.cores = cores;
      spec.host.put_ns = 18'000;
      spec.host.flush_entry_ns = 6000;
      spec.host.merge_entry_ns = 11'000;
      spec.host.flush_byte_ns = spec.host.merge_byte_ns = 0;
      const Figures figures = run(spec);
      const double file_entry = entry_bytes(spec).file;
      const double work = figures.operations * (spec.host.put_ns + spec.host.flush_entry_ns) +
                          figures.compaction_bytes_read / file_entry * spec.host.merge_entry_ns;
      const double had = (figures.load_seconds + figures.settle_seconds) * 1e9 * cores;
      EXPECT_LE(work, 1.0001 * had);
      EXPECT_GE(work, 0.3 * had);  // it is what takes the time
    }
  }
}

// The same where nothing but the processor tells the writer that a compaction computes: no log, large memtables.
TEST(LsmSimulation, AWriterIsSlowedAsSoonAsACompactionComputes) {
  Spec spec = small_spec();
  spec.load.order = KeyOrder::unique_random;
  spec.tree.write_buffer_size = spec.tree.target_file_size_base = 8 << 20;
  spec.load.operations = 4.1 * memtable_puts(spec);
  spec.tree.wal = spec.tree.trivial_moves = false;
  spec.tree.level0_file_num_compaction_trigger = 1;
  spec.tree.max_bytes_for_level_base = 1e12;
  spec.host.cores = 1;
  spec.host.put_ns = spec.host.merge_entry_ns = 20'000;
  spec.host.flush_entry_ns = spec.host.flush_byte_ns = spec.host.merge_byte_ns = 0;
  const Figures figures = run(spec);
  const double entries = figures.operations + figures.compaction_bytes_read / entry_bytes(spec).file;
  EXPECT_LE(entries * spec.host.put_ns, 1.0001e9 * (figures.load_seconds + figures.settle_seconds));
}

}  // namespace
}  // namespace spillway::lsm
