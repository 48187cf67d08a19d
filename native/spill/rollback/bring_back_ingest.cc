// Large generations come back as a sorted run that RocksDB ingests in parts.
#include <algorithm>
#include <cassert>
#include <chrono>
#include <cmath>
#include <functional>
#include <memory>
#include <thread>
#include <unordered_map>
#include <utility>

#include "base/steps.h"
#include "spill/compat/file_ingestion.h"
#include "spill/rollback/bring_back.h"

namespace spillway::spill {

using rocksdb::Status;

namespace {

// Of sorted files that wait for their place. Source: guess, what a place's compaction has time for
constexpr std::uint64_t kMostAhead = std::uint64_t{1} << 30;

}  // namespace

Status BringBack::ingest_concurrently(Group& group, bool is_urgent) {
  Status status;
  if (group.written.empty()) {
    if (!placing_.has_begun())
      await_place(group, is_urgent).PermitUncheckedError();  // room is made while it is written
    status = write_part(group);
  }
  if (status.ok()) {
    if (status = await_place(group, is_urgent); !status.ok())
      return may_write_ahead(group) ? write_part(group) : status;
    status = ingest_part(group);
  }
  // If the note cannot be written it is owed, and ingested generations are dropped nevertheless, which frees space. A
  // misplaced file is in RocksDB too; after a failure, RocksDB's latest sequence may have changed.
  context_.commits.notes.add_concurrently(/*in_flush=*/false).PermitUncheckedError();
  context_.commits.pipeline.queue().run_alone([&]() REQUIRES(mutex_, in_commit_queue) {
    context_.main.order().let_compactions_run(MainOrder::Until::ingested);
  });
  return status.ok() && group.run.is_empty() ? drop_one_by_one(*group.targets) : status;
}

// Each drop waits for the drive, and writers would wait for the drop: what it can do ahead is done before. What a crash
// leaves comes back once more.
Status BringBack::drop_one_by_one(const Generations& brought_back) {
  Generations left = brought_back;
  Generations dropped;
  while (!left.empty()) {
    const auto one = left.front();
    left.erase(left.begin());
    context_.store.prepare_drop(one->id());
    Status status;
    context_.commits.pipeline.queue().run_alone([&]() REQUIRES(mutex_, in_commit_queue) {
      status = drop(Generations{one});
      if (status.ok() && left.empty()) left = seal_notes();
    });
    if (!status.ok()) {
      for (const auto& gone : dropped) context_.live.index().remove(*gone);
      return status;
    }
    dropped.push_back(one);
  }
  return {};
}

Status BringBack::ingest_in_commit_queue(Group& group) {
  Status status;
  do {
    status = write_part(group);
    if (status.ok()) status = ingest_part(group);
    context_.commits.notes.append_durably().PermitUncheckedError();  // as above
    context_.main.order().let_compactions_run(MainOrder::Until::ingested);
  } while (status.ok() && !group.run.is_empty());
  if (status.ok()) status = drop_with_notes(*group.targets);
  return status;
}

std::uint64_t BringBack::bytes_to_write(const Group& group, std::uint64_t sorted_bytes) {
  const std::uint64_t left = (group.ahead ? *group.ahead : group.run).bytes_left();
  return left - std::min(left, sorted_bytes);
}

// The share that has not come back, in whole generations, as if they came back one by one.
double BringBack::left_of(const Group& group, std::uint64_t sorted_bytes) {
  if (group.run_bytes == 0) return 0;
  const auto generations = static_cast<double>(group.targets->size());
  const std::uint64_t bytes = bytes_to_write(group, sorted_bytes);
  const double left = static_cast<double>(bytes) / static_cast<double>(group.run_bytes);
  return group.share * std::ceil(left * generations) / generations;
}

void BringBack::keep_pace(const Group& group, std::uint64_t sorted_bytes) {
  constexpr std::chrono::milliseconds kLookAgain{20};
  for (;;) {
    const auto now = std::chrono::steady_clock::now();
    const Signals signals = context_.detector.signals();
    pace_.observe(signals.l0_files, signals.l0_compaction_trigger, now);
    const auto takes = pace_.seconds_of_run(signals.l0_compaction_trigger);
    const bool is_waited_for = is_hurried_.load() || waits_.load() > 0 || pause_.is_paused();
    if (!takes || is_waited_for || context_.main.is_stopping()) return;
    const std::uint64_t left = bytes_to_write(group, sorted_bytes);
    const double done = 1 - static_cast<double>(left) / static_cast<double>(group.run_bytes);
    if (now - group.began.at >= done * *takes) return;
    std::this_thread::sleep_for(kLookAgain);
  }
}

bool BringBack::nobody_writes() {
  const Counts& counts = context_.telemetry.counts;
  const std::uint64_t writes =
      counts.diverted_writes.load(std::memory_order_relaxed) + counts.main_writes.load(std::memory_order_relaxed);
  return lull_.lasts(writes, std::chrono::steady_clock::now()) && context_.detector.is_burst_over();
}

Status BringBack::write_part(Group& group) {
  MainDb& main = context_.main;
  if (!main.ingested_files().may_ingest()) return IngestedFiles::refusal();
  const SortedProgress progress{.on_written =
                                    [&](std::uint64_t bytes) REQUIRES(mutex_) {
                                      context_.commits.usage.set_returning(left_of(group, bytes));
                                      if (!group.ahead) keep_pace(group, bytes);
                                    },
                                .may_take_drive = [&]() REQUIRES(mutex_) { return nobody_writes(); }};
  const std::vector<RunPart> parts = (group.ahead ? *group.ahead : group.run).next(group.part_bytes);
  assert(!parts.empty() || group.run.is_empty());
  WrittenPart written;
  if (group.ahead && !parts.empty()) {
    const auto entries = parts.front().entries;
    written.range = {std::string(entries.front()->key()), std::string(entries.back()->key())};
  }
  const Status status = write_sorted_files(parts, group.targets->back()->id(), context_.live.families(),
                                           context_.values, context_.store, main.db().GetDBOptions(), sorted_directory_,
                                           main.stopping(), &written.files, progress, placing_.sorted_level());
  if (!status.ok()) return status;
  steps::reached("spill.rollback.sorted");
  placing_.on_written();
  if (group.ahead) group.ahead->advance(group.part_bytes);
  group.written.push_back(std::move(written));
  return {};
}

Status BringBack::await_place(Group& group, bool is_urgent) {
  if (!group.ahead) return {};
  const auto look = placing_.look(group.written.empty() ? KeyRange() : group.written.front().range, is_urgent);
  if (look == Placing::Look::is_free) return {};
  if (look == Placing::Look::is_lost) give_up_place(group);
  return Status::TryAgain("RocksDB compacts what lies in the run's way");
}

// What is left of the run is written anew, as one file of L0 if there is room.
void BringBack::give_up_place(Group& group) {
  placing_.end();
  for (const WrittenPart& part : group.written) remove_files(part);
  group.written.clear();
  group.ahead.reset();
  fill_parts(group, context_.commits.pacer.is_watching() || !context_.detector.is_burst_over());
  context_.commits.usage.keep_for_run(group.part_bytes);
}

// Half of the room is left to writers. A store on a drive of its own has no such bound; kMostAhead is then what is
// sorted in vain if the place is lost.
bool BringBack::may_write_ahead(const Group& group) {
  if (!group.ahead || group.ahead->is_empty()) return false;
  const std::uint64_t bytes = (group.written.size() + 1) * group.part_bytes;
  if (bytes > std::min(context_.commits.usage.room_for_run(0) / 2, kMostAhead)) return false;
  context_.commits.usage.keep_for_run(bytes);
  return true;
}

void BringBack::remove_files(const WrittenPart& part) {
  for (const SortedFile& file : part.files) (void)context_.main.db().GetEnv()->DeleteFile(file.path);  // if it is there
}

Status BringBack::ingest_part(Group& group) {
  MainDb& main = context_.main;
  const WrittenPart part = std::move(group.written.front());
  group.written.pop_front();
  Status status = main.flush_large_memtables();
  // Where all of it is superseded, what does that is kept after a loss of power only if RocksDB's log has what came
  // before it, as in ingest_files.
  if (status.ok()) status = part.files.empty() ? main.sync_log() : ingest_files_of(group, part);
  remove_files(part);  // RocksDB has moved them, or has copies
  if (!status.ok()) {
    // The part is not in, and `ahead` is past it: those behind it must not come in its place.
    if (group.ahead) give_up_place(group);
    return status;
  }
  if (group.ahead) context_.commits.usage.keep_for_run((group.written.size() + 1) * group.part_bytes);
  placing_.on_ingested();
  group.run.advance(group.part_bytes);
  context_.commits.usage.set_returning(left_of(group));
  return status;
}

// Where a part has several files of a family, one call for each: newer versions of RocksDB, built with assertions,
// abort where a compaction that runs lies between two files of a call, into the same level (its issue 13495).
Status BringBack::ingest_files_of(const Group& group, const WrittenPart& part) {
  if (!group.ahead) return ingest_files(part.files);
  Status status;
  for (auto file = part.files.begin(); file != part.files.end() && status.ok(); ++file) status = ingest_files({*file});
  return status;
}

// One call for all families, so that a crash leaves all of them or none.
Status BringBack::ingest_files(const std::vector<SortedFile>& files) {
  std::unordered_map<std::uint32_t, std::size_t> place;
  std::vector<rocksdb::IngestExternalFileArg> arguments;
  std::vector<UsedColumnFamily> in_use;
  for (const SortedFile& file : files) {
    const UsedColumnFamily& family = in_use.emplace_back(context_.live.families().use(file.column_family));
    if (family.is_dropped) continue;  // since the files were written
    if (Status status = check_handle(family); !status.ok()) return status;
    const auto [at, is_new] = place.try_emplace(file.column_family, arguments.size());
    if (is_new) arguments.emplace_back().column_family = family.handle;
    add_to(&arguments[at->second], file, context_.main.ingested_files().may_move());
  }
  if (arguments.empty()) return context_.main.sync_log();  // as where all of a part is superseded
  std::vector<rocksdb::ColumnFamilyHandle*> into;
  into.reserve(arguments.size());
  for (const auto& one : arguments) into.push_back(one.column_family);
  MainDb& main = context_.main;
  FileIngestion ingestion(main.db(), std::move(arguments));
  if (Status status = ingestion.prepare(); !status.ok()) return status;
  steps::reached("spill.rollback.prepared");
  Gate& gate = context_.commits.pipeline.gate();
  main.hold_compactions(MainOrder::Until::ingested);  // the note must order it before later diverted writes
  gate.close();
  // What is ingested is newer than everything in RocksDB's log: that must not be lost without it.
  Status status = main.sync_log();
  steps::reached("spill.rollback.gate_closed");
  bool is_newest = true;
  if (status.ok()) status = main.flush_before_ingestion(into);
  if (status.ok()) {
    status = ingest_and_check_levels(ingestion, main.ingested_files(), &is_newest);
    // Ingested files are durable, and in no log that the note would have to sync. If RocksDB's MANIFEST could not be
    // written, a sequence number may be used nevertheless, and no key has it.
    main.raise_durable(main.latest_sequence());
  }
  gate.open();
  context_.room.notify();
  steps::reached("spill.rollback.ingested");
  if (is_newest) return status;  // or RocksDB said why not
  steps::reached("spill.rollback.misplaced");
  return Status::TryAgain("RocksDB has put what was brought back below older versions");
}

}  // namespace spillway::spill
