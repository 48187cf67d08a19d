#include "spill/rollback/placing.h"

#include <utility>

namespace spillway::spill {

using Clock = std::chrono::steady_clock;

void Placing::begin(const MergedRun& run) {
  place_.reset();
  has_begun_ = false;
  compactions_ = 0;
  on_written();
  const auto whole = run.plain_range();
  if (!whole || compaction_.is_busy() || detector_.signals().is_stalled) return;
  const UsedColumnFamily family = families_.use(whole->column_family);
  if (family.is_dropped || family.handle == nullptr) return;
  place_ = choose_place(main_.db(), family, whole->range, run.bytes_left());
}

Placing::Look Placing::look(const KeyRange& part, bool is_urgent) {
  if (!place_) return Look::is_free;
  if (is_urgent || commits_.notes.is_owed() || main_.is_stopping()) return lose();
  if (compaction_.is_running()) return Look::not_yet;
  UsedColumnFamily family = families_.use(place_->column_family);
  if (family.is_dropped || family.handle == nullptr) return lose();
  rocksdb::ColumnFamilyMetaData now;
  main_.db().GetColumnFamilyMetaData(family.handle, &now);
  RunPlace next = *place_;
  if (has_begun_) next.range = part;
  const InTheWay way = in_the_way(now, *family.comparator, next);
  if (way.files.empty() && main_.are_memtables_empty(family)) return Look::is_free;
  // A flush for each look would fill L0 where writes go to RocksDB.
  const bool may_compact = !has_begun_ && compactions_ < kMostCompactions && !pause_.is_paused();
  if (!may_compact || Clock::now() > until_) return lose();
  if (way.is_being_compacted || compaction_.is_busy() || detector_.signals().is_stalled) return Look::not_yet;
  return begin_compaction(std::move(family)) ? Look::not_yet : lose();
}

bool Placing::begin_compaction(UsedColumnFamily family) {
  ++compactions_;
  if (!main_.flush_memtables_of(family).ok() || commits_.notes.is_owed()) return false;  // by that flush
  rocksdb::ColumnFamilyMetaData now;
  main_.db().GetColumnFamilyMetaData(family.handle, &now);
  InTheWay way = in_the_way(now, *family.comparator, *place_);
  if (way.files.empty()) return true;  // the next look sees it
  if (way.compacted_bytes > place_->most_compacted) return false;
  auto work = emptying(main_.db(), std::move(family), *place_, std::move(way.files));
  if (!work) return false;
  disown_compaction();
  is_wanted_ = std::make_shared<std::atomic<bool>>(true);
  compaction_.start(*main_.db().GetEnv(), [this, is_wanted = is_wanted_, work = std::move(work)] {
    const RollbackPause::Pass pass(pause_);  // a pause of background work waits for it, as it does for RocksDB's own
    if (!pass) return;
    if (main_.order().await_compactions(is_wanted.get())) work();
  });
  return true;
}

Placing::Look Placing::lose() {
  end();
  return Look::is_lost;
}

void Placing::disown_compaction() {
  if (is_wanted_) is_wanted_->store(false);
}

void Placing::end() {
  disown_compaction();
  compaction_.cancel();
  place_.reset();
}

void Placing::finish() {
  end();
  compaction_.finish();
}

}  // namespace spillway::spill
