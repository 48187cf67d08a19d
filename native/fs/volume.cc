#include "fs/volume.h"

#include <array>
#include <atomic>
#include <cassert>
#include <deque>
#include <map>
#include <utility>

#include "fs/drive_space.h"
#include "fs/inode.h"
#include "fs/name_table.h"
#include "fs/page_cache.h"
#include "fs/queue_pool.h"
#include "fs/volume_table.h"

namespace spillway::fs {

using device::Done;
using device::Io;
using device::Opcode;

namespace {

// A first read-ahead of this many pages, doubled by each further sequential read. Source: guess, near Linux' four.
constexpr std::uint64_t kFirstReadAheadPages = 4;

Status status_of(Fault fault, const std::string& what) {
  switch (fault) {
    case Fault::none:
      return Status::ok();
    case Fault::drive_full:
      return Status::error(fault, "the drive has no clean erase block left for " + what +
                                      ": give it a larger spare factor, or write less");
    default:
      return Status::error(fault, "the drive failed " + what);
  }
}

// Pages of a file as commands of at most max_bytes each.
std::vector<Io> commands(const std::vector<Extent>& parts, Opcode op, Cause cause, std::uint64_t max_bytes) {
  std::vector<Io> ios;
  for (const Extent& part : parts) {
    std::uint64_t offset = part.first_page * kPageBytes;
    std::uint64_t left = part.pages * kPageBytes;
    while (left > 0) {
      const std::uint64_t length = std::min(left, max_bytes);
      ios.push_back({.tag = length, .op = op, .cause = cause, .offset_bytes = offset, .length_bytes = length});
      offset += length;
      left -= length;
    }
  }
  return ios;
}

// What a round of waiting found: how many bytes are done, and the first fault.
struct Reaped {
  std::uint64_t bytes = 0;
  Fault fault = Fault::none;
};

// REQUIRES: every pending io's tag is its length.
Reaped reap(device::Queue& queue, std::size_t at_least) {
  Reaped reaped;
  std::array<Done, 32> done;
  do {
    const std::size_t n = queue.reap(done, std::min(at_least, done.size()));
    for (std::size_t i = 0; i < n; ++i) {
      reaped.bytes += done[i].tag;
      if (reaped.fault == Fault::none) reaped.fault = done[i].fault;
    }
    at_least -= std::min(at_least, n);
  } while (at_least > 0);
  return reaped;
}

}  // namespace

class Volume::Impl {
 public:
  Impl(device::Device& device, const VolumeOptions& options)
      : device_(device),
        options_(options),
        queues_(device),
        cache_(options.page_cache_bytes / kPageBytes),
        space_(device.info().capacity_bytes / kPageBytes, options),
        virtual_time_(device.info().time_scale == 0) {
    assert(kPageBytes % device.info().lba_bytes == 0);
  }

  // --- Names. The table's lock is not held while anything waits for the drive.

  std::shared_ptr<Inode> create(const std::string& path, Cause cause) {
    help_write_back();
    const auto [inode, old] = names_.create(path, cause);
    if (old) destroy(*old);
    return inode;
  }

  Result<std::shared_ptr<Inode>> open(const std::string& path, std::uint64_t size_bytes, Cause cause, bool writer) {
    if (Status status = adopt(path, size_bytes, cause); !status) return status;
    auto inode = names_.acquire(path, writer);
    if (!inode) return Status::io_error(path + " was removed while it was opened");
    return inode;
  }

  Status adopt(const std::string& path, std::uint64_t size_bytes, Cause cause) {
    const auto inode = names_.find_or_adopt(path, cause);
    if (names_.has_writer(*inode)) return Status::ok();
    // The directory is right about sizes: a table may be older than it when a process was killed.
    const std::lock_guard lock(inode->mutex);
    if (Status status = grow(*inode, pages_for(size_bytes), Ask::exactly); !status) return status;
    inode->size = size_bytes;
    return Status::ok();
  }

  void remove(const std::string& path) {
    if (const auto gone = names_.remove(path)) destroy(*gone);
  }

  void rename(const std::string& from, const std::string& to) {
    if (const auto replaced = names_.rename(from, to)) destroy(*replaced);
  }

  NameTable& names() { return names_; }

