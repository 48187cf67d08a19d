#include "spill/commit/spill_committer.h"

#include <algorithm>
#include <cassert>
#include <string_view>
#include <utility>
#include <vector>

#include "base/steps.h"
#include "spill/commit/merge_resolver.h"
#include "spill/store/batch_visitor.h"
#include "spill/store/checksum.h"

namespace spillway::spill {
namespace {

using rocksdb::Slice;
using rocksdb::Status;
using rocksdb::WriteBatch;

// Space that every commit leaves free for a note and for the generation that the note may begin.
constexpr std::uint64_t kNoteRoom = 4096;

// Of the index, at least so much goes into a generation, however small its share is. Source: guess, a file of 10,000
// keys
constexpr std::uint64_t kLeastIndexShare = std::uint64_t{1} << 20;

std::string_view view(const Slice& slice) { return {slice.data(), slice.size()}; }

// Adds operations to a generation and counts them by column family.
class EntryAdder {
 public:
  EntryAdder(Generation& generation, KeyIndex& index, bool may_replace, const char* record, std::uint64_t offset,
             Sequence first)
      : generation_(generation),
        index_(index),
        may_replace_(may_replace),
        record_(record),
        offset_(offset),
        next_(first) {}
  ~EntryAdder() { count(); }
  EntryAdder(const EntryAdder&) = delete;
  EntryAdder& operator=(const EntryAdder&) = delete;

  Status add(const BatchOperation& operation) REQUIRES(in_commit_queue) {
    using Op = BatchOperation::Kind;
    const auto& [kind, family, key, value] = operation;
    switch (kind) {
      case Op::put:
        add(family, key, spill::Kind::put,
            {offset_, static_cast<std::uint32_t>(value.data() - record_), static_cast<std::uint32_t>(value.size())},
            crc32c(value));
        return {};
      case Op::remove:
      case Op::single_remove:  // hides any number of older versions
        add(family, key, spill::Kind::remove, {}, 0);
        return {};
      case Op::remove_range:
        generation_.add(RangeTombstone{family, key.ToString(), value.ToString(), next_++});
        return {};
      case Op::log_data:
        return {};
      default:
        return unknown_operation(operation);
    }
  }

  Sequence next() const { return next_; }

 private:
  void add(std::uint32_t family, const Slice& key, spill::Kind kind, const Location& location, std::uint32_t checksum)
      REQUIRES(in_commit_queue) {
    if (family != family_) {
      count();
      family_ = family;
    }
    ++(kind == spill::Kind::put ? tally_.puts : tally_.removes);
    if (kind == spill::Kind::put) tally_.put_bytes += key.size() + location.length;
    index_.write({family, view(key), next_++, kind, location, checksum}, generation_, may_replace_);
  }

  void count() REQUIRES(in_commit_queue) {
    if (tally_.puts + tally_.removes > 0) generation_.count(family_, tally_);
    tally_ = {};
  }

