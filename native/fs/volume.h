// The flash plane: what an operating system's file system and page cache would do to a drive, for files whose contents
// are kept elsewhere.
//
// Callers report each file operation to a Volume. It assigns LBAs to the files, turns writes, syncs and deletes into
// commands on a device::Device, and makes the caller wait as long as the drive would. It stores no contents.
//
// What is modelled
//   Space      Files grow in chunks that double with the file up to VolumeOptions::max_chunk_bytes and are cut to their
//              pages when their last writer closes. Freed space is coalesced.
//   Buffered   Written pages are dirty until `writeback_bytes` of a file have gathered. Then its whole pages go to the
//              drive, at most `outstanding_bytes` of a file at a time, and as much for a sync. The rest waits in
//              memory. Every write through the volume continues the write-back of one other file, in place of the
//              kernel's flusher threads. A writer waits only beyond `dirty_bytes` of its file, or in virtual time as
//              soon as write-back lags. sync() writes back what was written before it and waits, then sends a flush
//              command. Writers continue meanwhile, as during fsync() on ext4 and XFS. close() does not wait. A partial
//              page that was written back and then grew is written again. Dirty pages of a deleted file never reach the
//              drive.
//   Direct     Each write is a command at once, and the caller waits for it.
//   Reads      Charged in 4 KiB pages unless they are dirty or in the modelled page cache (clock replacement). After a
//              miss, a sequential reader reads ahead. page_cache_bytes = 0 charges every read as it comes. Direct reads
//              are always charged, and are not cached.
//   Deletes    With discard, freed LBAs are deallocated on the drive before they are reused. Without, they stay valid
//              data for the drive.
// Not modelled: the file system's own metadata and journal, directory syncs, and the write-back of dirty pages by age.
// Each would add host writes. RocksDB's files are few and large, so these writes are few compared with the data.
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

// Where the search for space for a growing file begins.
enum class Placement : std::uint8_t {
  next_fit,   // after the last allocation: over time files are placed all over the drive
  first_fit,  // at the lowest address: freed LBAs are reused soon, the far end of the drive stays unused
};

struct VolumeOptions {
  // Size of the partition, which begins at the drive's first LBA; 0: the whole drive.
  std::uint64_t size_bytes = 0;
  bool discard = true;
  // Compressed size / size of the files' contents, in (0, 1]. Every write states it, for drives that compress.
  double compression_ratio = 1;
  // The volume only observes: contents are on another drive, and a failure of this volume's drive (it is full) must not
  // fail a call. After the first failure the volume keeps the reason and charges nothing any more, and calls continue
  // to succeed. See Volume::failure().
  bool passive = false;
  Placement placement = Placement::next_fit;
  std::uint64_t page_cache_bytes = 0;
  std::uint64_t writeback_bytes = 1 << 20;  // at least kPageBytes
  // Most dirty bytes of all closed files together that stay in memory. They are written when as many more bytes have
  // been closed after them, or not at all if their file is deleted before. 0: a file is written back when it is closed.
  // Linux keeps such pages for 30 s (vm.dirty_expire_centisecs) or until vm.dirty_background_ratio, 10 % of memory.
  std::uint64_t closed_dirty_bytes = 0;
  // Most bytes of one file in flight; writeback_bytes if that is more. Source: guess, a few commands, as with Linux's
  // write-back throttling (blk-wbt).
  std::uint64_t outstanding_bytes = 8 << 20;
  // Most dirty bytes of one file in memory. Its writer waits beyond it. Source: guess, a WAL of RocksDB's default size;
  // Linux's vm.dirty_ratio is 20 % of memory for all files together.
  std::uint64_t dirty_bytes = 64 << 20;
  // Most bytes of one command. Source: Linux limits a request to max_sectors_kb, 1280 by default; a power of two near
  // it.
  std::uint64_t max_transfer_bytes = 1 << 20;
  std::uint64_t min_chunk_bytes = 64 << 10;
  std::uint64_t max_chunk_bytes = 8 << 20;
  // Read-ahead of sequential buffered readers. Source: Linux's default read_ahead_kb, 128.
  std::uint64_t readahead_bytes = 128 << 10;
  VolumeObserver* observer = nullptr;  // REQUIRES: outlives the volume
};

struct Space {
  std::uint64_t capacity_bytes = 0;
  std::uint64_t held_bytes = 0;     // allocated to files, including the chunks of growing files
  std::uint64_t free_bytes = 0;     // capacity - held
  std::uint64_t adopted_bytes = 0;  // part of held: files that were found in the directory, not created here
};

