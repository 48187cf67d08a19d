#include "spill/store/kv/kv_store.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <deque>
#include <functional>
#include <iterator>
#include <map>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "base/steps.h"
#include "spill/store/kv/kv_append_window.h"
#include "spill/store/kv/kv_mark.h"
#include "spill/store/kv/kv_pairs.h"
#include "spill/store/kv/kv_staging.h"

namespace spillway::spill {

using device::KvDone;
using device::KvIo;
using device::KvNamespace;
using device::KvQueue;
using device::KvView;
using rocksdb::Slice;
using rocksdb::Status;
using ssd::KvKey;
using ssd::KvRange;
using ssd::Outcome;

namespace {

// Four values of 4 KiB with what frames them: the core takes a quarter of the time for each, and a value is read with
// at most three before it. Source: docs/decisions/0010, whose figures are for these.
constexpr std::uint32_t kPairBytes = 17 * 1024;
// Share of the namespace that is not counted on: what runs lose at their ends, and what is being rewritten. Source:
// guess, beside the drive's own reserve of a sixty-fourth.
constexpr double kSpareShare = 0.05;

// So much of a generation is reset at once. Source: guess, some 2,000 pairs, of which a drive forgets several in a
// microsecond.
constexpr std::uint64_t kResetBytes = 8 << 20;

// The oldest of so many queues whose reads nobody waits for is used again: what it had is done by then, or soon.
// Source: guess, more than there are scans at a time.
constexpr std::size_t kMostLeft = 16;

// Beyond so many memtables below its capacity each append waits until the drive has it: that much the runs may have
// lost at the ends of generations that are gone, and a drive that is full should say so before an append is
// acknowledged. Source: guess, some generations that snapshots hold between others that are gone.
constexpr std::uint64_t kCautiousMemtables = 4;

KvKey key_of(Position position) {
  const PositionBytes bytes = bytes_of(position);
  return KvKey({bytes.data(), bytes.size()});
}

// Pairs beside the records: the last generation that was dropped, and the list of those begun behind it.
constexpr Position kDropped{0, 0};
constexpr Position kBegun{0, 1};
constexpr Position kBinding{0, 2};  // the binding record

class KvStore final : public Store {
 public:
  KvStore(std::unique_ptr<KvNamespace> space, std::uint32_t pair_bytes, std::unique_ptr<KvStaging> staging)
      : space_(std::move(space)),
        pair_bytes_(pair_bytes),
        staging_(std::move(staging)),
        window_(*space_, pair_bytes_, *staging_) {}

  Status recover(const Each& each) override {
    std::vector<GenerationId> dropped;
    if (Status status = read_mark(kDropped, &dropped); !status.ok()) return status;
    const GenerationId told = staging_->durable().dropped();  // by this host alone, for the drive was full
    if (!dropped.empty() || told > 0) {
      newest_ = dropped_ = std::max(told, dropped.empty() ? 0 : dropped.front());
      // Their space may not have been free yet when the last process ended.
      if (Status status = reset({{1, 0}, {dropped_ + 1, 0}}); !status.ok()) return status;
    }
    if (Status status = read_mark(kBegun, &begun_); !status.ok()) return status;
    const Each note_and_hand_over = [&](const StoredRecord& record) {
      last_[record.generation] = record.offset;
      return each(record);
    };
    Assembler assembler(note_and_hand_over, pair_bytes_);
    bool is_gap = false;
    Status status = walk(
        {{dropped_ + 1, 0}, {}}, assembler, [this](Position one) { note_pair(one); }, &is_gap);
    if (status.ok()) status = check_durable(assembler, /*with_staged=*/true);  // before anything is changed
    if (status.ok()) status = take_staged(assembler, is_gap);
    if (status.ok()) status = check_durable(assembler, /*with_staged=*/false);
    if (status.ok()) status = staging_->clear();
    if (status.ok()) staging_->durable().replace(last_);
    recovered_end_ = assembler.end();
    return status;
  }

