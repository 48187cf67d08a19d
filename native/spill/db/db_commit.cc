// The spill store's writer. What changes it runs in the commit queue, by one thread at a time; syncs need not.
#include <rocksdb/merge_operator.h>

#include <algorithm>
#include <cassert>
#include <chrono>
#include <cstring>
#include <set>
#include <string_view>
#include <thread>
#include <unordered_map>

#include "base/steps.h"
#include "spill/store/checksum.h"
#include "spill/db/db_impl.h"

namespace spillway::spill {
namespace {

using rocksdb::Slice;
using rocksdb::WriteBatch;

// Writes that could go elsewhere leave this much of the store and of the index to those that cannot.
constexpr double kReserve = 0.1;
// And all of them leave room for a note, with the generation that it may begin.
constexpr std::uint64_t kNoteRoom = 4096;

std::string_view view(const Slice& slice) { return {slice.data(), slice.size()}; }

bool has_merge(const WriteBatch& batch) { return batch.HasMerge(); }

// Adds the operations of a batch to a generation.
class EntryAdder final : public WriteBatch::Handler {
 public:
  EntryAdder(Generation& generation, KeyIndex* index, const char* record, std::uint64_t offset, Sequence first)
      : generation_(generation), index_(index), record_(record), offset_(offset), next_(first) {}
  ~EntryAdder() override { count(); }
  EntryAdder(const EntryAdder&) = delete;
  EntryAdder& operator=(const EntryAdder&) = delete;

  rocksdb::Status PutCF(std::uint32_t family, const Slice& key, const Slice& value) override {
    const Location location{offset_, static_cast<std::uint32_t>(value.data() - record_),
                            static_cast<std::uint32_t>(value.size())};
    return add(family, key, Kind::put, location, crc32c(value));
  }
  rocksdb::Status DeleteCF(std::uint32_t family, const Slice& key) override {
    return add(family, key, Kind::remove, {}, 0);
  }
  rocksdb::Status SingleDeleteCF(std::uint32_t family, const Slice& key) override {
    return add(family, key, Kind::remove, {}, 0);  // hides whatever number of older versions there is
  }
  rocksdb::Status DeleteRangeCF(std::uint32_t family, const Slice& begin, const Slice& end) override {
    generation_.add(RangeTombstone{family, begin.ToString(), end.ToString(), next_++});
    return {};
  }
  void LogData(const Slice&) override {}
  rocksdb::Status MarkNoop(bool) override { return {}; }

  Sequence next() const { return next_; }

 private:
  rocksdb::Status add(std::uint32_t family, const Slice& key, Kind kind, const Location& location,
                      std::uint32_t checksum) {
    if (family != family_) {
      count();
      family_ = family;
    }
    ++(kind == Kind::put ? tally_.puts : tally_.removes);
    if (kind == Kind::put) tally_.put_bytes += key.size() + location.length;
    const Entry* const entry = generation_.add(family, view(key), next_++, kind, location, checksum);
    if (index_ != nullptr) index_->insert(entry);
    return {};
  }

  void count() {
    if (tally_.puts + tally_.removes > 0) generation_.count(family_, tally_);
    tally_ = {};
  }

