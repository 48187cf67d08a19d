#include "spill/kv_store.h"

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
#include "spill/kv_append_window.h"
#include "spill/kv_pieces.h"

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

// A drive hands over a pair whole, so a value in the middle of a large record costs at most this much more than itself.
// Source: guess, one flash page of the drives of KVAccel's time.
constexpr std::uint32_t kPieceBytes = 16 * 1024;
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

// Puts records together from their pieces, which come in order.
class Assembler {
 public:
  explicit Assembler(const Store::Each& each) : each_(each) {}

  // Behind the last record that was whole, of its generation.
  Position end() const { return end_; }

  // False where the records end: a piece is missing. An error is the callback's.
  bool take(Position position, std::string_view piece, Status* status) {
    if (missing_ == 0) {
      const bool follows = position.generation != record_.generation ? position.offset == 0 : position.offset == next_;
      if (!follows || piece.size() < sizeof(RecordLength)) return false;
      RecordLength length = 0;
      std::memcpy(&length, piece.data(), sizeof(length));
      piece.remove_prefix(sizeof(length));
      record_ = {position.generation, position.offset, {}};
      bytes_.clear();
      missing_ = length;
      next_ = position.offset + sizeof(RecordLength);
    } else if (position.generation != record_.generation || position.offset != next_) {
      return false;
    }
    if (piece.empty() || piece.size() > missing_) return false;
    bytes_.append(piece);
    missing_ -= piece.size();
    next_ += piece.size();
    if (missing_ > 0) return true;
    next_ = end_of(record_.offset, bytes_.size());
    end_ = {record_.generation, next_};
    record_.bytes = bytes_;
    *status = each_(record_);
    return status->ok();
  }

 private:
  const Store::Each& each_;
  StoredRecord record_;
  std::string bytes_;
  std::uint64_t missing_ = 0;
  std::uint64_t next_ = 0;
  Position end_;
};

class KvStore final : public Store {
 public:
  explicit KvStore(std::unique_ptr<KvNamespace> space)
      : space_(std::move(space)),
        piece_bytes_(std::min(kPieceBytes, space_->info().vml_bytes)),
        window_(*space_, piece_bytes_) {}

  Status recover(const Each& each) override {
    std::vector<GenerationId> dropped;
    if (Status status = read_mark(kDropped, &dropped); !status.ok()) return status;
    if (!dropped.empty()) {
      newest_ = dropped_ = dropped.front();
      // Their space may not have been free yet when the last process ended.
      if (Status status = reset({{1, 0}, {dropped_ + 1, 0}}); !status.ok()) return status;
    }
    if (Status status = read_mark(kBegun, &begun_); !status.ok()) return status;
    const auto seen = [this](Position position) {
      newest_ = std::max(newest_, position.generation);
      ends_[position.generation] = position.offset + 1;
    };
    return walk({{dropped_ + 1, 0}, {}}, each, seen, &recovered_end_);
  }

  Status cut(GenerationId generation, std::uint64_t offset) override {
    Position from{std::max(generation, dropped_ + 1), generation > dropped_ ? offset : 0};
    if (from.generation == recovered_end_.generation) from.offset = std::min(from.offset, recovered_end_.offset);
    newest_ = std::max<GenerationId>(generation, dropped_);
    Status status = reset({from, {}});
    steps::reached("spill.kv.cut.reset");
    return status;
  }

  Status begin(GenerationId generation) override {
    Status status = window_.wait();
    if (!status.ok()) status = window_.store_again();
    failed_ = failed_ || !status.ok();
    if (!status.ok()) return status;
    steps::reached("spill.kv.begin.stored");
    // What an append that failed has left would end every later recovery.
    if (failed_ && current_ != 0) {
      if (status = reset({{current_, tail_}, {}}); !status.ok()) return status;
    }
    failed_ = true;
    if (generation <= newest_ || generation == ~GenerationId{0}) {
      return Status::InvalidArgument("generation " + std::to_string(generation) + " is not newer than " +
                                     std::to_string(newest_));
    }
    begun_.push_back(generation);
    if (status = write_mark(kBegun, generations()); !status.ok()) {
      begun_.pop_back();
      return status;
    }
    steps::reached("spill.kv.begin.begun");
    current_ = newest_ = generation;
    tail_ = 0;
    failed_ = false;
    return {};
  }

