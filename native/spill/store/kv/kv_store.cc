#include "spill/store/kv/kv_store.h"

#include <algorithm>
#include <atomic>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "base/steps.h"
#include "spill/store/kv/kv_append_window.h"
#include "spill/store/kv/kv_binding.h"
#include "spill/store/kv/kv_commands.h"
#include "spill/store/kv/kv_ends.h"
#include "spill/store/kv/kv_generations.h"
#include "spill/store/kv/kv_pairs.h"
#include "spill/store/kv/kv_reads.h"
#include "spill/store/kv/kv_recovery.h"
#include "spill/store/kv/kv_staging.h"

namespace spillway::spill {

using device::KvNamespace;
using rocksdb::Slice;
using rocksdb::Status;

namespace {

// Share of the namespace that is not counted on: unused ends of runs, and runs that are being rewritten. Source: guess,
// in addition to the drive's own reserve of a sixty-fourth.
constexpr double kSpareShare = 0.05;

// Bytes of a generation that are reset at once. Source: guess, some 2,000 pairs, of which a drive removes several in a
// microsecond.
constexpr std::uint64_t kResetBytes = 8 << 20;

// If less than this many of the drive's memtables are free, each append waits until the drive has it. That much may be
// unused at the ends of runs of dropped generations, and a full drive should refuse an append before it is
// acknowledged. Source: guess, some generations that snapshots hold between dropped ones.
constexpr std::uint64_t kCautiousMemtables = 4;

class KvStore final : public Store {
 public:
  KvStore(std::unique_ptr<KvNamespace> kv_namespace, std::uint32_t pair_bytes, std::unique_ptr<KvStaging> staging)
      : namespace_(std::move(kv_namespace)),
        pair_bytes_(pair_bytes),
        staging_(std::move(staging)),
        commands_(*namespace_),
        generations_(commands_, *staging_),
        binding_(commands_),
        window_(*namespace_, pair_bytes_, *staging_) {}

  Status recover(const Each& each) override {
    return recover_pairs(commands_, pair_bytes_, *staging_, generations_, ends_, each, &recovered_end_);
  }

  Status cut(GenerationId generation, std::uint64_t offset) override {
    const GenerationId dropped = generations_.dropped();
    Position from{std::max(generation, dropped + 1), generation > dropped ? offset : 0};
    if (from.generation == recovered_end_.generation) from.offset = std::min(from.offset, recovered_end_.offset);
    generations_.cut(generation);
    ends_.cut_ends(from);  // else a later generation would not be the oldest when it is dropped
    Status status = forget_durable(from);
    if (status.ok()) status = commands_.reset({from, {}});
    steps::reached("spill.kv.cut.reset");
    // Afterwards: with pairs behind a shorter one there would be records after one that is not.
    if (status.ok()) status = cut_pair(from);
    return status;
  }

  Status begin(GenerationId generation) override {
    const bool failed_before = failed_ || window_.has_failed();
    Status status = failed_before && current_ != 0 ? repair() : Status();
    if (status.ok()) status = generations_.begin(generation);
    if (status.IsNoSpace() && !failed_before) return status;  // nothing has changed
    failed_ = !status.ok();
    if (!status.ok()) return status;
    current_ = generation;
    window_.begin(generation);
    generations_.announce(generation + 1);
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
    const bool is_cautious = used + kCautiousMemtables * namespace_->info().batch_bytes > capacity_bytes() ||
                             !window_.takes_all_or_none(records);
    Status status = is_cautious ? store(records, offsets) : window_.append(records, offsets, /*survives=*/true);
    if (status.IsNoSpace()) window_.resume();  // what was taken before; the next append finds out
    if (status.ok() && !offsets.empty()) {
      ends_.append(current_, offsets.back(), window_.tail());
    } else if (!status.ok() && !status.IsNoSpace()) {
      failed_ = true;
    }
    steps::reached("spill.kv.append.staged");
    return status;
  }

  std::uint64_t most_group_bytes() const override { return window_.most_group_bytes(); }
  std::chrono::nanoseconds append_wait() const override { return wait_.total() + window_.append_wait(); }