  std::uint32_t family_ = 0;
  Tally tally_;  // of that family, not yet counted in the generation
  Generation& generation_;
  KeyIndex* const index_;
  const char* const record_;
  const std::uint64_t offset_;
  Sequence next_;
};

}  // namespace

Sequence add_entries_of(const WriteBatch& batch, std::uint64_t offset, Sequence first, Generation& generation,
                        KeyIndex* index) {
  // In the record the batch stands behind the header.
  EntryAdder adder(generation, index, batch.Data().data() - kRecordHeaderBytes, offset, first);
  const rocksdb::Status status = batch.Iterate(&adder);
  assert(status.ok() && "it was iterated over before");
  (void)status;
  return adder.next();
}

void DbImpl::lead(std::span<Commit*> group) {
  const std::chrono::microseconds pause(diverted_pause_us_.load(std::memory_order_relaxed));
  if (pause.count() > 0) std::this_thread::sleep_for(pause);
  bool any_merge = false;
  for (const Commit* one : group) any_merge = any_merge || has_merge(*one->batch);
  if (!any_merge) return lead_together(group);
  // A merge's base may be in the commit before it.
  for (Commit*& one : group) lead_together({&one, 1});
}

namespace {

// Announces the keys of a batch; remembers whether it deletes ranges, which have none.
class KeyAnnouncer final : public WriteBatch::Handler {
 public:
  explicit KeyAnnouncer(KeyFence::DivertedKeys& keys) : keys_(keys) {}
  rocksdb::Status PutCF(std::uint32_t family, const Slice& key, const Slice&) override { return saw(family, key); }
  rocksdb::Status DeleteCF(std::uint32_t family, const Slice& key) override { return saw(family, key); }
  rocksdb::Status SingleDeleteCF(std::uint32_t family, const Slice& key) override { return saw(family, key); }
  rocksdb::Status MergeCF(std::uint32_t family, const Slice& key, const Slice&) override { return saw(family, key); }
  rocksdb::Status DeleteRangeCF(std::uint32_t, const Slice&, const Slice&) override {
    deletes_ranges_ = true;
    return {};
  }
  void LogData(const Slice&) override {}
  rocksdb::Status MarkNoop(bool) override { return {}; }
  bool deletes_ranges() const { return deletes_ranges_; }

