#include "spill/kv_pairs.h"

#include <cstring>

namespace spillway::spill {

using rocksdb::Slice;
using rocksdb::Status;

bool Assembler::wants(Position position) const {
  if (missing_ == 0 && position.generation > generation_) return position.offset == 0;
  if (missing_ == 0) return position == Position{generation_, next_};
  return position == Position{generation_, offset_of_pair(begins_, pieces_, pair_bytes_)};
}

bool Assembler::take(Position position, std::string_view bytes, Status* status) {
  if (!wants(position) || bytes.empty()) return false;
  if (missing_ == 0) return take_records(position, bytes, status);
  if (bytes.size() > missing_ || (bytes.size() < missing_ && bytes.size() != pair_bytes_)) return false;
  bytes_.append(bytes);
  missing_ -= bytes.size();
  ++pieces_;
  next_ += pair_bytes_;
  if (missing_ > 0) return true;
  end_ = {generation_, next_};
  *status = each_({generation_, begins_, bytes_});
  return status->ok();
}

bool Assembler::take_records(Position position, std::string_view bytes, Status* status) {
  generation_ = position.generation;
  next_ = position.offset + pair_bytes_;
  for (std::size_t at = 0; at < bytes.size();) {
    const std::string_view rest = bytes.substr(at);
    if (rest.size() <= sizeof(RecordLength)) return false;
    RecordLength length = 0;
    std::memcpy(&length, rest.data(), sizeof(length));
    if (length == 0) return false;
    const std::string_view record = rest.substr(sizeof(length));
    if (length > record.size()) {
      if (at != 0 || bytes.size() != pair_bytes_) return false;
      begins_ = position.offset;
      pieces_ = 1;
      bytes_ = record;
      missing_ = length - record.size();
      return true;
    }
    at += framed_bytes(length);
    end_ = {generation_, position.offset + at};
    *status = each_({generation_, end_.offset - framed_bytes(length), Slice(record.data(), length)});
    if (!status->ok()) return false;
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