  Status sync() override {
    if (failed_ && current_ != 0) {
      return Status::IOError("the spill store cannot sync after a failure until a new generation begins");
    }
    const KvDurable::Last taken = ends_.last_records();
    Status status = wait_for_taken();
    // Records that a full drive has not taken are made durable in staging, and stored when there is room.
    const bool is_staged = status.IsNoSpace();
    if (is_staged) status = staging_->sync();
    if (status.ok()) {
      staging_->durable().add(taken);
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

  GenerationId newest_known() const override { return generations_.newest(); }
  std::vector<GenerationId> generations() const override { return generations_.begun(); }

  Status read(GenerationId generation, std::uint64_t offset, std::uint64_t from, std::uint64_t length,
              std::string* bytes) const override {
    ReadRequest request{generation, offset, from, length, {}, {}};
    read_many({&request, 1});
    bytes->swap(request.bytes);
    return request.status;
  }

  void read_many(std::span<ReadRequest> requests) const override {
    KvReads(commands_, window_, pair_bytes_, requests).wait();
  }

  std::unique_ptr<ReadsInFlight> begin_reads(std::span<ReadRequest> requests) const override {
    return std::make_unique<KvReads>(commands_, window_, pair_bytes_, requests);
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
    Status status;
    const Status read = commands_.scan(
        {{generation, 0}, {generation + 1, 0}},
        [&](Position position, std::string_view bytes) { return assembler.take(position, bytes, &status); });
    if (!read.ok()) return read;
    for (const KvAppendWindow::Held& one : held) {
      if (!status.ok()) break;
      if (assembler.wants(one.position)) assembler.take(one.position, one.bytes, &status);
    }
    return status;
  }

  Status damaged(GenerationId generation, std::uint64_t offset) const override {
    return damaged_at({generation, offset});
  }

  void prepare_drop(GenerationId generation) override {
    if (ends_.is_oldest(generation, generations_.dropped())) generations_.prepare_drop(generation);
    steps::reached("spill.kv.drop.prepared");
  }

  Status drop(GenerationId generation) override {
    Status status;
    if (ends_.is_oldest(generation, generations_.dropped())) {
      if (status = generations_.drop_to(generation); !status.ok()) return status;
    } else {  // nothing is in it
      status = generations_.drop_empty(generation);
    }
    ends_.drop(generation);
    staging_->durable().forget(generation);
    if (generation == current_) {  // what it has on its way is not wanted any more
      const MutexLock nobody_tries(trying_mutex_);
      const Status taken = window_.wait();
      if (!taken.ok() && !taken.IsNoSpace()) window_.drop_failed();  // a full drive's stays readable until release()
      current_ = 0;                                                  // first: nothing has failed
      failed_ = true;
    }
    return status;
  }

  void release(GenerationId generation) override {
    const std::uint64_t end = ends_.release(generation);
    // In parts, so that no other command waits for long. It need not be atomic, because the generation is dropped
    // already. What cannot be reset now is reset by the next recovery.
    for (std::uint64_t at = 0; at + kResetBytes < end; at += kResetBytes) {
      commands_.reset({{generation, at}, {generation, at + kResetBytes}}).PermitUncheckedError();
    }
    // Not while an append takes back what the drive refused: that would be handed over once more.
    const MutexLock nobody_tries(trying_mutex_);
    window_.discard(generation);
    commands_.reset({{generation, 0}, {generation + 1, 0}}).PermitUncheckedError();
    window_.resume();
    binding_.renew();
    steps::reached("spill.kv.release.reset");
  }

  Status read_binding(std::string* bytes) const override { return binding_.read(bytes); }
  Status write_binding(const std::string& bytes) override { return binding_.write(bytes); }
  std::string binding_place() const override { return "byte 2 of generation 0 of the key-value namespace"; }

  std::uint64_t used_bytes() const override {
    const std::uint64_t on_its_way = window_.bytes();  // read first: nothing is missing while it arrives
    const std::uint64_t there = namespace_->stored_bytes();
    return on_its_way + there - std::min<std::uint64_t>(there, generations_.bytes() + binding_.bytes());
  }
  std::uint64_t held_bytes() const override { return ends_.bytes_to(generations_.dropped()); }
  std::uint64_t capacity_bytes() const override {
    return static_cast<std::uint64_t>(static_cast<double>(namespace_->info().capacity_bytes) * (1 - kSpareShare));
  }

 private:
  // All that was taken is on the drive, and nothing else.
  Status repair() {
    {
      const MutexLock nobody_tries(trying_mutex_);
      Status status = window_.wait();
      if (!status.ok()) status = window_.store_again();
      if (!status.ok()) return status;
    }
    // What an append that failed has left would end every later recovery.
    const Status status = commands_.reset({{current_, window_.tail()}, {}});
    return status.ok() ? staging_->clear() : status;
  }

  // Until the drive has what append has taken; what it only tries to store does not count. NoSpace: some of it, which
  // stays in staging, the drive refused because it is full.
  Status wait_for_taken() const {
    const MutexLock nobody_tries(trying_mutex_);
    window_.resume();
    return window_.wait();
  }

  // For a record's sake: the wait counts as an append's.
  Status wait_in_append() {
    const AppendWait::Measure measure(wait_);
    return window_.wait();
  }

  // Waits for the drive, and for what was handed over before.
  Status store(std::span<const Slice> records, std::span<std::uint64_t> offsets) {
    const MutexLock trying(trying_mutex_);
    if (Status before = wait_in_append(); !before.ok()) return before;
    const std::uint64_t begin = window_.tail();
    Status status = window_.append(records, offsets, /*survives=*/false);
    const Status waited = wait_in_append();
    if (status.ok()) status = waited;
    if (status.ok()) return status;
    steps::reached("spill.kv.append.refused");
    // Nothing of it stays; where that fails, too, it is for the next generation to forget.
    window_.drop_failed();
    if (Status undone = commands_.reset({{current_, begin}, {}}); !undone.ok()) {
      return undone.IsNoSpace() ? Status::IOError("the spill store cannot undo a write", undone.ToString()) : undone;
    }
    return status;
  }

  // Of what is cut nothing is said to be durable any more, durably.
  Status forget_durable(Position from) {
    if (!ends_.cut_records(from)) return {};
    staging_->durable().replace(ends_.last_records());
    return staging_->sync_head();
  }

  // Leaves of the pair around `from` what is before it. REQUIRES: a record begins there, or none does behind it
  Status cut_pair(Position from) {
    const std::uint64_t kept = from.offset % pair_bytes_;
    if (kept == 0) return {};
    const Position position{from.generation, from.offset - kept};
    std::string bytes;
    if (Status status = commands_.retrieve(position, pair_bytes_, &bytes); !status.ok()) return status;
    if (bytes.size() <= kept) return {};
    return commands_.store(position, std::string_view(bytes).substr(0, kept));
  }

  const std::unique_ptr<KvNamespace> namespace_;
  const std::uint32_t pair_bytes_;
  const std::unique_ptr<KvStaging> staging_;
  const KvCommands commands_;
  KvGenerations generations_;
  mutable KvBinding binding_;
  KvEnds ends_;
  Position recovered_end_;
  mutable Mutex trying_mutex_;  // held while something is in the window that append has not taken
  AppendWait wait_;             // of store(); the window has its own
  mutable KvAppendWindow window_;
  std::atomic<GenerationId> current_{0};
  std::atomic<bool> failed_{true};  // appends are refused: nothing has begun, or something failed
};

}  // namespace

Status open_kv_store(const KvStoreOptions& options, std::unique_ptr<Store>* store) {
  auto kv_namespace = KvNamespace::open(*options.drive, options.kv_namespace, options.path, options.front);
  if (!kv_namespace) {
    const std::string& message = kv_namespace.status().message();
    return kv_namespace.status().fault() == Fault::io_error ? Status::IOError(message)
                                                            : Status::InvalidArgument(message);
  }
  if (options.staged_pairs == 0) return Status::InvalidArgument("KvStoreOptions::staged_pairs must not be 0");
  if (options.pair_bytes == 0) return Status::InvalidArgument("KvStoreOptions::pair_bytes must not be 0");
  const std::uint32_t most = (*kv_namespace)->info().vml_bytes;
  const std::string staged = options.path.empty() ? "" : options.path + ".staged";
  KvStaging::Sizes sizes{std::min(options.pair_bytes, most), options.staged_pairs};
  if (const auto found = KvStaging::find(staged); found && found->pair_bytes <= most) sizes = *found;
  std::unique_ptr<KvStaging> staging;
  if (Status status = KvStaging::open(staged, sizes.pair_bytes, sizes.slots, &staging); !status.ok()) return status;
  *store = std::make_unique<KvStore>(std::move(*kv_namespace), sizes.pair_bytes, std::move(staging));
  return {};
}

}  // namespace spillway::spill
