// Brings generations back into RocksDB (K8): small ones through its log and memtables, others as one sorted run that it
// ingests in parts. Then the spill store drops them.
#pragma once

#include <rocksdb/status.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "spill/commit/commits.h"
#include "spill/live/live_set.h"
#include "spill/live/value_reader.h"
#include "spill/main_db/main_db.h"
#include "spill/report/telemetry.h"
#include "spill/rollback/lull.h"
#include "spill/rollback/merged_run.h"
#include "spill/rollback/placing.h"
#include "spill/rollback/rollback_pause.h"
#include "spill/rollback/run_pace.h"
#include "spill/rollback/sorted_files.h"
#include "spill/stall/detector.h"
#include "spill/stall/room_signal.h"

namespace spillway::spill {

// What the parts of this folder share.
struct RollbackContext {
  const SpillOptions& options;
  Store& store;
  ValueReader values;
  MainDb& main;
  LiveSet& live;
  Commits& commits;
  Detector& detector;
  RoomSignal& room;
  Telemetry& telemetry;
};

// How a generation comes back.
enum class Way : std::uint8_t { put_back, ingest };

class BringBack {
 public:
  // `sorted_directory`: for sorted files on their way into RocksDB.
  BringBack(const RollbackContext& context, std::string sorted_directory)
      : context_(context),
        sorted_directory_(std::move(sorted_directory)),
        placing_(context.main, context.live.families(), context.commits, context.detector, pause_) {}

  // The next step: the `most` oldest live generations begin to come back, or all if they are small enough to be put
  // back; or the next part of those that have begun does. TryAgain: RocksDB has no room now. `is_urgent`: a writer
  // waits, so no place below L0 is waited for (Placing).
  rocksdb::Status bring_back(std::uint64_t most, bool is_urgent) EXCLUDES(mutex_);
  // From now on it comes as fast as it can, or takes its time (RunPace).
  void hurry() { is_hurried_.store(true); }
  void take_time() { is_hurried_.store(false); }
  // While there is one, somebody waits for what comes back, which takes no time.
  class Wait {
   public:
    explicit Wait(BringBack& of) : of_(of) { ++of_.waits_; }
    ~Wait() { --of_.waits_; }
    Wait(const Wait&) = delete;
    Wait& operator=(const Wait&) = delete;

   private:
    BringBack& of_;
  };
  // Whether generations have begun to come back, and parts are left.
  bool is_under_way() const { return is_under_way_.load(std::memory_order_acquire); }
  // All of them while commits wait: for the small rest that bring_back() has left. TryAgain: RocksDB has no room for it
  // now. Aborted: they are too large to be put back, or RocksDB refuses it, and `largest` is Way::put_back.
  rocksdb::Status bring_back_in_commit_queue(Way largest) REQUIRES(mutex_, in_commit_queue);

  // What has begun will not go on, for the database closes.
  void finish() EXCLUDES(mutex_);

  // Held by a rollback, by a caller that brings back the rest, and by compactions that RocksDB does not announce. Taken
  // before the commit queue.
  Mutex& mutex() RETURN_CAPABILITY(mutex_) { return mutex_; }
  RollbackPause& pause() { return pause_; }
  const std::string& sorted_directory() const { return sorted_directory_; }
  // Whether something was put back since Open, and may be in RocksDB's memtables. A rollback is counted at its end.
  bool has_put_back() const REQUIRES(mutex_) {
    return context_.telemetry.counts.rollbacks_by_put.load(std::memory_order_relaxed) > 0;
  }
  // Removes sorted files of a rollback that a crash interrupted. The generation they were made from still exists.
  void remove_leftovers();

 private:
  // The rollback of some generations, from its first event to its last.
  struct Return {
    std::chrono::steady_clock::time_point at = std::chrono::steady_clock::now();
    SpillEvent event;
  };
  Return begin_rollback(const Generations& targets) const;
  void end_rollback(const Generations& targets, const Return& began, Way way) REQUIRES(mutex_);

  struct WrittenPart {
    KeyRange range;  // of a run that has a place
    std::vector<SortedFile> files;
  };

