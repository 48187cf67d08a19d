// How a log of the software region is laid out, and the one reader that judges it.
//
//   header   "SPILLOG" | version u8 | generation u64 | salt u64 | after u64 | its bytes u64 | durable before u64 |
//            CRC-32C 4 bytes                                                                                (52 bytes)
//   frame    CRC-32C 4 bytes | length u32 | durable u64 | record (little-endian)
//
// When a log is begun, the logs before it may not be durable yet; generations below `durable before` were. `after` is
// the generation of the log just before, if that was not durable: unless all of its bytes survive, this log follows a
// hole. No frame states that anything of its log is durable before all earlier logs are.
//
// `durable` states how many bytes of the log were known to be durable when the frame was made. If anything below that
// is not intact, a loss of power has not torn it; it was damaged later. A frame's checksum covers salt, generation, and
// the rest of the frame with the record. Each log has a new random salt, so a frame of an older log, whose blocks the
// drive may reallocate, is never taken for one of this log. No record is empty, so zeros are never a frame.
#pragma once

#include <rocksdb/file_system.h>
#include <rocksdb/slice.h>

#include <cstdint>
#include <future>
#include <string>

#include "spill/store/store.h"

namespace spillway::spill {

struct LogName {
  GenerationId generation = 0;
  std::uint64_t salt = 0;
  GenerationId after = 0;
  std::uint64_t after_bytes = 0;  // 0: what came before was durable
  GenerationId durable_before = 0;
};

// The name of its file is its generation in at least six digits, and this.
inline constexpr char kLogSuffix[] = ".spill";
std::string digits_of(GenerationId generation);

inline constexpr std::uint64_t kLogHeaderBytes = 52;
inline constexpr std::uint64_t kFrameHeaderBytes = 16;
// Bytes of one read of a scan. Source: KVAccel's bulk transfers (K8).
inline constexpr std::uint64_t kScanReadBytes = 512 << 10;
// So many of them together. Source: one at a time kept a quarter of the demo's drive busy
inline constexpr std::uint64_t kScanReads = 4;

std::string encode_log_header(const LogName& name);

enum class HeaderFault : std::uint8_t { none, torn, other_version };
// `bytes` may be fewer than a header has.
HeaderFault decode_log_header(const rocksdb::Slice& bytes, LogName* name);
// Whether the byte of the version is another one, be the header whole or not.
bool names_other_version(const rocksdb::Slice& header);

// Appends the frame of `record` to `*log`. REQUIRES: 0 < record.size() < 4 GiB
void append_frame(const LogName& name, const rocksdb::Slice& record, std::uint64_t durable_bytes, std::string* log);
std::uint32_t frame_length(const char* frame);
// REQUIRES: `frame` is kFrameHeaderBytes + frame_length(frame) bytes.
bool frame_is_whole(const LogName& name, const rocksdb::Slice& frame);

// The records of a log in order, read in pieces of kScanReadBytes, some at a time and some ahead.
class LogReader {
 public:
  // Reads [kLogHeaderBytes, end) of the file.
  LogReader(rocksdb::FSRandomAccessFile& file, const LogName& name, std::uint64_t end);

  enum class Next : std::uint8_t {
    record,
    end,   // of what was to be read
    torn,  // a frame that is not whole
    error  // of the drive: status() has it
  };
  Next next();

  std::uint64_t offset() const { return offset_; }                      // of the record, or of what is not one
  std::uint64_t whole_bytes() const { return offset_ + frame_bytes_; }  // everything up to here is whole
  rocksdb::Slice frame() const { return {rest().data(), frame_bytes_}; }
  rocksdb::Slice record() const { return {rest().data() + kFrameHeaderBytes, frame_bytes_ - kFrameHeaderBytes}; }
  const rocksdb::IOStatus& status() const { return status_; }

 private:
  // What follows one another, up to a bad piece. Nothing: see the status, or the file is shorter than it was.
  struct Pieces {
    rocksdb::IOStatus status;
    std::string bytes;
  };
  static Pieces read_pieces(rocksdb::FSRandomAccessFile& file, std::uint64_t begin, std::uint64_t end);
  std::uint64_t end_of_pieces(std::uint64_t begin) const;
  void read_ahead(std::uint64_t begin);
  bool load_buffer(std::uint64_t bytes);
  rocksdb::Slice rest() const {
    return {buffer_.data() + (offset_ - buffer_at_), buffer_.size() - (offset_ - buffer_at_)};
  }

  rocksdb::FSRandomAccessFile& file_;
  const LogName name_;
  const std::uint64_t end_;
  std::string buffer_;  // of the file, from buffer_at_
  std::uint64_t buffer_at_ = kLogHeaderBytes;
  std::uint64_t offset_ = kLogHeaderBytes;
  std::uint64_t frame_bytes_ = 0;
  rocksdb::IOStatus status_;
  std::future<Pieces> ahead_;  // what follows the buffer. Its end waits for the read, so it is the last member
};

// Whether a whole frame between `offset` and `end` says that what is at `offset` was durable. Looks at every byte: a
// length that is damaged tells no more where the next frame begins.
rocksdb::IOStatus was_durable(const rocksdb::FSRandomAccessFile& file, const LogName& name, std::uint64_t offset,
                              std::uint64_t end, bool* durable);

// `bytes` bytes of a file, or fewer at its end.
rocksdb::IOStatus read_at(const rocksdb::FSRandomAccessFile& file, const rocksdb::IOOptions& options,
                          std::uint64_t offset, std::uint64_t bytes, char* into, std::uint64_t* got);

}  // namespace spillway::spill
