// How much of each log of the software region was durable, in a small file in the logs' directory: DURABLE.
//
//   header  "SPILLEND" | version u32 | CRC-32C u32 | salt u64                                         (24 bytes)
//   entry   CRC-32C u32 of the salt and what follows | kind u32 | generation u64 | the log's salt u64 | bytes u64
//           (32 bytes, little-endian). Kind 1: that many bytes of the log are durable. Kind 2: the store was closed
//           with that many logs, whose ends are in this file
//
// An entry is appended after a sync of a log has returned, and is not synced itself: a killed process leaves it, a loss
// of power may take it. So an entry that is there is true, and a missing one says nothing. Without this file, an
// incomplete end of the newest log could always be the work of a loss of power, and would be cut.
//
// Before an entry becomes untrue, as when a log is cut, the file is replaced, durably.
#pragma once

#include <rocksdb/file_system.h>

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "spill/store/region/log_frame.h"
#include "spill/store/store.h"

namespace spillway::spill {

struct DurableEnd {
  GenerationId generation = 0;
  std::uint64_t salt = 0;  // of the log: one of the same number may have come later
  std::uint64_t bytes = 0;
};

inline constexpr char kEndsFile[] = "DURABLE";

// What such a file says.
struct FoundEnds {
  std::map<GenerationId, DurableEnd> ends;
  bool was_closed = false;  // these are all the logs that there were
  // Offset of the first byte that does not fit its checksum and was not torn at the end: nothing of the file is used.
  std::optional<std::uint64_t> damaged_at;
};
// Where the file is not there, or nothing in it fits its checksum: nothing is in `ends`. NotSupported: another version
// wrote it, whose header has the same form.
rocksdb::Status read_ends(rocksdb::FileSystem& files, const std::string& path, FoundEnds* found);
// Whether more of the log was durable than is whole. `salt`: the log's, 0 where its header is not whole.
bool was_longer(const FoundEnds& found, GenerationId generation, std::uint64_t salt, std::uint64_t whole_to);

class DurableEnds {
 public:
  // REQUIRES: both outlive it
  DurableEnds(rocksdb::FileSystem& files, rocksdb::FSDirectory& directory, std::string path);

  rocksdb::Status read();
  const FoundEnds& found() const { return found_; }  // what an earlier process left

  // From now on the file says this, `durably` when it returns. `closed`: and that there is nothing else.
  rocksdb::Status replace(const std::vector<DurableEnd>& ends, bool closed, bool durably);
  bool is_begun() const { return is_begun_; }  // replaced since it was opened
  // Adds one. What cannot be written is left out. By any thread.
  void add(const DurableEnd& end);
  // The log was dropped: what the file says of it has no meaning any more.
  void remove(GenerationId generation);

 private:
  rocksdb::IOStatus write(const std::string& entries, bool durably) REQUIRES(mutex_);

  rocksdb::FileSystem& files_;
  rocksdb::FSDirectory& directory_;
  const std::string path_;
  FoundEnds found_;
  std::atomic<bool> is_begun_ = false;

  Mutex mutex_;
  std::map<GenerationId, DurableEnd> said_ GUARDED_BY(mutex_);
  std::unique_ptr<rocksdb::FSWritableFile> file_ GUARDED_BY(mutex_);
  std::uint64_t salt_ GUARDED_BY(mutex_) = 0;
  std::uint64_t added_ GUARDED_BY(mutex_) = 0;  // since the file was rewritten
};

}  // namespace spillway::spill