  // Generations that come back as one run. They stay live until the last part is ingested: a crash before that has them
  // begin again, which changes nothing.
  struct Group {
    std::shared_ptr<const Generations> targets;
    MergedRun run;
    std::uint64_t part_bytes = 0;  // of sorted files, most
    std::uint64_t run_bytes = 0;   // of the whole run
    double share = 0;              // of the store's capacity or of the index's, the larger
    Return began;
    // Of a run that has a place (Placing): what has not been written. Files are written while room is made for them.
    std::optional<MergedRun> ahead = std::nullopt;
    std::deque<WrittenPart> written = {};  // and not ingested
  };

  // The result of the part that runs in the commit queue: it selects generations, and puts them back if they are small.
  struct Choice {
    std::shared_ptr<const Generations> targets;
    std::optional<Return> put_back;  // set if they were put back
    Sequence visible = 0;            // LiveSet::visible() then; durable once the store was synced after it
  };
  rocksdb::Status choose(std::uint64_t most, const rocksdb::Status& renewed, Choice* choice)
      REQUIRES(mutex_, in_commit_queue);
  bool is_small(const Generations& targets) const;  // small enough to be put back, if RocksDB accepts it

  rocksdb::Status put_back(const Generations& targets) REQUIRES(mutex_, in_commit_queue);
  // `durable`: the sequence up to which the spill store is durable.
  Group make_group(std::shared_ptr<const Generations> targets, Sequence durable) const;
  void make_small_durable() REQUIRES(mutex_);
  rocksdb::Status begin_group(const Choice& choice, bool may_have_place, bool goes_on) REQUIRES(mutex_);
  void keep_room_for_next_run() REQUIRES(mutex_);
  void end_group() REQUIRES(mutex_);  // done or given up
  rocksdb::Status ingest_concurrently(Group& group, bool is_urgent) REQUIRES(mutex_);
  rocksdb::Status ingest_in_commit_queue(Group& group) REQUIRES(mutex_, in_commit_queue);
  void fill_parts(Group& group, bool goes_on) REQUIRES(mutex_);
  rocksdb::Status write_part(Group& group) REQUIRES(mutex_);
  // TryAgain: the first part that was written may not be ingested now.
  rocksdb::Status await_place(Group& group, bool is_urgent) REQUIRES(mutex_);
  bool may_write_ahead(const Group& group) REQUIRES(mutex_);
  void give_up_place(Group& group) REQUIRES(mutex_);
  rocksdb::Status ingest_part(Group& group) REQUIRES(mutex_);
  void remove_files(const WrittenPart& part);
  // Of the run, if `sorted_bytes` of the part after the last were written.
  static std::uint64_t bytes_to_write(const Group& group, std::uint64_t sorted_bytes);
  static double left_of(const Group& group, std::uint64_t sorted_bytes = 0);
  // `sorted_bytes` of the next part were written: waits, so that the run takes its time (RunPace).
  void keep_pace(const Group& group, std::uint64_t sorted_bytes) REQUIRES(mutex_);
  bool nobody_writes() REQUIRES(mutex_);
  rocksdb::Status ingest_files_of(const Group& group, const WrittenPart& part) REQUIRES(mutex_);
  rocksdb::Status ingest_files(const std::vector<SortedFile>& files);
  Generations seal_notes() REQUIRES(mutex_, in_commit_queue);
  rocksdb::Status drop(const Generations& targets) REQUIRES(mutex_, in_commit_queue);
  rocksdb::Status drop_with_notes(const Generations& brought_back) REQUIRES(mutex_, in_commit_queue);
  rocksdb::Status drop_one_by_one(const Generations& brought_back) REQUIRES(mutex_);

  const RollbackContext& context_;
  const std::string sorted_directory_;
  Mutex mutex_;
  bool has_refused_ GUARDED_BY(mutex_) = false;  // RocksDB has just refused what was to be put back
  std::optional<Group> group_ GUARDED_BY(mutex_);
  std::atomic<bool> is_under_way_{false};
  std::atomic<bool> is_hurried_{false};
  std::atomic<int> waits_{0};
  RunPace pace_ GUARDED_BY(mutex_);
  Lull lull_ GUARDED_BY(mutex_);
  RollbackPause pause_;
  Placing placing_ GUARDED_BY(mutex_);
};

}  // namespace spillway::spill