class FileReads;
class Volume;
struct Inode;

// A read in flight. If it is destroyed before wait(), the drive completes it alone. REQUIRES: the volume outlives it
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

  // Writes `length` bytes at `offset`. If that is beyond the end of the file, the gap gets LBAs that hold no data.
  // REQUIRES: opened for writing. drive_full: the volume has no space, and nothing of this write is charged; or the
  // drive failed, now or in an earlier write of this file whose failure no call has returned.
  Status write(std::uint64_t offset, std::uint64_t length, Access access);

  struct Range {
    std::uint64_t offset = 0;
    std::uint64_t length = 0;
  };
  // Reads all ranges, in flight together. Parts after the end of the file are not charged.
  Status read(const std::vector<Range>& ranges, Access access, Cause cause);
  // Begins the same read without waiting.
  Result<std::unique_ptr<ReadInFlight>> begin_read(const std::vector<Range>& ranges, Access access, Cause cause);

  // Submits dirty whole pages, as many as may be in flight, without waiting.
  Status push_out();
  // Submits dirty whole pages and waits until the drive has them. Does not flush the drive's write cache.
  Status write_out();
  // Returns when everything written before is on the drive and the drive's write cache is flushed.
  Status sync();
  Status truncate(std::uint64_t size);
  Status close();

  std::uint64_t size() const;
  // Sets the cause of later writes. Dirty pages are submitted before, under their own cause. A writer may find out why
  // it writes only after the file was created (RocksDB), or write for several causes in turn (WiredTiger).
  void set_cause(Cause cause);

 private:
  friend class Volume;
  friend class FileReads;
  File(Volume* volume, std::shared_ptr<Inode> inode, bool writer);

  struct ReadAhead {              // guarded by the inode's lock
    std::uint64_t next_page = 0;  // where a sequential reader would continue
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
  // REQUIRES: device outlives the volume; device.info().lba_bytes divides kPageBytes; options.writeback_bytes is at
  // least a page; options.size_bytes is no more than the drive's capacity.
  Volume(device::Device& device, const VolumeOptions& options);
  ~Volume();
  Volume(const Volume&) = delete;
  Volume& operator=(const Volume&) = delete;

  // A new, empty file. A file of the same name is removed first.
  Result<std::unique_ptr<File>> create(const std::string& path, Cause cause);
  // An existing file. `size_bytes` is its size in the directory. If the volume does not know the name, it adopts the
  // file with that size.
  Result<std::unique_ptr<File>> open(const std::string& path, std::uint64_t size_bytes, Cause cause, bool writer);
  // Adopts a file of the directory: it is assigned LBAs, but nothing is written, and the drive counts later reads of
  // them as unmapped. Does nothing if the name is known.
  Status adopt(const std::string& path, std::uint64_t size_bytes, Cause cause);

  // Names that the volume does not know are ignored, because they have nothing on the drive.
  Status remove(const std::string& path);
  Status rename(const std::string& from, const std::string& to);
  Status link(const std::string& from, const std::string& to);
  Status truncate(const std::string& path, std::uint64_t size_bytes);

  bool knows(const std::string& path) const;
  Space space() const;
  device::Device& device();
  const VolumeOptions& options() const;
  // Why a passive volume no longer charges anything; OK while it does.
  Status failure() const;

  // Writes back the dirty pages of every file, waits, and has the drive flush its cache, as syncfs(2) does. Continues
  // after a failure, and returns the first one.
  Status sync();
  // Writes back all dirty pages and waits. Nothing is charged from now on. For a process that exits while its database
  // is still running.
  void detach();

  // The table of files and extents. Written to a temporary name and renamed, so it is complete or absent. load()
  // refuses, with one sentence, a table that is damaged or of another drive, and removes names for which `exists`
  // returns false. `renamed` maps a file's name to its name in the table, or back, because a directory may have been
  // moved. REQUIRES: load() before any file is created.
  using Renamed = std::function<std::string(const std::string&)>;
  Status save(const std::string& path, const Renamed& renamed = {}) const;
  Status load(const std::string& path, const std::function<bool(const std::string&)>& exists,
              const Renamed& renamed = {});
  // Of all files that have a name.
  std::vector<std::string> names() const;

 private:
  friend class File;
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace spillway::fs