  std::uint32_t family_ = 0;
  Tally tally_;  // of the current family, not yet added to the generation's counts
  Generation& generation_;
  KeyIndex& index_;
  const bool may_replace_;
  const char* const record_;
  const std::uint64_t offset_;
  Sequence next_;
};

}  // namespace

Sequence add_entries_of(const WriteBatch& batch, std::uint64_t offset, Sequence first, Generation& generation,
                        KeyIndex& index, bool may_replace) {
  // In the record, the batch follows the header.
  EntryAdder adder(generation, index, may_replace, batch.Data().data() - kRecordHeaderBytes, offset, first);
  const Status status = visit_batch(batch, [&](const BatchOperation& operation) {
    in_commit_queue.assume_held();  // visit_batch() has returned before this function does
    return adder.add(operation);
  });
  assert(status.ok() && "it was iterated over before");
  (void)status;
  return adder.next();
}

// Without rollbacks no space is released, so a pause would not help.
std::chrono::nanoseconds SpillCommitter::pace(std::span<Commit* const> group) {
  paced_ = {};
  if (pacer_.is_idle(usage_.room()) || context_.options.rollback == RollbackPolicy::off || !context_.may_bring_back())
    return {};
  std::uint64_t bytes = 0;
  std::uint64_t operations = 0;
  for (const Commit* one : group) {
    bytes += one->batch->GetDataSize();
    operations += one->batch->Count();
  }
  // The store may have become empty since the last commit.
  const double share = usage_.share_of(bytes, operations);
  const auto pause = pacer_.pause(usage_.room_now(), bytes, share, WritePacer::Clock::now());
  const Commit& first = *group.front();
  // What is refused waits for a rollback, and not here as well.
  const bool is_refused = !usage_.has_room(first.batch->GetDataSize() + kNoteRoom, first.must_divert);
  if (!is_refused) paced_ = pause;
  return paced_;
}

// A group waits as a whole, so it is no larger than what one pause admits.
std::uint64_t SpillCommitter::most_group_bytes() const {
  return std::min({pacer_.most_group_bytes(), context_.store.most_group_bytes(), CommitQueue::kGroupBytes});
}

Status SpillCommitter::admit(const Commit& commit, std::uint64_t group_bytes) {
  // These may have changed since the write was routed.
  if (context_.main.is_handed_out()) return Status::Busy("RocksDB itself was handed out");
  if (writer_.has_failed()) return Status::Busy("the spill store failed");
  return usage_.has_room(group_bytes + kNoteRoom, commit.must_divert) ? Status() : writer_.report_full();
}

Status SpillCommitter::check_family(std::uint32_t family, bool must_divert) const {
  const ColumnFamily known = context_.live.families().of(family);
  if (!known.can_be_diverted) return Status::Busy("a column family that nothing is ingested into");
  if (known.handle != nullptr) return {};
  // RocksDB accepts the write, but the library could not bring it back.
  if (!known.is_dropped && !must_divert) return Status::Busy("a column family without a handle");
  return Status::InvalidArgument("Invalid column family specified in write batch");
}

// Repeats RocksDB's own checks of a write.
Status SpillCommitter::check(const WriteBatch& batch, bool must_divert) const {
  const ColumnFamilies& families = context_.live.families();
  return visit_batch(batch, [&](const BatchOperation& operation) -> Status {
    using Op = BatchOperation::Kind;
    const auto& [kind, family, key, value] = operation;
    switch (kind) {
      case Op::remove_range:
        if (families.comparator(family)->Compare(key, value) > 0) {
          return Status::InvalidArgument("end key comes before start key");
        }
        if (!families.of(family).deletes_ranges) {
          return Status::NotSupported("DeleteRange of a column family whose table factory has none");
        }
        return check_family(family, must_divert);
      case Op::put:
      case Op::remove:
      case Op::single_remove:
      case Op::merge:
        return check_family(family, must_divert);
      case Op::log_data:
        return {};
      default:
        return unknown_operation(operation);
    }
  });
}

Status SpillCommitter::refuse(Commit& commit, const Status& status) {
  commit.is_for_main = status.IsBusy();
  if (commit.is_for_main && commit.must_divert) {  // a writer that does not wait may retry
    if (const auto generations = context_.live.generations(); !generations->empty()) {
      writer_.seal();
      context_.request_rollback(generations->back()->id());
    }
  }
  return status;
}

Status SpillCommitter::prepare(Commit& commit, PreparedCommit* prepared) {
  prepared->commit = &commit;
  prepared->batch = commit.batch;
  Status status = check(*commit.batch, commit.must_divert);
  if (status.ok() && commit.batch->HasMerge()) status = resolve(prepared);
  if (!status.ok()) return refuse(commit, status);
  prepared->first_sequence = writer_.next_sequence();
  prepared->main_sequence = context_.main.latest_sequence();
  if (context_.main.has_unlogged()) {
    // Otherwise recovery would miss those writes in RocksDB's log and drop this record, which follows them, with them.
    const auto began = WritePacer::Clock::now();
    if (status = context_.main.make_durable(); !status.ok()) return status;
    const auto took = WritePacer::Clock::now() - began;
    if (took > kLongCommit && !commit.sync) commit.waited += took;
  }
  const std::uint64_t main_durable = context_.main.durable_up_to();
  writer_.take_sequences(prepared->batch->Count());
  prepared->record = encode({prepared->first_sequence, prepared->main_sequence, main_durable, commit.sync});
  prepared->record.append(prepared->batch->Data());
  return {};
}

Status SpillCommitter::resolve(PreparedCommit* prepared) {
  const auto value_before = [this](std::uint32_t family, const Slice& key, std::optional<std::string>* value) {
    return newest_value(family, key, value);
  };
  const Status status =
      resolve_merges(*prepared->commit->batch, context_.live.families(), value_before, &prepared->resolved);
  if (status.ok()) prepared->batch = &prepared->resolved;
  return status;
}

Status SpillCommitter::newest_value(std::uint32_t family, const Slice& key, std::optional<std::string>* value) {
  value->reset();
  const LiveSet& live = context_.live;
  Sequence entry_sequence = 0;
  const auto found = live.index().find(family, view(key));
  if (found) entry_sequence = found->entry.sequence;
  const View now{live.generations(), ~Sequence{0}};
  if (now.covering_tombstone(family, view(key), live.families()) > entry_sequence) return {};
  if (found && !found->generation->is_dropped()) {  // otherwise RocksDB has it, or what hides it
    if (found->entry.kind == Kind::remove) return {};
    return values_.read(found->entry, &value->emplace());
  }
  const Status status =
      context_.main.db().Get(rocksdb::ReadOptions(), live.families().use(family).handle, key, &value->emplace());
  steps::reached("spill.commit.base_read");
  if (status.ok()) return {};
  value->reset();
  if (status.IsNotFound()) return {};
  // RocksDB accepts a merge that it cannot resolve, and reads of the key return the error.
  return Status::Busy("RocksDB cannot read what is merged with");
}

Status SpillCommitter::append(std::span<PreparedCommit> group, bool sync) {
  Status status = sync ? context_.main.make_durable() : Status();
  if (!status.ok()) return status;
  std::vector<Slice> records;
  records.reserve(group.size());
  for (const PreparedCommit& one : group) records.emplace_back(one.record);
  std::vector<std::uint64_t> offsets(group.size());
  const auto before = context_.store.append_wait();
  context_.store.note_paced(paced_);
  status = writer_.append(records, offsets);
  for (PreparedCommit& one : group) one.commit->waited += context_.store.append_wait() - before;
  for (std::size_t i = 0; i < group.size(); ++i) group[i].offset = offsets[i];
  if (status.ok() && sync) status = writer_.sync();
  if (status.ok() || !writer_.has_failed()) return status;
  // The group may be in the store nevertheless, until a rollback has dropped its generation. After a crash it would
  // hide any write to RocksDB that was acknowledged in between.
  for (const PreparedCommit& one : group) writer_.doubt(*one.batch);
  return Status::TryAgain("in doubt");
}

void SpillCommitter::apply(std::span<const PreparedCommit> group) {
  Generation& active = *writer_.active();
  Counts& counts = context_.telemetry.counts;
  const bool may_replace = context_.live.begin_replacing();
  for (const PreparedCommit& one : group) {
    const std::uint64_t before = active.user_bytes();
    (void)add_entries_of(*one.batch, one.offset, one.first_sequence, active, context_.live.index(), may_replace);
    increment(counts.diverted_writes, one.batch->Count());
    increment(counts.diverted_bytes, active.user_bytes() - before);
    notes_.on_commit(one.commit->sync, one.main_sequence);
  }
  steps::reached("spill.commit.added");
  context_.live.show({active.id(), writer_.next_sequence() - 1});
  if (may_replace) context_.live.end_replacing();
  if (is_full_size(active)) writer_.seal();
}

// It takes of the index no larger share than of the store: what comes back frees as much of either.
bool SpillCommitter::is_full_size(const Generation& generation) const {
  const auto share = static_cast<double>(context_.options.generation_bytes) /
                     static_cast<double>(std::max<std::uint64_t>(context_.store.capacity_bytes(), 1));
  const double of_index = share * static_cast<double>(context_.options.index_bytes);
  const double most = std::max(of_index, static_cast<double>(kLeastIndexShare));
  return generation.user_bytes() >= context_.options.generation_bytes ||
         static_cast<double>(generation.memory_bytes()) >= most;
}

}  // namespace spillway::spill