  void release(Inode& inode, bool writer) {
    const NameTable::Released released = names_.release(inode, writer);
    if (released.freed) {
      destroy(inode);
    } else if (released.last_writer) {
      const std::lock_guard lock(inode.mutex);
      cut(inode, pages_for(inode.size));
    }
  }

  // --- Space. REQUIRES: inode.mutex is held.

  using Ask = DriveSpace::Ask;

  Status grow(Inode& inode, std::uint64_t pages, Ask ask) {
    return space_.grow(inode.extents, pages, ask, inode.adopted);
  }

  // Pages behind `pages` are freed, and deallocated where they may hold data.
  void cut(Inode& inode, std::uint64_t pages) {
    const std::uint64_t held = inode.extents.pages();
    const std::uint64_t written = inode.adopted ? held : inode.written_pages;
    if (held > pages) cache_.drop(inode.id, pages, held - pages);
    std::vector<Extent> unwritten = inode.extents.cut(std::max(pages, std::min(written, held)));
    std::vector<Extent> behind = inode.extents.cut(pages);
    if (behind.empty() && unwritten.empty()) return;
    inode.written_pages = std::min(inode.written_pages, pages);
    if (options_.discard) {
      // Advice only: the next write tells what a drive that failed here has to say.
      (void)run(commands(behind, Opcode::deallocate, inode.cause, kMaxDeallocateBytes), "a deallocation");
    }
    space_.give_back(behind, inode.adopted);
    space_.give_back(unwritten, inode.adopted);
  }

  Status truncate(Inode& inode, std::uint64_t size) {
    const std::lock_guard write_lock(inode.write_mutex);
    if (Status status = wait(inode); !status) return status;
    const std::lock_guard lock(inode.mutex);
    DirtyRange& dirty = inode.dirty;
    dirty.end = std::min(dirty.end, size);
    if (dirty.begin >= dirty.end) dirty = {};
    if (size < inode.size) cut(inode, pages_for(size));
    inode.size = size;
    return grow(inode, pages_for(size), Ask::exactly);
  }

  Space space() const { return space_.space(); }

  // --- Writing. REQUIRES: inode.write_mutex is held, inode.mutex is not.

  Status write(const std::shared_ptr<Inode>& file, std::uint64_t offset, std::uint64_t length, Access access) {
    Inode& inode = *file;
    if (!inode.failed) return std::exchange(inode.failed, Status::ok());
    const std::uint64_t end = offset + length;
    bool elsewhere = false;
    {
      const std::lock_guard lock(inode.mutex);
      if (Status status = grow(inode, pages_for(end), Ask::in_chunks); !status) return status;
      inode.size = std::max(inode.size, end);
      elsewhere = !inode.dirty.empty() && (access == Access::direct || !inode.dirty.touches(offset, end));
    }
    if (elsewhere) {
      if (Status status = push(inode, Tail::partial_page); !status) return status;
    }
    inode.closed = false;
    if (access == Access::direct) return write_direct(inode, offset, end);
    Status status = write_buffered(inode, offset, end);
    if (lags(inode)) put_off(file);
    return status;
  }

  enum class Tail { whole_pages, partial_page };

  // Gives the drive all that is dirty, and waits while too much is in flight.
  Status push(Inode& inode, Tail tail) {
    for (const Io& io : take_dirty(inode, tail, ~std::uint64_t{0})) {
      if (Status status = submit(inode, io, options_.outstanding_bytes); !status) return status;
    }
    return Status::ok();
  }

  // Gives the drive as much of what is dirty as may be in flight now, and waits for nothing.
  Status push_what_fits(Inode& inode, Tail tail) {
    if (inode.queue) take_done(inode, 0);
    const std::uint64_t room = options_.outstanding_bytes - std::min(options_.outstanding_bytes, inode.in_flight_bytes);
    for (const Io& io : take_dirty(inode, tail, room)) {
      if (Status status = submit(inode, io, options_.outstanding_bytes); !status) return status;
    }
    return Status::ok();
  }

  // Waits for all that this file has in flight.
  Status wait(Inode& inode) {
    if (inode.queue) take_done(inode, inode.queue->pending());
    return std::exchange(inode.failed, Status::ok());
  }

  Status sync(Inode& inode) {
    if (Status status = push(inode, Tail::partial_page); !status) return status;
    if (Status status = wait(inode); !status) return status;
    if (!std::exchange(inode.unflushed, false)) return Status::ok();
    Cause cause;
    {
      const std::lock_guard lock(inode.mutex);
      cause = inode.cause;
    }
    return run({{.op = Opcode::flush, .cause = cause}}, "a flush");
  }

