#include "engine/vlog/record_reader.h"

#include <algorithm>

namespace spillway::engine::vlog {

namespace {

// Bytes of one read. Source: guess, a command of the drive's largest transfer (fs/volume.h).
constexpr std::uint64_t kReadBytes = 1 << 20;

}  // namespace

Result<std::uint64_t> RecordReader::load_buffer(std::uint64_t bytes) {
  const std::uint64_t wanted = std::min(bytes, end_ - at_);
  if (at_ < buffer_at_ || at_ + wanted > buffer_at_ + buffer_.size()) {
    const std::uint64_t length = std::min(std::max(wanted, kReadBytes), end_ - at_);
    buffer_.resize(length);
    buffer_at_ = at_;
    if (Status status = segment_->read({{at_, length, buffer_.data()}}, cause_); !status) return status;
  }
  return wanted;
}

Result<std::optional<LocatedRecord>> RecordReader::next() {
  if (at_ >= end_) return std::optional<LocatedRecord>();
  auto have = load_buffer(kMostPrefixBytes);
  if (!have) return have.status();
  const auto length = record_length(std::string_view(buffer_).substr(at_ - buffer_at_, *have));
  if (!length || *length > end_ - at_) return std::optional<LocatedRecord>();
  if (have = load_buffer(*length); !have) return have.status();
  const Position at{segment_->number(), static_cast<std::uint32_t>(at_)};
  const auto record = parse_record(at, std::string_view(buffer_).substr(at_ - buffer_at_, *length));
  if (!record) return std::optional<LocatedRecord>();
  at_ += *length;
  return std::optional<LocatedRecord>({.record = *record, .address = {at, static_cast<std::uint32_t>(*length)}});
}

}  // namespace spillway::engine::vlog
