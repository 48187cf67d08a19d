#include "spill/store/region/log_frame.h"

#include <algorithm>
#include <cassert>
#include <cstring>
#include <functional>
#include <limits>
#include <memory>
#include <system_error>
#include <vector>

#include "spill/store/checksum.h"

namespace spillway::spill {

namespace {

constexpr char kMagic[] = "SPILLOG";
constexpr std::size_t kMagicBytes = sizeof kMagic - 1;
constexpr char kVersion = 3;  // version 2 had no DURABLE file (durable_ends.h), and would not remove one
constexpr std::size_t kChecksumBytes = 4;
constexpr std::size_t kNamedBytes = kLogHeaderBytes - kChecksumBytes;  // of the header, under its checksum
constexpr std::size_t kFirstHeaderBytes = 28;                          // of version 1

template <typename Integer>
void put(Integer value, char* into) {
  for (std::size_t i = 0; i < sizeof value; ++i) into[i] = static_cast<char>(value >> (8 * i));
}

template <typename Integer>
Integer get(const char* from) {
  Integer value = 0;
  for (std::size_t i = 0; i < sizeof value; ++i)
    value |= static_cast<Integer>(static_cast<unsigned char>(from[i])) << (8 * i);
  return value;
}

bool ends_with_checksum(const rocksdb::Slice& bytes) {
  const std::size_t named = bytes.size() - kChecksumBytes;
  return checksum_of({rocksdb::Slice(bytes.data(), named)}) == rocksdb::Slice(bytes.data() + named, kChecksumBytes);
}

struct NameBytes {
  explicit NameBytes(const LogName& name) {
    put(name.salt, bytes);
    put(name.generation, bytes + sizeof name.salt);
  }
  rocksdb::Slice slice() const { return {bytes, sizeof bytes}; }
  char bytes[16];
};

std::uint64_t durable_bytes(const char* frame) { return get<std::uint64_t>(frame + kChecksumBytes + 4); }

}  // namespace

std::string digits_of(GenerationId generation) {
  std::string digits = std::to_string(generation);
  if (digits.size() < 6) digits.insert(0, 6 - digits.size(), '0');
  return digits;
}

std::string encode_log_header(const LogName& name) {
  std::string header(kNamedBytes, '\0');
  std::memcpy(header.data(), kMagic, kMagicBytes);
  header[kMagicBytes] = kVersion;
  put(name.generation, header.data() + 8);
  put(name.salt, header.data() + 16);
  put(name.after, header.data() + 24);
  put(name.after_bytes, header.data() + 32);
  put(name.durable_before, header.data() + 40);
  return header + checksum_of({header});
}

HeaderFault decode_log_header(const rocksdb::Slice& bytes, LogName* name) {
  if (bytes.size() < kFirstHeaderBytes || !bytes.starts_with(kMagic)) return HeaderFault::torn;
  // Before a version is believed: a torn sector may have changed that byte alone.
  if (bytes[kMagicBytes] == 1 && ends_with_checksum({bytes.data(), kFirstHeaderBytes})) {
    return HeaderFault::other_version;
  }
  if (bytes.size() < kLogHeaderBytes || !ends_with_checksum({bytes.data(), kLogHeaderBytes})) return HeaderFault::torn;
  if (bytes[kMagicBytes] != kVersion) return HeaderFault::other_version;
  name->generation = get<std::uint64_t>(bytes.data() + 8);
  name->salt = get<std::uint64_t>(bytes.data() + 16);
  name->after = get<std::uint64_t>(bytes.data() + 24);
  name->after_bytes = get<std::uint64_t>(bytes.data() + 32);
  name->durable_before = get<std::uint64_t>(bytes.data() + 40);
  return HeaderFault::none;
}

bool names_other_version(const rocksdb::Slice& header) {
  return header.size() > kMagicBytes && header.starts_with(kMagic) && header[kMagicBytes] != kVersion;
}

void append_frame(const LogName& name, const rocksdb::Slice& record, std::uint64_t durable_bytes, std::string* log) {
  assert(!record.empty() && record.size() <= std::numeric_limits<std::uint32_t>::max());
  char header[kFrameHeaderBytes - kChecksumBytes];
  put(static_cast<std::uint32_t>(record.size()), header);
  put(durable_bytes, header + sizeof(std::uint32_t));
  log->append(checksum_of({NameBytes(name).slice(), rocksdb::Slice(header, sizeof header), record}));
  log->append(header, sizeof header);
  log->append(record.data(), record.size());
}

std::uint32_t frame_length(const char* frame) { return get<std::uint32_t>(frame + kChecksumBytes); }

bool frame_is_whole(const LogName& name, const rocksdb::Slice& frame) {
  if (frame.size() <= kFrameHeaderBytes) return false;
  const rocksdb::Slice behind(frame.data() + kChecksumBytes, frame.size() - kChecksumBytes);
  return checksum_of({NameBytes(name).slice(), behind}) == rocksdb::Slice(frame.data(), kChecksumBytes);
}

rocksdb::IOStatus was_durable(const rocksdb::FSRandomAccessFile& file, const LogName& name, std::uint64_t offset,
                              std::uint64_t end, bool* durable) {
  *durable = false;
  std::string piece;
  std::string frame;
  for (std::uint64_t at = offset + 1; at + kFrameHeaderBytes < end;) {
    piece.resize(std::min(end - at, kScanReadBytes));
    std::uint64_t got = 0;
    rocksdb::IOStatus status = read_at(file, {}, at, piece.size(), piece.data(), &got);
    if (!status.ok() || got <= kFrameHeaderBytes) return status;
    const std::uint64_t begins = got - kFrameHeaderBytes + 1;  // of headers that are whole in this piece
    for (std::uint64_t i = 0; i < begins; ++i) {
      const char* const header = piece.data() + i;
      const std::uint64_t bytes = kFrameHeaderBytes + frame_length(header);
      // Of bytes that are no frame hardly any come past this.
      if (durable_bytes(header) <= offset || durable_bytes(header) > at + i || bytes > end - (at + i)) continue;
      frame.resize(bytes);
      std::uint64_t frame_got = 0;
      status = read_at(file, {}, at + i, bytes, frame.data(), &frame_got);
      if (!status.ok()) return status;
      *durable = frame_got == bytes && frame_is_whole(name, frame);
      if (*durable) return status;
    }
    at += begins;
  }
  return {};
}

rocksdb::IOStatus read_at(const rocksdb::FSRandomAccessFile& file, const rocksdb::IOOptions& options,
                          std::uint64_t offset, std::uint64_t bytes, char* into, std::uint64_t* got) {
  rocksdb::Slice result;
  const rocksdb::IOStatus status = file.Read(offset, bytes, options, &result, into, nullptr);
  if (!status.ok()) return status;
  if (result.data() != into) std::memcpy(into, result.data(), result.size());
  *got = result.size();
  return status;
}

LogReader::LogReader(rocksdb::FSRandomAccessFile& file, const LogName& name, std::uint64_t end)
    : file_(file), name_(name), end_(end) {}

LogReader::Next LogReader::next() {
  offset_ += frame_bytes_;
  frame_bytes_ = 0;
  if (offset_ >= end_) return Next::end;
  if (end_ - offset_ <= kFrameHeaderBytes) return Next::torn;
  if (!load_buffer(kFrameHeaderBytes)) return status_.ok() ? Next::torn : Next::error;
  // Checked against the rest of the file first, so that an arbitrary length does not become an allocation.
  const std::uint64_t bytes = kFrameHeaderBytes + frame_length(rest().data());
  if (bytes > end_ - offset_) return Next::torn;
  if (!load_buffer(bytes)) return status_.ok() ? Next::torn : Next::error;
  if (!frame_is_whole(name_, {rest().data(), bytes})) return Next::torn;
  frame_bytes_ = bytes;
  return Next::record;
}

LogReader::Pieces LogReader::read_pieces(rocksdb::FSRandomAccessFile& file, std::uint64_t begin, std::uint64_t end) {
  rocksdb::IOOptions options;
  options.rate_limiter_priority = rocksdb::Env::IO_LOW;  // no user waits for this very read
  Pieces result;
  result.bytes.resize(end - begin);
  std::vector<rocksdb::FSReadRequest> pieces;
  for (std::uint64_t at = begin; at < end; at += pieces.back().len) {
    rocksdb::FSReadRequest& piece = pieces.emplace_back();
    piece.offset = at;
    piece.len = std::min(end, (at / kScanReadBytes + 1) * kScanReadBytes) - at;
    piece.scratch = result.bytes.data() + (at - begin);
  }
  result.status = file.MultiRead(pieces.data(), pieces.size(), options, nullptr);
  std::size_t got = 0;
  for (const rocksdb::FSReadRequest& piece : pieces) {
    if (!result.status.ok()) break;
    if (!piece.status.ok() && got == 0)
      result.status = piece.status;  // what lies before a bad piece is given out first
    if (!piece.status.ok()) break;
    if (piece.result.data() != piece.scratch) std::memcpy(piece.scratch, piece.result.data(), piece.result.size());
    got += piece.result.size();
    if (piece.result.size() < piece.len) break;
  }
  result.bytes.resize(got);
  return result;
}

// Up to a multiple of the piece, so that all but the first begin and end at pages.
std::uint64_t LogReader::end_of_pieces(std::uint64_t begin) const {
  return std::min(end_, (begin / kScanReadBytes + kScanReads) * kScanReadBytes);
}

void LogReader::read_ahead(std::uint64_t begin) {
  if (begin >= end_) return;
  try {
    ahead_ = std::async(std::launch::async, &LogReader::read_pieces, std::ref(file_), begin, end_of_pieces(begin));
  } catch (const std::system_error&) {
    ahead_ = {};  // no thread: they are read when they are needed
  }
}

// Has the next `bytes` from offset_ on in the buffer; false at an error, or if the file is shorter than it was.
bool LogReader::load_buffer(std::uint64_t bytes) {
  if (rest().size() >= bytes) return true;
  buffer_.erase(0, offset_ - buffer_at_);
  buffer_at_ = offset_;
  while (buffer_.size() < bytes) {
    const std::uint64_t begin = buffer_at_ + buffer_.size();
    const Pieces pieces = ahead_.valid() ? ahead_.get() : read_pieces(file_, begin, end_of_pieces(begin));
    status_ = pieces.status;
    if (pieces.bytes.empty()) return false;
    buffer_ += pieces.bytes;
    read_ahead(begin + pieces.bytes.size());
  }
  return true;
}

}  // namespace spillway::spill
