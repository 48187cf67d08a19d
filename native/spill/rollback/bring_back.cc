#include "spill/rollback/bring_back.h"

#include <algorithm>
#include <functional>
#include <iterator>
#include <utility>

#include "base/steps.h"
#include "spill/live/sorted_size.h"
#include "spill/main_db/temporary_tables.h"

namespace spillway::spill {
namespace {

using rocksdb::Status;

// RocksDB compacts a file in L0 as a whole, and keeps its index in memory. Source: guess
constexpr std::uint64_t kLargestPart = std::uint64_t{1} << 30;
// Where files need not be few. A smaller part would have logs read more often (sorted_files.cc), and each costs an
// ingestion. Source: guess
constexpr std::uint64_t kPlacedPart = std::uint64_t{64} << 20;

std::uint64_t sum(const Generations& generations, std::uint64_t (Generation::*of)() const) {
  std::uint64_t total = 0;
  for (const auto& one : generations) total += ((*one).*of)();
  return total;
}

}  // namespace

bool BringBack::is_small(const Generations& targets) const {
  // Newer versions of RocksDB refuse a range tombstone beside a row cache, except in a file.
  if (context_.main.user_options().database().row_cache != nullptr &&
      sum(targets, &Generation::range_tombstone_count)) {
    return false;
  }
  return sum(targets, &Generation::user_bytes) <= context_.options.put_back_bytes;
}

void BringBack::remove_leftovers() {
  rocksdb::Env& env = *context_.main.db().GetEnv();
  std::vector<std::string> names;
  if (!env.GetChildren(sorted_directory_, &names).ok()) return;
  for (const std::string& name : names) {
    if (is_temporary_table(name)) (void)env.DeleteFile(sorted_directory_ + "/" + name);
  }
}

Status BringBack::bring_back(std::uint64_t most, bool is_urgent) {
  const MutexLock no_compact_files(mutex_);
  MainDb& main = context_.main;
  Status status;
  if (!group_) {
    const bool goes_on = most < kAllGenerations || context_.commits.pacer.is_watching();
    Status renewed = Status::TryAgain();  // not tried
    if (main.logs().have_failed()) {
      renewed = main.renew_log();
      if (!renewed.ok() && !main.ingested_files().may_ingest()) return renewed;
    }
    Choice choice;
    make_small_durable();
    context_.commits.pipeline.queue().run_alone(
        [&]() REQUIRES(mutex_, in_commit_queue) { status = choose(most, renewed, &choice); });
    if (!status.ok() || choice.targets->empty()) return status;
    if (choice.put_back) {
      end_rollback(*choice.targets, *choice.put_back, Way::put_back);
      return {};
    }
    const bool may_have_place = most == kAllGenerations && !is_urgent;
    if (status = begin_group(choice, may_have_place, goes_on); !status.ok()) return status;
  }
  status = ingest_concurrently(*group_, is_urgent);
  if (status.ok() && group_->run.is_empty()) {
    end_rollback(*group_->targets, group_->began, Way::ingest);
    end_group();
  }
  // What was ingested of it comes back once more, unless only space for the next part was missing: on a full drive no
  // part is written twice. An error during the ingestion forbids ingestions until the next Open: the next try puts the
  // generations back.
  const bool has_no_space = status.IsNoSpace() && !group_->run.is_empty() && !main.logs().have_failed();
  const bool goes_on = status.IsTryAgain() || has_no_space;
  if (!status.ok() && (!goes_on || !main.ingested_files().may_ingest())) end_group();
  return status.IsAborted() && !main.ingested_files().may_ingest() ? Status::TryAgain() : status;
}

// A small rest is put back while commits wait, and both stores are synced for that. So most of it is done before;
// errors come again.
void BringBack::make_small_durable() {
  const auto live = context_.live.generations();
  if (live->empty() || !is_small(*live) || context_.main.logs().have_failed()) return;
  context_.commits.writer.make_durable_concurrently().PermitUncheckedError();
  context_.main.make_durable().PermitUncheckedError();
}

Status BringBack::begin_group(const Choice& choice, bool may_have_place, bool goes_on) {
  if (Status status = context_.commits.writer.make_durable_concurrently(); !status.ok()) return status;
  group_.emplace(make_group(choice.targets, choice.visible));
  group_->began = begin_rollback(*group_->targets);
  is_under_way_.store(true, std::memory_order_release);
  // A burst that goes on costs least where RocksDB compacts several runs at once (docs/decisions/0042).
  if (may_have_place) placing_.begin(group_->run);
  if (placing_.has_place()) {
    group_->ahead = group_->run;
    const std::uint64_t some = std::min(context_.commits.usage.room_for_run(0) / 2, kPlacedPart);
    group_->part_bytes = std::max(group_->part_bytes, std::min(group_->run_bytes, some));
  } else {
    fill_parts(*group_, goes_on);
  }
  context_.commits.usage.keep_for_run(group_->part_bytes);
  context_.commits.usage.set_returning(group_->share);
  return {};
}

// Into as few files as there is room for: RocksDB compacts L0 by its number of files.
void BringBack::fill_parts(Group& group, bool goes_on) {
  const double left_to_writers = goes_on ? context_.commits.pacer.kept_for_writers() : 0;
  const std::uint64_t room = context_.commits.usage.room_for_run(left_to_writers);
  group.part_bytes = std::max(group.part_bytes, std::min({group.run.bytes_left(), room, kLargestPart}));
}

void BringBack::finish() {
  const MutexLock lock(mutex_);
  end_group();
  placing_.finish();
}

void BringBack::end_group() {
  placing_.end();
  if (group_) {
    for (const WrittenPart& part : group_->written) remove_files(part);
  }
  group_.reset();
  context_.live.release_deferred();  // writers may wait for it
  keep_room_for_next_run();
  is_under_way_.store(false, std::memory_order_release);
  context_.commits.usage.set_returning(0);
}

void BringBack::keep_room_for_next_run() {
  const bool has_next = context_.commits.pacer.is_watching() && !context_.live.generations()->empty();
  const double most = DrainPacer::kMostGroup * static_cast<double>(context_.store.capacity_bytes());
  const std::uint64_t room = context_.commits.usage.room_for_run(context_.commits.pacer.kept_for_writers());
  context_.commits.usage.keep_for_run(has_next ? std::min(static_cast<std::uint64_t>(most), room) : 0);
}

// There is always room for the sorted files of the largest generation (StoreUsage), so any part may have so many bytes.
BringBack::Group BringBack::make_group(std::shared_ptr<const Generations> targets, Sequence durable) const {
  const auto superseded = [&](const Entry& entry) { return context_.live.is_superseded(entry, durable); };
  const auto make_run = [&] { return MergedRun(*targets, ~Sequence{0}, context_.live.families(), superseded); };
  std::uint64_t most = 0;
  for (const auto& one : *targets) most = std::max(most, most_sorted_bytes(*one));
  Group group{.targets = targets, .run = make_run(), .began = {}};
  // Each part may have all range tombstones.
  if (targets->size() > 1 && group.run.tombstone_bytes() > most / 2) {
    targets = std::make_shared<Generations>(Generations{targets->front()});
    most = most_sorted_bytes(*targets->front());
    group.targets = targets;
    group.run = make_run();
  }
  const std::uint64_t tombstones = targets->size() > 1 ? group.run.tombstone_bytes() : 0;
  group.run_bytes = group.run.bytes_left();
  group.part_bytes = most - tombstones;
  group.share = std::max(static_cast<double>(sum(*targets, &Generation::user_bytes)) /
                             static_cast<double>(context_.store.capacity_bytes()),
                         static_cast<double>(sum(*targets, &Generation::memory_bytes)) /
                             static_cast<double>(context_.options.index_bytes));
  return group;
}

Status BringBack::choose(std::uint64_t most, const Status& renewed, Choice* choice) {
  MainDb& main = context_.main;
  SpillWriter& writer = context_.commits.writer;
  auto& targets = choice->targets;
  targets = context_.live.generations();
  const bool is_all = is_small(*targets);
  const bool may_ingest = main.ingested_files().may_ingest();
  if (!is_all && !may_ingest) most = 1;  // in a batch
  if (!is_all && most < targets->size()) {
    targets = std::make_shared<Generations>(targets->begin(), targets->begin() + static_cast<std::ptrdiff_t>(most));
  }
  // A stopped RocksDB accepts ingestions, but no writes through its log. Of some stops nothing is seen but the refusal:
  // a WriteBufferManager that another database keeps full.
  const bool is_stopped = context_.detector.signals().is_stalled || std::exchange(has_refused_, false);
  const bool puts = !main.logs().have_failed() && (!may_ingest || (is_all && !is_stopped));
  if (!puts && !may_ingest) {  // RocksDB's error was reported only now, or its log has just failed
    return renewed.ok() ? IngestedFiles::refusal() : renewed;
  }
  if (!targets->empty() && targets->back().get() == writer.active()) writer.seal();
  choice->visible = context_.live.visible();
  if (targets->empty() || !puts) return {};
  if (!is_all || is_stopped) {  // otherwise everything may be read in vain
    Status status = main.error();
    if (status.ok() && is_stopped) status = Status::TryAgain();
    if (!status.ok()) return status;
  }
  if (Status status = writer.make_durable(); !status.ok()) return status;
  choice->put_back = begin_rollback(*targets);
  const Status status = put_back(*targets);
  has_refused_ = status.IsTryAgain();
  return status;
}

// For the rest that a rollback leaves. Writers to the spill store wait until it returns.
Status BringBack::bring_back_in_commit_queue(Way largest) {
  MainDb& main = context_.main;
  SpillWriter& writer = context_.commits.writer;
  writer.seal();
  end_group();  // what of it was ingested comes back once more
  Status status;
  int tries = kMostIngestions;
  while (status.ok() && !context_.live.generations()->empty()) {
    if (status = writer.make_durable(); !status.ok()) return status;
    std::shared_ptr<const Generations> targets = context_.live.generations();
    const Return began = begin_rollback(*targets);
    Way way = Way::put_back;
    status = Status::TryAgain();
    const bool may_ingest = largest == Way::ingest && main.ingested_files().may_ingest();
    if (is_small(*targets) && !main.logs().have_failed()) {
      status = put_back(*targets);
    } else if (!may_ingest) {
      targets = std::make_shared<Generations>(Generations{targets->front()});
      status = put_back(*targets);
    }
    if (status.IsTryAgain() && !may_ingest) {
      if (largest == Way::ingest) return status;
      return Status::Aborted("background work is paused and RocksDB takes no more writes",
                             "call ContinueBackgroundWork first");
    }
    if (status.IsTryAgain()) {  // too much, or RocksDB is in a write stall
      way = Way::ingest;
      Group group = make_group(targets, context_.live.visible());
      targets = group.targets;
      status = ingest_in_commit_queue(group);
      // An error meanwhile forbids it in this opening.
      if (status.IsAborted() && !main.ingested_files().may_ingest()) status = Status::TryAgain();
    }
    if (status.ok()) {
      end_rollback(*targets, began, way);
      tries = kMostIngestions;
    } else if (status.IsTryAgain() && --tries > 0) {
      status = {};
    }
  }
  return status;
}

BringBack::Return BringBack::begin_rollback(const Generations& targets) const {
  Return result;
  result.event.kind = SpillEvent::Kind::rollback_begin;
  result.event.generation = targets.back()->id();
  result.event.entries = sum(targets, &Generation::entries);
  result.event.bytes = sum(targets, &Generation::user_bytes);
  context_.telemetry.report(result.event);
  return result;
}

// RocksDB has their contents durably, and they are no longer live.
void BringBack::end_rollback(const Generations& targets, const Return& began, Way way) {
  steps::reached("spill.rollback.forgotten");
  for (const auto& one : targets) context_.live.index().remove(*one);
  context_.commits.writer.has_room_again();

  Counts& counts = context_.telemetry.counts;
  const auto took = std::chrono::duration_cast<std::chrono::microseconds>(std::chrono::steady_clock::now() - began.at);
  SpillEvent event = began.event;
  event.generation = targets.back()->id();
  event.entries = sum(targets, &Generation::entries);
  event.bytes = sum(targets, &Generation::user_bytes);
  increment(counts.rollback_us, static_cast<std::uint64_t>(took.count()));
  increment(counts.rolled_back_entries, event.entries);
  increment(counts.rolled_back_bytes, event.bytes);
  increment(way == Way::put_back ? counts.rollbacks_by_put : counts.rollbacks_by_ingest);
  event.kind = SpillEvent::Kind::rollback_end;
  event.duration_us = took.count();
  context_.telemetry.report(event);
}

// The live generations if all of them hold nothing but notes, which take no more from now on. They are to be dropped:
// the spill store is empty, and what the notes order is in RocksDB.
Generations BringBack::seal_notes() {
  const auto live = context_.live.generations();
  const auto holds_only_notes = [](const auto& one) { return one->entries() + one->range_tombstone_count() == 0; };
  if (live->empty() || !std::ranges::all_of(*live, holds_only_notes)) return {};
  if (live->back().get() == context_.commits.writer.active()) context_.commits.writer.seal();
  return *live;
}

Status BringBack::drop_with_notes(const Generations& brought_back) {
  Status status = drop(brought_back);
  if (const Generations notes = status.ok() ? seal_notes() : Generations(); !notes.empty()) status = drop(notes);
  return status;
}

// Drops generations whose contents RocksDB has durably.
Status BringBack::drop(const Generations& targets) {
  for (const auto& generation : targets) {
    if (Status status = context_.store.drop(generation->id()); !status.ok()) return status;
    generation->mark_dropped();
    steps::reached("spill.rollback.dropped");
  }
  const auto generations = context_.live.generations();
  const bool is_all = std::ranges::all_of(
      *generations, [&](const auto& one) { return std::ranges::find(targets, one) != targets.end(); });
  if (is_all) {
    context_.commits.writer.on_all_brought_back();
    context_.commits.notes.end_owing();
  }
  context_.live.retire(targets);
  steps::reached("spill.rollback.published");
  return {};
}

}  // namespace spillway::spill
