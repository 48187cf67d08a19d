// A key-value namespace with contents: what was acknowledged is there, in virtual and in real time, after reopening and
// after a kill of the process.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <fstream>
#include <functional>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "base/steps.h"
#include "device/block_namespace.h"
#include "device/faulty_device.h"
#include "device/kv/kv_namespace.h"
#include "device_small_drive.h"
#include "ssd/structures/random.h"
#include "temporary_directory.h"

namespace spillway::device {
namespace {

using ssd::Outcome;

ssd::SsdConfig kv_drive(std::uint32_t namespaces = 1) {
  ssd::SsdConfig config = small_drive();
  config.namespaces.kv_share = 0.25;
  config.namespaces.count = namespaces;
  config.namespaces.vml_bytes = 16 * 1024;
  config.namespaces.memtable_bytes = 64 * 1024;
  config.namespaces.core_command_ns = 2'000;
  config.namespaces.core_pair_ns = 1'000;
  config.namespaces.core_scan_pair_ns = 500;
  config.namespaces.retrieve_offset = true;
  config.namespaces.batch_retrieve_keys = 8;
  config.namespaces.core_batch_key_ns = 700;
  return config;
}

std::unique_ptr<EmulatedDevice> simulated(std::uint32_t namespaces = 1) {
  return make_simulated(ssd::Ssd(kv_drive(namespaces), 1));
}

std::unique_ptr<KvNamespace> opened(EmulatedDevice& drive, const std::string& path = "", std::uint16_t index = 0) {
  auto space = KvNamespace::open(drive, index, path);
  EXPECT_TRUE(space) << space.status().message();
  return space ? std::move(*space) : nullptr;
}

KvDone perform(KvQueue& queue, const KvIo& io) {
  auto done = run(queue, io);
  EXPECT_TRUE(done) << done.status().message();
  return done ? std::move(*done) : KvDone();
}

KvIo command(Opcode op, std::string_view key = {}, std::string_view value = {}) {
  KvIo io;
  io.op = op;
  io.key = key;
  io.value = value;
  io.buffer_bytes = 1 << 20;
  return io;
}

using Pairs = std::map<std::string, std::string>;

// All pairs, chunk by chunk.
Pairs scanned(KvQueue& queue, Opcode op = Opcode::kv_bulk_scan, std::uint32_t buffer_bytes = 1 << 20) {
  Pairs all;
  KvIo io = command(op);
  io.buffer_bytes = buffer_bytes;
  for (;;) {
    const KvDone done = perform(queue, io);
    EXPECT_EQ(done.outcome, Outcome::success);
    if (done.bytes.empty()) return all;
    EXPECT_LE(done.bytes.size(), std::min(buffer_bytes, ssd::kScanChunkBytes));
    EXPECT_TRUE(for_each_pair(done.bytes, [&](const KvView& pair) {
      EXPECT_TRUE(all.empty() || all.rbegin()->first < pair.key);
      all.emplace(pair.key, pair.value);
    }));
    io.range.begin = ssd::KvKey(all.rbegin()->first);
    io.range.after_begin = true;
  }
}

std::string key_of(std::uint64_t number) { return "key" + std::to_string(10'000 + number); }
std::string value_of(std::uint64_t number, std::size_t size) {
  return std::string(size, static_cast<char>('a' + number % 26)) + std::to_string(number);
}

// A batch retrieve of random parts, and a retrieve of each.
void check_parts(KvQueue& queue, const Pairs& held, ssd::Random& random) {
  std::vector<std::string> keys(1 + random.below(8));
  for (std::string& key : keys) key = key_of(random.below(170));
  std::vector<KvViewPart> parts;
  for (const std::string& key : keys) {
    parts.push_back(
        {key, static_cast<std::uint32_t>(random.below(7000)), static_cast<std::uint32_t>(random.below(7000))});
  }
  KvIo io = command(Opcode::kv_batch_retrieve);
  io.parts = parts;
  const KvDone together = perform(queue, io);
  ASSERT_EQ(together.outcome, Outcome::success);
  ASSERT_EQ(together.found.size(), parts.size());
  for (std::size_t i = 0; i < parts.size(); ++i) {
    KvIo alone = command(Opcode::kv_retrieve, keys[i]);
    alone.offset_bytes = parts[i].offset_bytes;
    alone.buffer_bytes = parts[i].buffer_bytes;
    const KvDone one = perform(queue, alone);
    const auto at = held.find(keys[i]);
    const std::string value = at == held.end() ? "" : at->second;
    const std::size_t from = std::min<std::size_t>(parts[i].offset_bytes, value.size());
    const Outcome expected = at == held.end() ? Outcome::kv_key_does_not_exist : Outcome::success;
    ASSERT_EQ(one.outcome, expected);
    ASSERT_EQ(together.found[i].outcome, expected);
    ASSERT_EQ(one.value_bytes, value.size());
    ASSERT_EQ(together.found[i].value_bytes, value.size());
    ASSERT_EQ(one.bytes, value.substr(from, parts[i].buffer_bytes));
    ASSERT_EQ(together.found[i].bytes, one.bytes);
  }
}

// Random commands, checked against an ordered map.
void churn(KvQueue& queue, Pairs& held, std::uint64_t seed, int commands) {
  ssd::Random random(seed);
  for (int i = 0; i < commands; ++i) {
    const std::string key = key_of(random.below(150));
    const std::string value = value_of(random.next() % 1000, random.below(6000));
    const std::uint64_t what = random.below(20);
    if (what < 10) {
      ASSERT_EQ(perform(queue, command(Opcode::kv_store, key, value)).outcome, Outcome::success);
      held[key] = value;
    } else if (what < 14) {
      const bool was_there = held.erase(key) > 0;
      ASSERT_EQ(perform(queue, command(Opcode::kv_delete, key)).outcome,
                was_there ? Outcome::success : Outcome::kv_key_does_not_exist);
    } else if (what < 16) {
      const std::array<std::string, 3> keys = {key, key_of(random.below(150)), key_of(random.below(150))};
      std::vector<KvView> pairs;
      for (const std::string& one : keys) pairs.push_back({one, value});
      KvIo io = command(Opcode::kv_batch_store);
      io.pairs = pairs;
      ASSERT_EQ(perform(queue, io).outcome, Outcome::success);
      for (const std::string& one : keys) held[one] = value;
    } else if (what == 16 && random.below(10) == 0) {
      KvIo io = command(Opcode::kv_reset);
      io.range = {ssd::KvKey(key), ssd::KvKey(key_of(120)), false};
      ASSERT_EQ(perform(queue, io).outcome, Outcome::success);
      for (auto at = held.lower_bound(key); at != held.end() && at->first < key_of(120);) at = held.erase(at);
    } else if (what < 18) {
      check_parts(queue, held, random);
    } else {
      const KvDone found = perform(queue, command(Opcode::kv_retrieve, key));
      ASSERT_EQ(found.outcome == Outcome::success, held.contains(key));
      if (held.contains(key)) {
        ASSERT_EQ(found.bytes, held[key]);
        ASSERT_EQ(found.value_bytes, held[key].size());
      }
    }
  }
}

TEST(KvNamespace, HoldsWhatAnOrderedMapHoldsAndKeepsItWhenReopened) {
  TemporaryDirectory directory;
  Pairs held;
  for (std::uint64_t life = 0; life < 4; ++life) {
    const auto drive = simulated();
    const auto space = opened(*drive, directory.path("kv"));
    const auto queue = space->open_queue();
    ASSERT_EQ(scanned(*queue), held) << life;  // before the first store of this life
    churn(*queue, held, life, 400);
    EXPECT_EQ(scanned(*queue, Opcode::kv_iterate, 20'000), held);
    Pairs keys;
    for (const auto& [key, value] : held) keys.emplace(key, "");
    EXPECT_EQ(scanned(*queue, Opcode::kv_list, 1000), keys);
    EXPECT_EQ(drive->model().audit().value_or(""), "");
    EXPECT_EQ(drive->model().kv_pairs(0).size(), held.size());
  }
}

TEST(KvNamespace, ReopeningOnTheSameDriveChangesNothing) {
  TemporaryDirectory directory;
  const auto drive = simulated();
  Pairs held;
  {
    const auto space = opened(*drive, directory.path("kv"));
    churn(*space->open_queue(), held, 7, 200);
    const auto second = KvNamespace::open(*drive, 0, directory.path("kv"));
    EXPECT_FALSE(second);  // the file is in use
  }
  const auto resets = drive->kv_counters().resets;
  EXPECT_EQ(scanned(*opened(*drive, directory.path("kv"))->open_queue()), held);
  EXPECT_EQ(drive->kv_counters().resets, resets);
  // Another file has other contents, and the model has them, too.
  EXPECT_TRUE(scanned(*opened(*drive, directory.path("other"))->open_queue()).empty());
  EXPECT_TRUE(drive->model().kv_pairs(0).empty());
}

TEST(KvNamespace, TenantsCannotReachEachOther) {
  const auto drive = simulated(3);
  std::vector<std::unique_ptr<KvNamespace>> spaces;
  for (std::uint16_t i = 0; i < 3; ++i) spaces.push_back(opened(*drive, "", i));
  for (std::uint16_t i = 0; i < 3; ++i) {
    const auto queue = spaces[i]->open_queue();
    perform(*queue, command(Opcode::kv_store, "same", std::to_string(i)));
  }
  EXPECT_EQ(perform(*spaces[1]->open_queue(), command(Opcode::kv_reset)).outcome, Outcome::success);
  for (std::uint16_t i = 0; i < 3; ++i) {
    EXPECT_EQ(scanned(*spaces[i]->open_queue()), i == 1 ? Pairs() : Pairs({{"same", std::to_string(i)}}));
  }
  // A full namespace leaves the others their space.
  const auto queue = spaces[0]->open_queue();
  const std::string value(8000, 'v');
  std::uint64_t stored = 0;
  while (perform(*queue, command(Opcode::kv_store, key_of(stored), value)).outcome == Outcome::success) ++stored;
  EXPECT_GT(stored * 8000, spaces[0]->info().capacity_bytes / 2);
  EXPECT_EQ(perform(*spaces[2]->open_queue(), command(Opcode::kv_store, "k", value)).outcome, Outcome::success);
  const auto none = KvNamespace::open(*drive, 3, "");
  ASSERT_FALSE(none);
  EXPECT_EQ(none.status().fault(), Fault::not_supported);
}

TEST(BlockNamespace, EndsWhereItsNeighbourBegins) {
  const auto drive = simulated(2);
  BlockNamespace first(*drive, 0, 2);
  BlockNamespace second(*drive, 1, 2);
  const std::uint64_t capacity = first.info().capacity_bytes;
  EXPECT_EQ(2 * capacity, drive->info().capacity_bytes);
  Io all{.op = Opcode::write, .offset_bytes = 0, .length_bytes = capacity};
  EXPECT_EQ(run(*first.open_queue(), all)->fault, Fault::none);
  EXPECT_EQ(run(*second.open_queue(), all)->fault, Fault::none);
  EXPECT_EQ(drive->model().mapped_units(), 2 * capacity / 4096);  // next to each other, not overlapping
  all.op = Opcode::deallocate;
  EXPECT_EQ(run(*first.open_queue(), all)->fault, Fault::none);
  EXPECT_EQ(drive->model().mapped_units(), capacity / 4096);
  all.offset_bytes = 4096;
  EXPECT_EQ(first.open_queue()->submit({&all, 1}).fault(), Fault::bad_input);
  all.op = Opcode::kv_reset;
  EXPECT_EQ(second.open_queue()->submit({&all, 1}).fault(), Fault::not_supported);
}

TEST(KvNamespace, ADriveWithoutOneIsNotSupported) {
  const auto drive = make_simulated(ssd::Ssd(small_drive(), 1));
  EXPECT_EQ(KvNamespace::open(*drive, 0, "").status().fault(), Fault::not_supported);
  KvIoExtension kv;
  Io io;
  io.op = Opcode::kv_exist;
  io.extension = &kv;
  EXPECT_EQ(drive->open_queue()->submit({&io, 1}).fault(), Fault::not_supported);
}

TEST(KvNamespace, RefusalsChangeNothing) {
  const auto drive = simulated();
  const auto space = opened(*drive);
  const auto queue = space->open_queue();
  EXPECT_EQ(perform(*queue, command(Opcode::kv_store, std::string(17, 'k'), "v")).outcome,
            Outcome::kv_invalid_key_size);
  EXPECT_EQ(perform(*queue, command(Opcode::kv_store, "", "v")).outcome, Outcome::kv_invalid_key_size);
  EXPECT_EQ(perform(*queue, command(Opcode::kv_store, "k", std::string(16 * 1024 + 1, 'v'))).outcome,
            Outcome::kv_invalid_value_size);
  EXPECT_EQ(perform(*queue, command(Opcode::kv_store, "k", "")).outcome, Outcome::success);
  KvIo again = command(Opcode::kv_store, "k", "other");
  again.condition = ssd::KvCondition::only_if_not_exists;
  const KvDone refused = perform(*queue, again);
  EXPECT_EQ(refused.outcome, Outcome::kv_key_exists);
  EXPECT_EQ(refused.fault, Fault::none);
  EXPECT_EQ(scanned(*queue), (Pairs{{"k", ""}}));
  EXPECT_EQ(space->stored_bytes(), 9U);
}

TEST(KvNamespace, ADriveWithoutAnExtensionSaysSoAndRefusesIt) {
  for (const bool has_offset : {false, true}) {
    for (const std::uint32_t most : {0U, 2U}) {
      ssd::SsdConfig config = kv_drive();
      config.namespaces.retrieve_offset = has_offset;
      config.namespaces.batch_retrieve_keys = most;
      const auto drive = make_simulated(ssd::Ssd(config, 1));
      const auto space = opened(*drive);
      EXPECT_EQ(space->info().retrieve_offset, has_offset);
      EXPECT_EQ(space->info().batch_retrieve_keys, most);
      const auto queue = space->open_queue();
      perform(*queue, command(Opcode::kv_store, "key", "value"));
      KvIo part = command(Opcode::kv_retrieve, "key");
      part.offset_bytes = 2;
      const KvDone one = perform(*queue, part);
      EXPECT_EQ(one.outcome, has_offset ? Outcome::success : Outcome::kv_invalid_field);
      EXPECT_EQ(one.bytes, has_offset ? "lue" : "");
      const auto batch = [&](std::size_t keys) {
        const std::vector<KvViewPart> parts(keys, {"key", 0, 100});
        KvIo io = command(Opcode::kv_batch_retrieve);
        io.parts = parts;
        return perform(*queue, io);
      };
      const KvDone two = batch(2);
      EXPECT_EQ(two.outcome, most == 0 ? Outcome::kv_invalid_opcode : Outcome::success);
      EXPECT_EQ(two.fault, Fault::none);
      EXPECT_EQ(two.found.size(), most);
      const KvDone three = batch(3);
      EXPECT_EQ(three.outcome, most == 0 ? Outcome::kv_invalid_opcode : Outcome::kv_invalid_field);
      EXPECT_TRUE(three.found.empty());
      EXPECT_EQ(scanned(*queue), (Pairs{{"key", "value"}}));
    }
  }
}

TEST(KvNamespace, KeysOfABatchThatAreTooLongAreRefusedAndNotCutOff) {
  const auto drive = simulated();
  const auto space = opened(*drive);
  const auto queue = space->open_queue();
  const std::string longest(16, 'k');
  perform(*queue, command(Opcode::kv_store, longest, "value"));
  const std::string too_long = longest + "k";
  for (const std::string_view other : {std::string_view(too_long), std::string_view()}) {
    const std::vector<KvViewPart> parts = {{longest, 0, 100}, {other, 0, 100}};
    KvIo io = command(Opcode::kv_batch_retrieve);
    io.parts = parts;
    const KvDone done = perform(*queue, io);
    EXPECT_EQ(done.outcome, Outcome::kv_invalid_key_size);
    EXPECT_TRUE(done.found.empty());
  }
}

TEST(KvNamespace, ManyAtOnceFromManyThreadsInRealTimeReplayInVirtualTime) {
  const auto drive = make_paced(ssd::Ssd(kv_drive(), 1), 1.0);
  const auto space = opened(*drive);
  std::vector<Arrival> arrivals;
  std::vector<ssd::Completion> completions;
  drive->record_trace(&arrivals, &completions);
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t) {
    threads.emplace_back([&, t] {
      const auto queue = space->open_queue();
      std::vector<std::string> keys;
      std::vector<KvIo> ios;
      for (int i = 0; i < 60; ++i) keys.push_back("t" + std::to_string(t) + key_of(static_cast<std::uint64_t>(i)));
      const std::string value(3000, static_cast<char>('a' + t));
      for (const std::string& key : keys) ios.push_back(command(Opcode::kv_store, key, value));
      ASSERT_TRUE(queue->submit(ios));
      std::vector<KvDone> done(ios.size());
      while (queue->pending() > 0) {
        const std::size_t count = queue->reap(done, 1);
        for (std::size_t i = 0; i < count; ++i) ASSERT_EQ(done[i].outcome, Outcome::success);
      }
      for (const std::string& key : keys) ASSERT_EQ(perform(*queue, command(Opcode::kv_retrieve, key)).bytes, value);
      std::vector<KvViewPart> parts;
      for (std::size_t i = 0; i < 8; ++i) parts.push_back({keys[i * 7], 1000, 5000});
      KvIo batch = command(Opcode::kv_batch_retrieve);
      batch.parts = parts;
      for (const KvFound& one : perform(*queue, batch).found) ASSERT_EQ(one.bytes, value.substr(1000));
    });
  }
  for (std::thread& thread : threads) thread.join();
  drive->drive();  // completes the background work
  drive->record_trace(nullptr, nullptr);
  EXPECT_GT(drive->kv_counters().flushes, 0U);

  ssd::Ssd model(kv_drive(), 1);
  std::vector<ssd::Completion> again;
  for (const Arrival& arrival : arrivals) {
    ASSERT_TRUE(arrival.kv);
    model.advance(arrival.now, again);
    model.submit_kv(arrival.now, *arrival.kv);
  }
  while (const auto time = model.next_event()) model.advance(*time, again);
  ASSERT_EQ(again.size(), completions.size());
  for (std::size_t i = 0; i < again.size(); ++i) {
    ASSERT_EQ(again[i].tag, completions[i].tag);
    ASSERT_EQ(again[i].completed, completions[i].completed);
    ASSERT_EQ(again[i].kv_bytes, completions[i].kv_bytes);
  }
}

TEST(KvNamespace, AFaultOnTheWayIsNeitherAnAnswerNorAChange) {
  const auto drive = simulated();
  FaultyDevice faulty(*drive, [](const Io& io) {
    IoFault injected;
    if (io.op == Opcode::kv_store || io.op == Opcode::kv_batch_retrieve) injected.fault = Fault::io_error;
    return injected;
  });
  auto space = KvNamespace::open(*drive, 0, "", &faulty);
  ASSERT_TRUE(space) << space.status().message();
  const auto queue = (*space)->open_queue();
  const std::vector<KvViewPart> parts = {{"k", 0, 10}};
  KvIo batch = command(Opcode::kv_batch_retrieve);
  batch.parts = parts;
  const KvDone unanswered = perform(*queue, batch);
  EXPECT_EQ(unanswered.fault, Fault::io_error);
  EXPECT_TRUE(unanswered.found.empty());
  const KvDone done = perform(*queue, command(Opcode::kv_store, "k", "v"));
  EXPECT_EQ(done.fault, Fault::io_error);
  EXPECT_TRUE(scanned(*queue).empty());
}

// --- The file

TEST(KvContents, UsesItsSpaceAgain) {
  TemporaryDirectory directory;
  const std::uint64_t capacity = 1 << 20;
  auto contents = KvContents::open(directory.path("kv"), capacity, 64 * 1024);
  ASSERT_TRUE(contents) << contents.status().message();
  ssd::Random random(3);
  Pairs held;
  for (int i = 0; i < 20'000; ++i) {  // some sixty times the capacity; a tenth of the keys is rarely overwritten
    const std::string key = key_of(random.below(10) == 0 && i > 2000 ? 300 : random.below(i < 2000 ? 300 : 30));
    const std::string value = value_of(static_cast<std::uint64_t>(i), 3000);
    const KvView pair{key, value};
    const Status put = (*contents)->put({&pair, 1});
    ASSERT_TRUE(put) << put.message();
    held[key] = value;
  }
  contents = KvContents::open(directory.path("second"), capacity, 64 * 1024);  // closes the first
  contents = KvContents::open(directory.path("kv"), capacity, 64 * 1024);
  ASSERT_TRUE(contents) << contents.status().message();
  Pairs found;
  for (const auto& [key, place] : (*contents)->index()) found.emplace(key.text(), (*contents)->value(place));
  EXPECT_EQ(found, held);
}

TEST(KvContents, AnothersFileIsRefusedByName) {
  TemporaryDirectory directory;
  ASSERT_TRUE(KvContents::open(directory.path("kv"), 1 << 20, 1 << 16));
  const auto other = KvContents::open(directory.path("kv"), 64 << 20, 1 << 16);
  ASSERT_FALSE(other);
  EXPECT_EQ(other.status().fault(), Fault::bad_input);
  EXPECT_NE(other.status().message().find(directory.path("kv")), std::string::npos);
  std::ofstream(directory.path("text")) << "not a drive";
  EXPECT_EQ(KvContents::open(directory.path("text"), 1 << 20, 1 << 16).status().fault(), Fault::bad_input);
}

class KillAt final : public steps::Watcher {
 public:
  KillAt(std::string_view step, int passes) : step_(step), passes_(passes) {}
  void reached(std::string_view step) override {
    if (step == step_ && passes_-- == 0) kill(getpid(), SIGKILL);
  }

 private:
  const std::string_view step_;
  int passes_;
};

// The contents that a new process finds after one was killed when it reached this step for the (passes + 1)th time.
Pairs killed_at(const std::string& path, std::string_view step, int passes,
                const std::function<void(KvContents&)>& work) {
  const pid_t child = fork();
  if (child == 0) {
    KillAt watcher(step, passes);
    auto contents = KvContents::open(path, 1 << 20, 64 * 1024);
    steps::watch(&watcher);
    work(**contents);
    _exit(0);
  }
  int status = 0;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFSIGNALED(status)) << step << " was not reached";
  auto contents = KvContents::open(path, 1 << 20, 64 * 1024);
  EXPECT_TRUE(contents) << contents.status().message();
  Pairs found;
  for (const auto& [key, place] : (*contents)->index()) found.emplace(key.text(), (*contents)->value(place));
  return found;
}

TEST(KvContents, AKillAtAnyStepLeavesTheOldOrTheNew) {
  TemporaryDirectory directory;
  const std::string path = directory.path("kv");
  const Pairs old_pairs = {{"a", "old"}, {"b", "old"}, {"c", "old"}};
  const auto put = [](KvContents& contents, const Pairs& pairs) {
    std::vector<KvView> views;
    for (const auto& [key, value] : pairs) views.push_back({key, value});
    EXPECT_TRUE(contents.put(views));
  };
  const auto put_both = [&](KvContents& contents) {
    put(contents, old_pairs);
    put(contents, {{"b", "new"}, {"c", "new"}, {"d", "new"}});
  };
  EXPECT_EQ(killed_at(path, "device.kv.put.written", 1, put_both), old_pairs);
  EXPECT_EQ(killed_at(path, "device.kv.put.committed", 1, put_both),
            (Pairs{{"a", "old"}, {"b", "new"}, {"c", "new"}, {"d", "new"}}));
  const auto remove = [&](KvContents& contents) {
    put(contents, old_pairs);
    contents.remove_range({ssd::KvKey("a"), ssd::KvKey("c"), false});
  };
  EXPECT_EQ(killed_at(path, "device.kv.remove_range.one_removed", 0, remove), (Pairs{{"c", "old"}, {"d", "new"}}));

  // Cleaning moves live pairs. After a kill in the middle both copies exist, and one of them counts. Each segment has a
  // few small pairs among large ones that are soon replaced.
  const std::string value(100'000, 'v');
  const auto churn_until_cleaned = [&](KvContents& contents) {
    for (std::uint64_t i = 0; i < 1000; ++i) put(contents, {{key_of(i), "small"}, {"hot", value}});
  };
  for (const int passes : {0, 1}) {
    const Pairs found = killed_at(path, "device.kv.clean.one_moved", passes, churn_until_cleaned);
    EXPECT_GT(found.size(), 50U);
    Pairs expected = {{"c", "old"}, {"d", "new"}, {"hot", value}};
    for (std::uint64_t i = 0; expected.size() < found.size(); ++i) expected.emplace(key_of(i), "small");
    EXPECT_EQ(found, expected);
  }
}

// A process stores pair after pair, each with one of a batch, records in shared memory how many were acknowledged, and
// is killed in the middle.
TEST(KvNamespace, AcknowledgedStoresSurviveAKillAndABatchIsCompleteOrAbsent) {
  TemporaryDirectory directory;
  const std::string path = directory.path("kv");
  constexpr std::uint64_t kKeys = 60;
  void* const shared = mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(shared, MAP_FAILED);
  auto* const acknowledged = new (shared) std::atomic<std::uint64_t>(0);
  ssd::Random random(11);
  std::uint64_t total = 0;
  for (int kill_number = 0; kill_number < 6; ++kill_number) {
    const std::uint64_t first = acknowledged->load();
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      const auto drive = simulated();
      const auto space = opened(*drive, path);
      const auto queue = space->open_queue();
      for (std::uint64_t i = first + 1;; ++i) {
        const std::string value = value_of(i, 500 + i % 7 * 1000);
        const std::string one = key_of(i % kKeys);
        const std::string two = "pair" + one;
        const std::array<KvView, 2> pairs = {KvView{one, value}, KvView{two, value}};
        KvIo io = command(Opcode::kv_batch_store);
        io.pairs = pairs;
        if (perform(*queue, io).outcome != Outcome::success) _exit(1);
        if (i % 5 == 0 && perform(*queue, command(Opcode::kv_delete, key_of(i % kKeys))).outcome != Outcome::success) {
          _exit(1);
        }
        acknowledged->store(i);
      }
    }
    while (acknowledged->load() < first + 20) usleep(200);
    usleep(static_cast<useconds_t>(random.below(3000)));
    ASSERT_EQ(kill(child, SIGKILL), 0);
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFSIGNALED(status));

    const std::uint64_t last = acknowledged->load();
    const auto drive = simulated();
    const auto space = opened(*drive, path);
    const Pairs found = scanned(*space->open_queue());
    for (std::uint64_t k = 0; k < kKeys && k < last; ++k) {
      const std::uint64_t newest = last - (last - k) % kKeys;  // the last i <= last with i % kKeys == k
      if (newest == 0) continue;
      // The one after `last` may have been in flight.
      const bool racing = (last + 1) % kKeys == k;
      const auto two = found.find("pair" + key_of(k));
      ASSERT_NE(two, found.end()) << k;
      const std::string old_value = value_of(newest, 500 + newest % 7 * 1000);
      const std::string new_value = value_of(last + 1, 500 + (last + 1) % 7 * 1000);
      ASSERT_TRUE(two->second == old_value || (racing && two->second == new_value)) << k;
      const auto one = found.find(key_of(k));
      const bool is_new = two->second == new_value;
      const bool deleted = (is_new ? last + 1 : newest) % 5 == 0;
      const bool is_there = one != found.end();
      ASSERT_TRUE(racing || is_there == !deleted) << k;
      ASSERT_TRUE(deleted || is_there) << k;
      ASSERT_TRUE(!is_there || one->second == two->second) << k;
    }
    total = last;
    // It may have been stored and not recorded. The next life continues after it.
    acknowledged->store(last + 1);
    {
      const std::string value = value_of(last + 1, 500 + (last + 1) % 7 * 1000);
      const std::string one = key_of((last + 1) % kKeys);
      const std::string two = "pair" + one;
      const std::array<KvView, 2> pairs = {KvView{one, value}, KvView{two, value}};
      KvIo io = command(Opcode::kv_batch_store);
      io.pairs = pairs;
      const auto queue = space->open_queue();
      ASSERT_EQ(perform(*queue, io).outcome, Outcome::success);
      if ((last + 1) % 5 == 0) perform(*queue, command(Opcode::kv_delete, one));
    }
  }
  EXPECT_GT(total, 6U * 20);
  munmap(shared, 4096);
}

}  // namespace
}  // namespace spillway::device
