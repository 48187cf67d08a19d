// Flushes while they run: in which order they change the tree.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "lsm/background.h"
#include "lsm_simulations.h"

namespace spillway::lsm {
namespace {

// A background without a writer, in virtual time.
class BackgroundRun {
 public:
  explicit BackgroundRun(const Spec& spec)
      : spec_(spec),
        drive_(small_drive(), 1),
        keys_(spec.load),
        files_(drive_),
        processor_(spec.host.cores),
        background_(spec_, keys_, files_, processor_, figures_) {}

  void flush(double puts) {
    Memtable memtable;
    memtable.puts = puts;
    memtable.entries = keys_.distinct(puts);
    background_.add_immutable(std::move(memtable));
    background_.schedule(now_, false);
  }

  // False: nothing is left that could happen.
  bool step() {
    const auto event = files_.next_event();
    const auto computed = processor_.next_done();
    if (!event && !computed) return false;
    now_ = std::max(now_, !computed || (event && *event < *computed) ? *event : *computed);
    std::vector<Owner> ready;
    if (event && *event <= now_) files_.advance(now_, ready);
    for (const Owner owner : ready) resume(owner - kFirstLane);
    std::vector<std::uint32_t> done;
    processor_.take_done(now_, done);
    for (const std::uint32_t lane : done) resume(lane);
    return true;
  }

  const Background& background() const { return background_; }
  const Figures& figures() const { return figures_; }
  std::uint64_t records() const { return files_.counters().host_flushes - figures_.files_written; }

 private:
  void resume(std::uint32_t lane) {
    if (background_.continue_lane(now_, lane)) background_.schedule(now_, false);
  }

  const Spec spec_;
  device::DriveModel drive_;
  const KeySpace keys_;
  Figures figures_;
  DriveFiles files_;
  Processor processor_;
  Background background_;
  Nanos now_ = 0;
};

Spec flushes_side_by_side(std::uint32_t threads) {
  Spec spec = small_spec();
  spec.load.order = KeyOrder::unique_random;
  spec.tree.flush_threads = threads;
  spec.tree.level0_file_num_compaction_trigger = 100;
  spec.tree.max_bytes_for_level_base = 1e12;
  spec.tree.level0_slowdown_writes_trigger = spec.tree.level0_stop_writes_trigger = 200;
  return spec;
}

std::vector<double> oldest_first(const Background& background) {
  std::vector<double> entries;
  for (const auto& file : background.tree().level(0)) entries.push_back(std::round(total(file->entries)));
  std::ranges::reverse(entries);
  return entries;
}

// Whatever flush ends first, L0 gets files in the order of their memtables: an older version of a key never lies above
// a newer one.
TEST(LsmBackground, FlushesChangeTheTreeInTheOrderOfTheirMemtables) {
  const std::vector<std::vector<double>> loads = {
      {40'000, 100, 200}, {100, 40'000, 200}, {200, 100, 40'000}, {40'000, 30'000, 50}};
  for (const std::vector<double>& puts : loads) {
    for (const std::uint32_t threads : {1U, 2U, 3U}) {
      SCOPED_TRACE(testing::Message() << puts[0] << ' ' << puts[1] << ' ' << threads << " threads");
      BackgroundRun run(flushes_side_by_side(threads));
      for (const double one : puts) run.flush(one);
      do {
        const std::vector<double> found = oldest_first(run.background());
        double flushed = 0;
        for (const double entries : found) flushed += entries;
        double before = 0;  // of the oldest memtables
        for (std::size_t i = 0; i < puts.size() && before < flushed; ++i) before += puts[i];
        ASSERT_EQ(before, flushed) << "a newer memtable was flushed before an older one";
        ASSERT_LE(found.size() + run.background().immutable_memtables(), puts.size());
      } while (run.step());
      EXPECT_TRUE(run.background().idle());
      EXPECT_EQ(run.background().immutable_memtables(), 0U);
      EXPECT_DOUBLE_EQ(bytes_of(run.background().tree().level(0)), run.figures().flush_bytes);
    }
  }
}

// A flush that has to wait for an older one gives its thread back, and the older one records both at once.
TEST(LsmBackground, AFlushThatIsDoneEarlyIsRecordedWithTheOlderOne) {
  BackgroundRun run(flushes_side_by_side(2));
  for (const double puts : {40'000.0, 100.0, 200.0}) run.flush(puts);
  while (run.step()) {
  }
  EXPECT_EQ(run.figures().flushes, 3U);
  EXPECT_EQ(run.records(), 1U);
  EXPECT_EQ(oldest_first(run.background()), (std::vector<double>{40'000, 100, 200}));
}

}  // namespace
}  // namespace spillway::lsm
