// The flash plane: what an operating system's file system and page cache would do to a drive for files whose contents
// are kept elsewhere.
//
// Callers tell a Volume what they do to files; it gives the files LBAs, turns their writes, syncs and deletes into
// commands on a device::Device, and makes the caller wait as long as the drive would. It stores no contents.
//
// What is modelled
//   Space      Files grow in chunks that double with the file up to VolumeOptions::max_chunk_bytes and are cut to their
//              pages when their last writer closes. Freed space is coalesced.
//   Buffered   Written pages are dirty until `writeback_bytes` of a file have gathered; then its whole pages go to the
//              drive, at most `outstanding_bytes` of a file at a time, and as much for a sync. What does not fit waits
//              in memory, and is taken up whenever anything is written through the volume, as by the kernel's flusher
//              threads. A writer waits only beyond `dirty_bytes` of its file, or in virtual time as soon as write-back
//              lags. sync() pushes out what was written before it and waits, then sends a flush command; writers go on
//              meanwhile, as beside fsync() on ext4 and XFS. close() waits for nothing. A partial page that was pushed
//              out and then grew is written again. Dirty pages of a deleted file never reach the drive.
//   Direct     A write is a command now, and waited for.
//   Reads      Charged in 4 KiB pages unless they are dirty, or in the modelled page cache (clock replacement); a
//              sequential reader then reads ahead. page_cache_bytes = 0 charges every read as it comes. Direct reads
//              are always charged, and are not cached.
//   Deletes    With discard, freed LBAs are deallocated on the drive before they can be used again; without, the drive
//              goes on believing that they hold data.
// What is not: the file system's own metadata and journal, directory syncs, and the background write-back of dirty
// pages by age. Each would add host writes; RocksDB's files are few and large, so they are small beside the data.
//
// Thread-safe. A File is shared by any number of threads, as a file descriptor is.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "device/device.h"
#include "fs/volume_observer.h"

namespace spillway::fs {

using device::Cause;

inline constexpr std::uint64_t kPageBytes = 4096;  // of the page cache, and the unit of allocation (x86-64, ext4, XFS)

enum class Access : std::uint8_t { buffered, direct };

// Where a file that grows looks for space first.
enum class Placement : std::uint8_t {
  next_fit,   // behind the last allocation: over time files wander over the whole drive
  first_fit,  // at the lowest address: freed LBAs are used again soon, the far end of the drive stays untouched
};

struct VolumeOptions {
  // Of the partition, from the drive's first LBA on; 0: the whole drive.
  std::uint64_t size_bytes = 0;
  bool discard = true;
  // Compressed size / size of what files hold, in (0, 1]: stated to drives that compress with every write.
  double compression_ratio = 1;
  // The volume only watches: contents are on a drive of their own, and what this volume's drive cannot do (it is full)
  // is nobody's failure. The first time, the volume keeps the reason and charges nothing any more; calls go on to
  // succeed. See Volume::failure().
  bool passive = false;
  Placement placement = Placement::next_fit;
  std::uint64_t page_cache_bytes = 0;
  std::uint64_t writeback_bytes = 1 << 20;  // at least kPageBytes
  // Of closed files, in memory, all together: they reach the drive when so many more were closed after them, or not at
  // all where they are deleted before. 0: a file is written back when it is closed. Linux keeps such pages for 30 s
  // (vm.dirty_expire_centisecs) or until vm.dirty_background_ratio, 10 % of memory.
  std::uint64_t closed_dirty_bytes = 0;
  // Of one file, in flight; writeback_bytes where that is more. Source: guess, a few commands deep, as Linux'
  // write-back throttling (blk-wbt) keeps it.
  std::uint64_t outstanding_bytes = 8 << 20;
  // Of one file, in memory; its writer waits beyond it. Source: guess, a WAL of RocksDB's default size; Linux'
  // vm.dirty_ratio is 20 % of memory for all files together.
  std::uint64_t dirty_bytes = 64 << 20;
  // One command at most. Source: Linux caps a request at max_sectors_kb, 1280 by default; a power of two near it.
  std::uint64_t max_transfer_bytes = 1 << 20;
  std::uint64_t min_chunk_bytes = 64 << 10;
  std::uint64_t max_chunk_bytes = 8 << 20;
  // Read-ahead of sequential buffered readers. Source: Linux' default read_ahead_kb, 128.
  std::uint64_t readahead_bytes = 128 << 10;
  VolumeObserver* observer = nullptr;  // REQUIRES: outlives the volume
};

struct Space {
  std::uint64_t capacity_bytes = 0;
  std::uint64_t held_bytes = 0;     // given to files, chunks that are still growing included
  std::uint64_t free_bytes = 0;     // capacity - held
  std::uint64_t adopted_bytes = 0;  // part of held: of files found in the directory, not made here
};

class FileReads;
class Volume;
struct Inode;

// A read on its way. When this goes and nobody waited, it is left to the drive. REQUIRES: the volume outlives it
class ReadInFlight {
 public:
  virtual ~ReadInFlight() = default;
  // REQUIRES: not called before
  virtual Status wait() = 0;
};

// An open file. Closing (or destroying) the last writer cuts the file to its pages.
class File {
 public:
  ~File();
  File(const File&) = delete;
  File& operator=(const File&) = delete;