  Status cut(GenerationId generation, std::uint64_t offset) override {
    Position from{std::max(generation, dropped_ + 1), generation > dropped_ ? offset : 0};
    if (from.generation == recovered_end_.generation) from.offset = std::min(from.offset, recovered_end_.offset);
    newest_ = std::max<GenerationId>(generation, dropped_);
    {
      const std::lock_guard lock(ends_mutex_);  // else a later generation would not be the oldest when it is dropped
      std::erase_if(ends_, [&](const auto& one) { return !(Position{one.first, 0} < from); });
    }
    Status status = forget_from(from);
    if (status.ok()) status = reset({from, {}});
    steps::reached("spill.kv.cut.reset");
    // Afterwards: with pairs behind a shorter one there would be records after one that is not.
    if (status.ok()) status = cut_pair(from);
    return status;
  }

  Status begin(GenerationId generation) override {
    const bool failed_before = failed_ || window_.has_failed();
    Status status = failed_before && current_ != 0 ? repair() : Status();
    if (status.ok()) status = note_begun(generation);
    if (status.IsNoSpace() && !failed_before) return status;  // it goes on as it was
    failed_ = !status.ok();
    if (!status.ok()) return status;
    current_ = newest_ = generation;
    window_.begin(generation);
    announce(generation + 1);
    return {};
  }

  Status append(std::span<const Slice> records, std::span<std::uint64_t> offsets) override {
    if (failed_) return Status::IOError("the spill store takes nothing after a failure until a new generation begins");
    std::uint64_t bytes = 0;
    for (const Slice& record : records) {
      if (record.empty()) return Status::InvalidArgument("an empty record");
      if (pairs_of(framed_bytes(record.size()), pair_bytes_) >= pair_bytes_) {  // some 300 MB (kv_pairs.h)
        return Status::NoSpace("the spill store takes no record that is so long");
      }
      bytes += stored_bytes(record.size(), pair_bytes_);
    }
    const std::uint64_t used = used_bytes() + bytes;
    if (used > capacity_bytes()) return Status::NoSpace("the spill store is full");
    const bool is_cautious = used + kCautiousMemtables * space_->info().batch_bytes > capacity_bytes() ||
                             !window_.takes_all_or_none(records);
    Status status = is_cautious ? store(records, offsets) : window_.append(records, offsets, /*survives=*/true);
    if (status.IsNoSpace()) window_.resume();  // what was taken before; the next append finds out
    if (status.ok()) {
      const std::lock_guard lock(ends_mutex_);
      ends_[current_] = window_.tail();
      if (!offsets.empty()) last_[current_] = offsets.back();
    } else if (!status.IsNoSpace()) {
      failed_ = true;
    }
    steps::reached("spill.kv.append.staged");
    return status;
  }

  Status sync() override {
    if (failed_ && current_ != 0) {
      return Status::IOError("the spill store cannot sync after a failure until a new generation begins");
    }
    const KvDurable::Last taken = last();
    Status status = wait_for_taken();
    // What a full drive has not taken is made durable where it is, and goes on when there is room.
    const bool is_staged = status.IsNoSpace();
    if (is_staged) status = staging_->sync();
    if (status.ok()) {
      staging_->durable().note(taken);
    } else {
      failed_ = true;
    }
    steps::reached("spill.kv.sync.stored");
    return status;
  }

  Status close() override {
    const Status status = sync();
    return status.ok() ? staging_->sync_head() : status;
  }

  void hand_on() override { window_.hand_on(); }

  GenerationId newest_known() const override { return newest_; }

  std::vector<GenerationId> generations() const override {
    std::vector<GenerationId> result;
    std::copy_if(begun_.begin(), begun_.end(), std::back_inserter(result),
                 [this](GenerationId one) { return one > dropped_; });
    return result;
  }

  Status read(GenerationId generation, std::uint64_t offset, std::uint64_t from, std::uint64_t length,
              std::string* bytes) const override {
    ReadRequest request{generation, offset, from, length, {}, {}};
    read_many({&request, 1});
    bytes->swap(request.bytes);
    return request.status;
  }

  void read_many(std::span<ReadRequest> requests) const override { begin_reads(requests)->wait(); }

