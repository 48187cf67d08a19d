#include "device/emulated/model_frontend.h"

#include <cassert>
#include <limits>

#include "ssd/interface/kv_command.h"

namespace spillway::device {
namespace {

constexpr std::uint64_t kMaxTransferBytes = std::uint64_t{1} << 30;  // Io's limit for reads and writes

Fault fault_of(ssd::Outcome outcome) {
  switch (outcome) {
    case ssd::Outcome::success:
      return Fault::none;
    case ssd::Outcome::lba_out_of_range:
      return Fault::bad_input;
    case ssd::Outcome::capacity_exceeded:
    case ssd::Outcome::kv_capacity_exceeded:
      return Fault::drive_full;
    case ssd::Outcome::kv_invalid_value_size:
    case ssd::Outcome::kv_invalid_key_size:
    case ssd::Outcome::kv_invalid_namespace:
    case ssd::Outcome::kv_invalid_field:
      return Fault::bad_input;
    case ssd::Outcome::kv_invalid_opcode:
      return Fault::not_supported;
    case ssd::Outcome::kv_key_does_not_exist:  // results, not failures
    case ssd::Outcome::kv_key_exists:
      return Fault::none;
  }
  return Fault::io_error;
}

}  // namespace

ModelFrontend::ModelFrontend(DriveModel drive) : drive_(std::move(drive)), lba_bytes_(drive_.lba_bytes()) {}

Status ModelFrontend::check(std::span<const Io> ios) const {
  for (const Io& io : ios) {
    if (io.op == Opcode::flush) continue;
    if (is_kv(io.op)) {
      const ssd::Ssd* const flash = drive_.flash();
      if (io.extension != nullptr && flash != nullptr && flash->config().namespaces.kv_share > 0) continue;
      return Status::error(Fault::not_supported, drive_.name() +
                                                     ": this drive has no key-value namespace; give it one with "
                                                     "namespaces.kv_share above 0");
    }
    const bool transfers = io.op == Opcode::read || io.op == Opcode::write;
    const std::uint64_t limit =
        transfers ? kMaxTransferBytes : std::uint64_t{std::numeric_limits<std::uint32_t>::max()} * lba_bytes_;
    if (io.offset_bytes % lba_bytes_ != 0 || io.length_bytes % lba_bytes_ != 0 || io.length_bytes == 0 ||
        io.length_bytes > limit) {
      return Status::bad_input("io of " + std::to_string(io.length_bytes) + " bytes at " +
                               std::to_string(io.offset_bytes) + ": offset and length must be multiples of " +
                               std::to_string(lba_bytes_) + " bytes, and the length between one of them and " +
                               std::to_string(limit));
    }
  }
  return {};
}

void ModelFrontend::submit(Nanos now, const Io& io, std::uint32_t queue, std::uint32_t slot) {
  if (const auto next = drive_.next_event(); next && *next <= now) advance(now);
  assert(now >= time_);
  time_ = now;
  ssd::Command command;
  command.tag = (std::uint64_t{queue} << 32) | slot;
  command.op = io.op;
  command.cause = static_cast<std::uint8_t>(io.cause);
  command.queue = static_cast<std::uint16_t>(queue);
  if (is_kv(io.op)) {
    ssd::KvCommand kv = static_cast<const KvIoExtension*>(io.extension)->command;
    kv.tag = command.tag;
    kv.op = command.op;
    kv.cause = command.cause;
    kv.queue = command.queue;
    if (arrivals_ != nullptr) arrivals_->push_back({now, command, std::make_shared<const ssd::KvCommand>(kv)});
    drive_.submit_kv(now, std::move(kv));
    return;
  }
  command.lba = io.offset_bytes / lba_bytes_;
  command.lba_count = static_cast<std::uint32_t>(io.length_bytes / lba_bytes_);
  command.compressed_share = io.compressed_share;
  if (arrivals_ != nullptr) arrivals_->push_back({now, command, nullptr});
  drive_.submit(now, command);
}

void ModelFrontend::advance(Nanos now) {
  assert(now >= time_);
  time_ = now;
  const std::size_t before = done_.size();
  drive_.advance(now, done_);
  if (completions_ != nullptr) {
    completions_->insert(completions_->end(), done_.begin() + static_cast<std::ptrdiff_t>(before), done_.end());
  }
}

Nanos ModelFrontend::settle() {
  while (const auto next = drive_.next_event()) advance(std::max(*next, time_));
  return time_;
}

Done ModelFrontend::done_of(const ssd::Completion& completion, std::uint64_t tag) {
  return {tag, completion.submitted, completion.completed, fault_of(completion.outcome), completion.outcome};
}

DeviceInfo ModelFrontend::info(double time_scale) const {
  DeviceInfo info;
  info.name = drive_.name();
  info.capacity_bytes = drive_.capacity_bytes();
  info.lba_bytes = drive_.lba_bytes();
  info.mapping_unit_bytes = drive_.mapping_unit_bytes();
  info.time_scale = time_scale;
  if (const ssd::Ssd* const flash = drive_.flash()) {
    info.dies = flash->config().geometry.dies();
    info.channels = flash->config().geometry.channels;
    info.host_link_mb_s = flash->config().timing.host_link_mb_s;
  }
  return info;
}

Device::Wear ModelFrontend::wear() const {
  const ssd::Ssd* const flash = drive_.flash();
  if (flash == nullptr) return {};
  return {flash->mean_pe_cycles(), flash->max_pe_cycles(), flash->config().wear_levelling.rated_pe_cycles};
}

void ModelFrontend::record_trace(std::vector<Arrival>* arrivals, std::vector<ssd::Completion>* completions) {
  arrivals_ = arrivals;
  completions_ = completions;
}

}  // namespace spillway::device
