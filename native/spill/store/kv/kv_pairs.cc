#include "spill/store/kv/kv_pairs.h"

#include <algorithm>
#include <cstring>
#include <string>

#include "spill/store/checksum.h"

namespace spillway::spill {

using rocksdb::Slice;
using rocksdb::Status;

RecordFrame frame_of(Position where, const Slice& record) {
  struct {
    Position where;
    std::uint64_t length;
  } const named{where, record.size()};
  return {static_cast<std::uint32_t>(record.size()),
          crc32c({Slice(reinterpret_cast<const char*>(&named), sizeof named), record})};
}

Status damaged_at(Position where) {
  return Status::Corruption("the key-value namespace of the spill store is damaged at byte " +
                            std::to_string(where.offset) + " of generation " + std::to_string(where.generation));
}

bool Assembler::wants(Position position) const {
  if (missing_ == 0 && position.generation > generation_) return position.offset == 0;
  if (missing_ == 0) return position == Position{generation_, next_};
  return position == Position{generation_, offset_of_pair(begins_, pieces_, pair_bytes_)};
}

bool Assembler::take(Position position, std::string_view bytes, Status* status) {
  if (bytes.size() > pair_bytes_) {
    *status = Status::NotSupported("the key-value namespace has a pair of " + std::to_string(bytes.size()) +
                                   " bytes, and its staging file, which says how large pairs are, is not there");
    return false;
  }
  if (!wants(position) || bytes.empty()) return false;
  if (missing_ == 0) return take_records(position, bytes, status);
  if (bytes.size() > missing_ || (bytes.size() < missing_ && bytes.size() != pair_bytes_)) return false;
  bytes_.append(bytes);
  missing_ -= bytes.size();
  ++pieces_;
  next_ += pair_bytes_;
  if (missing_ > 0) return true;
  *status = hand_over(begins_, frame_, bytes_);
  if (status->ok()) end_ = {generation_, next_};
  return status->ok();
}

Status Assembler::hand_over(std::uint64_t offset, const RecordFrame& frame, const Slice& record) {
  const Position where{generation_, offset};
  if (frame_of(where, record).checksum != frame.checksum) return damaged_at(where);
  return each_({generation_, offset, record});
}

bool Assembler::take_records(Position position, std::string_view bytes, Status* status) {
  generation_ = position.generation;
  next_ = position.offset + pair_bytes_;
  for (std::size_t at = 0; at < bytes.size();) {
    const std::string_view rest = bytes.substr(at);
    const std::uint64_t offset = position.offset + at;
    RecordFrame frame;
    if (rest.size() > sizeof frame) std::memcpy(&frame, rest.data(), sizeof frame);
    const std::string_view record = rest.substr(std::min(rest.size(), sizeof frame));
    const bool is_of_several_pairs = frame.length > record.size() && at == 0 && bytes.size() == pair_bytes_;
    if (frame.length == 0 || (frame.length > record.size() && !is_of_several_pairs)) {
      *status = damaged_at({generation_, offset});
      return false;
    }
    if (is_of_several_pairs) {
      frame_ = frame;
      begins_ = position.offset;
      pieces_ = 1;
      bytes_ = record;
      missing_ = frame.length - record.size();
      return true;
    }
    *status = hand_over(offset, frame, Slice(record.data(), frame.length));
    if (!status->ok()) return false;
    at += framed_bytes(frame.length);
    end_ = {generation_, position.offset + at};
  }
  return true;
}

Status status_of(const device::KvDone& done, const char* what) {
  using ssd::Outcome;
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

}  // namespace spillway::spill
