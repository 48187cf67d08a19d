// Writes dirty pages back, as a kernel's page cache and its flusher threads do for the files of a volume. The rules are
// those of fs/volume.h under "Buffered" and "Direct".
//
// Every method on a file REQUIRES that its pages have a place on the drive and, except for sync() and write_out(), that
// its write_mutex is held and its mutex is not.
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
  // virtual_time: threads take no time, so write-back cannot catch up by itself. A writer waits for it as soon as it
  // lags.
  WriteBack(QueuePool& queues, const VolumeOptions& options, bool virtual_time);

  // Writes the file's bytes [offset, end): to the drive now, or as dirty pages until enough have gathered.
  Status write(const std::shared_ptr<Inode>& file, std::uint64_t offset, std::uint64_t end, Access access);

  enum class Tail : std::uint8_t { whole_pages, partial_page };

  // Submits all dirty pages. Waits while too much is in flight.
  Status push(Inode& inode, Tail tail);
  // Submits as many dirty pages as may be in flight now, without waiting.
  Status push_what_fits(Inode& inode, Tail tail);
  // Waits for the file's writes in flight, except those of a sync.
  Status wait(Inode& inode);
  // Writes back what was written before, waits, and has the drive flush its cache. Other threads may write meanwhile.
  // REQUIRES: the caller holds none of the file's locks
  Status sync(Inode& inode);
  // Writes back whole pages that were written before, and waits. Other threads may write meanwhile.
  // REQUIRES: the caller holds none of the file's locks
  Status write_out(Inode& inode);
  // Called by the last writer's close. Does not wait: the remaining pages are written back during later writes of other
  // files, or stay in memory within closed_dirty_bytes.
  Status close(const std::shared_ptr<Inode>& inode);

  // Continues the write-back of one other file, in place of the kernel's flusher threads. Called after each write.
  // REQUIRES: no file's lock is held.
  void write_back_next();
  // Stops all such write-back, and returns the files that had any pending.
  std::vector<std::shared_ptr<Inode>> take_backlog();

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
  void enlist_once(const std::shared_ptr<Inode>& inode);
  void keep_dirty(const std::shared_ptr<Inode>& inode);
  void enlist(const std::shared_ptr<Inode>& inode);

  QueuePool& queues_;
  const VolumeOptions options_;
  const bool virtual_time_;

  // Files whose write-back lags, the longest waiting first. The lock is taken after a write_mutex, and never held
  // during a wait for the drive.
  std::mutex backlog_mutex_;
  std::deque<std::shared_ptr<Inode>> backlog_;
  std::atomic<std::size_t> backlog_files_ = 0;
  // Closed files whose dirty pages stay in memory, in the order of their closes, with the dirty bytes of each at that
  // time. A file that is deleted or written meanwhile counts until it is the oldest: the bytes closed since stand for
  // age.
  std::deque<std::pair<std::shared_ptr<Inode>, std::uint64_t>> closed_dirty_;
  std::uint64_t closed_dirty_bytes_ = 0;
};

}  // namespace spillway::fs
