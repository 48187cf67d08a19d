// The rest of a rocksdb::DB: life cycle, and what would be wrong if only RocksDB were asked.
#include <rocksdb/convenience.h>
#include <rocksdb/env.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "base/steps.h"
#include "spill/db/db_impl.h"
#include "spill/live/estimates.h"

namespace spillway::spill {
namespace {

using rocksdb::ColumnFamilyHandle;
using rocksdb::Slice;
using rocksdb::Status;

constexpr std::string_view kPrefix = "spillway.";

// Sorted files of a generation have to fit beside all others.
SpillOptions leave_room_for_rollback(SpillOptions options) {
  constexpr std::uint64_t kLeastGenerations = 4;
  if (options.store == nullptr) {
    const std::uint64_t most = std::max<std::uint64_t>(options.capacity_bytes / kLeastGenerations, 1);
    options.generation_bytes = std::min(options.generation_bytes, most);
  }
  return options;
}

std::map<std::string, std::uint64_t> numbers_of(const SpillStatistics& s) {
  return {{"diverted-writes", s.diverted_writes},
          {"diverted-bytes", s.diverted_bytes},
          {"main-writes", s.main_writes},
          {"waits", s.waits},
          {"wait-micros", s.wait_us},
          {"stalls-diverted", s.stalls_diverted},
          {"last-resort", s.last_resort},
          {"ordering-syncs", s.ordering_syncs},
          {"ordering-marks", s.ordering_marks},
          {"rolled-back-entries", s.rolled_back_entries},
          {"rolled-back-bytes", s.rolled_back_bytes},
          {"rollbacks-by-ingest", s.rollbacks_by_ingest},
          {"rollbacks-by-put", s.rollbacks_by_put},
          {"rollback-micros", s.rollback_us},
          {"rollback-failures", s.rollback_failures},
          {"live-generations", s.live_generations},
          {"live-entries", s.live_entries},
          {"live-bytes", s.live_bytes},
          {"index-bytes", s.index_bytes},
          {"store-used-bytes", s.store_used_bytes},
          {"held-bytes", s.held_bytes},
          {"store-capacity-bytes", s.store_capacity_bytes},
          {"diverting", s.diverting ? 1 : 0},
          {"root-handed-out", s.root_handed_out ? 1 : 0}};
}

// One line for each event in RocksDB's own info log. RocksDB may hold its lock: it is asked for nothing.
void log_event(const SpillEvent& event, const std::shared_ptr<rocksdb::Logger>& log) {
  using Kind = SpillEvent::Kind;
  const bool is_failure = event.kind == Kind::store_failed || event.kind == Kind::rollback_failed;
  const bool is_warning = event.kind == Kind::spill_full || event.kind == Kind::root_handed_out;
  const auto level = is_failure   ? rocksdb::InfoLogLevel::ERROR_LEVEL
                     : is_warning ? rocksdb::InfoLogLevel::WARN_LEVEL
                                  : rocksdb::InfoLogLevel::INFO_LEVEL;
  rocksdb::Log(level, log, "spillway: %s generation=%llu operations=%llu bytes=%llu micros=%lld %s",
               name_of(event.kind), static_cast<unsigned long long>(event.generation),
               static_cast<unsigned long long>(event.entries), static_cast<unsigned long long>(event.bytes),
               static_cast<long long>(event.duration_us), event.message.c_str());
}

}  // namespace

DbImpl::DbImpl(const std::shared_ptr<rocksdb::DB>& base, SpillOptions options, std::shared_ptr<Store> store,
               std::shared_ptr<Binding> binding, std::shared_ptr<Detector> detector,
               std::shared_ptr<MainLogs> main_logs, std::shared_ptr<MainOrder> main_order,
               std::shared_ptr<IngestedFiles> ingested_files, std::shared_ptr<UserOptions> user_options,
               std::shared_ptr<HandleWatcher> handle_watcher)
    : spillway::DB(base),
      options_(leave_room_for_rollback(std::move(options))),
      store_(std::move(store)),
      binding_(std::move(binding)),
      detector_(std::move(detector)),
      main_logs_(std::move(main_logs)),
      main_order_(std::move(main_order)),
      ingested_files_(std::move(ingested_files)),
      user_options_(std::move(user_options)),
      handle_watcher_(std::move(handle_watcher)),
      commits_([this](std::span<Commit*> group) { lead(group); }),
      values_(*store_, *base->GetEnv()->GetSystemClock()),
      info_log_(base->GetDBOptions().info_log),
      live_(std::make_shared<Generations>()),
      sorted_directory_(sorted_directory_of(base->GetName())) {}

DbImpl::~DbImpl() {
  const std::lock_guard lock(closing_mutex_);
  snapshots_.release_all();
  if (!is_closed_) (void)shut_down();
}

Status DbImpl::start(const std::vector<ColumnFamilyHandle*>& handles, const Remains& remains) {
  found_writes_ = remains.has_writes;
  if (Status status = families_.add(base().DefaultColumnFamily()); !status.ok()) return status;
  for (ColumnFamilyHandle* handle : handles) {
    if (Status status = families_.add(handle); !status.ok()) return status;
  }
  (void)base().GetEnv()->CreateDirIfMissing(sorted_directory_);
  remove_leftovers();
  // All that RocksDB has by now is in tables: it has flushed what it replayed.
  main_durable_.store(base().GetLatestSequenceNumber(), std::memory_order_release);
  if (Status status = recover(remains); !status.ok()) return status;
  main_order_->let_compactions_run(MainOrder::Until::opened);
  main_order_->start([this] { before_flush(); });
  detector_->start(&base(), &families_,
                   [this](const Signals& signals, Route before, Route now) { on_look(signals, before, now); });
  handle_watcher_->start([this](ColumnFamilyHandle* handle) { on_handle_deletion(handle); });
  kept_handles_ = handles;
  rollback_ = std::thread([this] { rollback_thread(); });
  is_started_ = true;
  return {};
}

// Sorted files of a rollback that a crash interrupted: the generation they were made of is still there.
void DbImpl::remove_leftovers() {
  std::vector<std::string> names;
  if (!base().GetEnv()->GetChildren(sorted_directory_, &names).ok()) return;
  for (const std::string& name : names) {
    if (name.ends_with(".sst")) (void)base().GetEnv()->DeleteFile(sorted_directory_ + "/" + name);
  }
}

// As RocksDB's: with snapshots it refuses and the database goes on, and a second time it says what the first did.
Status DbImpl::Close() {
  const std::lock_guard lock(closing_mutex_);
  if (is_closed_) return closing_status_;
  std::uint64_t snapshots = 0;
  if (base().GetIntProperty(rocksdb::DB::Properties::kNumSnapshots, &snapshots) && snapshots > 0) {
    return Status::Aborted("Cannot close DB with unreleased snapshot.");
  }
  closing_status_ = shut_down();
  return closing_status_;
}

Status DbImpl::shut_down() {
  is_closed_ = true;
  {
    const std::lock_guard lock(rollback_mutex_);
    stopping_.store(true, std::memory_order_release);
  }
  rollback_wake_.notify_all();
  if (rollback_.joinable()) rollback_.join();
  rolled_back_.notify_all();
  detector_->stop();
  Status status;
  commits_.run_alone([&] {
    if (has_live_.load(std::memory_order_acquire)) status = append_note();  // which syncs RocksDB's log if need be
    if (status.IsNoSpace()) status = {};                                    // the tables tell what it would have said
    active_.reset();
    // Of a start that failed the store stays as it was found.
    if (status.ok() && is_started_ && !has_failed_.load(std::memory_order_relaxed)) status = store_->close();
  });
  main_order_->stop();
  steps::reached("spill.close.stopped");
  handle_watcher_->stop();
  for (ColumnFamilyHandle* handle : kept_handles_) (void)base().DestroyColumnFamilyHandle(handle);
  kept_handles_.clear();
  const bool has_writes = has_live_.load(std::memory_order_acquire) || (!is_started_ && found_writes_);
  const Status released = binding_->close(has_writes);
  if (status.ok()) status = released;
  rocksdb::CancelAllBackgroundWork(&base());  // first: a compaction that was held must not go on
  main_order_->let_compactions_run();
  const Status closed = base().Close();
  return status.ok() ? closed : status;
}

Status DbImpl::PauseBackgroundWork() {
  rollback_pause_.pause();
  const Status status = base().PauseBackgroundWork();
  if (!status.ok()) rollback_pause_.resume();
  return status;
}

Status DbImpl::ContinueBackgroundWork() {
  const Status status = base().ContinueBackgroundWork();
  if (!status.ok()) return status;  // it is not paused
  rollback_pause_.resume();
  wake_rollback();
  return status;
}

void DbImpl::tell(const SpillEvent& event) const {
  log_event(event, info_log_);
  for (const auto& listener : options_.listeners) listener->on_spill_event(event);
}

void DbImpl::on_look(const Signals&, Route before, Route now) {
  if (before == now || now == Route::main) store_->hand_on();
  if (before == now) return;
  if (now == Route::spill) counts_.stalls_diverted.fetch_add(1, std::memory_order_relaxed);
  SpillEvent event;
  event.kind = now == Route::spill ? SpillEvent::Kind::divert_begin : SpillEvent::Kind::divert_end;
  tell(event);
  if (now == Route::main) tell_of_room();
  wake_rollback();
}

void DbImpl::SetDiversion(Diversion diversion) {
  diversion_.store(diversion, std::memory_order_relaxed);
  tell_of_room();
}

SpillStatistics DbImpl::GetSpillStatistics() const {
  const auto read = [](const std::atomic<std::uint64_t>& count) { return count.load(std::memory_order_relaxed); };
  SpillStatistics s;
  s.diverted_writes = read(counts_.diverted_writes);
  s.diverted_bytes = read(counts_.diverted_bytes);
  s.main_writes = read(counts_.main_writes);
  s.waits = read(counts_.waits);
  s.wait_us = read(counts_.wait_us);
  s.stalls_diverted = read(counts_.stalls_diverted);
  s.last_resort = read(counts_.last_resort);
  s.ordering_syncs = read(counts_.ordering_syncs);
  s.ordering_marks = read(counts_.ordering_marks);
  s.rolled_back_entries = read(counts_.rolled_back_entries);
  s.rolled_back_bytes = read(counts_.rolled_back_bytes);
  s.rollbacks_by_ingest = read(counts_.rollbacks_by_ingest);
  s.rollbacks_by_put = read(counts_.rollbacks_by_put);
  s.rollback_us = read(counts_.rollback_us);
  s.rollback_failures = read(counts_.rollback_failures);
  s.index_bytes = index_.memory_bytes() + held_.memory_bytes();
  const auto generations = live();
  s.live_generations = generations->size();
  for (const auto& one : *generations) {
    s.live_entries += one->entries();
    s.live_bytes += one->user_bytes();
    s.index_bytes += one->memory_bytes();
  }
  s.store_used_bytes = store_->used_bytes();
  s.held_bytes = store_->held_bytes();
  s.store_capacity_bytes = store_->capacity_bytes();
  s.diverting = wants_spill();
  s.root_handed_out = root_handed_out_.load(std::memory_order_acquire);
  return s;
}

// --- What has to hold for both stores

Status DbImpl::SyncWAL() {
  const Status status = sync_main_log_for_user();
  return status.ok() ? sync_beside() : status;
}

Status DbImpl::FlushWAL(bool sync) {
  const Status status = sync ? sync_main_log_for_user() : base().FlushWAL(false);
  return status.ok() && sync ? sync_beside() : status;
}

// What was diverted is as durable as what RocksDB flushes; it goes into tables when it is brought back.
Status DbImpl::Flush(const rocksdb::FlushOptions& options, ColumnFamilyHandle* family) {
  const Status status = sync_beside();
  return status.ok() ? base().Flush(options, family) : status;
}

Status DbImpl::Flush(const rocksdb::FlushOptions& options, const std::vector<ColumnFamilyHandle*>& families) {
  const Status status = sync_beside();
  return status.ok() ? base().Flush(options, families) : status;
}

// --- What needs everything to be in RocksDB

Status DbImpl::CompactRange(const rocksdb::CompactRangeOptions& options, ColumnFamilyHandle* family, const Slice* begin,
                            const Slice* end) {
  if (Status status = Rollback(); !status.ok()) return status;
  return base().CompactRange(options, family, begin, end);
}

// RocksDB does not tell listeners that such a compaction begins, so it cannot be held as others are while what a
// rollback ingested is noted down (MainOrder::hold_compactions): it waits for the rollback to end. And while a note is
// owed, for a rollback of everything.
Status DbImpl::CompactFiles(const rocksdb::CompactionOptions& options, ColumnFamilyHandle* family,
                            const std::vector<std::string>& input, int output_level, int output_path_id,
                            std::vector<std::string>* output, rocksdb::CompactionJobInfo* info) {
  std::unique_lock no_rollback(bringing_back_);
  while (owes_note_.load(std::memory_order_acquire)) {
    no_rollback.unlock();
    if (rollback_pause_.is_paused()) return Status::Aborted("background work is paused while a note is owed");
    if (Status status = Rollback(); !status.ok()) return status;
    no_rollback.lock();
  }
  return base().CompactFiles(options, family, input, output_level, output_path_id, output, info);
}

// --- What a StackableDB does not pass on

Status DbImpl::Resume() { return base().Resume(); }

Status DbImpl::GetStatsHistory(std::uint64_t start_s, std::uint64_t end_s,
                               std::unique_ptr<rocksdb::StatsHistoryIterator>* iterator) {
  return base().GetStatsHistory(start_s, end_s, iterator);
}

// --- Properties

bool DbImpl::GetIntProperty(ColumnFamilyHandle* family, const Slice& property, std::uint64_t* value) {
  const std::string_view name(property.data(), property.size());
  if (!name.starts_with(kPrefix)) {
    if (!base().GetIntProperty(family, property, value)) return false;
    add_spilled(family->GetID(), property, value);
    return true;
  }
  const auto numbers = numbers_of(GetSpillStatistics());
  const auto found = numbers.find(std::string(name.substr(kPrefix.size())));
  if (found == numbers.end()) return false;
  *value = found->second;
  return true;
}

bool DbImpl::GetMapProperty(ColumnFamilyHandle* family, const Slice& property,
                            std::map<std::string, std::string>* value) {
  if (property != Slice("spillway.stats")) return base().GetMapProperty(family, property, value);
  value->clear();
  for (const auto& [name, number] : numbers_of(GetSpillStatistics())) (*value)[name] = std::to_string(number);
  return true;
}

bool DbImpl::GetProperty(ColumnFamilyHandle* family, const Slice& property, std::string* value) {
  const std::string_view name(property.data(), property.size());
  if (!name.starts_with(kPrefix) && !includes_spilled(property)) return base().GetProperty(family, property, value);
  if (name == "spillway.stats") {
    value->clear();
    for (const auto& [key, number] : numbers_of(GetSpillStatistics())) {
      *value += key + ": " + std::to_string(number) + "\n";
    }
    return true;
  }
  std::uint64_t number = 0;
  if (!GetIntProperty(family, property, &number)) return false;
  *value = std::to_string(number);
  return true;
}

}  // namespace spillway::spill
