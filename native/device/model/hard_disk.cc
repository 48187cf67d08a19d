#include "device/model/hard_disk.h"

#include <algorithm>
#include <cmath>

namespace spillway::device {

using ssd::Command;
using ssd::Nanos;
using ssd::Opcode;
using ssd::Outcome;

namespace {

// Most bytes of one write-back access: a read then waits for some tracks, not for the whole cache. Source: guess
constexpr std::uint64_t kMostWriteBackBytes = 1 << 20;
// A read is often followed by another, which a write-back in between would delay by a service. Source: guess
constexpr Nanos kWaitForAnotherReadNs = 10'000'000;
// One write-back in this many takes the oldest bytes, so that none stay for ever: with n runs in the cache, each is
// written after at most 64 n write-backs. Rare enough to cost the others some 8 %. Source: guess
constexpr std::uint64_t kOldestEvery = 64;

}  // namespace

HardDisk::HardDisk(const Mechanics& mechanics, const Format& format)
    : mechanics_(mechanics), format_([&format] {
        Format whole = format;
        whole.capacity_bytes = format.capacity_bytes / format.lba_bytes * format.lba_bytes;
        return whole;
      }()) {}

bool HardDisk::transfers(const Command& command) const {
  return command.op == Opcode::read || command.op == Opcode::write;
}

bool HardDisk::out_of_range(const Command& command) const {
  const std::uint64_t lbas = format_.capacity_bytes / format_.lba_bytes;
  return command.op != Opcode::flush &&
         (command.lba_count == 0 || command.lba >= lbas || command.lba_count > lbas - command.lba);
}

bool HardDisk::fits_cache(const Command& command) const { return bytes_of(command) <= format_.write_cache.bytes; }

HardDisk::Access HardDisk::access_of(const Waiting& waiting) const {
  const std::uint64_t begin = waiting.command.lba * format_.lba_bytes;
  return {begin, begin + bytes_of(waiting.command), waiting.command.op, true, waiting.submitted};
}

// ---------------------------------------------------------------------------------------------------------------------
// Time

void HardDisk::submit(Nanos now, const Command& command) {
  run_until(now);
  waiting_.push_back({command, now, std::nullopt});
  decide(now);
}

std::optional<Nanos> HardDisk::next_change() const {
  std::optional<Nanos> next;
  const auto earlier = [&next](Nanos time) { next = next ? std::min(*next, time) : time; };
  if (!link_.empty()) earlier(link_.front().completed);
  if (at_medium_.busy) earlier(at_medium_.done_at);
  if (!at_medium_.busy && !dirty_.empty())
    earlier(std::min(write_back_from_, dirty_.oldest() + mechanics_.age_limit_ns));
  return next;
}

std::optional<Nanos> HardDisk::next_event() const {
  return done_.empty() ? next_change() : std::optional<Nanos>(done_.front().completed);
}

void HardDisk::advance(Nanos now, std::vector<ssd::Completion>& done) {
  run_until(now);
  done.insert(done.end(), done_.begin(), done_.end());
  done_.clear();
}

void HardDisk::run_until(Nanos now) {
  for (auto next = next_change(); next && *next <= now; next = next_change()) {
    const Nanos time = *next;
    while (!link_.empty() && link_.front().completed <= time) {
      done_.push_back(link_.front());
      link_.pop();
    }
    if (at_medium_.busy && at_medium_.done_at <= time) end_access(time);
    decide(time);
  }
}

void HardDisk::end_access(Nanos now) {
  at_medium_.busy = false;
  wrote_back_last_ = !at_medium_.host;
  if (!at_medium_.host) return;
  at_medium_.host = false;
  const Command& command = at_medium_.command.command;
  done_.push_back({command.tag, at_medium_.command.submitted, now, command.queue, Outcome::success});
  if (command.op == Opcode::read) write_back_from_ = now + kWaitForAnotherReadNs;
}

// ---------------------------------------------------------------------------------------------------------------------
// The queue

std::size_t HardDisk::window() const {
  const std::size_t taken = (at_medium_.host ? 1 : 0) + link_.size();
  const std::size_t open = mechanics_.queue_depth > taken ? mechanics_.queue_depth - taken : 0;
  const std::size_t most = std::min(open, waiting_.size());
  for (std::size_t i = 0; i < most; ++i) {
    if (waiting_[i].command.op == Opcode::flush) return i;
  }
  return most;
}

void HardDisk::decide(Nanos now) {
  serve_without_medium(now);
  if (!at_medium_.busy) choose_access(now);
}

// Removes from the queue what needs no access, in the order of arrival. A command that was answered keeps its place in
// the queue until it is complete, so that no other moves up before.
void HardDisk::serve_without_medium(Nanos now) {
  bool writes_wait = false;
  std::size_t end = window();
  for (std::size_t i = 0; i < end;) {
    if (!waiting_[i].queued) waiting_[i].queued = now;
    if (!serve_from_cache(now, waiting_[i], writes_wait)) {
      ++i;
      continue;
    }
    waiting_.erase(waiting_.begin() + static_cast<std::ptrdiff_t>(i));
    --end;
  }
  const bool flush_waits = !waiting_.empty() && waiting_.front().command.op == Opcode::flush && !serve_flush(now);
  write_back_wanted_ = writes_wait || flush_waits;
}

bool HardDisk::serve_from_cache(Nanos now, const Waiting& waiting, bool& writes_wait) {
  const Command& command = waiting.command;
  if (out_of_range(command) || !transfers(command)) {
    answer(now, waiting, 0);
    return true;
  }
  const Access access = access_of(waiting);
  if (command.op == Opcode::read) {
    if (!holds(access)) return false;
    counters_.write_cache_read_hits += units(access.end - access.begin);
  } else {
    if (!fits_cache(command)) return false;
    const std::uint64_t missing = dirty_.missing(access.begin, access.end);
    writes_wait = writes_wait || held_bytes() + missing > format_.write_cache.bytes;
    if (writes_wait) return false;
    counters_.write_cache_overwrites += units(access.end - access.begin - missing);
    dirty_.add(access.begin, access.end, now);
  }
  answer(now, waiting, access.end - access.begin);
  return true;
}

// Whether every byte is in the cache. Bytes that are being written back still are.
bool HardDisk::holds(const Access& access) const {
  std::uint64_t missing = dirty_.missing(access.begin, access.end);
  if (missing > 0 && at_medium_.busy && !at_medium_.host) {
    const std::uint64_t from = std::max(access.begin, at_medium_.access.begin);
    const std::uint64_t to = std::min(access.end, at_medium_.access.end);
    if (from < to) missing -= dirty_.missing(from, to);
  }
  return missing == 0;
}

std::uint64_t HardDisk::held_bytes() const {
  const bool writing_back = at_medium_.busy && !at_medium_.host;
  return dirty_.bytes() + (writing_back ? at_medium_.access.end - at_medium_.access.begin : 0);
}

// REQUIRES: a flush is first in the queue
bool HardDisk::serve_flush(Nanos now) {
  if (at_medium_.host || !link_.empty()) return false;
  if (held_bytes() > 0 && !format_.write_cache.power_loss_protection) return false;
  answer(now, waiting_.front(), 0);
  waiting_.pop_front();
  return true;
}

void HardDisk::answer(Nanos now, const Waiting& waiting, std::uint64_t bytes_over_link) {
  const Command& command = waiting.command;
  const bool refused = out_of_range(command);
  Nanos at = std::max(now, link_free_at_);
  if (!refused) {
    count(command);
    at += mechanics_.command_ns;
    at += static_cast<Nanos>(static_cast<double>(bytes_over_link) * 1000 / format_.host_link_mb_s);
  }
  link_free_at_ = at;
  link_.push(
      {command.tag, waiting.submitted, at, command.queue, refused ? Outcome::lba_out_of_range : Outcome::success});
}

// ---------------------------------------------------------------------------------------------------------------------
// The actuator

// REQUIRES: it is idle, and what needs no access was served
void HardDisk::choose_access(Nanos now) {
  const std::optional<std::size_t> command = choose_command(now);
  const bool write_back_first = write_back_is_due(now) && !wrote_back_last_;
  if (command && !write_back_first) {
    begin_command(now, *command);
  } else if (!dirty_.empty() && (write_back_is_due(now) || now >= write_back_from_)) {
    begin_write_back(now);
  }
}

// A write that fits the cache and is still queued waits for room, not for the medium.
std::optional<std::size_t> HardDisk::choose_command(Nanos now) const {
  std::optional<std::size_t> best;
  Nanos best_begins = 0;
  for (std::size_t i = 0, end = window(); i < end; ++i) {
    const Waiting& waiting = waiting_[i];
    if (waiting.command.op == Opcode::write && fits_cache(waiting.command)) continue;
    if (!best && now - *waiting.queued >= mechanics_.age_limit_ns) return i;
    const Nanos begins = transfer_begins(now, access_of(waiting));
    if (best && begins >= best_begins) continue;
    best = i;
    best_begins = begins;
  }
  return best;
}

bool HardDisk::write_back_is_due(Nanos now) const {
  return !dirty_.empty() && (write_back_wanted_ || now >= dirty_.oldest() + mechanics_.age_limit_ns);
}

void HardDisk::begin_command(Nanos now, std::size_t index) {
  at_medium_.command = waiting_[index];
  waiting_.erase(waiting_.begin() + static_cast<std::ptrdiff_t>(index));
  count(at_medium_.command.command);
  begin(now, access_of(at_medium_.command));
}

void HardDisk::begin_write_back(Nanos now) {
  std::uint64_t place = dirty_.oldest_begin();
  if (++write_backs_ % kOldestEvery != 0) {
    std::optional<Nanos> best;
    dirty_.visit_from(head_.bytes, mechanics_.queue_depth, [&](const DirtyExtents::Extent& extent) {
      const Nanos begins = transfer_begins(now, {extent.begin, extent.end, Opcode::write, false, 0});
      if (best && begins >= *best) return;
      best = begins;
      place = extent.begin;
    });
  }
  const DirtyExtents::Extent extent = dirty_.take(place, kMostWriteBackBytes);
  begin(now, {extent.begin, extent.end, Opcode::write, false, 0});
}

void HardDisk::begin(Nanos now, const Access& access) {
  const auto bytes = static_cast<double>(access.end - access.begin);
  const auto transfer_ns = static_cast<Nanos>(bytes * 1000 / rate_mb_s(access.begin));
  const Nanos end = std::max(transfer_begins(now, access) + transfer_ns, taken_at(now, access));
  at_medium_.busy = true;
  at_medium_.host = access.host;
  at_medium_.access = access;
  at_medium_.done_at = end;
  head_ = {access.end, end, access.op};
}

// When the electronics have accepted a command. If they work on several commands, this is concurrent with the
// mechanics.
Nanos HardDisk::taken_at(Nanos now, const Access& access) const {
  if (!access.host) return now;
  if (mechanics_.queue_depth > 1) return std::max(now, access.submitted + mechanics_.command_ns);
  return now + mechanics_.command_ns;
}

Nanos HardDisk::seek_ns(double from, double to) const {
  if (from == to) return 0;
  const auto grown = static_cast<double>(mechanics_.full_seek_ns - mechanics_.track_seek_ns);
  return mechanics_.track_seek_ns + static_cast<Nanos>(grown * std::sqrt(std::abs(to - from)));
}

double HardDisk::rate_mb_s(std::uint64_t place) const {
  const double share = static_cast<double>(place) / static_cast<double>(format_.capacity_bytes);
  return mechanics_.outer_mb_s + (mechanics_.inner_mb_s - mechanics_.outer_mb_s) * share;
}

Nanos HardDisk::transfer_begins(Nanos now, const Access& access) const {
  const bool is_sequential = access.begin == head_.bytes && access.op == head_.op;
  // The sector after the last one passes under the head now, and again only after a revolution. Write-back that pauses
  // has nothing left to continue with.
  if (is_sequential && (access.host || head_.free_at == now)) return head_.free_at;
  const auto capacity = static_cast<double>(format_.capacity_bytes);
  const double from = static_cast<double>(head_.bytes) / capacity;
  const double to = static_cast<double>(access.begin) / capacity;
  Nanos ready = taken_at(now, access) + seek_ns(from, to);
  if (access.op == Opcode::write) ready += mechanics_.write_settle_ns;
  // The position of the sector on its track, as time since the index mark passed.
  const auto revolution = static_cast<double>(mechanics_.revolution_ns);
  const double from_start = static_cast<double>(access.begin) * 1000 / rate_mb_s(access.begin);
  const Nanos wait = (static_cast<Nanos>(std::fmod(from_start, revolution)) - ready % mechanics_.revolution_ns) %
                     mechanics_.revolution_ns;
  return ready + (wait < 0 ? wait + mechanics_.revolution_ns : wait);
}

// ---------------------------------------------------------------------------------------------------------------------

std::uint64_t HardDisk::units(std::uint64_t bytes) const {
  return (bytes + format_.mapping_unit_bytes - 1) / format_.mapping_unit_bytes;
}

void HardDisk::count(const Command& command) {
  const std::uint64_t bytes = bytes_of(command);
  switch (command.op) {
    case Opcode::read:
      ++counters_.host_reads;
      counters_.host_bytes_read += bytes;
      counters_.host_bytes_read_by_cause[command.cause] += bytes;
      break;
    case Opcode::write:
      ++counters_.host_writes;
      counters_.host_bytes_written += bytes;
      counters_.host_bytes_written_by_cause[command.cause] += bytes;
      counters_.nand_bytes_programmed[static_cast<std::size_t>(ssd::FlashCause::host)] += bytes;
      break;
    case Opcode::deallocate:
      ++counters_.host_deallocates;
      counters_.host_bytes_deallocated += bytes;
      break;
    case Opcode::flush:
      ++counters_.host_flushes;
      break;
    default:  // key-value commands, which are never submitted to a disk
      break;
  }
}

}  // namespace spillway::device