  // The last writer goes: nothing is waited for, and what is left is written back as others come by.
  Status close(const std::shared_ptr<Inode>& inode) {
    inode->closed = true;
    const Status status = push_what_fits(*inode, Tail::partial_page);
    if (lags(*inode)) put_off(inode);
    return status;
  }

  // Whoever writes anything helps one file with its write-back, in the place of the kernel's flusher threads.
  void help_write_back() {
    if (backlog_files_.load(std::memory_order_relaxed) == 0) return;
    std::shared_ptr<Inode> inode;
    {
      const std::unique_lock lock(backlog_mutex_, std::try_to_lock);
      if (!lock || backlog_.empty()) return;
      inode = std::move(backlog_.front());
      backlog_.pop_front();
      backlog_files_.store(backlog_.size(), std::memory_order_relaxed);
    }
    const std::unique_lock write_lock(inode->write_mutex, std::try_to_lock);
    if (write_lock) {
      inode->put_off = false;
      // A fault is remembered with the file; whoever waits for it is told.
      if (Status status = push_what_fits(*inode, tail_of(*inode)); !status && inode->failed) inode->failed = status;
      if (!lags(*inode)) return;
      inode->put_off = true;
    }
    enlist(inode);
  }

  // --- Reading.

  Status read(Inode& inode, File::ReadAhead& readahead, const std::vector<File::Range>& ranges, Access access,
              Cause cause) {
    std::vector<Io> ios;
    std::vector<Extent> missing;  // pages of the file
    {
      const std::lock_guard lock(inode.mutex);
      for (const File::Range& range : ranges) {
        if (range.offset >= inode.size || range.length == 0) continue;
        const std::uint64_t end = std::min(range.offset + range.length, inode.size);
        const std::uint64_t first = range.offset / kPageBytes;
        const std::uint64_t last = std::min(pages_for(end), inode.extents.pages());
        collect_missing(inode, readahead, first, last, access, missing);
      }
      for (const Extent& run : missing) {
        const auto more =
            commands(inode.extents.slice(run.first_page, run.pages), Opcode::read, cause, options_.max_transfer_bytes);
        ios.insert(ios.end(), more.begin(), more.end());
      }
    }
    if (Status status = run(ios, "a read"); !status) return status;
    if (access == Access::buffered) {
      for (const Extent& run : missing) cache_.insert(inode.id, run.first_page, run.pages);
    }
    return Status::ok();
  }

  // --- The end.

  void detach() {
    std::vector<std::shared_ptr<Inode>> all = names_.all();
    for (const auto& inode : all) {
      const std::lock_guard lock(inode->write_mutex);
      if (names_.is_linked(*inode)) (void)push(*inode, Tail::partial_page);  // nobody is left to be told
    }
    queues_.shut();
    {
      const std::lock_guard lock(backlog_mutex_);
      all.insert(all.end(), backlog_.begin(), backlog_.end());
      backlog_.clear();
    }
    for (const auto& inode : all) {
      const std::lock_guard lock(inode->write_mutex);
      if (Status status = wait(*inode); !status) inode->failed = status;
    }
    queues_.wait_all_back();
  }

  VolumeTable table() const {
    VolumeTable table;
    table.capacity_bytes = space_.space().capacity_bytes;
    table.cursor_page = space_.cursor();
    std::map<std::uint64_t, std::size_t> place;
    names_.each([&](const std::string& path, const Inode& inode) {
      const auto [entry, fresh] = place.emplace(inode.id, table.files.size());
      if (fresh) table.files.push_back(entry_of(inode));
      table.files[entry->second].names.push_back(path);
    });
    return table;
  }

  Status restore(const VolumeTable& table) {
    const std::uint64_t capacity_bytes = space_.space().capacity_bytes;
    if (table.capacity_bytes != capacity_bytes) {
      return Status::bad_input("it is of a drive of " + std::to_string(table.capacity_bytes) + " bytes, this one has " +
                               std::to_string(capacity_bytes));
    }
    space_.set_cursor(table.cursor_page);
    for (const VolumeTable::File& file : table.files) {
      const auto inode = names_.make_inode(file.cause);
      inode->adopted = file.adopted;
      inode->size = file.size_bytes;
      inode->written_pages = file.written_pages;
      for (const Extent& extent : file.extents) {
        if (!space_.take_exactly(extent, file.adopted)) {
          return Status::bad_input("two files share LBAs, or lie behind the drive's end, at page " +
                                   std::to_string(extent.first_page));
        }
        inode->extents.append(extent);
      }
      for (const std::string& name : file.names) names_.link(name, inode);
    }
    return Status::ok();
  }