  // Writes `length` bytes at `offset`; beyond the end of the file, what lies between has LBAs that hold no data.
  // REQUIRES: opened for writing.
  // drive_full: the volume has no space, and nothing of this write is charged; or the drive failed, now or in an
  // earlier write of this file that nobody waited for.
  Status write(std::uint64_t offset, std::uint64_t length, Access access);

  struct Range {
    std::uint64_t offset = 0;
    std::uint64_t length = 0;
  };
  // Reads all ranges, in flight together. What lies behind the end of the file is not charged.
  Status read(const std::vector<Range>& ranges, Access access, Cause cause);
  // The same, and the caller goes on meanwhile.
  Result<std::unique_ptr<ReadInFlight>> begin_read(const std::vector<Range>& ranges, Access access, Cause cause);

  // Hands dirty whole pages to the drive, as many as may be in flight, and waits for nothing.
  Status push_out();
  // Hands over dirty whole pages and waits until the drive has them; its write cache is not flushed.
  Status write_out();
  // Everything written before is on the drive, and the drive's write cache is flushed, when this returns.
  Status sync();
  Status truncate(std::uint64_t size);
  Status close();

  std::uint64_t size() const;
  // Of the writes to come; what is dirty goes to the drive first, under the cause it was written for. A writer may
  // learn why it writes only after the file was made (RocksDB), or write for several causes in turn (WiredTiger).
  void set_cause(Cause cause);

 private:
  friend class Volume;
  friend class FileReads;
  File(Volume* volume, std::shared_ptr<Inode> inode, bool writer);

  struct ReadAhead {              // guarded by the inode's lock
    std::uint64_t next_page = 0;  // where a sequential reader would go on
    std::uint64_t window_pages = 0;
  };

  Volume* volume_;
  std::shared_ptr<Inode> inode_;
  const bool writer_;
  bool closed_ = false;
  ReadAhead readahead_;
};

class Volume {
 public:
  // REQUIRES: device outlives the volume; device.info().lba_bytes divides kPageBytes; options.writeback_bytes holds a
  // page; options.size_bytes is no more than the drive's capacity.
  Volume(device::Device& device, const VolumeOptions& options);
  ~Volume();
  Volume(const Volume&) = delete;
  Volume& operator=(const Volume&) = delete;

  // A new and empty file; one of the same name is removed first.
  Result<std::unique_ptr<File>> create(const std::string& path, Cause cause);
  // A file that is there. `size_bytes` is its size in the directory: a name the volume does not know is adopted with
  // it.
  Result<std::unique_ptr<File>> open(const std::string& path, std::uint64_t size_bytes, Cause cause, bool writer);
  // Makes a file of the directory known: it is given LBAs, but nothing is written; the drive counts later reads of them
  // as unmapped. Does nothing when the name is known.
  Status adopt(const std::string& path, std::uint64_t size_bytes, Cause cause);

  // Names that the volume does not know are passed over in silence: what is not on the drive costs it nothing.
  Status remove(const std::string& path);
  Status rename(const std::string& from, const std::string& to);
  Status link(const std::string& from, const std::string& to);
  Status truncate(const std::string& path, std::uint64_t size_bytes);

  bool knows(const std::string& path) const;
  Space space() const;
  device::Device& device();
  const VolumeOptions& options() const;
  // Why a passive volume has charged nothing since; ok while it does.
  Status failure() const;

  // Writes out what is dirty of every file, waits for it and has the drive flush its cache, as syncfs(2) does. The
  // first failure is returned; the other files are written all the same.
  Status sync();
  // Writes out what is dirty and waits for it; from now on nothing is charged any more. For a process that exits while
  // its database still runs.
  void detach();

  // The table of files and extents: written beside the target and renamed, so that it is whole or not there. load()
  // refuses, with one sentence, a table that is damaged or of another drive; names that `exists` does not confirm are
  // removed. `renamed` makes a name in the table of a file's name, and the other way round: a directory may have moved.
  // REQUIRES: load() before any file is made.
  using Renamed = std::function<std::string(const std::string&)>;
  Status save(const std::string& path, const Renamed& renamed = {}) const;
  Status load(const std::string& path, const std::function<bool(const std::string&)>& exists,
              const Renamed& renamed = {});
  // Of every file that has one.
  std::vector<std::string> names() const;

 private:
  friend class File;
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace spillway::fs
