// The way back (K8): small generations through RocksDB's log, large ones as sorted files.
#include <algorithm>
#include <chrono>
#include <limits>
#include <unordered_map>
#include <utility>

#include "base/steps.h"
#include "spill/db/db_impl.h"

namespace spillway::spill {
namespace {

using Clock = std::chrono::steady_clock;

// RocksDB flushes its memtables before it ingests. What is in them beyond this is flushed while writes go on, so that
// the gate is closed for milliseconds. A guess between the cost of one more small L0 file and that of a longer closed
// gate.
constexpr std::uint64_t kLargeMemtable = std::uint64_t{4} << 20;
// How long a rollback that RocksDB would not take is left alone.
constexpr std::chrono::milliseconds kRetryRollback{20};
// After one that failed the pause doubles with each further failure, up to this. Source: guess, so long that a log of
// them stays readable, so short that what was mended is soon noticed.
constexpr std::chrono::milliseconds kLongestPause{10'000};
// Rollback() waits so long for a recovery of RocksDB, which looks every five seconds whether a full drive has room
// again (SstFileManagerImpl::ClearError), and asks for one so often. Source: twice that; a guess.
constexpr std::chrono::seconds kLongestRecovery{10};
constexpr std::chrono::seconds kAskAgain{1};
// Of recoveries that another error follows. Source: guess.
constexpr int kMostRecoveries = 2;
constexpr int kNoLimit = std::numeric_limits<int>::max();

std::uint64_t sum(const Generations& generations, std::uint64_t (Generation::*of)() const) {
  std::uint64_t total = 0;
  for (const auto& one : generations) total += ((*one).*of)();
  return total;
}

double per_second(std::uint64_t now, std::uint64_t before, double seconds) {
  return seconds <= 0 ? 0 : static_cast<double>(now - before) / seconds;
}

// Everything that a generation holds, in its order. Commits wait meanwhile, so its log is read in one scan: a read for
// each value took five times as long (bench/spill_rollback, 1 MiB of 4 KiB values on Cosmos+).
rocksdb::Status add_to_batch(const Generation& generation, const ColumnFamilies& families, const Store& store,
                             rocksdb::WriteBatch* batch) {
  std::vector<const Entry*> entries;
  generation.for_each([&](const Entry& entry) { entries.push_back(&entry); });
  const auto tombstones = generation.range_tombstones();
  auto next = entries.begin();
  auto tombstone = tombstones.begin();
  rocksdb::Status without_handle;
  const auto delete_ranges_before = [&](Sequence sequence) {
    for (; tombstone != tombstones.end() && tombstone->sequence < sequence; ++tombstone) {
      const UsedColumnFamily family = families.use(tombstone->column_family);
      if (family.handle != nullptr) (void)batch->DeleteRange(family.handle, tombstone->begin, tombstone->end);
      if (const rocksdb::Status lost = check_handle(family); !lost.ok()) without_handle = lost;
    }
  };
  // Up to the next put whose value lies elsewhere than in this record.
  const auto add = [&](std::uint64_t offset, const rocksdb::Slice& record) {
    rocksdb::Status status;
    for (; next != entries.end() && status.ok(); ++next) {
      const Entry& entry = **next;
      const Location& value = entry.value;
      const bool is_put = entry.kind == Kind::put;
      if (is_put && (value.offset != offset || value.from + std::uint64_t{value.length} > record.size())) break;
      delete_ranges_before(entry.sequence);
      const UsedColumnFamily family = families.use(entry.column_family);
      if (family.is_dropped) continue;
      if (status = check_handle(family); !status.ok()) break;
      status = is_put ? batch->Put(family.handle, entry.key(), {record.data() + value.from, value.length})
                      : batch->Delete(family.handle, entry.key());
    }
    return status;
  };
  rocksdb::Status status =
      store.scan(generation.id(), [&](const StoredRecord& record) { return add(record.offset, record.bytes); });
  if (status.ok()) status = add(~std::uint64_t{0}, {});  // deletions behind the last put
  if (!status.ok()) return status;
  delete_ranges_before(~Sequence{0});
  if (!without_handle.ok()) return without_handle;
  if (next == entries.end()) return status;
  return rocksdb::Status::Corruption("a value of generation " + std::to_string(generation.id()) +
                                     " is not in the spill store");
}

}  // namespace

RollbackState DbImpl::rollback_state() {
  RollbackState state;
  const auto generations = live();
  state.route = detector_->route();
  // A store that failed is mended by bringing back what it has.
  state.spill_full = is_full_.load(std::memory_order_acquire) || has_failed_.load(std::memory_order_acquire);
  state.live_bytes = sum(*generations, &Generation::user_bytes);
  state.live_entries = sum(*generations, &Generation::entries) + generations->size();  // one may hold only tombstones
  state.sealed = generations->empty() ? 0 : generations->size() - 1;
  state.owes_note = owes_note_.load(std::memory_order_acquire);
  const Signals signals = detector_->signals();
  const Thresholds thresholds = thresholds_of(signals, options_.divert);
  state.stopped = signals.stopped;
  state.fill = fill(0, 0);  // no rollback frees the memory of what is only read any more
  state.debt = thresholds.pending_divert > 0 && signals.pending_compaction_bytes >= thresholds.pending_divert;
  // Without automatic compactions RocksDB counts no L0 files, and so has room for any number.
  state.l0_room = thresholds.l0_divert == 0 ? kNoLimit : std::max(0, thresholds.l0_divert - signals.l0_files);

  const auto now = Clock::now();
  const std::uint64_t reads = counts_.reads_with_live.load(std::memory_order_relaxed);
  const std::uint64_t diverted = counts_.diverted_writes.load(std::memory_order_relaxed);
  const std::uint64_t writes = diverted + counts_.main_writes.load(std::memory_order_relaxed);
  const double seconds = std::chrono::duration<double>(now - seen_.at).count();
  if (diverted != seen_.diverted) seen_.last_diverted = now;
  state.reads_per_s = per_second(reads, seen_.reads, seconds);
  state.writes_per_s = per_second(writes, seen_.writes, seconds);
  state.idle_s = std::chrono::duration<double>(now - seen_.last_diverted).count();
  state.rest_s = std::chrono::duration<double>(now - last_rollback_ended_).count();
  state.last_took_s = last_rollback_took_s_;
  seen_ = {now, seen_.last_diverted, reads, writes, diverted};
  const std::lock_guard lock(rollback_mutex_);
  state.is_awaited = !generations->empty() && generations->front()->id() <= awaited_until_;
  state.asked_for = !generations->empty() && generations->front()->id() <= asked_until_;
  return state;
}

void DbImpl::rollback_thread() {
  std::unique_lock lock(rollback_mutex_);
  while (!stopping_.load(std::memory_order_acquire)) {
    std::chrono::milliseconds pause = rollback_soon_ ? kRetryRollback : options_.poll_interval;
    if (rollback_pause_ms_.count() > 0) pause = rollback_pause_ms_;
    rollback_wake_.wait_for(lock, pause, [this] { return stopping_.load(std::memory_order_acquire) || rollback_now_; });
    rollback_now_ = false;
    if (stopping_.load(std::memory_order_acquire)) break;
    lock.unlock();
    rocksdb::Status status;
    const RollbackPause::Pass pass(rollback_pause_);
    const bool any = pass && has_live_.load(std::memory_order_acquire);
    const RollbackState state = any ? rollback_state() : RollbackState();
    const std::uint64_t generations = any ? next_rollback(state, options_.rollback) : 0;
    if (generations > 0) {
      const auto began = Clock::now();
      one_comes_back_.store(generations == 1, std::memory_order_release);
      status = bring_back(generations);
      one_comes_back_.store(false, std::memory_order_release);
      if (status.ok()) {
        last_rollback_ended_ = Clock::now();
        last_rollback_took_s_ = std::chrono::duration<double>(last_rollback_ended_ - began).count();
      }
    }
    // Whoever waits for room in a RocksDB that has stopped because of an error gets that.
    const bool is_in_vain = any && state.stopped && (generations == 0 || status.IsTryAgain());
    if (is_in_vain && (state.asked_for || state.spill_full)) {
      if (const rocksdb::Status error = error_of_rocksdb(); !error.ok()) status = error;
    }
    if (any) tell_of_room();
    lock.lock();
    comes_again_ = status.IsTryAgain() || !pass;                               // by itself, after its pause
    rollback_soon_ = status.IsTryAgain() || (generations > 0 && status.ok());  // there may be more to bring back
    if (generations > 0 && status.ok()) rollback_pause_ms_ = {};
    const bool was_stopped = stopping_.load(std::memory_order_acquire);
    if (!status.ok() && !status.IsTryAgain() && !was_stopped) {
      rollback_failure_ = status;
      ++failed_attempts_;
      rollback_pause_ms_ = std::clamp(2 * rollback_pause_ms_, kRetryRollback, kLongestPause);
      lock.unlock();
      counts_.rollback_failures.fetch_add(1, std::memory_order_relaxed);
      SpillEvent event;
      event.kind = SpillEvent::Kind::rollback_failed;
      event.message = status.ToString();
      tell(event);
      tell_of_room();
      lock.lock();
    }
    rolled_back_.notify_all();
  }
}

std::pair<std::uint64_t, rocksdb::Status> DbImpl::failed_rollbacks() {
  const std::lock_guard lock(rollback_mutex_);
  return {failed_attempts_, rollback_failure_};
}

// The pause after a rollback that failed is cut short only by one who `insists`, for nothing else lets him go on.
void DbImpl::wake_rollback(bool insists) {
  const std::lock_guard lock(rollback_mutex_);
  if (!insists && rollback_pause_ms_.count() > 0) return;
  rollback_now_ = true;
  rollback_wake_.notify_one();
}

bool DbImpl::is_small(const Generations& targets) const {
  return sum(targets, &Generation::user_bytes) <= options_.put_back_bytes;
}

// RocksDB begins a new log when it recovers and has something to flush. With empty memtables it goes on with the one
// that has failed. RocksDB 7.8.3 can be told to recover once more, see IngestedFiles::may_ingest; then there is
// something in the guard, where nobody looks.
rocksdb::Status DbImpl::renew_main_log() {
  rocksdb::Status status = error_of_rocksdb();
  if (!status.ok()) return status;
  if (!ingested_files_->is_stuck()) return log_failure();
  // A recovery switches file deletions on, whoever has switched them off.
  std::uint64_t are_deletions_on = 1;
  (void)base().GetIntProperty(rocksdb::DB::Properties::kIsFileDeletionsEnabled, &are_deletions_on);
  if (are_deletions_on == 0) return rocksdb::Status::Aborted("RocksDB's log has failed, and file deletions are off");
  if (are_memtables_empty()) {
    status = binding_->use_guard([&](rocksdb::ColumnFamilyHandle* guard) {
      rocksdb::WriteBatch batch;
      rocksdb::WriteOptions options;
      options.disableWAL = true;
      options.no_slowdown = true;
      const rocksdb::Status made = batch.Delete(guard, "");
      return made.ok() ? enter(options, &batch) : made;
    });
  }
  return status.ok() ? base().Resume() : status;
}

// Of what is live at this moment. All of it, whatever `most`, if it is small enough to be put back.
// TryAgain: RocksDB has no room for it now.
rocksdb::Status DbImpl::bring_back(std::uint64_t most) {
  const std::lock_guard no_compact_files(bringing_back_);
  std::shared_ptr<const Generations> targets;
  rocksdb::Status status;
  std::optional<Return> put;
  Sequence durable = 0;
  rocksdb::Status renewed = rocksdb::Status::TryAgain();  // not tried
  if (main_logs_->have_failed()) {
    renewed = renew_main_log();
    if (!renewed.ok() && !ingested_files_->may_ingest()) return renewed;
  }
  commits_.run_alone([&] {
    targets = live();
    const bool is_all = is_small(*targets);
    const bool may_ingest = ingested_files_->may_ingest();
    if (!is_all && !may_ingest) most = 1;  // in a batch
    if (!is_all && most < targets->size()) {
      targets = std::make_shared<Generations>(targets->begin(), targets->begin() + static_cast<std::ptrdiff_t>(most));
    }
    // A RocksDB that is stopped takes nothing through its log, and what is ingested it does.
    const bool is_stopped = detector_->signals().stopped;
    const bool puts = !main_logs_->have_failed() && (!may_ingest || (is_all && !is_stopped));
    if (!puts && !may_ingest) {  // RocksDB has told of its error only now, or its log has just failed
      status = renewed.ok() ? IngestedFiles::refusal() : renewed;
      return;
    }
    if (!puts) targets = reserve_sorted_room(targets);
    if (!targets->empty() && targets->back() == active_) seal();
    durable = visible_.load(std::memory_order_relaxed);
    if (targets->empty() || !puts) return;
    if (!is_all || is_stopped) {  // all of it may be read in vain
      status = error_of_rocksdb();
      if (status.ok() && is_stopped) status = rocksdb::Status::TryAgain();
      if (!status.ok()) return;
    }
    status = make_spill_durable();
    if (!status.ok()) return;
    put = begin_return(*targets);
    status = put_back(*targets);
  });
  if (!status.ok() || targets->empty()) return status;
  if (put) {
    end_return(*targets, *put, Way::put_back);
    return {};
  }
  status = make_spill_durable_beside();
  if (!status.ok()) {
    sorted_bytes_.store(0, std::memory_order_release);
    return status;
  }
  const Return ingested = begin_return(*targets);
  status = ingest(*targets, durable, Where::beside_commits);
  if (status.ok()) end_return(*targets, ingested, Way::ingest);
  // An error meanwhile forbids it in this opening: the next time, it is put back.
  return status.IsAborted() && !ingested_files_->may_ingest() ? rocksdb::Status::TryAgain() : status;
}

// In the commit queue, which writers to the spill store wait for meanwhile: for what is left of a rollback.
// REQUIRES: bringing_back_ is held
rocksdb::Status DbImpl::bring_back_held(Way largest) {
  seal();
  rocksdb::Status status;
  int tries = kMostIngestions;
  while (status.ok() && !live()->empty()) {
    status = make_spill_durable();
    if (!status.ok()) return status;
    std::shared_ptr<const Generations> targets = live();
    const Return began = begin_return(*targets);
    Way way = Way::put_back;
    status = rocksdb::Status::TryAgain();
    const bool may_ingest = largest == Way::ingest && ingested_files_->may_ingest();
    if (is_small(*targets) && !main_logs_->have_failed()) {
      status = put_back(*targets);
    } else if (!may_ingest) {
      targets = std::make_shared<Generations>(Generations{targets->front()});
      status = put_back(*targets);
    }
    if (status.IsTryAgain() && !may_ingest) {
      if (largest == Way::ingest) return status;
      return rocksdb::Status::Aborted("background work is paused and RocksDB takes no more writes",
                                      "call ContinueBackgroundWork first");
    }
    if (status.IsTryAgain()) {  // too much, or RocksDB stalls
      way = Way::ingest;
      targets = reserve_sorted_room(targets);
      status = ingest(*targets, visible_.load(std::memory_order_relaxed), Where::in_commit_queue);
      if (status.IsAborted() && !ingested_files_->may_ingest()) status = rocksdb::Status::TryAgain();  // as above
    }
    if (status.ok()) {
      end_return(*targets, began, way);
      tries = kMostIngestions;
    } else if (status.IsTryAgain() && --tries > 0) {
      status = {};
    }
  }
  return status;
}

DbImpl::Return DbImpl::begin_return(const Generations& targets) const {
  Return result;
  result.event.kind = SpillEvent::Kind::rollback_begin;
  result.event.generation = targets.back()->id();
  result.event.entries = sum(targets, &Generation::entries);
  result.event.bytes = sum(targets, &Generation::user_bytes);
  tell(result.event);
  return result;
}

// RocksDB has durably what they held, and they are live no more.
void DbImpl::end_return(const Generations& targets, const Return& began, Way way) {
  steps::reached("spill.rollback.forgotten");
  for (const auto& one : targets) index_.remove(*one);
  is_full_.store(false, std::memory_order_release);

  const auto took = std::chrono::duration_cast<std::chrono::microseconds>(Clock::now() - began.at);
  SpillEvent event = began.event;
  event.generation = targets.back()->id();
  event.entries = sum(targets, &Generation::entries);
  event.bytes = sum(targets, &Generation::user_bytes);
  counts_.rollback_us.fetch_add(static_cast<std::uint64_t>(took.count()), std::memory_order_relaxed);
  counts_.rolled_back_entries.fetch_add(event.entries, std::memory_order_relaxed);
  counts_.rolled_back_bytes.fetch_add(event.bytes, std::memory_order_relaxed);
  (way == Way::put_back ? counts_.rollbacks_by_put : counts_.rollbacks_by_ingest)
      .fetch_add(1, std::memory_order_relaxed);
  event.kind = SpillEvent::Kind::rollback_end;
  event.duration_us = took.count();
  tell(event);
}

// In the commit queue. As many of the oldest as there is room for sorted files of, and one in any case: that room is
// kept free for it. What it takes counts as used from now on.
std::shared_ptr<const Generations> DbImpl::reserve_sorted_room(const std::shared_ptr<const Generations>& wanted) {
  if (options_.store != nullptr || wanted->empty()) return wanted;
  const std::uint64_t used = store_->used_bytes();
  const std::uint64_t capacity = store_->capacity_bytes();
  auto fitting = std::make_shared<Generations>();
  std::uint64_t bytes = 0;
  for (const auto& one : *wanted) {
    const std::uint64_t its = most_sorted_bytes(*one);
    if (!fitting->empty() && used + bytes + its > capacity) break;
    fitting->push_back(one);
    bytes += its;
  }
  sorted_bytes_.store(bytes, std::memory_order_release);
  return fitting;
}

rocksdb::Status DbImpl::make_spill_durable_beside() {
  if (!has_failed_.load(std::memory_order_acquire)) return sync_beside();
  rocksdb::Status status;
  commits_.run_alone([&] { status = make_spill_durable(); });
  return status;
}

// In the commit queue. What is brought back must not be newer in RocksDB than
// in the spill store when the power goes before that has dropped it: what the store still had would hide it (I1).
rocksdb::Status DbImpl::make_spill_durable() {
  if (!is_unsynced()) return {};
  if (!has_failed_.load(std::memory_order_relaxed)) return sync_store();
  // After a failure the store makes a generation durable when the next one begins.
  if (rocksdb::Status status = store_->begin(next_generation_); !status.ok()) return status;
  ++next_generation_;
  if (rocksdb::Status status = store_->sync(); !status.ok()) return status;
  raise(synced_, appended_.load(std::memory_order_relaxed));
  return {};
}

// In the commit queue. One batch of everything in its order: RocksDB keeps the newest. What it writes is durable when
// it returns, and so is everything older.
rocksdb::Status DbImpl::put_back(const Generations& targets) {
  rocksdb::WriteBatch batch;
  rocksdb::Status status;
  for (const auto& generation : targets) {
    if (status.ok()) status = add_to_batch(*generation, families_, *store_, &batch);
  }
  if (!status.ok()) return status;
  rocksdb::WriteOptions options;
  options.sync = true;
  options.no_slowdown = true;
  status = write_to_rocksdb(options, &batch);
  if (status.IsIncomplete()) {
    detector_->refused();
    return rocksdb::Status::TryAgain();
  }
  steps::reached("spill.rollback.put_back");
  return status.ok() ? forget(targets) : status;
}

bool DbImpl::is_superseded(const Entry& entry, Sequence durable) const {
  const auto found = index_.find(entry.column_family, entry.key());
  return found && found->entry.sequence > entry.sequence && found->entry.sequence <= durable;
}

rocksdb::Status DbImpl::ingest(const Generations& targets, Sequence durable, Where where) {
  const auto superseded = [&](const Entry& entry) { return is_superseded(entry, durable); };
  std::vector<SortedFile> files;
  rocksdb::Status status;
  if (!ingested_files_->may_ingest()) status = IngestedFiles::refusal();
  for (const auto& generation : targets) {
    if (!status.ok()) break;
    std::vector<SortedFile> of_one;
    status = write_sorted_files(*generation, generation->last_sequence(), families_, superseded, values_, *store_,
                                base().GetDBOptions(), sorted_directory_, stopping_, &of_one);
    files.insert(files.end(), of_one.begin(), of_one.end());
  }
  if (status.ok()) {
    steps::reached("spill.rollback.sorted");
    status = flush_large_memtables();
  }
  // Where all of it is superseded, what does that is kept after a loss of power only if RocksDB's log has what came
  // before it, as in ingest_files.
  if (status.ok()) status = files.empty() ? sync_main_log() : ingest_files(files);
  for (const SortedFile& file : files) (void)base().GetEnv()->DeleteFile(file.path);  // gone already where it was moved
  sorted_bytes_.store(0, std::memory_order_release);
  const bool is_held = where == Where::in_commit_queue;
  // Where it cannot be written it is owed, and what was ingested goes all the same, which makes room.
  // And what RocksDB has misplaced is there, too; where it failed, its latest number may be another one.
  (is_held ? append_note() : note_beside(/*in_flush=*/false)).PermitUncheckedError();
  const auto end = [&] {
    main_order_->let_compactions_run(MainOrder::Until::ingested);
    if (status.ok()) status = forget(targets);
  };
  is_held ? end() : commits_.run_alone(end);
  return status;
}

rocksdb::Status DbImpl::flush_large_memtables() {
  std::vector<std::uint32_t> large;
  families_.for_each([&](const ColumnFamily& family) {
    std::uint64_t bytes = 0;
    if (family.handle == nullptr) return;
    base().GetIntProperty(family.handle, rocksdb::DB::Properties::kCurSizeActiveMemTable, &bytes);
    if (bytes > kLargeMemtable) large.push_back(family.id);
  });
  rocksdb::FlushOptions options;
  options.allow_write_stall = true;  // nobody sleeps in it
  if (!large.empty() && user_options_->database().atomic_flush) return flush_all_families();
  for (const std::uint32_t id : large) {
    const UsedColumnFamily family = families_.use(id);
    if (family.handle == nullptr) continue;
    const rocksdb::Status status = base().Flush(options, family.handle);
    if (!status.ok() && !status.IsColumnFamilyDropped()) return status;
  }
  return {};
}

// One call for all families, so that a crash leaves all of them or none.
rocksdb::Status DbImpl::ingest_files(const std::vector<SortedFile>& files) {
  std::unordered_map<std::uint32_t, std::size_t> place;
  std::vector<rocksdb::IngestExternalFileArg> arguments;
  std::vector<UsedColumnFamily> in_use;
  for (const SortedFile& file : files) {
    const UsedColumnFamily& family = in_use.emplace_back(families_.use(file.column_family));
    if (family.is_dropped) continue;  // meanwhile
    if (rocksdb::Status status = check_handle(family); !status.ok()) return status;
    const auto [at, is_new] = place.try_emplace(file.column_family, arguments.size());
    if (is_new) arguments.emplace_back().column_family = family.handle;
    add_to(&arguments[at->second], file);
  }
  if (arguments.empty()) return {};
  main_order_->hold_compactions(MainOrder::Until::ingested);  // that this came before what is diverted from then on
  gate_.close();
  // What is ingested is newer than everything in RocksDB's log: that must not be lost without it.
  rocksdb::Status status = sync_main_log();
  steps::reached("spill.rollback.gate_closed");
  bool is_newest = true;
  if (status.ok()) {
    status = ingest_and_look(base(), *ingested_files_, arguments, &is_newest);
    // It is durable, and in no log that the note would have to sync. Where RocksDB's MANIFEST could not be written, a
    // number may be taken all the same: nothing has it.
    raise_main_durable(base().GetLatestSequenceNumber());
  }
  gate_.open();
  tell_of_room();
  steps::reached("spill.rollback.ingested");
  if (is_newest) return status;  // or RocksDB said why not
  steps::reached("spill.rollback.misplaced");
  return rocksdb::Status::TryAgain("RocksDB has put what was brought back below older versions");
}

// In the commit queue: what RocksDB holds durably now.
rocksdb::Status DbImpl::forget(const Generations& targets) {
  for (const auto& generation : targets) {
    if (rocksdb::Status status = store_->drop(generation->id()); !status.ok()) return status;
    generation->mark_dropped();
    steps::reached("spill.rollback.dropped");
  }
  auto rest = std::make_shared<Generations>(*live());
  std::erase_if(*rest,
                [&](const auto& one) { return std::find(targets.begin(), targets.end(), one) != targets.end(); });
  if (rest->empty()) {
    // A store that failed is clean again: what it could not take is nowhere, what it held is in RocksDB.
    doubts_.clear();
    has_failed_.store(false, std::memory_order_release);
    end_owing_note();
    raise(synced_, appended_.load(std::memory_order_relaxed));
  }
  publish(std::move(rest));
  held_.add(targets);
  steps::reached("spill.rollback.published");
  return {};
}

// Whether RocksDB had stopped because of an error, and goes on: it recovers by itself from what it takes for a passing
// failure, unless its user wants to call Resume(), and once a full drive has room again, some seconds later, where it
// can look (Env::GetFreeSpace). It can be asked to look now.
bool DbImpl::has_rocksdb_recovered(const rocksdb::Status& from) {
  const auto began = Clock::now();
  rocksdb::Status error = error_of_rocksdb();
  if (error.ok()) return from.IsIOError() && !ingested_files_->may_ingest();  // it has in the meantime, or may have
  if (error.severity() >= rocksdb::Status::kFatalError) return false;
  const bool is_full = error.IsNoSpace();
  const bool recovers = is_full || user_options_->database().max_bgerror_resume_count > 0;
  auto asked = began - kAskAgain;
  while (recovers && !error.ok() && Clock::now() - began < kLongestRecovery) {
    if (stopping_.load(std::memory_order_acquire)) return false;
    if (is_full && Clock::now() - asked >= kAskAgain) {
      asked = Clock::now();
      base().Resume().PermitUncheckedError();
    }
    std::this_thread::sleep_for(kRetryRollback);
    error = error_of_rocksdb();
  }
  return error.ok();
}

rocksdb::Status DbImpl::bring_back_until(GenerationId last) {
  std::unique_lock lock(rollback_mutex_);
  awaited_until_ = std::max(awaited_until_, last);
  asked_until_ = std::max(asked_until_, last);
  std::uint64_t failed_before = failed_attempts_;
  int recoveries = kMostRecoveries;
  const auto is_gone = [&] {
    const auto generations = live();
    return generations->empty() || generations->front()->id() > last;
  };
  while (!is_gone()) {
    if (stopping_.load(std::memory_order_acquire)) return rocksdb::Status::ShutdownInProgress();
    if (failed_attempts_ != failed_before) {
      const rocksdb::Status why = rollback_failure_;
      lock.unlock();
      const bool goes_on = recoveries-- > 0 && has_rocksdb_recovered(why);
      lock.lock();
      if (!goes_on) return why;
      failed_before = failed_attempts_;
    }
    if (!comes_again_) {
      rollback_now_ = true;
      rollback_wake_.notify_one();
    }
    rolled_back_.wait_for(lock, kRetryRollback);
  }
  lock.unlock();
  const std::lock_guard ended(bringing_back_);  // with its statistics and its event
  return {};
}

// In the commit queue. Of everything that is live by now; nobody waits for it here.
void DbImpl::ask_for_rollback() {
  const auto generations = live();
  if (generations->empty()) return;
  seal();
  const std::lock_guard lock(rollback_mutex_);
  asked_until_ = std::max(asked_until_, generations->back()->id());
}

rocksdb::Status DbImpl::Rollback() {
  GenerationId last = 0;
  commits_.run_alone([&] {
    seal();
    if (const auto generations = live(); !generations->empty()) last = generations->back()->id();
  });
  return last == 0 ? rocksdb::Status() : bring_back_until(last);
}

}  // namespace spillway::spill