  std::unique_ptr<ReadsInFlight> begin_reads(std::span<ReadRequest> requests) const override {
    return std::make_unique<Flight>(*this, requests);
  }

  Status scan(GenerationId generation, const Each& each) const override {
    std::vector<KvAppendWindow::Held> held;  // by a full drive's window: behind what the drive has
    if (window_.has(generation)) {
      Status status = wait_for_taken();
      if (status.IsNoSpace()) {
        held = window_.held(generation);
        status = {};
      }
      if (!status.ok()) return status;
    }
    Assembler assembler(each, pair_bytes_);
    Status status = walk({{generation, 0}, {generation + 1, 0}}, assembler, [](Position) {});
    for (const KvAppendWindow::Held& one : held) {
      if (!status.ok()) break;
      if (assembler.wants(one.position)) assembler.take(one.position, one.bytes, &status);
    }
    return status;
  }

  Status damaged(GenerationId generation, std::uint64_t offset) const override {
    return damaged_at({generation, offset});
  }

  Status drop(GenerationId generation) override {
    Status status;
    if (is_oldest(generation)) {
      status = write_mark(kDropped, std::span(&generation, 1));
      if (status.IsNoSpace()) {
        staging_->durable().drop(generation);
        status = staging_->sync_head();
      }
      if (!status.ok()) return status;
      dropped_ = generation;
      std::erase_if(begun_, [&](GenerationId one) { return one <= generation; });
      steps::reached("spill.kv.drop.stored");
    } else {  // nothing is in it
      std::erase(begun_, generation);
      finish_announcement();
      announced_ = 0;
      status = write_mark(kBegun, generations());
      if (status.IsNoSpace()) status = {};  // the next that begins is written without it
    }
    {
      const std::lock_guard lock(ends_mutex_);
      last_.erase(generation);
    }
    staging_->durable().forget(generation);
    if (generation == current_) {  // what it has on its way is not wanted any more
      const std::lock_guard nobody_tries(trying_mutex_);
      const Status taken = window_.wait();
      if (!taken.ok() && !taken.IsNoSpace()) window_.give_up();  // a full drive's stays readable until release()
      current_ = 0;                                              // first: nothing has failed
      failed_ = true;
    }
    return status;
  }

  void release(GenerationId generation) override {
    std::uint64_t end = 0;
    {
      const std::lock_guard lock(ends_mutex_);
      if (const auto known = ends_.find(generation); known != ends_.end()) {
        end = known->second;
        ends_.erase(known);
      }
    }
    // In parts, so that nobody waits for long behind one; dropped already, it need not go in one piece. What cannot be
    // reset now goes with the next recovery.
    for (std::uint64_t at = 0; at + kResetBytes < end; at += kResetBytes) {
      reset({{generation, at}, {generation, at + kResetBytes}}).PermitUncheckedError();
    }
    // Not while an append takes back what the drive refused: that would be handed over once more.
    const std::lock_guard nobody_tries(trying_mutex_);
    window_.discard(generation);
    reset({{generation, 0}, {generation + 1, 0}}).PermitUncheckedError();
    window_.resume();
    renew_binding();
    steps::reached("spill.kv.release.reset");
  }

  Status read_binding(std::string* bytes) const override {
    const std::lock_guard lock(binding_mutex_);
    if (Status status = retrieve(kBinding, bytes); !status.ok()) return status;
    note_binding(*bytes);
    return {};
  }
  std::string binding_place() const override { return "byte 2 of generation 0 of the key-value namespace"; }
  Status write_binding(const std::string& bytes) override {
    if (bytes.size() > space_->info().vml_bytes)
      return Status::NoSpace("the drive's values are too short for a record");
    const std::lock_guard lock(binding_mutex_);
    if (Status status = store_pair(kBinding, bytes); !status.ok()) return status;
    note_binding(bytes);
    return {};
  }

