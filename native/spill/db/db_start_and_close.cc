// From start to Close, and the callbacks between the parts.
#include <rocksdb/convenience.h>
#include <rocksdb/env.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/steps.h"
#include "spill/db/db_impl.h"
#include "spill/main_db/temporary_tables.h"

namespace spillway::spill {
namespace {

using rocksdb::ColumnFamilyHandle;
using rocksdb::Status;

constexpr std::chrono::milliseconds kMostOfExit{1000};  // a poll takes microseconds, unless RocksDB's mutex is held

// The sorted files of one generation need free space while all other generations still exist.
SpillOptions leave_room_for_rollback(SpillOptions options) {
  constexpr std::uint64_t kLeastGenerations = 4;
  if (options.store == nullptr) {
    const std::uint64_t most = std::max<std::uint64_t>(options.capacity_bytes / kLeastGenerations, 1);
    options.generation_bytes = std::min(options.generation_bytes, most);
  }
  return options;
}

ValueReader values_of(const OpenedParts& parts, rocksdb::DB& base) {
  return ValueReader(*parts.store, *base.GetEnv()->GetSystemClock());
}

}  // namespace

DbImpl::DbImpl(const std::shared_ptr<rocksdb::DB>& base, const SpillOptions& options, const OpenedParts& parts)
    : UniformDb(base),
      telemetry_(options.listeners, base->GetDBOptions().info_log),
      live_(parts.store),
      main_(*base, parts.main, live_.families(), telemetry_),
      commits_({leave_room_for_rollback(options), *parts.store, main_, live_, telemetry_,
                [this] { rollbacks_.thread.wake(); }, [this] { return !rollbacks_.bring_back.pause().is_paused(); },
                [this](GenerationId last) { rollbacks_.thread.ask_for(last); }},
               values_of(parts, *base)),
      rollbacks_(values_of(parts, *base), main_, live_, commits_, *parts.detector, telemetry_,
                 sorted_directory_of(base->GetName())),
      router_({main_, live_, commits_, parts.detector, rollbacks_.room, rollbacks_.thread, rollbacks_.main_only,
               telemetry_},
              options.divert),
      reader_(*parts.store, values_of(parts, *base), main_, live_, commits_.pipeline.queue(), telemetry_),
      families_(parts.handle_watcher, main_, live_, commits_, rollbacks_, *parts.detector),
      file_lists_(main_, live_, rollbacks_) {}

DbImpl::~DbImpl() {
  reader_.release_snapshots();
  (void)closing_.close([] { return Status(); }, [this] { return shut_down(); });
}

BurstWatch::Activity DbImpl::write_activity() const {
  const Counts& counts = telemetry_.counts;
  return {counts.diverted_writes.load(std::memory_order_relaxed) + counts.main_writes.load(std::memory_order_relaxed),
          counts.reads_with_live.load(std::memory_order_relaxed),
          commits_.usage.share_used(),
          counts.waits_pacing.load(std::memory_order_relaxed),
          counts.waiting_for_rollback.load(std::memory_order_relaxed) > 0,
          std::chrono::duration_cast<std::chrono::microseconds>(live_.store().append_wait())};
}

Status DbImpl::start(const std::vector<ColumnFamilyHandle*>& handles, const std::vector<ColumnFamilyHandle*>& users,
                     const StoreContents& contents) {
  closing_.set_found_writes(contents.has_writes);
  if (Status status = families_.add(handles); !status.ok()) return status;
  const std::string& directory = rollbacks_.bring_back.sorted_directory();
  (void)base().GetEnv()->CreateDirIfMissing(directory);
  rollbacks_.bring_back.remove_leftovers();
  main_.ingested_files().set_may_move(may_be_reopened(*base().GetEnv()->GetFileSystem(), directory));
  // RocksDB has flushed everything that it replayed, so all of it is in tables.
  main_.raise_durable(main_.latest_sequence());
  if (Status status = recover(contents, main_, live_, commits_); !status.ok()) return status;
  main_.order().let_compactions_run(MainOrder::Until::opened);
  main_.order().start([this] { commits_.notes.before_flush(); });
  router_.detector().start(
      &base(), &live_.families(),
      [this](const Signals& signals, Route before, Route now) { on_poll(signals, before, now); },
      [this] { return write_activity(); });
  families_.start(handles, users);
  rollbacks_.thread.start();
  closing_.set_started([this] { router_.detector().end_polls(kMostOfExit); });
  return {};
}

// As RocksDB's Close: with unreleased snapshots it refuses and the database stays open. A second call returns the
// status of the first.
Status DbImpl::Close() {
  const auto may_close = [this] {
    std::uint64_t snapshots = 0;
    const bool is_known = base().GetIntProperty(rocksdb::DB::Properties::kNumSnapshots, &snapshots);
    return is_known && snapshots > 0 ? Status::Aborted("Cannot close DB with unreleased snapshot.") : Status();
  };
  return closing_.close(may_close, [this] { return shut_down(); });
}

Status DbImpl::shut_down() {
  main_.stop();
  live_.dropped().release_all();
  rollbacks_.thread.stop();
  router_.detector().stop();
  Status status;
  commits_.pipeline.queue().run_alone([&]() REQUIRES(in_commit_queue) {
    if (live_.has_any()) status = commits_.notes.append_durably();  // syncs RocksDB's log if necessary
    if (status.IsNoSpace()) status = {};  // not needed: the tables have the sequence numbers that it would name
    commits_.writer.close();
    // If the start failed, the store stays as it was found.
    if (status.ok() && closing_.is_started() && !commits_.writer.has_failed()) status = live_.store().close();
  });
  main_.order().stop();
  steps::reached("spill.close.stopped");
  families_.stop();
  const bool has_writes = live_.has_any() || (!closing_.is_started() && closing_.has_found_writes());
  const Status released = main_.binding().close(has_writes);
  if (status.ok()) status = released;
  rocksdb::CancelAllBackgroundWork(&base());  // first, so that a held compaction does not resume
  main_.order().let_compactions_run();
  const Status closed = base().Close();
  live_.store().unlock();
  if (closing_.is_started()) telemetry_.report_closed(GetSpillStatistics());
  return status.ok() ? closed : status;
}

void DbImpl::on_poll(const Signals& signals, Route before, Route now) {
  if (before == now || now == Route::main) live_.store().hand_on();
  router_.count_diversions(signals, before, now);
  if (before == now) return;
  SpillEvent event;
  event.kind = now == Route::spill ? SpillEvent::Kind::divert_begin : SpillEvent::Kind::divert_end;
  telemetry_.report(event);
  if (now == Route::main) rollbacks_.room.notify();
  rollbacks_.thread.wake();
}

void DbImpl::SetDiversion(Diversion diversion) { router_.set_diversion(diversion); }

}  // namespace spillway::spill
