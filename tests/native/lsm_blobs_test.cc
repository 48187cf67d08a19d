// Separated values: blob files and who refers to them, what flushes and collections write, what dies.
#include <gtest/gtest.h>

#include <numeric>
#include <utility>
#include <vector>

#include "lsm/blobs.h"
#include "lsm/drive_files.h"
#include "lsm/grain.h"
#include "lsm/merge.h"
#include "lsm/picker.h"
#include "lsm_simulations.h"
#include "lsm_trees.h"

namespace spillway::lsm {
namespace {

constexpr double kBlobRecord = 1000;

BlobOptions collecting(double age_cutoff) {
  BlobOptions options;
  options.enabled = options.garbage_collection = true;
  options.file_size = 1e12;
  options.age_cutoff = age_cutoff;
  return options;
}

double referenced(const SortedFile& file) {
  double sum = 0;
  for (std::size_t i = 0; i < file.blobs.size(); ++i) {
    for (const double entries : file.blobs.entries(i)) sum += entries;
  }
  return sum;
}

// A flushed file whose values lie in a new blob file.
File flushed(BlobFiles& blobs, double low, double high, double entries) {
  File made = file(low, high, entries);
  blobs.replace({}, {made}, blobs.write(std::vector<File>{made}, std::vector<Entries>{made->entries}));
  return made;
}

KeySpace keys_of(double keys) {
  LoadSpec load;
  load.order = KeyOrder::uniform;
  load.keys = keys;
  return KeySpace(load);
}

Files merged(const KeySpace& keys, const Files& newest_first, double file_bytes = 0) {
  MergeSpec spec;
  spec.inputs = newest_first;
  spec.entry_bytes = kEntry;
  spec.target_file_bytes = file_bytes;
  ssd::Random random(1);
  return merge(keys, spec, random);
}

// Every entry of every output has its value somewhere, however files overlap and wherever outputs end.
TEST(LsmBlobs, EveryEntryKeepsAReference) {
  const KeySpace keys = keys_of(10'000);
  BlobFiles blobs(collecting(0), kBlobRecord);
  const Files inputs = {flushed(blobs, 0, 1, 3000), flushed(blobs, 0.2, 0.7, 2500), flushed(blobs, 0, 0.5, 4000),
                        flushed(blobs, 0.5, 1, 5000)};
  for (const double file_bytes : {0.0, 500 * kEntry}) {
    for (const File& output : merged(keys, inputs, file_bytes)) {
      EXPECT_NEAR(referenced(*output), total(output->entries), 0.01);
    }
  }
}

// Of a key that two files have, the newer one's value stays: the age of an input decides, not its place in the range.
TEST(LsmBlobs, TheNewestValueStays) {
  const KeySpace keys = keys_of(1000);
  BlobFiles blobs(collecting(0), kBlobRecord);
  const File older = flushed(blobs, 0, 1, 1000);
  const File newer = flushed(blobs, 0.25, 0.75, 500);  // all keys of its range
  const auto of = [&](const Files& outputs, const File& input) {
    double sum = 0;
    for (const File& output : outputs) {
      for (std::size_t i = 0; i < output->blobs.size(); ++i) {
        if (output->blobs.number(i) == input->blobs.number(0)) sum += output->blobs.entries(i)[0];
      }
    }
    return sum;
  };
  EXPECT_NEAR(of(merged(keys, {newer, older}), newer), 500, 1e-6);
  EXPECT_NEAR(of(merged(keys, {newer, older}), older), 500, 1e-6);
  EXPECT_NEAR(of(merged(keys, {older, newer}), newer), 0, 1e-6);
  EXPECT_NEAR(of(merged(keys, {older, newer}), older), 1000, 1e-6);
}

// The sets of a load that writes each key once do not meet: nothing becomes garbage.
TEST(LsmBlobs, UniqueKeysHideNothing) {
  LoadSpec load;
  load.keys = 1000;
  const KeySpace keys(load);
  BlobFiles blobs(collecting(0), kBlobRecord);
  const File older = flushed(blobs, 0, 1, 600);
  const Files outputs = merged(keys, {flushed(blobs, 0, 1, 400), older});
  EXPECT_NEAR(referenced(*outputs.front()), 1000, 1e-6);
}

TEST(LsmBlobs, FilesEndAtTheirSize) {
  BlobOptions options = collecting(0);
  options.file_size = 10 * kBlobRecord;
  BlobFiles blobs(options, kBlobRecord);
  const Files sorted = {file(0, 0.5, 12), file(0.5, 1, 11)};
  const auto written = blobs.write(sorted, std::vector<Entries>{{12}, {11}});
  ASSERT_EQ(written.size(), 3U);
  EXPECT_EQ(written[0]->values, 10);
  EXPECT_EQ(written[1]->values, 10);
  EXPECT_NEAR(written[2]->values, 3, 1e-9);
  EXPECT_NEAR(referenced(*sorted[0]), 12, 1e-9);
  EXPECT_NEAR(referenced(*sorted[1]), 11, 1e-9);
  EXPECT_LT(written[0]->number, written[1]->number);
  EXPECT_EQ(blobs.write(sorted, std::vector<Entries>{{12}, {11}}, 6).size(), 4U);
}

// Of n files the oldest share is collected, rounded down; of a compaction's outputs alone.
TEST(LsmBlobs, CollectsTheOldestFiles) {
  struct Cutoff {
    double age;
    double collected;  // of ten files
  };
  for (const Cutoff& cutoff : {Cutoff{0, 0}, {0.09, 0}, {0.25, 2}, {0.5, 5}, {1, 10}}) {
    BlobFiles blobs(collecting(cutoff.age), kBlobRecord);
    Files sorted;
    for (int i = 0; i < 10; ++i) sorted.push_back(flushed(blobs, 0, 1, 100));
    const Files outputs = merged(keys_of(1e9), {sorted.rbegin(), sorted.rend()});
    std::vector<Relocation> relocations;
    const std::vector<Entries> lost = blobs.collect(outputs, relocations);
    ASSERT_EQ(lost.size(), 1U);
    EXPECT_NEAR(total(lost[0]), 100 * cutoff.collected, 0.01) << cutoff.age;
    EXPECT_NEAR(referenced(*outputs[0]), 1000 - total(lost[0]), 0.01);
    ASSERT_EQ(relocations.size(), static_cast<std::size_t>(cutoff.collected));
    if (!relocations.empty()) {
      EXPECT_NEAR(relocations.back().until, total(lost[0]), 1e-6);
    }
  }
  BlobOptions off = collecting(1);
  off.garbage_collection = false;
  BlobFiles blobs(off, kBlobRecord);
  std::vector<Relocation> relocations;
  EXPECT_EQ(total(blobs.collect({flushed(blobs, 0, 1, 100)}, relocations)[0]), 0);
}

// Two files in a level, their blob files and two younger ones. Of the oldest blob file's values so many are left; with
// `mixed` the other sorted file has one of them.
struct Aged {
  explicit Aged(double threshold, double left = 40, bool mixed = false) : blobs(options_of(threshold), kBlobRecord) {
    const Files before = {flushed(blobs, 0, 0.5, 100), flushed(blobs, 0.5, 1, 100)};
    for (int i = 0; i < 2; ++i) tree.add_newest(flushed(blobs, 0, 1, 100));
    after = {file(0, 0.5, 100), file(0.5, 1, 100)};
    after[0]->blobs.add(before[0]->blobs.number(0), Entries{mixed ? left - 1 : left});
    if (mixed) after[1]->blobs.add(before[0]->blobs.number(0), Entries{1});
    after[1]->blobs.add(before[1]->blobs.number(0), before[1]->blobs.entries(0));
    blobs.replace(before, after, {});
    put_in_level(tree, 2, after);
  }
  static BlobOptions options_of(double threshold) {
    BlobOptions options = collecting(0.5);
    options.force_threshold = threshold;
    return options;
  }

  BlobFiles blobs;
  Files after;
  Tree tree{small_options()};
};

// Enough garbage in the oldest blob file makes a compaction of the files that refer to it, within their level.
TEST(LsmBlobs, GarbageForcesACollection) {
  Aged aged(0.5);
  const Files forced = aged.blobs.forced(aged.tree);
  ASSERT_EQ(forced, Files{aged.after[0]});
  EXPECT_FALSE(pick_compaction(aged.tree));
  const auto compaction = pick_compaction(aged.tree, forced);
  ASSERT_TRUE(compaction);
  EXPECT_EQ(compaction->inputs, forced);
  EXPECT_TRUE(compaction->lower.empty());
  EXPECT_EQ(compaction->start_level, 2U);
  EXPECT_EQ(compaction->output_level, 2U);
  EXPECT_FALSE(compaction->trivial_move);
  aged.tree.begin_compaction(forced);
  EXPECT_TRUE(aged.blobs.forced(aged.tree).empty());
}

TEST(LsmBlobs, LittleGarbageForcesNothing) {
  Aged much(0.7);
  EXPECT_TRUE(much.blobs.forced(much.tree).empty());
  Aged off(1.0, 1);
  EXPECT_TRUE(off.blobs.forced(off.tree).empty());
  Aged little(0.5, 60);
  EXPECT_TRUE(little.blobs.forced(little.tree).empty());
}

// A sorted file is linked to the oldest blob file alone: the next one is then of the same batch, and its bytes count.
TEST(LsmBlobs, ABatchOfBlobFilesIsCollectedTogether) {
  Aged half(0.5, 40, true);
  EXPECT_TRUE(half.blobs.forced(half.tree).empty());
  Aged quarter(0.25, 40, true);  // of 200 values 60 are garbage
  EXPECT_EQ(quarter.blobs.forced(quarter.tree), quarter.after);
}

// A file dies with the last reference, but is not given back while a compaction reads it.
TEST(LsmBlobs, AFileDiesWithItsLastReference) {
  BlobFiles blobs(collecting(1), kBlobRecord);
  const File first = flushed(blobs, 0, 1, 100);
  const File second = flushed(blobs, 0, 1, 100);
  const std::vector<Relocation> read = {{blobs.blob(first->blobs.number(0)), 100, 100}};
  blobs.begin_reading(read);
  EXPECT_TRUE(blobs.take_dead().empty());
  blobs.replace({first}, {}, {});
  EXPECT_EQ(blobs.live().size(), 1U);
  EXPECT_TRUE(blobs.take_dead().empty());
  blobs.end_reading(read);
  const auto dead = blobs.take_dead();
  ASSERT_EQ(dead.size(), 1U);
  EXPECT_EQ(dead[0], blobs.blob(first->blobs.number(0)));
  EXPECT_TRUE(blobs.take_dead().empty());
  blobs.replace({second}, {second}, {});
  EXPECT_EQ(blobs.live().size(), 1U);
}

// ---------------------------------------------------------------------------------------------------------------------
// Whole simulations

Spec separated_spec(double age_cutoff = 0.25) {
  Spec spec = small_spec();
  spec.tree.blobs = collecting(age_cutoff);
  spec.tree.blobs.file_size = 4 << 20;
  spec.tree.level_compaction_dynamic_level_bytes = true;
  spec.load.keys = 50'000;
  spec.load.operations = 150'000;
  spec.load.settle = false;
  return spec;
}

double records(const Spec& spec, double values) { return values * entry_bytes(spec).blob; }

double written(const Figures& figures) { return static_cast<double>(figures.drive.host_bytes_written); }

// What the drive is told to write is what is counted, and beside the log each value is written once and then relocated.
TEST(LsmBlobs, BytesAddUp) {
  for (const double cutoff : {0.0, 0.25, 1.0}) {
    for (const Preload preload : {Preload::none, Preload::in_order}) {
      SCOPED_TRACE(testing::Message() << cutoff << ' ' << static_cast<int>(preload));
      Spec spec = separated_spec(cutoff);
      spec.load.settle = true;
      spec.load.preload = preload;
      const Figures figures = run(spec);
      const double of_values = figures.blobs.bytes_flushed + figures.blobs.bytes_relocated;
      const double of_tree = figures.flush_bytes + figures.compaction_bytes_written;
      EXPECT_NEAR(written(figures) / (figures.wal_bytes + of_tree + of_values), 1, 0.02);
      EXPECT_NEAR(figures.blobs.bytes_flushed / records(spec, spec.load.operations), 1, 0.03);
      EXPECT_LT(figures.flush_bytes, 0.1 * figures.blobs.bytes_flushed);
      EXPECT_NEAR(figures.blobs.bytes_read, figures.blobs.bytes_relocated, 0.02 * figures.blobs.bytes_relocated + 1e5);
      EXPECT_EQ(figures.blobs.bytes_relocated > 0, cutoff > 0);
      const double live = figures.blobs.bytes - figures.blobs.garbage_bytes;
      EXPECT_GE(live, records(spec, spec.load.keys) * (preload == Preload::none ? 0.9 : 0.999));
      EXPECT_NEAR(static_cast<double>(figures.held_bytes), figures.blobs.bytes + bytes_in_levels(figures), 4e6);
    }
  }
}

// What is there before the load is in blob files too, each of a memtable's values, and counted nowhere else.
TEST(LsmBlobs, ValuesAreThereBeforeTheLoad) {
  Spec spec = separated_spec();
  spec.load.preload = Preload::in_order;
  spec.load.operations = 1;
  const Figures figures = run(spec);
  const double all = records(spec, spec.load.keys) + spec.load.keys * entry_bytes(spec).file;
  EXPECT_NEAR(figures.preloaded_bytes / all, 1, 0.001);
  EXPECT_NEAR(static_cast<double>(figures.blobs.files), spec.load.keys / memtable_puts(spec), 1);
  EXPECT_NEAR(figures.blobs.garbage_bytes, 0, 1);
  EXPECT_EQ(figures.blobs.bytes_flushed, 0);
  EXPECT_NEAR(static_cast<double>(figures.held_bytes) / all, 1, 0.05);
}

// Without collection only files that nothing refers to any more are deleted; with it, space is bounded.
TEST(LsmBlobs, CollectionTakesWritesAndSavesSpace) {
  const auto paced = [](double cutoff) {
    Spec spec = separated_spec(cutoff);
    spec.load.preload = Preload::in_order;
    spec.load.rate_ops_s = 5000;  // compactions keep up
    return run(spec);
  };
  const Figures without = paced(0);
  const Figures with = paced(0.25);
  EXPECT_LT(static_cast<double>(with.held_bytes), 0.6 * static_cast<double>(without.held_bytes));
  EXPECT_GT(written(with), 1.1 * written(without));
}

// Where several levels of addresses leave the last one alone for long, forced collection bounds the garbage.
TEST(LsmBlobs, ForcedCollectionSavesSpace) {
  const auto held = [](double threshold) {
    Spec spec = separated_spec(0.5);
    spec.tree.level_compaction_dynamic_level_bytes = false;
    spec.tree.max_bytes_for_level_base = 256 << 10;
    spec.tree.target_file_size_base = 128 << 10;
    spec.tree.blobs.force_threshold = threshold;
    spec.load.preload = Preload::in_order;
    spec.load.rate_ops_s = 5000;
    return run(spec);
  };
  const Figures forced = held(0.2);
  const Figures left = held(1);
  EXPECT_LT(forced.blobs.garbage_bytes, 0.8 * left.blobs.garbage_bytes);
  EXPECT_GT(forced.blobs.bytes_relocated, left.blobs.bytes_relocated);
}

// Values are read one at a time: a compaction that relocates many takes long, and L0 gathers files meanwhile.
TEST(LsmBlobs, RelocationTakesAReadForEachValue) {
  Spec spec = separated_spec(1.0);
  spec.load.preload = Preload::in_order;
  spec.load.operations = 20'000;
  spec.load.settle = true;
  device::Drive slow = small_drive();
  slow.config.timing.read_ns = {200'000};
  const Figures figures = run(spec, slow);
  const double values = figures.blobs.bytes_relocated / entry_bytes(spec).blob;
  EXPECT_GT(values, 40'000);
  EXPECT_GT(figures.load_seconds + figures.settle_seconds, values * 200e-6);
}

TEST(LsmBlobs, SmallValuesStayInTheTree) {
  Spec spec = separated_spec();
  spec.tree.blobs.min_blob_size = spec.load.value_bytes + 1;
  const Figures large = run(spec);
  EXPECT_EQ(large.blobs.files, 0U);
  EXPECT_EQ(large.blobs.bytes_flushed, 0);
  spec.tree.blobs.enabled = false;
  const Figures without = run(spec);
  EXPECT_EQ(large.drive.host_bytes_written, without.drive.host_bytes_written);
  EXPECT_EQ(large.load_seconds, without.load_seconds);
  spec.tree.blobs = collecting(0.25);
  spec.tree.blobs.min_blob_size = spec.load.value_bytes;
  EXPECT_GT(run(spec).blobs.bytes_flushed, 0);
}

TEST(LsmBlobs, ARunRepeats) {
  Spec spec = separated_spec();
  spec.load.preload = Preload::in_order;
  spec.tree.compaction_threads = spec.tree.max_subcompactions = 4;
  const Figures one = run(spec);
  const Figures other = run(spec);
  EXPECT_EQ(one.drive.host_bytes_written, other.drive.host_bytes_written);
  EXPECT_EQ(one.load_seconds, other.load_seconds);
  EXPECT_EQ(one.blobs.bytes, other.blobs.bytes);
}

// Shapes of every kind, popular keys, a spill store beside.
TEST(LsmBlobs, EveryShapeKeepsItsValues) {
  for (const Shape shape : {Shape::leveled, Shape::universal, Shape::single_level}) {
    for (const KeyOrder order : {KeyOrder::uniform, KeyOrder::zipfian, KeyOrder::unique_random, KeyOrder::sequential}) {
      for (const double spill : {0.0, 64.0 * 1048576}) {
        SCOPED_TRACE(testing::Message() << static_cast<int>(shape) << ' ' << static_cast<int>(order) << ' ' << spill);
        Spec spec = separated_spec(0.5);
        spec.tree.level_compaction_dynamic_level_bytes = false;
        spec.tree.max_bytes_for_level_base = 256 << 10;  // several levels of addresses
        spec.tree.shape = shape;
        if (shape == Shape::single_level) spec.tree.levels = 2;
        spec.tree.compaction_threads = spec.tree.max_subcompactions = 2;
        spec.load.order = order;
        spec.load.operations = order == KeyOrder::uniform || order == KeyOrder::zipfian ? 100'000 : spec.load.keys;
        spec.load.settle = true;
        spec.spill.capacity_bytes = spill;
        const Figures figures = run(spec);
        const double live = figures.blobs.bytes - figures.blobs.garbage_bytes;
        const double entries = bytes_in_levels(figures) / entry_bytes(spec).file;
        EXPECT_NEAR(live / records(spec, entries), 1, 0.01);  // each entry has its value
        EXPECT_GE(entries, 0.999 * figures.live_user_bytes / 1016);
      }
    }
  }
}

// A value is one more read; of a scan one for each pair.
TEST(LsmBlobs, AQueryReadsItsValueBesides) {
  Spec spec = separated_spec(0);
  spec.tree.shape = Shape::single_level;
  spec.tree.level0_file_num_compaction_trigger = 1;
  spec.tree.levels = 2;
  spec.tree.level_compaction_dynamic_level_bytes = false;
  spec.load.order = KeyOrder::unique_random;
  spec.load.operations = spec.load.keys = 30'000;
  spec.load.settle = true;
  spec.queries = {{QuerySpec::Kind::point, 1, 2000, 0}, {QuerySpec::Kind::scan, 1, 200, 128}};
  const Figures figures = run(spec);
  EXPECT_NEAR(figures.queries[0].block_reads / 2000, 2, 1e-9);
  EXPECT_GT(figures.queries[1].block_reads / 200, 128);
  EXPECT_LT(figures.queries[1].block_reads / 200, 140);
}

TEST(LsmBlobs, ACoarseGrainIsTheSameExperiment) {
  Spec spec = separated_spec();
  spec.tree.write_buffer_size = spec.tree.target_file_size_base = 32 << 20;
  spec.tree.blobs.file_size = 128 << 20;
  spec.tree.max_bytes_for_level_base = 128 << 20;
  spec.load.keys = 500'000;
  spec.load.operations = 1'000'000;
  spec.load.preload = Preload::in_order;
  spec.load.settle = true;
  device::Drive drive = small_drive(8);
  drive.config.geometry.page_bytes = 16384;
  drive.config.geometry.pages_per_block = 256;
  const Figures fine = run(spec, drive);
  const Figures coarse = finer(run(coarser(spec, 4), coarser(drive, 4)), 4);
  EXPECT_NEAR(coarse.blobs.bytes_flushed / fine.blobs.bytes_flushed, 1, 0.02);
  EXPECT_NEAR(written(coarse) / written(fine), 1, 0.1);
  EXPECT_NEAR(coarse.load_seconds / fine.load_seconds, 1, 0.15);
  EXPECT_NEAR(coarse.preloaded_bytes / fine.preloaded_bytes, 1, 0.001);
}

// A grain that would leave a flushed file of addresses few flash pages is not chosen.
TEST(LsmBlobs, TheGrainLeavesAddressesRoom) {
  Spec spec = small_spec();
  spec.tree.write_buffer_size = spec.tree.target_file_size_base = 64.0 * 1048576;
  spec.load.keys = spec.load.operations = 1e9;
  device::Drive drive = small_drive(4096);
  drive.config.geometry.pages_per_block = 4096;
  drive.config.geometry.page_bytes = 65536;
  const std::uint32_t whole = choose_grain(spec, drive);
  spec.tree.blobs = collecting(0.25);
  const std::uint32_t separated = choose_grain(spec, drive);
  EXPECT_LT(separated, whole);
  EXPECT_GT(separated, 1U);
  EXPECT_FALSE(too_coarse(coarser(spec, separated), coarser(drive, separated)));
}

// Whole pages of the host's file system, of a drive with larger mapping units too, across the file's extents.
TEST(LsmBlobs, AReadOfBytesTakesThePagesThatTheyLieOn) {
  for (const std::uint32_t unit : {4096U, 16384U}) {
    device::Drive drive = small_drive(1);
    drive.config.geometry.page_bytes = 16384;
    drive.config.geometry.mapping_unit_bytes = unit;
    device::DriveModel model(drive, 1);
    DriveFiles files(model);
    fs::ExtentList place;
    fs::ExtentList hole;
    const std::uint64_t piece = 32768 / files.page_bytes();
    ASSERT_TRUE(files.append(place, piece) && files.append(hole, piece) && files.append(place, piece));
    ASSERT_EQ(place.extents().size(), 2U);
    ASSERT_TRUE(files.write_before(place));
    files.begin_time();
    struct Read {
      double offset;
      double bytes;
      std::uint64_t read;
    };
    for (const Read& one : {Read{0, 1, 4096},
                            {4000, 96, 4096},
                            {4000, 97, 8192},
                            {30'000, 5000, 8192},
                            {28'000, 9000, 16384},
                            {65535, 1, 4096}}) {
      const std::uint64_t before = files.counters().host_bytes_read;
      files.read_bytes(0, place, one.offset, one.bytes, device::Cause::blob, 0);
      std::vector<Owner> ready;
      while (ready.empty()) files.advance(*files.next_event(), ready);
      EXPECT_EQ(files.counters().host_bytes_read - before, one.read) << unit << ' ' << one.offset;
    }
    EXPECT_FALSE(files.refused());
  }
}

}  // namespace
}  // namespace spillway::lsm