  std::uint64_t used_bytes() const override {
    const std::uint64_t on_its_way = window_.bytes();  // looked at first: nothing is missing while it arrives
    const std::uint64_t there = space_->stored_bytes();
    return on_its_way + there - std::min<std::uint64_t>(there, mark_bytes_ + binding_bytes_);
  }
  std::uint64_t held_bytes() const override {
    const std::lock_guard lock(ends_mutex_);
    std::uint64_t bytes = 0;
    for (const auto& [generation, end] : ends_) bytes += generation <= dropped_ ? end : 0;
    return bytes;
  }
  std::uint64_t capacity_bytes() const override {
    return static_cast<std::uint64_t>(static_cast<double>(space_->info().capacity_bytes) * (1 - kSpareShare));
  }

 private:
  struct Range {
    Position begin;
    Position end;  // generation 0: to the last
  };
  // All that was taken is on the drive, and nothing else.
  Status repair() {
    {
      const std::lock_guard nobody_tries(trying_mutex_);
      Status status = window_.wait();
      if (!status.ok()) status = window_.store_again();
      if (!status.ok()) return status;
    }
    // What an append that failed has left would end every later recovery.
    const Status status = reset({{current_, window_.tail()}, {}});
    return status.ok() ? staging_->clear() : status;
  }

  static KvRange range_of(Range range) {
    return {key_of(range.begin), range.end.generation == 0 ? KvKey() : key_of(range.end), false};
  }

  // Of those in which something is.
  bool is_oldest(GenerationId generation) {
    const std::lock_guard lock(ends_mutex_);
    const auto next = ends_.upper_bound(dropped_);
    return next == ends_.end() || next->first >= generation;
  }

  // --- Marks: numbers, under a key of generation 0.
  Status read_mark(Position where, std::vector<GenerationId>* ids) {
    std::string bytes;
    ids->clear();
    if (Status status = retrieve(where, &bytes); !status.ok()) return status;
    if (bytes.empty()) return {};
    note_mark(where, bytes.size());
    return decode_mark(bytes, ids);
  }

  // A whole pair; nothing where there is none.
  Status retrieve(Position where, std::string* bytes) const {
    const PositionBytes key = bytes_of(where);
    KvIo io;
    io.op = ssd::Opcode::kv_retrieve;
    io.key = {key.data(), key.size()};
    io.buffer_bytes = space_->info().vml_bytes;
    KvDone done;
    bytes->clear();
    if (Status status = perform(io, &done); !status.ok()) return status;
    if (done.fault == Fault::none && done.outcome == Outcome::kv_key_does_not_exist) return {};
    if (Status status = status_of(done, "retrieve"); !status.ok()) return status;
    *bytes = std::move(done.bytes);
    return {};
  }

  // REQUIRES: binding_mutex_ is held
  void note_binding(const std::string& bytes) const {
    binding_ = bytes;
    binding_bytes_ = bytes.empty() ? 0 : kPairOverheadBytes + bytes.size();
  }

  // A pair that stays in the oldest run keeps a drive that compacts nothing from freeing the runs after it, whose
  // tombstones hide what that one has. So none stays: marks move on with each generation that is begun, and the
  // binding record with each that is released.
  void renew_binding() {
    const std::lock_guard lock(binding_mutex_);
    if (!binding_.empty()) store_pair(kBinding, binding_).PermitUncheckedError();  // the old one is there all the same
  }

  // Durable when it returns. REQUIRES: all numbers of that mark that are there were read or written before
  Status write_mark(Position where, std::span<const GenerationId> ids) {
    const std::string value = encode_mark(ids);
    if (value.size() > space_->info().vml_bytes) return Status::NoSpace("the spill store has too many generations");
    if (Status status = store_pair(where, value); !status.ok()) return status;
    note_mark(where, value.size());
    return {};
  }

  Status note_begun(GenerationId generation) {
    if (generation <= newest_ || generation == ~GenerationId{0}) {
      return Status::InvalidArgument("generation " + std::to_string(generation) + " is not newer than " +
                                     std::to_string(newest_));
    }
    finish_announcement();
    std::erase(begun_, generation);  // that an earlier process has announced
    begun_.push_back(generation);
    Status status;
    if (announced_ != generation) status = write_mark(kBegun, generations());
    if (!status.ok()) begun_.pop_back();
    steps::reached("spill.kv.begin.begun");
    return status;
  }