  device::Device& device() { return device_; }
  const VolumeOptions& options() const { return options_; }

 private:
  // One deallocation covers at most this much. Source: Linux splits discards at 2^32 - 1 sectors or less; a round
  // number that no command's length field is short for.
  static constexpr std::uint64_t kMaxDeallocateBytes = 1ULL << 30;

  static VolumeTable::File entry_of(const Inode& inode) {
    const std::lock_guard lock(inode.mutex);
    return {.names = {},
            .cause = inode.cause,
            .adopted = inode.adopted,
            .size_bytes = inode.size,
            .written_pages = inode.written_pages,
            .extents = inode.extents.extents()};
  }

  // Its dirty pages never reach the drive; what is in flight does, before the LBAs are deallocated.
  void destroy(Inode& inode) {
    const std::lock_guard write_lock(inode.write_mutex);
    (void)wait(inode);  // its data is not wanted any more, nor is its fault
    const std::lock_guard lock(inode.mutex);
    inode.dirty = {};
    inode.size = 0;
    cut(inode, 0);
  }

  // REQUIRES: inode.mutex is held.
  std::vector<Io> write_commands(Inode& inode, std::uint64_t first_page, std::uint64_t end_page) const {
    inode.written_pages = std::max(inode.written_pages, end_page);
    return commands(inode.extents.slice(first_page, end_page - first_page), Opcode::write, inode.cause,
                    options_.max_transfer_bytes);
  }

  Status write_direct(Inode& inode, std::uint64_t offset, std::uint64_t end) {
    std::vector<Io> ios;
    const std::uint64_t first = offset / kPageBytes;
    const std::uint64_t last = pages_for(end);
    {
      const std::lock_guard lock(inode.mutex);
      ios = write_commands(inode, first, last);
    }
    cache_.drop(inode.id, first, last - first);
    for (const Io& io : ios) {
      if (Status status = submit(inode, io, ~std::uint64_t{0}); !status) return status;
    }
    return wait(inode);
  }

  // In virtual time threads take no time of their own, so that write-back would never catch up by itself: the writer
  // then waits for it as soon as it lags.
  Status write_buffered(Inode& inode, std::uint64_t offset, std::uint64_t end) {
    std::uint64_t dirty_bytes = 0;
    {
      const std::lock_guard lock(inode.mutex);
      inode.dirty.join(offset, end);
      dirty_bytes = inode.dirty.bytes();
    }
    const std::uint64_t first = offset / kPageBytes;
    cache_.insert(inode.id, first, pages_for(end) - first);
    if (dirty_bytes < options_.writeback_bytes) return Status::ok();
    if (virtual_time_ || dirty_bytes > options_.dirty_bytes) return push(inode, Tail::whole_pages);
    return push_what_fits(inode, Tail::whole_pages);
  }

  // What is dirty, at most `most` bytes of it, as commands; it is clean from now on.
  std::vector<Io> take_dirty(Inode& inode, Tail tail, std::uint64_t most) {
    const std::lock_guard lock(inode.mutex);
    DirtyRange& dirty = inode.dirty;
    const std::uint64_t first = dirty.begin / kPageBytes;
    std::uint64_t last = tail == Tail::partial_page ? pages_for(dirty.end) : dirty.end / kPageBytes;
    if (dirty.empty() || last <= first) return {};
    if (last - first > most / kPageBytes) {
      const std::uint64_t chunks = most / options_.writeback_bytes;  // no crumbs
      if (chunks == 0) return {};
      last = std::min(last, first + chunks * options_.writeback_bytes / kPageBytes);
    }
    std::vector<Io> ios = write_commands(inode, first, last);
    dirty.begin = std::min(last * kPageBytes, dirty.end);
    if (dirty.empty()) dirty = {};
    return ios;
  }

  static Tail tail_of(const Inode& inode) { return inode.closed ? Tail::partial_page : Tail::whole_pages; }