 private:
  rocksdb::Status saw(std::uint32_t family, const Slice& key) {
    keys_.announce(KeyFence::stripe_of(family, view(key)));
    return {};
  }
  KeyFence::DivertedKeys& keys_;
  bool deletes_ranges_ = false;
};

}  // namespace

// From here until its entries are visible, nobody writes a key of the group to RocksDB.
void DbImpl::lead_together(std::span<Commit*> group) {
  KeyFence::DivertedKeys keys(fence_);
  KeyAnnouncer announcer(keys);
  for (const Commit* one : group) (void)one->batch->Iterate(&announcer);
  const bool closes = announcer.deletes_ranges();
  // While nothing is live, writes to RocksDB announce nothing unless they saw this group: who did not has to leave.
  if (closes || !has_live_.load(std::memory_order_seq_cst)) {
    gate_.close();
    if (!closes) gate_.open();
  }
  keys.wait_for_main();
  steps::reached("spill.commit.announced");
  lead_announced(group);
  if (closes) gate_.open();
}

void DbImpl::lead_announced(std::span<Commit*> group) {
  std::vector<Prepared> prepared;
  prepared.reserve(group.size());
  std::uint64_t bytes = 0;
  bool sync = false;
  for (Commit* one : group) {
    if (root_handed_out_.load(std::memory_order_relaxed)) {  // after this write decided to be diverted
      one->status = rocksdb::Status::Busy("RocksDB itself was handed out");
      continue;
    }
    if (has_failed_.load(std::memory_order_relaxed)) {
      one->status = rocksdb::Status::Busy("the spill store failed");
      continue;
    }
    const std::uint64_t size = one->batch->GetDataSize() + kRecordHeaderBytes;
    if (!has_room(bytes + size + kNoteRoom, one->must_divert)) {
      one->status = full();
      continue;
    }
    prepared.emplace_back();
    one->status = prepare(*one, prepared.back());
    const std::uint64_t framed = prepared.back().record.size();  // a merge may have become longer
    if (one->status.ok() && framed > size && !has_room(bytes + framed + kNoteRoom, one->must_divert)) {
      one->status = full();
    }
    if (!one->status.ok()) {
      prepared.pop_back();
      continue;
    }
    bytes += framed;
    sync = sync || one->sync;
  }
  if (prepared.empty()) return;
  rocksdb::Status status = sync ? make_main_durable() : rocksdb::Status();
  if (status.ok()) status = append(prepared, sync);
  if (!status.ok()) {
    // Then it may be in the store all the same, until a rollback has dropped its generation: a write to RocksDB that is
    // acknowledged meanwhile would be hidden by it after a crash.
    const bool is_in_doubt = has_failed_.load(std::memory_order_relaxed);
    if (is_in_doubt) status = rocksdb::Status::TryAgain("in doubt");
    for (Prepared& one : prepared) {
      if (is_in_doubt) doubts_.add(*one.batch);
      one.commit->status = status;
    }
    return;
  }
  for (const Prepared& one : prepared) {
    add_entries(one);
    unproven_main_ = one.commit->sync ? 0 : std::max(unproven_main_, one.main_sequence);
  }
  steps::reached("spill.commit.added");
  {
    const std::lock_guard lock(newest_mutex_);
    newest_ = {active_->id(), next_sequence_ - 1};
  }
  visible_.store(next_sequence_ - 1, std::memory_order_release);
  if (active_->user_bytes() >= options_.generation_bytes) seal();
}

// Checks what RocksDB would have checked, works out merges, and frames the batch.
rocksdb::Status DbImpl::prepare(Commit& commit, Prepared& prepared) {
  class Checker final : public WriteBatch::Handler {
   public:
    Checker(const ColumnFamilies& families, bool must_divert) : families_(families), must_divert_(must_divert) {}
    rocksdb::Status PutCF(std::uint32_t family, const Slice&, const Slice&) override { return known(family); }
    rocksdb::Status DeleteCF(std::uint32_t family, const Slice&) override { return known(family); }
    rocksdb::Status SingleDeleteCF(std::uint32_t family, const Slice&) override { return known(family); }
    rocksdb::Status MergeCF(std::uint32_t family, const Slice&, const Slice&) override { return known(family); }
    rocksdb::Status DeleteRangeCF(std::uint32_t family, const Slice& begin, const Slice& end) override {
      if (families_.comparator(family)->Compare(begin, end) > 0) {
        return rocksdb::Status::InvalidArgument("end key comes before start key");
      }
      if (!families_.of(family).deletes_ranges) {
        return rocksdb::Status::NotSupported("DeleteRange of a column family whose table factory has none");
      }
      return known(family);
    }
    void LogData(const Slice&) override {}
    rocksdb::Status MarkNoop(bool) override { return {}; }

   private:
    rocksdb::Status known(std::uint32_t family) const {
      const ColumnFamily known = families_.of(family);
      if (!known.can_be_diverted) return rocksdb::Status::Busy("a column family that nothing is ingested into");
      if (known.handle != nullptr) return {};
      // RocksDB takes it, but it could not be brought back.
      if (!known.is_dropped && !must_divert_) return rocksdb::Status::Busy("a column family without a handle");
      return rocksdb::Status::InvalidArgument("Invalid column family specified in write batch");
    }
    const ColumnFamilies& families_;
    const bool must_divert_;
  };
  const auto refused = [&](const rocksdb::Status& status) {
    commit.is_for_main = status.IsBusy();
    if (commit.is_for_main && commit.must_divert) ask_for_rollback();  // a writer that does not wait may come again
    return status;
  };
  Checker checker(families_, commit.must_divert);
  if (rocksdb::Status status = commit.batch->Iterate(&checker); !status.ok()) return refused(status);
  prepared.commit = &commit;
  prepared.batch = commit.batch;
  if (has_merge(*commit.batch)) {
    if (rocksdb::Status status = resolve_merges(*commit.batch, &prepared.resolved); !status.ok()) {
      return refused(status);
    }
    prepared.batch = &prepared.resolved;
  }
  prepared.first_sequence = next_sequence_;
  prepared.main_sequence = base().GetLatestSequenceNumber();
  if (has_unlogged_.load(std::memory_order_acquire)) {
    // Recovery would miss those in RocksDB's log, and take this one, which came after them, for lost with them.
    if (rocksdb::Status status = make_main_durable(); !status.ok()) return status;
  }
  const std::uint64_t main_durable = main_durable_.load(std::memory_order_acquire);
  const RecordHeader header{next_sequence_, prepared.main_sequence, main_durable, commit.sync};
  next_sequence_ += static_cast<Sequence>(prepared.batch->Count());
  prepared.record = encode(header);
  prepared.record.append(prepared.batch->Data());
  return {};
}

rocksdb::Status DbImpl::newest_value(std::uint32_t family, const Slice& key, std::optional<std::string>* value) {
  value->reset();
  Sequence entry_sequence = 0;
  const auto found = index_.find(family, view(key));
  if (found) entry_sequence = found->entry.sequence;
  const View now{live(), ~Sequence{0}};
  if (now.covering_tombstone(family, view(key), families_) > entry_sequence) return {};
  if (found && !found->generation->is_dropped()) {  // else RocksDB has it, and what hides it
    if (found->entry.kind == Kind::remove) return {};
    return values_.read(found->entry, &value->emplace());
  }
  // Nobody writes the key to RocksDB meanwhile: it is announced.
  const rocksdb::Status status =
      base().Get(rocksdb::ReadOptions(), families_.use(family).handle, key, &value->emplace());
  steps::reached("spill.commit.base_read");
  if (status.ok()) return {};
  value->reset();
  if (status.IsNotFound()) return {};
  // RocksDB takes what it cannot merge, and says so to whoever reads it.
  return rocksdb::Status::Busy("RocksDB cannot read what is merged with");
}

// The same batch with a put in the place of each merge. What the batch itself did before counts.
rocksdb::Status DbImpl::resolve_merges(const WriteBatch& batch, WriteBatch* resolved) {
  class Resolver final : public WriteBatch::Handler {
   public:
    Resolver(DbImpl& db, WriteBatch& out) : db_(db), out_(out) {}
    rocksdb::Status PutCF(std::uint32_t family, const Slice& key, const Slice& value) override {
      saw(family, key, value.ToString());
      return out_.Put(use(family).handle, key, value);
    }
    rocksdb::Status DeleteCF(std::uint32_t family, const Slice& key) override {
      saw(family, key, std::nullopt);
      return out_.Delete(use(family).handle, key);
    }
    rocksdb::Status SingleDeleteCF(std::uint32_t family, const Slice& key) override { return DeleteCF(family, key); }
    rocksdb::Status DeleteRangeCF(std::uint32_t family, const Slice& begin, const Slice& end) override {
      ranges_.push_back({family, begin.ToString(), end.ToString(), 0});
      const rocksdb::Comparator* const order = db_.families_.comparator(family);
      for (auto& [one, value] : seen_) {
        const Slice key(one.data() + sizeof(family), one.size() - sizeof(family));
        if (one.compare(0, sizeof(family), name(family, Slice())) == 0 && order->Compare(key, begin) >= 0 &&
            order->Compare(key, end) < 0) {
          value = std::nullopt;
          merged_.erase(one);
        }
      }
      return out_.DeleteRange(use(family).handle, begin, end);
    }
    rocksdb::Status MergeCF(std::uint32_t family, const Slice& key, const Slice& operand) override {
      std::optional<std::string> base;
      if (rocksdb::Status status = base_of(family, key, &base); !status.ok()) return status;
      const auto merger = db_.families_.of(family).merge_operator;
      if (merger == nullptr)
        return rocksdb::Status::InvalidArgument("Merge requires `ColumnFamilyOptions::merge_operator`");
      const Slice base_slice = base ? Slice(*base) : Slice();
      const std::vector<Slice> operands{operand};
      std::string result;
      Slice existing(nullptr, 0);
      rocksdb::MergeOperator::MergeOperationOutput output(result, existing);
      if (!merger->FullMergeV2(
              rocksdb::MergeOperator::MergeOperationInput(key, base ? &base_slice : nullptr, operands, nullptr),
              &output)) {
        return rocksdb::Status::Busy("the merge operator refuses an operand");  // RocksDB takes it, see newest_value
      }
      if (existing.data() != nullptr) result = existing.ToString();
      const std::string both = name(family, key);
      seen_[both] = std::move(result);
      merged_.insert(both);
      return {};
    }
    // What became of the merges of each key, where nothing came behind them.
    rocksdb::Status put_merged() {
      rocksdb::Status status;
      for (const std::string& both : merged_) {
        std::uint32_t family = 0;
        std::memcpy(&family, both.data(), sizeof family);
        const Slice key(both.data() + sizeof family, both.size() - sizeof family);
        if (status.ok()) status = out_.Put(use(family).handle, key, *seen_[both]);
      }
      return status;
    }
    void LogData(const Slice&) override {}
    rocksdb::Status MarkNoop(bool) override { return {}; }

   private:
    static std::string name(std::uint32_t family, const Slice& key) {
      std::string both(reinterpret_cast<const char*>(&family), sizeof(family));
      return both.append(key.data(), key.size());
    }
    UsedColumnFamily use(std::uint32_t family) const { return db_.families_.use(family); }
    void saw(std::uint32_t family, const Slice& key, std::optional<std::string> value) {
      const std::string both = name(family, key);
      merged_.erase(both);
      seen_[both] = std::move(value);
    }
    rocksdb::Status base_of(std::uint32_t family, const Slice& key, std::optional<std::string>* base) {
      if (const auto seen = seen_.find(name(family, key)); seen != seen_.end()) {
        *base = seen->second;
        return {};
      }
      const rocksdb::Comparator* const order = db_.families_.comparator(family);
      for (const RangeTombstone& range : ranges_) {
        if (range.column_family == family && order->Compare(key, range.begin) >= 0 &&
            order->Compare(key, range.end) < 0) {
          return {};
        }
      }
      return db_.newest_value(family, key, base);
    }

    DbImpl& db_;
    WriteBatch& out_;
    std::unordered_map<std::string, std::optional<std::string>> seen_;
    std::set<std::string> merged_;  // of them, those that a merge was the last to write
    std::vector<RangeTombstone> ranges_;
  };
  Resolver resolver(*this, *resolved);
  const rocksdb::Status status = batch.Iterate(&resolver);
  return status.ok() ? resolver.put_merged() : status;
}

// Told once, until a rollback has made room.
rocksdb::Status DbImpl::full() {
  if (!is_full_.exchange(true, std::memory_order_acq_rel)) {
    SpillEvent event;
    event.kind = SpillEvent::Kind::spill_full;
    event.bytes = store_->used_bytes();
    tell(event);
    wake_rollback();
  }
  return rocksdb::Status::Busy("the spill store is full");
}

bool DbImpl::has_room(std::uint64_t bytes, bool may_use_reserve) const {
  return fill(bytes, held_.memory_bytes()) <= (may_use_reserve ? 1.0 : 1.0 - kReserve);
}

// A key-value namespace has its capacity for itself: sorted files lie beside RocksDB's.
std::uint64_t DbImpl::sorted_room(std::uint64_t more_bytes) const {
  if (options_.store != nullptr) return 0;
  std::uint64_t room = most_sorted_bytes(more_bytes);
  const auto generations = live();
  for (const auto& one : *generations) {
    const std::uint64_t more = one == generations->back() ? more_bytes : 0;
    room = std::max(room, most_sorted_bytes(*one, more));
  }
  return std::max(room, sorted_bytes_.load(std::memory_order_acquire));
}

double DbImpl::fill(std::uint64_t more_bytes, std::uint64_t more_memory) const {
  std::uint64_t memory = index_.memory_bytes() + more_memory;
  for (const auto& generation : *live()) memory += generation->memory_bytes();
  const std::uint64_t used = store_->used_bytes() + sorted_room(more_bytes) + more_bytes;
  return std::max(static_cast<double>(used) / static_cast<double>(store_->capacity_bytes()),
                  static_cast<double>(memory) / static_cast<double>(options_.index_bytes));
}

rocksdb::Status DbImpl::make_main_durable() {
  const std::uint64_t latest = base().GetLatestSequenceNumber();
  if (latest <= main_durable_.load(std::memory_order_acquire)) return {};
  counts_.ordering_syncs.fetch_add(1, std::memory_order_relaxed);
  if (rocksdb::Status status = sync_main_log(); !status.ok()) return status;
  steps::reached("spill.commit.main_synced");
  raise_main_durable(latest);
  return {};
}

void DbImpl::raise(std::atomic<std::uint64_t>& to, std::uint64_t value) {
  std::uint64_t before = to.load(std::memory_order_relaxed);
  while (before < value && !to.compare_exchange_weak(before, value, std::memory_order_release)) {
  }
}

rocksdb::Status DbImpl::append_note() {
  const rocksdb::Status status = add_note();
  return status.ok() ? sync_store() : status;
}

rocksdb::Status DbImpl::add_note() {
  const rocksdb::Status status = try_note();
  status.ok() ? end_owing_note() : owe_note();
  return status;
}

// RocksDB's tables tell how far it has got, as long as nothing takes their sequence numbers away; and when nothing is
// left in the spill store, nobody asks.
void DbImpl::owe_note() {
  main_order_->hold_compactions(MainOrder::Until::note_stands);
  owes_note_.store(true, std::memory_order_release);
}

void DbImpl::end_owing_note() {
  owes_note_.store(false, std::memory_order_release);
  main_order_->let_compactions_run(MainOrder::Until::note_stands);
}

rocksdb::Status DbImpl::try_note() {
  if (unproven_main_ == 0 || live()->empty()) return {};
  if (has_failed_.load(std::memory_order_relaxed)) return failure_;
  if (unproven_main_ > main_durable_.load(std::memory_order_acquire)) {
    if (rocksdb::Status status = make_main_durable(); !status.ok()) return status;
  }
  rocksdb::WriteBatch nothing;
  std::vector<Prepared> note(1);
  const std::uint64_t durable = main_durable_.load(std::memory_order_acquire);
  note.front().record = encode(RecordHeader{next_sequence_, durable, durable, true});
  note.front().record.append(nothing.Data());
  const rocksdb::Status status = append(note, /*sync=*/false);
  if (status.ok()) unproven_main_ = 0;
  return status.IsBusy() ? rocksdb::Status::NoSpace("the spill store has no room for a note") : status;
}

// Flushes meanwhile cannot come to the queue, so what they would have noted down and synced is, before the first of
// them is turned away. Where there is no room for a note, it is owed.
void DbImpl::hold_commits(const std::function<void()>& held) {
  const auto prepare = [&] {
    if (!append_note().ok()) sync_store().PermitUncheckedError();  // a store that failed takes none
  };
  commits_.run_held(prepare, held);
}

// A flush takes writes out of RocksDB's log, which then tells no more that they were there, and past the marks in it.
// Commits do not wait for the sync: in workload A that made their worst, 60 ms (plans/kvaccel-a.toml, 2 threads).
void DbImpl::before_flush() {
  if (!make_main_durable().ok()) {  // what else fails is told of by every later write
    if (has_live_.load(std::memory_order_acquire)) owe_note();
    (void)sync_beside(/*in_flush=*/true);  // the marks that are flushed away name it
    return;
  }
  if (!note_beside(/*in_flush=*/true).ok()) (void)sync_beside(/*in_flush=*/true);
}

// RocksDB is written to meanwhile, and diverted writes come after that: its log is synced once more for the note, and
// while commits wait only if that goes on.
rocksdb::Status DbImpl::note_beside(bool in_flush) {
  constexpr int kTries = 3;
  rocksdb::Status status;
  for (int tries = 1; status.ok(); ++tries) {
    bool is_noted = false;
    const bool was_run = commits_.run_alone_unless_held([&] {
      if (tries < kTries && unproven_main_ > main_durable_.load(std::memory_order_acquire)) return;
      status = add_note();
      is_noted = true;
    });
    if (!was_run) return {};  // whoever holds the queue has noted it, and nothing was diverted since (hold_commits)
    if (is_noted) return status.ok() ? sync_beside(in_flush) : status;
    status = make_main_durable();
  }
  if (has_live_.load(std::memory_order_acquire)) owe_note();
  return status;
}

rocksdb::Status DbImpl::open_active() {
  if (active_) return {};
  if (rocksdb::Status status = binding_->ensure_guard(); !status.ok()) return status;
  const GenerationId id = next_generation_++;  // never tried twice: a failed one may have left something of that name
  if (rocksdb::Status status = store_->begin(id); !status.ok()) return status;
  active_ = make_generation(id);
  auto generations = std::make_shared<Generations>(*live());
  generations->push_back(active_);
  publish(std::move(generations));
  steps::reached("spill.commit.generation_begun");
  return {};
}

rocksdb::Status DbImpl::append(std::vector<Prepared>& prepared, bool sync) {
  rocksdb::Status status = open_active();
  // Nothing lies there that could be in doubt: the write goes to RocksDB, and the next one tries again.
  if (!status.ok() && !status.IsNoSpace() && live()->empty()) return not_begun(status);
  not_begun_ = not_begun_ && !status.ok();
  std::vector<Slice> records;
  records.reserve(prepared.size());
  for (const Prepared& one : prepared) records.emplace_back(one.record);
  std::vector<std::uint64_t> offsets(prepared.size());
  if (status.ok()) {
    steps::reached("spill.commit.before_append");
    status = store_->append(records, offsets);
  }
  if (status.IsNoSpace()) return full();
  if (status.ok()) appended_.fetch_add(1, std::memory_order_release);
  steps::reached("spill.commit.appended");
  if (!status.ok()) {
    fail(status);
    return failure_;
  }
  for (std::size_t i = 0; i < prepared.size(); ++i) prepared[i].offset = offsets[i];
  return sync ? sync_store() : rocksdb::Status();
}

bool DbImpl::is_unsynced() const {
  const std::uint64_t synced = synced_.load(std::memory_order_acquire);
  return synced < appended_.load(std::memory_order_acquire);
}

rocksdb::Status DbImpl::sync_store() {
  if (has_failed_.load(std::memory_order_relaxed)) return failure_;
  if (!is_unsynced()) return {};
  const std::uint64_t appended = appended_.load(std::memory_order_relaxed);
  if (const rocksdb::Status status = store_->sync(); !status.ok()) {
    fail(status);
    return failure_;
  }
  raise(synced_, appended);
  steps::reached("spill.commit.synced");
  return {};
}

rocksdb::Status DbImpl::sync_beside(bool in_flush) {
  const std::uint64_t appended = appended_.load(std::memory_order_acquire);
  if (appended <= synced_.load(std::memory_order_acquire)) return {};
  rocksdb::Status status;
  if (!has_failed_.load(std::memory_order_acquire)) {
    status = store_->sync();
    if (status.ok()) {
      steps::reached("spill.commit.synced");
      raise(synced_, appended);
      return status;
    }
  }
  const auto settle = [&] {
    if (appended <= synced_.load(std::memory_order_relaxed)) {
      status = {};  // brought back meanwhile, which has mended a store that failed
    } else if (status.ok()) {
      status = sync_store();
    } else {
      if (!has_failed_.load(std::memory_order_relaxed)) fail(status);
      status = failure_;
    }
  };
  if (!in_flush) {
    commits_.run_alone(settle);
  } else if (!commits_.run_alone_unless_held(settle)) {
    return {};  // whoever holds the queue brings back what the store has
  }
  return status;
}

void DbImpl::add_entries(const Prepared& one) {
  const std::uint64_t before = active_->user_bytes();
  (void)add_entries_of(*one.batch, one.offset, one.first_sequence, *active_, &index_);
  counts_.diverted_writes.fetch_add(static_cast<std::uint64_t>(one.batch->Count()), std::memory_order_relaxed);
  counts_.diverted_bytes.fetch_add(active_->user_bytes() - before, std::memory_order_relaxed);
}

void DbImpl::seal() {
  if (!active_) return;
  SpillEvent event;
  event.kind = SpillEvent::Kind::generation_sealed;
  event.generation = active_->id();
  event.entries = active_->entries();
  event.bytes = active_->user_bytes();
  active_.reset();
  tell(event);
}

// Told once, until a generation has begun.
rocksdb::Status DbImpl::not_begun(const rocksdb::Status& status) {
  if (!std::exchange(not_begun_, true)) {
    SpillEvent event;
    event.kind = SpillEvent::Kind::store_failed;
    event.message = status.ToString();
    tell(event);
  }
  return rocksdb::Status::Busy("the spill store could not begin a generation", status.ToString());
}

void DbImpl::fail(const rocksdb::Status& status) {
  failure_ = rocksdb::Status::IOError("the spill store failed; bring back what it holds with Rollback(), or reopen",
                                      status.ToString());
  has_failed_.store(true, std::memory_order_release);
  active_.reset();
  SpillEvent event;
  event.kind = SpillEvent::Kind::store_failed;
  event.message = status.ToString();
  tell(event);
  wake_rollback();
}

}  // namespace spillway::spill