  // The drive learns now of a generation that has not begun: who begins it does not wait for that, which takes 80 ms
  // where the drive's memtable waits for its flash.
  void announce(GenerationId next) {
    std::vector<GenerationId> ids = generations();
    ids.push_back(next);
    announcement_.value = encode_mark(ids);
    if (announcement_.value.size() > space_->info().vml_bytes) return;
    if (!announcement_.queue) announcement_.queue = space_->open_queue();
    KvIo io;
    io.op = ssd::Opcode::kv_store;
    io.cause = device::Cause::wal;
    io.key = {announcement_.key.data(), announcement_.key.size()};
    io.value = announcement_.value;
    if (!announcement_.queue->submit({&io, 1})) return;
    announced_ = next;
    note_mark(kBegun, announcement_.value.size());
  }

  void finish_announcement() {
    if (!announcement_.queue || announcement_.queue->pending() == 0) return;
    if (!status_of(reap_all(*announcement_.queue, 1).front(), "store").ok()) announced_ = 0;
  }

  // They are no records, and not counted as used.
  void note_mark(Position where, std::uint64_t value_bytes) {
    std::uint64_t& bytes = one_mark_bytes_[where.offset];
    bytes = value_bytes > 0 ? kPairOverheadBytes + value_bytes : 0;
    mark_bytes_ = one_mark_bytes_[0] + one_mark_bytes_[1];
  }

  // Of what append has taken. What it only tries to store is its own affair. NoSpace: of some of it, which stays in
  // staging, the drive said that it was full.
  Status wait_for_taken() const {
    const std::lock_guard nobody_tries(trying_mutex_);
    window_.resume();
    return window_.wait();
  }

  // Waits for the drive, and for what was handed over before.
  Status store(std::span<const Slice> records, std::span<std::uint64_t> offsets) {
    const std::lock_guard trying(trying_mutex_);
    if (Status before = window_.wait(); !before.ok()) return before;
    const std::uint64_t begin = window_.tail();
    Status status = window_.append(records, offsets, /*survives=*/false);
    const Status waited = window_.wait();
    if (status.ok()) status = waited;
    if (status.ok()) return status;
    steps::reached("spill.kv.append.refused");
    // Nothing of it stays; where that fails, too, it is for the next generation to forget.
    window_.give_up();
    if (Status undone = reset({{current_, begin}, {}}); !undone.ok()) {
      return undone.IsNoSpace() ? Status::IOError("the spill store cannot undo a write", undone.ToString()) : undone;
    }
    return status;
  }

  // --- The drive. A queue is one thread's at a time; they are kept for the next.

  // Of a pair that has something of a record.
  struct PairRead {
    PositionBytes key;
    std::size_t request = 0;
    std::uint64_t into = 0;        // where in the answer
    std::uint32_t begin = 0;       // of what is wanted, in the pair
    std::uint32_t end = 0;         // behind it
    std::uint32_t header = kNone;  // where in the pair the record begins
    static constexpr std::uint32_t kNone = ~std::uint32_t{0};
  };
  // A queue with the keys of what is pending in it, which nobody may wait for any more.
  struct Lane {
    std::vector<PairRead> pairs;
    std::unique_ptr<KvQueue> queue;  // goes before its keys
  };

  class Lease {
   public:
    explicit Lease(const KvStore& store) : store_(store), lane_(store.take_lane()) {}
    ~Lease() {
      const std::lock_guard lock(store_.lanes_mutex_);
      (lane_.queue->pending() == 0 ? store_.idle_ : store_.left_).push_back(std::move(lane_));
    }
    Lease(const Lease&) = delete;
    Lease& operator=(const Lease&) = delete;
    KvQueue& operator*() const { return *lane_.queue; }
    std::vector<PairRead>& pairs() { return lane_.pairs; }

   private:
    const KvStore& store_;
    Lane lane_;
  };

  Lane take_lane() const {
    Lane lane;
    {
      const std::lock_guard lock(lanes_mutex_);
      std::deque<Lane>& from = left_.size() < kMostLeft ? idle_ : left_;
      if (!from.empty()) {
        lane = std::move(from.front());
        from.pop_front();
      }
    }
    if (!lane.queue) lane.queue = space_->open_queue();
    std::vector<KvDone> done(lane.queue->pending());
    if (!done.empty()) lane.queue->reap(done, done.size());
    lane.pairs.clear();
    return lane;
  }