  // Whether somebody is to come back to a file: it has more to write than was in flight at once, or it was closed with
  // something in flight. REQUIRES: inode.write_mutex is held.
  bool lags(const Inode& inode) const {
    if (inode.closed && inode.queue) return true;
    const std::lock_guard lock(inode.mutex);
    return inode.dirty.bytes() >= (inode.closed ? 1 : options_.writeback_bytes);
  }

  // REQUIRES: inode->write_mutex is held.
  void put_off(const std::shared_ptr<Inode>& inode) {
    if (std::exchange(inode->put_off, true)) return;
    enlist(inode);
  }

  void enlist(const std::shared_ptr<Inode>& inode) {
    const std::lock_guard lock(backlog_mutex_);
    backlog_.push_back(inode);
    backlog_files_.store(backlog_.size(), std::memory_order_relaxed);
  }

  // One write of a file; waits while more than `outstanding` bytes would be in flight. REQUIRES: write_mutex is held.
  Status submit(Inode& inode, const Io& io, std::uint64_t outstanding) {
    if (!inode.queue) inode.queue = queues_.borrow();
    if (!inode.queue) return Status::ok();  // detached
    while (inode.in_flight_bytes > 0 && inode.in_flight_bytes + io.length_bytes > outstanding) take_done(inode, 1);
    if (!inode.queue) inode.queue = queues_.borrow();
    if (!inode.queue) return Status::ok();
    inode.unflushed = true;
    if (Status status = inode.queue->submit({&io, 1}); !status) {
      give_back_idle(inode);
      return status;
    }
    inode.in_flight_bytes += io.length_bytes;
    return Status::ok();
  }

  void take_done(Inode& inode, std::size_t at_least) {
    const Reaped reaped = reap(*inode.queue, at_least);
    inode.in_flight_bytes -= reaped.bytes;
    if (inode.failed && reaped.fault != Fault::none) inode.failed = status_of(reaped.fault, "a write");
    give_back_idle(inode);
  }

  void give_back_idle(Inode& inode) {
    if (inode.queue->pending() == 0) queues_.give_back(std::move(inode.queue));
  }

  // Ios of no file in particular, in flight together and waited for.
  Status run(std::vector<Io> ios, const std::string& what) {
    if (ios.empty()) return Status::ok();
    auto queue = queues_.borrow();
    if (!queue) return Status::ok();  // detached
    Status status = queue->submit(ios);
    if (status) status = status_of(reap(*queue, queue->pending()).fault, what);
    queues_.give_back(std::move(queue));
    return status;
  }

  // REQUIRES: inode.mutex is held. Appends runs of the file's pages [first, last) that have to come from the drive.
  void collect_missing(const Inode& inode, File::ReadAhead& readahead, std::uint64_t first, std::uint64_t last,
                       Access access, std::vector<Extent>& missing) {
    if (first >= last) return;
    if (access == Access::direct) {
      missing.push_back({first, last - first});
      return;
    }
    const bool sequential = first == readahead.next_page || first + 1 == readahead.next_page;
    const std::uint64_t window = cache_.enabled() && sequential ? readahead.window_pages : 0;
    bool missed = false;
    std::uint64_t end = last;
    for (std::uint64_t page = first; page < end; ++page) {
      if (is_dirty(inode, page) || cache_.touch(inode.id, page)) continue;
      if (!std::exchange(missed, true)) end = std::max(end, std::min(page + window, inode.extents.pages()));
      if (!missing.empty() && missing.back().first_page + missing.back().pages == page) {
        ++missing.back().pages;
      } else {
        missing.push_back({page, 1});
      }
    }
    readahead.next_page = last;
    if (!sequential) {
      readahead.window_pages = kFirstReadAheadPages;
    } else if (missed) {
      readahead.window_pages = std::clamp(readahead.window_pages * 2, kFirstReadAheadPages,
                                          std::max(kFirstReadAheadPages, options_.readahead_bytes / kPageBytes));
    }
  }

  static bool is_dirty(const Inode& inode, std::uint64_t page) {
    const DirtyRange& dirty = inode.dirty;
    return !dirty.empty() && page >= dirty.begin / kPageBytes && page < pages_for(dirty.end);
  }

  device::Device& device_;
  const VolumeOptions options_;
  QueuePool queues_;
  PageCache cache_;
  DriveSpace space_;
  NameTable names_;
  const bool virtual_time_;

