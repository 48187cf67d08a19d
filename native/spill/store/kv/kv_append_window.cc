#include "spill/store/kv/kv_append_window.h"

#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <cassert>
#include <chrono>
#include <cstring>
#include <string_view>
#include <utility>

#include "spill/store/kv/kv_staging_pace.h"

namespace spillway::spill {

using device::KvDone;
using device::KvIo;
using device::KvView;
using rocksdb::Slice;
using rocksdb::Status;

KvAppendWindow::KvAppendWindow(device::KvNamespace& kv_namespace, std::uint32_t pair_bytes, KvStaging& staging)
    : namespace_(kv_namespace), pair_bytes_(pair_bytes), staging_(staging), queue_(kv_namespace.open_queue()) {
  for (std::uint32_t i = 0; i < staging.slots(); ++i) free_slots_.push_back(i);
  thread_ = std::thread([this] { run(); });
  const MutexLock lock(mutex_);
  give_way(true);
}

KvAppendWindow::~KvAppendWindow() {
  {
    const MutexLock lock(mutex_);
    is_stopping_ = true;
  }
  ready_.notify_one();
  thread_.join();
}

void KvAppendWindow::begin(GenerationId generation) {
  const MutexLock lock(mutex_);
  close_pair();
  generation_ = generation;
  tail_ = 0;
  before_ = {0, end_};
}

// --- Appending

std::uint32_t KvAppendWindow::new_pairs_of(std::span<const Slice> records) const {
  std::uint64_t count = 0;
  std::uint64_t room = all_pairs().empty() || all_pairs().back()->is_full ? 0 : pair_bytes_ - all_pairs().back()->bytes;
  for (const Slice& record : records) {
    const std::uint64_t bytes = framed_bytes(record.size());
    if (bytes <= room) {
      room -= bytes;
      continue;
    }
    count += pairs_of(bytes, pair_bytes_);
    room = bytes <= pair_bytes_ ? pair_bytes_ - bytes : 0;
  }
  return static_cast<std::uint32_t>(std::min<std::uint64_t>(count, staging_.slots() + 1));
}

Status KvAppendWindow::append(std::span<const Slice> records, std::span<std::uint64_t> offsets, bool survives) {
  MutexLock lock(mutex_);
  // All of them or none: of more than there is room for, from a pair of their own on, so that they can be forgotten.
  std::uint32_t pairs = new_pairs_of(records);
  Status status = pairs < staging_.slots() ? make_room(pairs) : empty_window();
  // While it waited, the pair that is open may have been closed: then they need one more.
  while (status.ok() && free_slots_.size() < (pairs = new_pairs_of(records))) {
    if (pairs >= staging_.slots()) {
      status = empty_window();
      break;
    }
    status = make_room(pairs);
  }
  before_ = {tail_, end_};
  for (std::size_t i = 0; i < records.size() && status.ok(); ++i) {
    status = append_one(records[i], &offsets[i], survives);
  }
  if (!status.ok()) {
    tail_ = before_.tail;
    end_ = before_.end;
  }
  return status;
}

std::uint64_t KvAppendWindow::most_group_bytes() const {
  const std::uint64_t used = std::min<std::uint64_t>(bytes() / pair_bytes_, staging_.slots());
  return staging_step(used, staging_.slots()) * std::uint64_t{pair_bytes_};
}

Status KvAppendWindow::empty_window() {
  const AppendWait::Measure measure(wait_);
  return wait_for_all();
}

// Waits until as many slots are free as `pairs` need. REQUIRES: that is possible; one slot may be of a pair that is not
// full
Status KvAppendWindow::make_room(std::uint32_t pairs) {
  if (const auto pause = staging_pause(pairs, free_slots_.size(), staging_.slots(), opened_)) {
    const AppendWait::Measure measure(wait_);
    opened_ = 0;
    wanted_slots_ = pause->free;
    give_way(false);
    const auto until = std::chrono::steady_clock::now() + kLongestPause;
    while (!has_room()) {
      const auto left = until - std::chrono::steady_clock::now();
      if (!pause->has_to && left <= std::chrono::nanoseconds::zero()) break;
      pause->has_to ? room_.wait(mutex_) : room_.wait_for(mutex_, left);
    }
    wanted_slots_ = 0;
  }
  return failure_;
}

Status KvAppendWindow::append_one(const Slice& record, std::uint64_t* offset, bool survives) {
  const std::uint64_t bytes = framed_bytes(record.size());
  if (!all_pairs().empty() && !all_pairs().back()->is_full && all_pairs().back()->bytes + bytes > pair_bytes_)
    close_pair();
  *offset = tail_;
  const RecordFrame frame = frame_of({generation_, tail_}, record);
  std::size_t copied = 0;  // of the record
  for (std::uint64_t at = 0; at < bytes;) {
    const bool is_first = at == 0;
    const bool is_open = !all_pairs().empty() && !all_pairs().back()->is_full;
    if (!is_open && free_slots_.empty()) {
      if (Status status = make_room(1); !status.ok()) return status;
    }
    Pair& pair = is_open ? *all_pairs().back()
                         : open_pair(offset_of_pair(*offset, at / pair_bytes_, pair_bytes_), bytes > pair_bytes_);
    char* into = staging_.bytes(pair.slot) + pair.bytes;
    const std::uint64_t part = std::min<std::uint64_t>(bytes - at, pair_bytes_ - pair.bytes);
    std::uint64_t header = 0;
    if (is_first) {
      std::memcpy(into, &frame, sizeof frame);
      header = sizeof frame;
    }
    std::memcpy(into + header, record.data() + copied, part - header);
    copied += part - header;
    at += part;
    grow(pair, part, survives);
    if (bytes > pair_bytes_) close_pair();
  }
  end_ = {generation_, tail_};
  return {};
}

// REQUIRES: a slot is free
KvAppendWindow::Pair& KvAppendWindow::open_pair(std::uint64_t offset, bool of_one_record) {
  auto pair = std::make_unique<Pair>();
  pair->position = {generation_, offset};
  pair->key = bytes_of(pair->position);
  pair->slot = free_slots_.back();
  free_slots_.pop_back();
  ++opened_;
  const bool is_first = end_.generation != generation_;
  staging_.begin(pair->slot, pair->position, is_first && all_pairs().empty() ? Position() : end_, of_one_record);
  bytes_.fetch_add(kPairOverheadBytes, std::memory_order_acq_rel);
  const ExclusiveLock lock(pairs_mutex_);
  pairs_.push_back(std::move(pair));
  return *pairs_.back();
}

void KvAppendWindow::grow(Pair& pair, std::uint64_t bytes, bool survives) {
  const auto all = static_cast<std::uint32_t>(pair.bytes + bytes);
  if (survives) staging_.grow(pair.slot, all);
  pair.bytes.store(all, std::memory_order_release);
  bytes_.fetch_add(bytes, std::memory_order_acq_rel);
  tail_ += bytes;
}

void KvAppendWindow::close_pair() {
  if (all_pairs().empty() || all_pairs().back()->is_full) return;
  Pair& pair = *all_pairs().back();
  pair.is_full = true;
  tail_ = pair.position.offset / pair_bytes_ * pair_bytes_ + pair_bytes_;
  ready_.notify_one();
}

// --- The drive

bool KvAppendWindow::has_ready() const {
  return failure_.ok() && submitted_ < all_pairs().size() && all_pairs()[submitted_]->is_full;
}

// A writer with a full pair wakes the thread, and should continue first; but a writer who waits for the thread should
// not wait for the turns of other processes too. If the scheduling class cannot be set, writers are interrupted at
// times.
void KvAppendWindow::give_way(bool to_writers) {
  if (to_writers == gives_way_) return;
  gives_way_ = to_writers;
  const sched_param none{};
  (void)pthread_setschedparam(thread_.native_handle(), to_writers ? SCHED_BATCH : SCHED_OTHER, &none);
}

void KvAppendWindow::run() {
  MutexLock lock(mutex_);
  for (;;) {
    while (!is_stopping_ && !has_ready() && in_flight_ == 0) ready_.wait(mutex_);
    if (is_stopping_) return;
    lock.unlock();
    {
      const MutexLock drives(drive_mutex_);
      drive();
    }
    lock.lock();
  }
}

// Hands over what is ready, and waits until something is done.
void KvAppendWindow::drive() {
  std::vector<KvIo> ios;
  bool left_over = false;
  {
    const MutexLock lock(mutex_);
    gather(ios);
    left_over = has_ready() && in_flight_ >= most_in_flight_;
  }
  if (!ios.empty()) {
    if (const auto status = queue_->submit(ios); !status) {
      const MutexLock lock(mutex_);
      for (const KvIo& io : ios) in_flight_ -= io.pairs.size();
      if (failure_.ok()) failure_ = Status::IOError(status.message());
    }
  }
  reaped_.resize(queue_->pending());
  const std::size_t count = reaped_.empty() ? 0 : queue_->reap(reaped_, 1);
  {
    const MutexLock lock(mutex_);
    take(std::span(reaped_).first(count));
    most_in_flight_ = most_in_flight(most_in_flight_, left_over, in_flight_);
    if (free_slots_.size() >= wanted_slots_) wanted_slots_ = 0;
    if (all_pairs().size() < kPairsInFlight) give_way(true);
    if (wanted_slots_ == 0 || !failure_.ok()) room_.notify_one();
  }
  changed_.notify_all();
}

// Only when the drive has all of the generation before may it have something of a later one.
bool KvAppendWindow::is_in_order(std::size_t index) const {
  return all_pairs()[index]->position.generation == all_pairs().front()->position.generation;
}

// In order; what is there together goes together, as much as the drive's memtable takes.
void KvAppendWindow::gather(std::vector<KvIo>& ios) {
  const std::size_t most = waiting_ > 0 ? all_pairs().size() : most_in_flight_;
  while (has_ready() && is_in_order(submitted_) && in_flight_ < most) {
    Pair& first = *all_pairs()[submitted_];
    first.command.clear();
    KvIo& io = ios.emplace_back();
    io.tag = first_ + submitted_;
    io.op = ssd::Opcode::kv_batch_store;
    io.cause = device::Cause::wal;
    std::uint64_t bytes = 0;
    for (; has_ready() && is_in_order(submitted_) && in_flight_ < most; ++submitted_, ++in_flight_) {
      const Pair& pair = *all_pairs()[submitted_];
      bytes += kPairOverheadBytes + pair.bytes;
      if (!first.command.empty() && (bytes > namespace_.info().batch_bytes || first.command.size() == kPairsACommand))
        break;
      first.command.push_back({{pair.key.data(), pair.key.size()}, {staging_.bytes(pair.slot), pair.bytes}});
    }
    io.pairs = first.command;
  }
}

void KvAppendWindow::take(std::span<const KvDone> done) {
  for (const KvDone& one : done) {
    const std::size_t begin = one.tag - first_;
    const std::size_t end = begin + all_pairs()[begin]->command.size();
    const Status status = status_of(one, "batch store");
    in_flight_ -= end - begin;
    for (std::size_t i = begin; i < end; ++i) all_pairs()[i]->is_stored = status.ok();
    if (!status.ok() && (failure_.ok() || failure_.IsNoSpace())) failure_ = status;
  }
  while (!all_pairs().empty() && all_pairs().front()->is_stored) pop_front();  // in order: nothing behind what failed
}

// The drive counts it from before this on, so that the sum is never less than what is used.
void KvAppendWindow::pop_front() {
  bytes_.fetch_sub(kPairOverheadBytes + all_pairs().front()->bytes, std::memory_order_acq_rel);
  free_slots_.push_back(all_pairs().front()->slot);
  const ExclusiveLock lock(pairs_mutex_);
  pairs_.pop_front();
  ++first_;
  if (submitted_ > 0) --submitted_;
}

void KvAppendWindow::hand_on() {
  const MutexLock lock(mutex_);
  close_pair();
}

Status KvAppendWindow::wait() {
  MutexLock lock(mutex_);
  return wait_for_all();
}

// Submits by itself, unless another thread does it already. Then that thread need not be woken.
Status KvAppendWindow::wait_for_all() {
  close_pair();
  const std::uint64_t last = first_ + all_pairs().size();
  ++waiting_;
  while (!is_over(last)) {
    mutex_.unlock();
    if (drive_mutex_.try_lock()) {
      drive();
      drive_mutex_.unlock();
      mutex_.lock();
      continue;
    }
    mutex_.lock();
    if (is_over(last)) break;
    give_way(false);
    changed_.wait(mutex_);
  }
  --waiting_;
  return first_ >= last ? Status() : failure_;
}

bool KvAppendWindow::is_over(std::uint64_t last) const { return first_ >= last || (!failure_.ok() && in_flight_ == 0); }

Status KvAppendWindow::store_again() {
  MutexLock lock(mutex_);
  hand_over_again();
  return wait_for_all();
}

// REQUIRES: nothing is on its way
void KvAppendWindow::hand_over_again() {
  failure_ = {};
  submitted_ = 0;
  for (const auto& pair : all_pairs()) pair->is_stored = false;
  ready_.notify_one();
}

bool KvAppendWindow::is_full() const {
  const MutexLock lock(mutex_);
  return failure_.IsNoSpace();
}

void KvAppendWindow::resume() {
  const MutexLock lock(mutex_);
  if (failure_.IsNoSpace() && in_flight_ == 0) hand_over_again();
}

void KvAppendWindow::discard(GenerationId generation) {
  if (!has(generation)) return;
  MutexLock lock(mutex_);
  if (wait_for_all().ok() || !failure_.IsNoSpace()) return;
  {
    const ExclusiveLock list(pairs_mutex_);
    for (auto one = pairs_.begin(); one != pairs_.end();) {
      if ((*one)->position.generation != generation) {
        ++one;
        continue;
      }
      bytes_.fetch_sub(kPairOverheadBytes + (*one)->bytes, std::memory_order_acq_rel);
      free_slots_.push_back((*one)->slot);
      one = pairs_.erase(one);
    }
  }
  hand_over_again();
}

void KvAppendWindow::drop_failed() {
  const MutexLock lock(mutex_);
  assert(in_flight_ == 0);
  while (!all_pairs().empty()) pop_front();
  tail_ = before_.tail;
  end_ = before_.end;
  failure_ = {};
}

// --- Reading

bool KvAppendWindow::read(Position wanted, std::uint64_t most_bytes, std::string* bytes) const {
  if (this->bytes() == 0) return false;
  const SharedLock lock(pairs_mutex_);
  const auto found = std::lower_bound(
      pairs_.begin(), pairs_.end(), wanted,
      [](const std::unique_ptr<Pair>& one, const Position& position) { return one->position < position; });
  if (found == pairs_.end() || (*found)->position != wanted) return false;
  const std::uint64_t there = (*found)->bytes.load(std::memory_order_acquire);
  bytes->assign(staging_.bytes((*found)->slot), std::min(most_bytes, there));
  return true;
}

bool KvAppendWindow::has_failed() const {
  const MutexLock lock(mutex_);
  return !failure_.ok() && !failure_.IsNoSpace();
}

bool KvAppendWindow::takes_all_or_none(std::span<const Slice> records) const {
  const MutexLock lock(mutex_);
  return new_pairs_of(records) < staging_.slots();
}

std::vector<KvAppendWindow::Held> KvAppendWindow::held(GenerationId generation) const {
  const SharedLock lock(pairs_mutex_);
  std::vector<Held> all;
  for (const auto& pair : pairs_) {
    if (pair->position.generation != generation) continue;
    all.push_back({pair->position, {staging_.bytes(pair->slot), pair->bytes.load(std::memory_order_acquire)}});
  }
  return all;
}

bool KvAppendWindow::has(GenerationId generation) const {
  const SharedLock lock(pairs_mutex_);
  return std::ranges::any_of(pairs_, [&](const auto& one) { return one->position.generation == generation; });
}

}  // namespace spillway::spill