  class Flight final : public ReadsInFlight {
   public:
    Flight(const KvStore& store, std::span<ReadRequest> requests) : lease_(store), requests_(requests) {
      std::vector<PairRead>& pairs = lease_.pairs();
      for (std::size_t i = 0; i < requests.size(); ++i) store.plan(requests[i], i, pairs);
      std::vector<KvIo> ios(pairs.size());
      for (std::size_t i = 0; i < ios.size(); ++i) {
        ios[i].tag = i;
        ios[i].op = ssd::Opcode::kv_retrieve;
        ios[i].buffer_bytes = pairs[i].end;
        ios[i].key = {pairs[i].key.data(), pairs[i].key.size()};
      }
      if (const auto status = (*lease_).submit(ios); !status) {
        for (const PairRead& one : pairs) requests[one.request].status = Status::IOError(status.message());
        pairs.clear();
      }
    }

    void wait() override {
      const std::vector<PairRead>& pairs = lease_.pairs();
      const std::vector<KvDone> done = reap_all(*lease_, pairs.size());
      for (std::size_t i = 0; i < pairs.size(); ++i) {
        ReadRequest& request = requests_[pairs[i].request];
        if (!request.status.ok()) continue;
        request.status = status_of(done[i], "retrieve");
        if (request.status.ok()) take(request, pairs[i], done[i].bytes);
      }
    }

   private:
    Lease lease_;
    const std::span<ReadRequest> requests_;
  };

  // Answers what is in memory, and adds what is to be read for the rest.
  void plan(ReadRequest& request, std::size_t index, std::vector<PairRead>& pairs) const {
    request.bytes.assign(request.length, '\0');
    request.status = {};
    const std::uint64_t first = request.offset / pair_bytes_ * pair_bytes_;
    const std::uint64_t header = request.offset - first;
    const std::uint64_t begin = header + sizeof(RecordFrame) + request.from;
    const std::uint64_t end = begin + request.length;
    std::string staged;
    for (std::uint64_t at = begin / pair_bytes_ * pair_bytes_; at < end; at += pair_bytes_) {
      PairRead one;
      one.request = index;
      one.into = std::max(begin, at) - begin;
      one.begin = static_cast<std::uint32_t>(std::max(begin, at) - at);
      one.end = static_cast<std::uint32_t>(std::min<std::uint64_t>(end - at, pair_bytes_));
      if (at == 0) one.header = static_cast<std::uint32_t>(header);
      const Position position{request.generation, offset_of_pair(first, at / pair_bytes_, pair_bytes_)};
      if (window_.read(position, one.end, &staged)) {
        take(request, one, staged);
      } else {
        one.key = bytes_of(position);
        pairs.push_back(one);
      }
    }
  }

  // What a pair has of a record: its bytes up to where they are wanted.
  static void take(ReadRequest& request, const PairRead& one, std::string_view bytes) {
    if (!request.status.ok()) return;
    std::uint64_t length = request.from + request.length;
    if (one.header != PairRead::kNone && bytes.size() >= one.header + sizeof(RecordFrame)) {
      RecordFrame frame;
      std::memcpy(&frame, bytes.data() + one.header, sizeof frame);
      length = frame.length;
    }
    if (bytes.size() < one.end || length < request.from + request.length) {
      request.status = damaged_at({request.generation, request.offset});
      return;
    }
    if (one.end == one.begin) return;
    std::memcpy(request.bytes.data() + one.into, bytes.data() + one.begin, one.end - one.begin);
  }

  // What is pending in the queue, each at its tag, which is below `count`.
  static std::vector<KvDone> reap_all(KvQueue& queue, std::size_t count) {
    std::vector<KvDone> done(count);
    std::vector<KvDone> reaped(count);
    while (queue.pending() > 0) {
      const std::size_t got = queue.reap(reaped, queue.pending());
      for (std::size_t i = 0; i < got; ++i) done[reaped[i].tag] = std::move(reaped[i]);
    }
    return done;
  }

