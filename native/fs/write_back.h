// Dirty pages, and how they get to the drive: what a kernel's page cache and its flusher threads do for the files of a
// volume. The rules are those of fs/volume.h under "Buffered" and "Direct".
//
// Every method on a file REQUIRES that its pages have a place on the drive and, but for sync(), that its write_mutex is
// held and its mutex is not.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "base/result.h"
#include "device/device.h"
#include "fs/inode.h"
#include "fs/queue_pool.h"
#include "fs/volume.h"

namespace spillway::fs {

class WriteBack {
 public:
  // virtual_time: threads take no time of their own, so that write-back would never catch up by itself; a writer then
  // waits for it as soon as it lags.
  WriteBack(QueuePool& queues, const VolumeOptions& options, bool virtual_time);

  // The file's bytes [offset, end): to the drive now, or dirty until enough of them have gathered.
  Status write(const std::shared_ptr<Inode>& file, std::uint64_t offset, std::uint64_t end, Access access);

  enum class Tail : std::uint8_t { whole_pages, partial_page };

  // Gives the drive all that is dirty, and waits while too much is in flight.
  Status push(Inode& inode, Tail tail);
  // Gives the drive as much of what is dirty as may be in flight now, and waits for nothing.
  Status push_what_fits(Inode& inode, Tail tail);
  // Waits for all that this file has in flight, but for what a sync waits for.
  Status wait(Inode& inode);
  // Pushes what was written before, waits, and has the drive flush its cache; others write meanwhile.
  // REQUIRES: the caller holds none of the file's locks
  Status sync(Inode& inode);
  // The last writer goes: nothing is waited for, and what is left is written back as others come by, or stays as far as
  // closed_dirty_bytes allow.
  Status close(const std::shared_ptr<Inode>& inode);

  // Whoever writes anything helps one file with its write-back, in the place of the kernel's flusher threads.
  // REQUIRES: no file's lock is held.
  void help();
  // Helps nobody any more; returns whom it would have helped.
  std::vector<std::shared_ptr<Inode>> retire();

 private:
  Status write_direct(Inode& inode, std::uint64_t offset, std::uint64_t end);
  Status write_buffered(Inode& inode, std::uint64_t offset, std::uint64_t end);
  std::vector<device::Io> write_ios(Inode& inode, std::uint64_t first_page, std::uint64_t end_page) const;
  std::vector<device::Io> take_dirty(Inode& inode, Tail tail, std::uint64_t most);
  Status submit_dirty(Inode& inode, Tail tail, std::uint64_t most);
  Status submit(InFlight& flight, const std::vector<device::Io>& ios, std::uint64_t outstanding);
  Status wait(InFlight& flight);
  void take_done(InFlight& flight, std::size_t at_least);
  void give_back_idle(InFlight& flight);
  bool lags(const Inode& inode) const;
  void put_off(const std::shared_ptr<Inode>& inode);
  void leave(const std::shared_ptr<Inode>& inode);
  void enlist(const std::shared_ptr<Inode>& inode);

  QueuePool& queues_;
  const VolumeOptions options_;
  const bool virtual_time_;

  // Files whose write-back lags, the longest waiting first. Its lock is taken after a write_mutex, never while waiting
  // for the drive.
  std::mutex backlog_mutex_;
  std::deque<std::shared_ptr<Inode>> backlog_;
  std::atomic<std::size_t> backlog_files_ = 0;
  // Closed files whose dirty pages stay in memory, the longest closed first, and how many bytes each had then. Some are
  // deleted by now, or written: they count until they are the oldest, as if the time that passes were what was closed.
  std::deque<std::pair<std::shared_ptr<Inode>, std::uint64_t>> left_;
  std::uint64_t left_bytes_ = 0;
};

}  // namespace spillway::fs