  Status append(std::span<const Slice> records, std::span<std::uint64_t> offsets) override {
    if (failed_) return Status::IOError("the spill store takes nothing after a failure until a new generation begins");
    std::uint64_t bytes = 0;
    for (const Slice& record : records) {
      if (record.empty()) return Status::InvalidArgument("an empty record");
      bytes += stored_bytes(record.size(), piece_bytes_);
    }
    const std::uint64_t used = used_bytes() + bytes;
    if (used > capacity_bytes()) return Status::NoSpace("the spill store is full");
    std::uint64_t tail = tail_;
    for (std::size_t i = 0; i < records.size(); ++i) {
      offsets[i] = tail;
      tail = end_of(tail, records[i].size());
    }
    const bool is_cautious = used + kCautiousMemtables * space_->info().batch_bytes > capacity_bytes();
    Status status = is_cautious ? store(records, offsets) : lost(window_.hand_over(current_, records, offsets));
    if (status.ok()) {
      tail_ = tail;
      const std::lock_guard lock(ends_mutex_);
      ends_[current_] = tail;
    } else if (!status.IsNoSpace()) {
      failed_ = true;
    }
    steps::reached("spill.kv.append.handed_over");
    return status;
  }

  Status sync() override {
    if (failed_) return Status::IOError("the spill store cannot sync after a failure until a new generation begins");
    Status status = lost(window_.wait());
    failed_ = !status.ok();
    steps::reached("spill.kv.sync.stored");
    return status;
  }

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
    if (Status status = window_.wait(); !status.ok()) return lost(status);
    return walk({{generation, 0}, {generation + 1, 0}}, each, [](Position) {});
  }

  Status drop(GenerationId generation) override {
    if (generation == current_) {  // what it has on its way is not wanted any more
      if (!window_.wait().ok()) window_.give_up();
      failed_ = true;
      current_ = 0;
    }
    if (!is_oldest(generation)) {  // nothing is in it
      std::erase(begun_, generation);
      return write_mark(kBegun, generations());
    }
    Status status = write_mark(kDropped, std::span(&generation, 1));
    if (status.ok()) {
      dropped_ = generation;
      std::erase_if(begun_, [&](GenerationId one) { return one <= generation; });
      steps::reached("spill.kv.drop.stored");
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
    reset({{generation, 0}, {generation + 1, 0}}).PermitUncheckedError();
    steps::reached("spill.kv.release.reset");
  }

  std::uint64_t used_bytes() const override {
    const std::uint64_t on_its_way = window_.bytes();  // looked at first: nothing is missing while it arrives
    const std::uint64_t there = space_->stored_bytes();
    return on_its_way + there - std::min<std::uint64_t>(there, mark_bytes_);
  }
  std::uint64_t capacity_bytes() const override {
    return static_cast<std::uint64_t>(static_cast<double>(space_->info().capacity_bytes) * (1 - kSpareShare));
  }

 private:
  struct Range {
    Position begin;
    Position end;  // generation 0: to the last
  };
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
    const PositionBytes key = bytes_of(where);
    KvIo io;
    io.op = ssd::Opcode::kv_retrieve;
    io.key = {key.data(), key.size()};
    io.buffer_bytes = space_->info().vml_bytes;
    KvDone done;
    ids->clear();
    if (Status status = perform(io, &done); !status.ok()) return status;
    if (done.fault == Fault::none && done.outcome == Outcome::kv_key_does_not_exist) return {};
    if (Status status = status_of(done, "retrieve"); !status.ok()) return status;
    ids->resize(done.bytes.size() / sizeof(GenerationId));
    std::memcpy(ids->data(), done.bytes.data(), ids->size() * sizeof(GenerationId));
    note_mark(where, *ids);
    return {};
  }

  // Durable when it returns. REQUIRES: all numbers of that mark that are there were read or written before
  Status write_mark(Position where, std::span<const GenerationId> ids) {
    if (ids.size_bytes() > space_->info().vml_bytes) return Status::NoSpace("the spill store has too many generations");
    const PositionBytes key = bytes_of(where);
    KvIo io;
    io.op = ssd::Opcode::kv_store;
    io.cause = device::Cause::wal;
    io.key = {key.data(), key.size()};
    io.value = {reinterpret_cast<const char*>(ids.data()), ids.size_bytes()};
    KvDone done;
    if (Status status = perform(io, &done); !status.ok()) return status;
    if (Status status = status_of(done, "store"); !status.ok()) return status;
    note_mark(where, ids);
    return {};
  }

  // They are no records, and not counted as used.
  void note_mark(Position where, std::span<const GenerationId> ids) {
    std::uint64_t& bytes = one_mark_bytes_[where.offset];
    bytes = ids.empty() ? 0 : ssd::kPairHeaderBytes + sizeof(PositionBytes) + ids.size_bytes();
    mark_bytes_ = one_mark_bytes_[0] + one_mark_bytes_[1];
  }

  // What was acknowledged is not on the drive. Nobody may take that for a store that is full.
  static Status lost(const Status& status) {
    return status.IsNoSpace() ? Status::IOError("the spill store lost what it had taken", status.ToString()) : status;
  }

  // Waits for the drive, and for what was handed over before.
  Status store(std::span<const Slice> records, std::span<const std::uint64_t> offsets) {
    if (Status before = window_.wait(); !before.ok()) return lost(before);
    Status status = window_.hand_over(current_, records, offsets);
    if (status.ok()) status = window_.wait();
    if (status.ok()) return status;
    // Nothing of it stays; where that fails, too, it is for the next generation to forget.
    window_.give_up();
    if (!reset({{current_, tail_}, {}}).ok()) failed_ = true;
    return status;
  }

  // --- The drive. A queue is one thread's at a time; they are kept for the next.

  // One read of a pair: of a record's piece.
  struct PieceRead {
    PositionBytes key;
    std::size_t request = 0;
    std::uint32_t wanted = 0;
    std::uint64_t skipped = 0;
  };
  // A queue with the keys of what is pending in it, which nobody may wait for any more.
  struct Lane {
    std::vector<PieceRead> pieces;
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
    std::vector<PieceRead>& pieces() { return lane_.pieces; }

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
    lane.pieces.clear();
    return lane;
  }

  class Flight final : public ReadsInFlight {
   public:
    Flight(const KvStore& store, std::span<ReadRequest> requests) : lease_(store), requests_(requests) {
      std::vector<PieceRead>& pieces = lease_.pieces();
      for (std::size_t i = 0; i < requests.size(); ++i) {
        ReadRequest& one = requests[i];
        one.bytes.clear();
        one.status = {};
        if (store.window_.read(one)) continue;
        const std::uint64_t begin = sizeof(RecordLength) + one.from;
        const std::uint64_t end = begin + one.length;
        for (std::uint64_t piece = begin / store.piece_bytes_ * store.piece_bytes_; piece < end;
             piece += store.piece_bytes_) {
          const auto wanted = static_cast<std::uint32_t>(std::min<std::uint64_t>(store.piece_bytes_, end - piece));
          const Position position{one.generation, one.offset + piece};
          pieces.push_back({bytes_of(position), i, wanted, std::max(begin, piece) - piece});
        }
      }
      std::vector<KvIo> ios(pieces.size());
      for (std::size_t i = 0; i < ios.size(); ++i) {
        ios[i].tag = i;
        ios[i].op = ssd::Opcode::kv_retrieve;
        ios[i].buffer_bytes = pieces[i].wanted;
        ios[i].key = {pieces[i].key.data(), pieces[i].key.size()};
      }
      if (const auto status = (*lease_).submit(ios); !status) {
        for (const PieceRead& piece : pieces) requests[piece.request].status = Status::IOError(status.message());
      }
    }

    void wait() override {
      const std::vector<PieceRead>& pieces = lease_.pieces();
      const std::vector<KvDone> done = reap_all(*lease_, pieces.size());
      for (std::size_t i = 0; i < pieces.size(); ++i) {
        take_piece(requests_[pieces[i].request], pieces[i].wanted, pieces[i].skipped, done[i]);
      }
    }

   private:
    Lease lease_;
    const std::span<ReadRequest> requests_;
  };

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

  // The answer to one retrieve of the first `wanted` bytes of a piece, without the first `skipped`.
  static void take_piece(ReadRequest& request, std::uint64_t wanted, std::uint64_t skipped, const KvDone& done) {
    if (!request.status.ok()) return;
    request.status = status_of(done, "retrieve");
    if (!request.status.ok()) return;
    if (done.bytes.size() < wanted) {
      request.status = Status::Corruption("the spill store's record is shorter than what is read of it");
      return;
    }
    request.bytes.append(done.bytes, skipped, wanted - skipped);
  }

  // Hands over the records of a range; `seen` is told where each pair lies.
  Status walk(Range range, const Each& each, const std::function<void(Position)>& seen, Position* end = nullptr) const {
    Assembler assembler(each);
    const Status status = walk(range, assembler, seen);
    if (end != nullptr) *end = assembler.end();
    return status;
  }

  Status walk(Range range, Assembler& assembler, const std::function<void(Position)>& seen) const {
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
      if (!goes_on) return status;
      io.range.after_begin = true;
    }
  }

  const std::unique_ptr<KvNamespace> space_;
  const std::uint32_t piece_bytes_;
  mutable KvAppendWindow window_;
  mutable std::mutex lanes_mutex_;
  mutable std::deque<Lane> idle_;  // these go before the namespace
  mutable std::deque<Lane> left_;  // with something pending, the oldest first
  std::mutex ends_mutex_;
  std::map<GenerationId, std::uint64_t> ends_;  // where the last record of each ends, or its last piece begins
  std::vector<GenerationId> begun_;             // of the appending thread, as what follows
  std::array<std::uint64_t, 2> one_mark_bytes_{};
  std::atomic<std::uint64_t> mark_bytes_ = 0;
  std::atomic<GenerationId> dropped_ = 0;
  Position recovered_end_;
  GenerationId newest_ = 0;
  GenerationId current_ = 0;
  std::uint64_t tail_ = 0;
  bool failed_ = true;  // appends are refused: nothing has begun, or something failed
};

}  // namespace

Status status_of(const KvDone& done, const char* what) {
  if (done.fault != Fault::none) {
    return Status::IOError(std::string("the drive's key-value namespace: ") + what + " failed");
  }
  switch (done.outcome) {
    case Outcome::success:
      return {};
    case Outcome::kv_capacity_exceeded:
      return Status::NoSpace(std::string("the drive's key-value namespace is full: ") + what);
    case Outcome::kv_key_does_not_exist:
      return Status::Corruption(std::string("the drive's key-value namespace lacks a pair: ") + what);
    default:
      return Status::IOError(std::string("the drive's key-value namespace refuses a ") + what + " with status " +
                             std::to_string(nvme_status(done.outcome)));
  }
}

Status open_kv_store(const KvStoreOptions& options, std::unique_ptr<Store>* store) {
  auto space = KvNamespace::open(*options.drive, options.kv_namespace, options.path, options.door);
  if (!space) {
    const std::string& message = space.status().message();
    return space.status().fault() == Fault::io_error ? Status::IOError(message) : Status::InvalidArgument(message);
  }
  *store = std::make_unique<KvStore>(std::move(*space));
  return {};
}

}  // namespace spillway::spill
