#include "device/hard_disk.h"

#include <algorithm>
#include <cmath>

namespace spillway::device {

using ssd::Command;
using ssd::Nanos;
using ssd::Opcode;
using ssd::Outcome;

HardDisk::HardDisk(const Mechanics& mechanics, std::uint64_t capacity_bytes, std::uint32_t lba_bytes)
    : mechanics_(mechanics), capacity_bytes_(capacity_bytes / lba_bytes * lba_bytes), lba_bytes_(lba_bytes) {}

bool HardDisk::transfers(const Command& command) const {
  return command.op == Opcode::read || command.op == Opcode::write;
}

bool HardDisk::out_of_range(const Command& command) const {
  const std::uint64_t lbas = capacity_bytes_ / lba_bytes_;
  return command.op != Opcode::flush &&
         (command.lba_count == 0 || command.lba >= lbas || command.lba_count > lbas - command.lba);
}

void HardDisk::submit(Nanos now, const Command& command) {
  waiting_.push({command, now});
  if (waiting_.size() == 1) begin_next(now);
}

std::optional<Nanos> HardDisk::next_event() const {
  return waiting_.empty() ? std::nullopt : std::optional<Nanos>(done_at_);
}

void HardDisk::advance(Nanos now, std::vector<ssd::Completion>& done) {
  while (!waiting_.empty() && done_at_ <= now) {
    const Waiting served = waiting_.front();
    waiting_.pop();
    const Outcome outcome = out_of_range(served.command) ? Outcome::lba_out_of_range : Outcome::success;
    done.push_back({served.command.tag, served.submitted, done_at_, served.command.queue, outcome});
    if (!waiting_.empty()) begin_next(done_at_);
  }
}

void HardDisk::begin_next(Nanos now) {
  const Command& command = waiting_.front().command;
  if (out_of_range(command)) {
    done_at_ = now;
    return;
  }
  count(command);
  done_at_ = transfers(command) ? service_end(now, command) : now + mechanics_.command_ns;
}

Nanos HardDisk::seek_ns(double from, double to) const {
  if (from == to) return 0;
  const auto grown = static_cast<double>(mechanics_.full_seek_ns - mechanics_.track_seek_ns);
  return mechanics_.track_seek_ns + static_cast<Nanos>(grown * std::sqrt(std::abs(to - from)));
}

Nanos HardDisk::service_end(Nanos now, const Command& command) {
  const std::uint64_t begin = command.lba * lba_bytes_;
  const std::uint64_t bytes = std::uint64_t{command.lba_count} * lba_bytes_;
  const auto capacity = static_cast<double>(capacity_bytes_);
  const double place = static_cast<double>(begin) / capacity;
  const double rate_mb_s = mechanics_.outer_mb_s + (mechanics_.inner_mb_s - mechanics_.outer_mb_s) * place;
  const auto transfer_ns = static_cast<Nanos>(static_cast<double>(bytes) * 1000 / rate_mb_s);
  const bool streams = begin == head_bytes_ && command.op == last_op_;
  Nanos media_begins = media_free_at_;
  if (!streams) {
    Nanos ready = now + mechanics_.command_ns + seek_ns(static_cast<double>(head_bytes_) / capacity, place);
    if (command.op == Opcode::write) ready += mechanics_.write_settle_ns;
    // Where on its track the sector is, in time since the index mark passed.
    const auto revolution = static_cast<double>(mechanics_.revolution_ns);
    const auto sector = static_cast<Nanos>(std::fmod(static_cast<double>(begin) * 1000 / rate_mb_s, revolution));
    const Nanos wait = (sector - ready % mechanics_.revolution_ns) % mechanics_.revolution_ns;
    media_begins = ready + (wait < 0 ? wait + mechanics_.revolution_ns : wait);
  }
  head_bytes_ = begin + bytes;
  last_op_ = command.op;
  media_free_at_ = std::max(media_begins + transfer_ns, now + mechanics_.command_ns);
  return media_free_at_;
}

void HardDisk::count(const Command& command) {
  const std::uint64_t bytes = std::uint64_t{command.lba_count} * lba_bytes_;
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
    default:  // key-value commands, which never come here
      break;
  }
}

}  // namespace spillway::device