  Status perform(const KvIo& io, KvDone* done) const {
    const Lease queue(*this);
    KvIo numbered = io;
    numbered.tag = 0;
    if (const auto status = (*queue).submit({&numbered, 1}); !status) return Status::IOError(status.message());
    *done = std::move(reap_all(*queue, 1).front());
    return {};
  }

  Status reset(Range range) {
    KvIo io;
    io.op = ssd::Opcode::kv_reset;
    io.range = range_of(range);
    KvDone done;
    if (Status status = perform(io, &done); !status.ok()) return status;
    return status_of(done, "reset");
  }

  KvDurable::Last last() {
    const std::lock_guard lock(ends_mutex_);
    return last_;
  }

  // What the drive had answered for is there, whatever has ended the process.
  // `with_staged`: what is whole in staging is taken for found.
  Status check_durable(const Assembler& assembler, bool with_staged) {
    KvDurable::Last staged;
    if (with_staged) {
      for (const KvStaging::Left& one : staging_->left()) {
        std::uint64_t& end = staged[one.position.generation];
        end = std::max(end, one.position.offset + one.bytes.size());
      }
    }
    for (const auto& [generation, offset] : staging_->durable().read()) {
      if (const auto found = staged.find(generation); found != staged.end() && found->second > offset) continue;
      if (generation <= dropped_) continue;
      const auto found = last_.find(generation);
      if (found != last_.end() && found->second >= offset) continue;
      const Position end = assembler.end();
      return damaged_at({generation, end.generation == generation ? end.offset : 0});
    }
    return {};
  }

  // Of what is cut nothing is said to be durable any more, durably.
  Status forget_from(Position from) {
    const auto behind = [&](const auto& one) { return !(Position{one.first, one.second} < from); };
    if (std::ranges::none_of(last_, behind)) return {};
    std::erase_if(last_, behind);
    staging_->durable().replace(last_);
    return staging_->sync_head();
  }

  void note_pair(Position position) {
    newest_ = std::max(newest_, position.generation);
    ends_[position.generation] = position.offset + 1;
  }

  // What a killed process had in memory and the drive does not have: it follows what the drive has.
  Status take_staged(Assembler& assembler, bool is_gap) {
    for (const KvStaging::Left& one : staging_->left()) {
      if (one.position.generation <= dropped_ || !assembler.wants(one.position)) continue;
      const bool follows = one.follows.generation <= dropped_ || one.follows == assembler.end();
      if (!assembler.is_inside() && !follows) break;  // some before it are lost
      if (std::exchange(is_gap, false)) {             // what lies behind it may have been cut into pairs otherwise
        if (Status status = reset({one.position, {}}); !status.ok()) return status;
      }
      if (Status status = store_pair(one.position, one.bytes); !status.ok()) return status;
      steps::reached("spill.kv.recover.stored");
      note_pair(one.position);
      Status status;
      if (!assembler.take(one.position, one.bytes, &status)) return status;
    }
    return {};
  }

  // Durable when it returns.
  Status store_pair(Position position, std::string_view bytes) {
    const PositionBytes key = bytes_of(position);
    KvIo io;
    io.op = ssd::Opcode::kv_store;
    io.cause = device::Cause::wal;
    io.key = {key.data(), key.size()};
    io.value = bytes;
    KvDone done;
    if (Status status = perform(io, &done); !status.ok()) return status;
    return status_of(done, "store");
  }

  // Leaves of the pair around `from` what is before it. REQUIRES: a record begins there, or none does behind it
  Status cut_pair(Position from) {
    const std::uint64_t keeps = from.offset % pair_bytes_;
    if (keeps == 0) return {};
    const Position position{from.generation, from.offset - keeps};
    const PositionBytes key = bytes_of(position);
    KvIo io;
    io.op = ssd::Opcode::kv_retrieve;
    io.buffer_bytes = pair_bytes_;
    io.key = {key.data(), key.size()};
    KvDone done;
    if (Status status = perform(io, &done); !status.ok()) return status;
    if (done.fault == Fault::none && done.outcome == Outcome::kv_key_does_not_exist) return {};
    if (Status status = status_of(done, "retrieve"); !status.ok()) return status;
    if (done.bytes.size() <= keeps) return {};
    return store_pair(position, std::string_view(done.bytes).substr(0, keeps));
  }

