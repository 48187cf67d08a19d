// The logs that are open to write: the current one, which takes records, and sealed ones, which take no more and are
// not known to be durable yet. A thread of its own makes sealed logs durable, oldest first, closes them, and writes out
// the current one as it grows, so that a writer does not wait for the drive, which compactions fill. Writers that are
// faster than the drive are slowed to its rate before too much is on its way. Another thread makes the next logs'
// files: the first may be in a sync of half of a second when a generation ends early.
//
// After a failed write or sync of any of them nothing is appended or synced until seal() has put a durable copy in the
// place of each: part of a failed write may be there, and after a failed sync the kernel may have dropped pages that a
// second sync would not report.
#pragma once

#include <rocksdb/file_system.h>
#include <rocksdb/status.h>

#include <atomic>
#include <deque>
#include <memory>
#include <thread>

#include "base/mutex.h"
#include "spill/store/append_wait.h"
#include "spill/store/region/durable_ends.h"
#include "spill/store/region/region_directory.h"
#include "spill/store/region/region_logs.h"
#include "spill/store/region/spare_logs.h"
#include "spill/store/write_pacer.h"

namespace spillway::spill {

// A log that takes records, or took them until it was sealed.
struct OpenLog {
  std::shared_ptr<RegionLog> log;
  std::unique_ptr<rocksdb::FSWritableFile> file;  // replaced and closed while no sync is running
  std::atomic<std::uint64_t> durable{0};          // bytes
  std::atomic<std::uint64_t> written{0};          // bytes that the drive is known to have; with `sync_mutex_`
};

// begin, end, seal, pause_after, handle_failed_append and close_dropped are called by the appending thread; the rest by
// any.
class OpenLogs {
 public:
  // REQUIRES: all of them outlive it
  OpenLogs(const RegionDirectory& directory, RegionLogs& logs, DurableEnds& ends, std::uint64_t preallocation,
           std::uint64_t capacity_bytes);
  ~OpenLogs();
  OpenLogs(const OpenLogs&) = delete;
  OpenLogs& operator=(const OpenLogs&) = delete;

  std::shared_ptr<OpenLog> current() const;  // null: none takes records
  // The same without a lock, by the thread that appends, seals and drops; valid until it seals or drops.
  OpenLog* appended_to() const { return appended_to_; }
  std::size_t count() const { return count_.load(std::memory_order_acquire); }  // without a lock: every append asks
  std::deque<std::shared_ptr<OpenLog>> sealed() const;                          // oldest first
  bool has(const RegionLog& log) const;  // whether it takes records, or is sealed and not closed yet
  bool has_failed() const { return has_failed_.load(std::memory_order_acquire); }

  // See SpareLogs::take.
  std::unique_ptr<rocksdb::FSWritableFile> take_spare(GenerationId generation) { return spares_.take(generation); }
  // `log` takes records from now on. REQUIRES: seal() was called since the last
  void begin(std::shared_ptr<OpenLog> log);
  // The current log takes no more. Waits for the drive while too much is on its way; after a failure, repairs it. An
  // error: the repair or a sync failed, and the log is current still.
  rocksdb::Status seal();
  // The same where it need not wait; else nothing, and seal() is to come.
  void end();
  // What was appended before is durable when it returns, of every open log.
  rocksdb::Status sync();
  // After an append to the current log returned `failed`. NoSpace: what the file has of it is gone, and appends may go
  // on.
  rocksdb::Status handle_failed_append(const rocksdb::IOStatus& failed);
  // The next append has been paced for so long already.
  void note_paced(std::chrono::nanoseconds paced) { paced_ = paced; }
  // After an append of `bytes`: slows down a writer that is faster than the drive.
  void pause_after(std::uint64_t bytes);
  // How long the appending thread has waited for the drive, here and where it measured that itself.
  AppendWait& append_wait() { return wait_; }
  const AppendWait& append_wait() const { return wait_; }
  // Makes this log durable and closes it, with those before it. False: it takes records, or that failed.
  bool close_sealed(const RegionLog& log);
  // Closes this log and those before it, whose contents are not needed any more.
  void close_dropped(const RegionLog& log);

 private:
  void write_out_in_background();
  void make_spares_in_background();
  bool has_work() const REQUIRES(mutex_);
  void seal_current() REQUIRES(mutex_);
  rocksdb::Status wait_for_the_drive() REQUIRES(sync_mutex_);
  rocksdb::Status write_out_current() REQUIRES(sync_mutex_);
  void note_written(OpenLog& open, std::uint64_t end) REQUIRES(sync_mutex_);
  rocksdb::Status sync_oldest_sealed() REQUIRES(sync_mutex_);
  rocksdb::Status sync_file(OpenLog& open) REQUIRES(sync_mutex_);
  rocksdb::Status replace_by_copies() REQUIRES(sync_mutex_);
  rocksdb::Status replace(OpenLog& open) REQUIRES(sync_mutex_);
  rocksdb::IOStatus truncate_to_end(OpenLog& open) REQUIRES(sync_mutex_);
  void close_oldest_sealed() REQUIRES(sync_mutex_);
  void close_current() REQUIRES(sync_mutex_);
  void count_logs() REQUIRES(mutex_);

  const RegionDirectory& directory_;
  RegionLogs& logs_;
  DurableEnds& ends_;
  SpareLogs spares_;
  const std::uint64_t preallocation_;
  const std::int64_t most_unwritten_;  // bytes
  WritePacer pacer_;                   // the appending thread's
  std::chrono::nanoseconds paced_{0};  // what is appended now (Store::note_paced)
  AppendWait wait_;
  OpenLog* appended_to_ = nullptr;  // current_, for the thread that appends
  std::atomic<std::size_t> count_{0};
  std::atomic<std::size_t> sealed_count_{0};
  std::atomic<std::int64_t> unwritten_{0};      // of all open logs, what the drive may not have
  std::atomic<bool> is_current_written_{true};  // up to a chunk
  std::atomic<bool> has_failed_{false};         // a write or a sync of an open log

  // Held during a sync, and while the file of an open log is replaced or closed.
  Mutex sync_mutex_ ACQUIRED_BEFORE(mutex_);
  mutable Mutex mutex_;
  std::shared_ptr<OpenLog> current_ GUARDED_BY(mutex_);
  std::deque<std::shared_ptr<OpenLog>> sealed_ GUARDED_BY(mutex_);  // oldest first
  GenerationId spares_after_ GUARDED_BY(mutex_) = 0;                // that generation; 0: none are wanted
  bool is_stopping_ GUARDED_BY(mutex_) = false;
  CondVar work_or_stopping_;
  CondVar spares_wanted_or_stopping_;
  // The last: they use what is above. They begin with the first log, by the appending thread: a store that takes
  // nothing has none. (At the exit of a process that was forked, RocksDB waits for threads of its parent whose place in
  // memory a new one may have taken.)
  std::thread thread_;
  std::thread spares_thread_;
};

}  // namespace spillway::spill