  // Files whose write-back lags, the longest waiting first. Taken after a write_mutex, never while waiting for the
  // drive.
  std::mutex backlog_mutex_;
  std::deque<std::shared_ptr<Inode>> backlog_;
  std::atomic<std::size_t> backlog_files_ = 0;
};

// --- File

File::File(Volume* volume, std::shared_ptr<Inode> inode, bool writer)
    : volume_(volume), inode_(std::move(inode)), writer_(writer) {}

File::~File() { (void)close(); }

Status File::write(std::uint64_t offset, std::uint64_t length, Access access) {
  assert(writer_ && !closed_);
  if (length == 0) return Status::ok();
  volume_->impl_->help_write_back();
  const std::lock_guard lock(inode_->write_mutex);
  return volume_->impl_->write(inode_, offset, length, access);
}

Status File::read(const std::vector<Range>& ranges, Access access, Cause cause) {
  return volume_->impl_->read(*inode_, readahead_, ranges, access, cause);
}

Status File::push_out() {
  const std::lock_guard lock(inode_->write_mutex);
  return volume_->impl_->push_what_fits(*inode_, Volume::Impl::Tail::whole_pages);
}

Status File::sync() {
  const std::lock_guard lock(inode_->write_mutex);
  return volume_->impl_->sync(*inode_);
}

Status File::truncate(std::uint64_t size) { return volume_->impl_->truncate(*inode_, size); }

Status File::close() {
  if (std::exchange(closed_, true)) return Status::ok();
  Status status;
  if (writer_) {
    const std::lock_guard lock(inode_->write_mutex);
    if (volume_->impl_->names().is_linked(*inode_)) status = volume_->impl_->close(inode_);
  }
  volume_->impl_->release(*inode_, writer_);
  return status;
}

std::uint64_t File::size() const {
  const std::lock_guard lock(inode_->mutex);
  return inode_->size;
}

void File::set_cause(Cause cause) {
  const std::lock_guard lock(inode_->mutex);
  inode_->cause = cause;
}

// --- Volume

Volume::Volume(device::Device& device, const VolumeOptions& options) : impl_(std::make_unique<Impl>(device, options)) {}

Volume::~Volume() { impl_->detach(); }

Result<std::unique_ptr<File>> Volume::create(const std::string& path, Cause cause) {
  return std::unique_ptr<File>(new File(this, impl_->create(path, cause), /*writer=*/true));
}

Result<std::unique_ptr<File>> Volume::open(const std::string& path, std::uint64_t size_bytes, Cause cause,
                                           bool writer) {
  auto inode = impl_->open(path, size_bytes, cause, writer);
  if (!inode) return inode.status();
  return std::unique_ptr<File>(new File(this, *inode, writer));
}

Status Volume::adopt(const std::string& path, std::uint64_t size_bytes, Cause cause) {
  return impl_->adopt(path, size_bytes, cause);
}

Status Volume::remove(const std::string& path) {
  impl_->remove(path);
  return Status::ok();
}

Status Volume::rename(const std::string& from, const std::string& to) {
  impl_->rename(from, to);
  return Status::ok();
}

Status Volume::link(const std::string& from, const std::string& to) {
  impl_->names().link(from, to);
  return Status::ok();
}

Status Volume::truncate(const std::string& path, std::uint64_t size_bytes) {
  const auto inode = impl_->names().find(path);
  return inode ? impl_->truncate(*inode, size_bytes) : Status::ok();
}

bool Volume::knows(const std::string& path) const { return impl_->names().find(path) != nullptr; }
Space Volume::space() const { return impl_->space(); }
device::Device& Volume::device() { return impl_->device(); }
const VolumeOptions& Volume::options() const { return impl_->options(); }
void Volume::detach() { impl_->detach(); }

Status Volume::save(const std::string& path) const { return write_table(impl_->table(), path); }

Status Volume::load(const std::string& path, const std::function<bool(const std::string&)>& exists) {
  auto table = read_table(path);
  if (!table) return table.status();
  if (Status status = impl_->restore(*table); !status) {
    return Status::bad_input(path + " is damaged or of another drive: " + status.message() +
                             "; remove it together with the drive's state to begin anew");
  }
  for (const VolumeTable::File& file : table->files) {
    for (const std::string& name : file.names) {
      if (!exists(name)) impl_->remove(name);
    }
  }
  return Status::ok();
}

}  // namespace spillway::fs