  // Hands over the records of a range; `seen` is told where each pair lies, `is_gap` whether some lie behind the last
  // that follows the one before it.
  Status walk(Range range, Assembler& assembler, const std::function<void(Position)>& seen,
              bool* is_gap = nullptr) const {
    KvIo io;
    io.op = ssd::Opcode::kv_bulk_scan;
    io.cause = device::Cause::wal;
    io.range = range_of(range);
    for (;;) {
      KvDone done;
      if (Status status = perform(io, &done); !status.ok()) return status;
      if (Status status = status_of(done, "bulk scan"); !status.ok()) return status;
      if (done.bytes.empty()) return {};
      Status status;
      bool goes_on = true;
      device::for_each_pair(done.bytes, [&](const KvView& pair) {
        io.range.begin = KvKey(pair.key);
        if (!goes_on || pair.key.size() != 16) return;
        const Position position = position_of(pair.key);
        seen(position);
        goes_on = assembler.take(position, pair.value, &status);
      });
      if (!goes_on && is_gap != nullptr) *is_gap = true;
      if (!goes_on) return status;
      io.range.after_begin = true;
    }
  }

  const std::unique_ptr<KvNamespace> space_;
  const std::uint32_t pair_bytes_;
  const std::unique_ptr<KvStaging> staging_;
  mutable KvAppendWindow window_;
  mutable std::mutex lanes_mutex_;
  mutable std::deque<Lane> idle_;  // these go before the namespace
  mutable std::deque<Lane> left_;  // with something pending, the oldest first
  mutable std::mutex ends_mutex_;
  std::map<GenerationId, std::uint64_t> ends_;  // where the last record of each ends, or its last pair begins
  KvDurable::Last last_;                        // where the last record of each begins
  std::vector<GenerationId> begun_;             // of the appending thread, as what follows
  std::array<std::uint64_t, 2> one_mark_bytes_{};
  std::atomic<std::uint64_t> mark_bytes_ = 0;
  mutable std::atomic<std::uint64_t> binding_bytes_ = 0;  // as it was read or written last
  mutable std::mutex binding_mutex_;
  mutable std::string binding_;
  std::atomic<GenerationId> dropped_ = 0;
  Position recovered_end_;
  GenerationId newest_ = 0;
  std::atomic<GenerationId> current_ = 0;
  mutable std::mutex trying_mutex_;  // held while something is in the window that append has not taken
  struct {
    const PositionBytes key = bytes_of(kBegun);
    std::string value;
    std::unique_ptr<KvQueue> queue;  // goes before what it was handed
  } announcement_;
  GenerationId announced_ = 0;       // on the drive among those begun, or on its way there
  std::atomic<bool> failed_ = true;  // appends are refused: nothing has begun, or something failed
};

}  // namespace

Status open_kv_store(const KvStoreOptions& options, std::unique_ptr<Store>* store) {
  auto space = KvNamespace::open(*options.drive, options.kv_namespace, options.path, options.door);
  if (!space) {
    const std::string& message = space.status().message();
    return space.status().fault() == Fault::io_error ? Status::IOError(message) : Status::InvalidArgument(message);
  }
  if (options.staged_pairs == 0) return Status::InvalidArgument("KvStoreOptions::staged_pairs must not be 0");
  const std::uint32_t pair_bytes = std::min(kPairBytes, (*space)->info().vml_bytes);
  const std::string staged = options.path.empty() ? "" : options.path + ".staged";
  std::unique_ptr<KvStaging> staging;
  if (Status status = KvStaging::open(staged, pair_bytes, options.staged_pairs, &staging); !status.ok()) return status;
  *store = std::make_unique<KvStore>(std::move(*space), pair_bytes, std::move(staging));
  return {};
}

}  // namespace spillway::spill
