#include "fs/write_back.h"

#include <algorithm>
#include <cassert>
#include <utility>

#include "fs/drive_ios.h"

namespace spillway::fs {

using device::Io;
using device::Opcode;

namespace {

// The bytes that gather before write-back begins must be allowed in flight.
VolumeOptions fitted(VolumeOptions options) {
  assert(options.writeback_bytes >= kPageBytes);
  options.outstanding_bytes = std::max(options.outstanding_bytes, options.writeback_bytes);
  return options;
}

}  // namespace

WriteBack::WriteBack(QueuePool& queues, const VolumeOptions& options, bool virtual_time)
    : queues_(queues), options_(fitted(options)), virtual_time_(virtual_time) {}

Status WriteBack::write(const std::shared_ptr<Inode>& file, std::uint64_t offset, std::uint64_t end, Access access) {
  Inode& inode = *file;
  bool elsewhere = false;
  {
    const std::lock_guard lock(inode.mutex);
    elsewhere = !inode.dirty.empty() && (access == Access::direct || !inode.dirty.touches(offset, end));
  }
  if (elsewhere) {
    if (Status status = push(inode, Tail::partial_page); !status) return status;
  }
  inode.closed = false;
  if (access == Access::direct) return write_direct(inode, offset, end);
  Status status = write_buffered(inode, offset, end);
  if (lags(inode)) enlist_once(file);
  return status;
}

Status WriteBack::push(Inode& inode, Tail tail) { return submit_dirty(inode, tail, ~std::uint64_t{0}); }

Status WriteBack::push_what_fits(Inode& inode, Tail tail) {
  InFlight& flight = inode.in_flight;
  if (flight.queue) take_done(flight, 0);
  return submit_dirty(inode, tail, options_.outstanding_bytes - std::min(options_.outstanding_bytes, flight.bytes));
}

Status WriteBack::wait(Inode& inode) { return wait(inode.in_flight); }

Status WriteBack::sync(Inode& inode) {
  const std::lock_guard one_at_a_time(inode.sync_mutex);
  InFlight flight;
  std::vector<Io> ios;
  bool unflushed = false;
  Cause cause;
  {
    const std::lock_guard write_lock(inode.write_mutex);
    flight = std::exchange(inode.in_flight, InFlight());
    ios = take_dirty(inode, Tail::partial_page, ~std::uint64_t{0});
    unflushed = std::exchange(inode.unflushed, false) || !ios.empty();
    const std::lock_guard lock(inode.mutex);
    cause = inode.cause;
  }
  Status status = submit(flight, ios, options_.outstanding_bytes);
  if (Status waited = wait(flight); status) status = waited;
  if (status && unflushed) status = run(queues_, {{.op = Opcode::flush, .cause = cause}}, "a flush");
  if (!status && unflushed) {
    const std::lock_guard write_lock(inode.write_mutex);
    inode.unflushed = true;
  }
  return status;
}

Status WriteBack::write_out(Inode& inode) {
  const std::lock_guard one_at_a_time(inode.sync_mutex);
  InFlight flight;
  std::vector<Io> ios;
  {
    const std::lock_guard write_lock(inode.write_mutex);
    flight = std::exchange(inode.in_flight, InFlight());
    ios = take_dirty(inode, Tail::whole_pages, ~std::uint64_t{0});
    inode.unflushed = inode.unflushed || !ios.empty();
  }
  Status status = submit(flight, ios, options_.outstanding_bytes);
  const Status waited = wait(flight);
  return status ? waited : status;
}

Status WriteBack::close(const std::shared_ptr<Inode>& inode) {
  inode->closed = true;
  if (options_.closed_dirty_bytes > 0) {
    keep_dirty(inode);
    return Status::ok();
  }
  const Status status = push_what_fits(*inode, Tail::partial_page);
  if (lags(*inode)) enlist_once(inode);
  return status;
}

// Keeps the file's dirty pages in memory. If those of closed files are too many now, enlists the oldest files.
void WriteBack::keep_dirty(const std::shared_ptr<Inode>& inode) {
  std::uint64_t bytes = 0;
  {
    const std::lock_guard lock(inode->mutex);
    bytes = inode->dirty.bytes();
  }
  if (bytes == 0) return;
  const std::lock_guard lock(backlog_mutex_);
  closed_dirty_.emplace_back(inode, bytes);
  closed_dirty_bytes_ += bytes;
  while (closed_dirty_bytes_ > options_.closed_dirty_bytes) {
    closed_dirty_bytes_ -= closed_dirty_.front().second;
    backlog_.push_back(std::move(closed_dirty_.front().first));
    closed_dirty_.pop_front();
  }
  backlog_files_.store(backlog_.size(), std::memory_order_relaxed);
}

void WriteBack::write_back_next() {
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
    inode->in_backlog = false;
    // A failure is kept with the file, and the next call that waits returns it.
    const Tail tail = inode->closed ? Tail::partial_page : Tail::whole_pages;
    Status& failed = inode->in_flight.failed;
    if (Status status = push_what_fits(*inode, tail); !status && failed) failed = status;
    if (!lags(*inode)) return;
    inode->in_backlog = true;
  }
  enlist(inode);
}

std::vector<std::shared_ptr<Inode>> WriteBack::take_backlog() {
  const std::lock_guard lock(backlog_mutex_);
  std::vector<std::shared_ptr<Inode>> rest(backlog_.begin(), backlog_.end());
  backlog_.clear();
  closed_dirty_.clear();  // the volume writes all dirty pages itself
  closed_dirty_bytes_ = 0;
  backlog_files_.store(0, std::memory_order_relaxed);
  return rest;
}

Status WriteBack::write_direct(Inode& inode, std::uint64_t offset, std::uint64_t end) {
  std::vector<Io> ios;
  {
    const std::lock_guard lock(inode.mutex);
    ios = write_ios(inode, offset / kPageBytes, pages_for(end));
  }
  inode.unflushed = true;
  if (Status status = submit(inode.in_flight, ios, ~std::uint64_t{0}); !status) return status;
  return wait(inode);
}

Status WriteBack::write_buffered(Inode& inode, std::uint64_t offset, std::uint64_t end) {
  std::uint64_t dirty_bytes = 0;
  {
    const std::lock_guard lock(inode.mutex);
    inode.dirty.join(offset, end);
    dirty_bytes = inode.dirty.bytes();
  }
  if (dirty_bytes < options_.writeback_bytes) return Status::ok();
  if (virtual_time_ || dirty_bytes > options_.dirty_bytes) return push(inode, Tail::whole_pages);
  return push_what_fits(inode, Tail::whole_pages);
}

// REQUIRES: inode.mutex is held.
std::vector<Io> WriteBack::write_ios(Inode& inode, std::uint64_t first_page, std::uint64_t end_page) const {
  inode.written_pages = std::max(inode.written_pages, end_page);
  std::vector<Io> ios = make_ios(inode.extents.slice(first_page, end_page - first_page), Opcode::write, inode.cause,
                                 options_.max_transfer_bytes);
  const std::uint16_t share = device::share_of(options_.compression_ratio);
  for (Io& io : ios) io.compressed_share = share;
  return ios;
}

// Takes at most `most` dirty bytes, marks them as clean, and returns I/Os for them.
std::vector<Io> WriteBack::take_dirty(Inode& inode, Tail tail, std::uint64_t most) {
  const std::lock_guard lock(inode.mutex);
  DirtyRange& dirty = inode.dirty;
  const std::uint64_t first = dirty.begin / kPageBytes;
  std::uint64_t last = tail == Tail::partial_page ? pages_for(dirty.end) : dirty.end / kPageBytes;
  if (dirty.empty() || last <= first) return {};
  if (last - first > most / kPageBytes) {
    const std::uint64_t chunks = most / options_.writeback_bytes;  // whole multiples only
    if (chunks == 0) return {};
    last = std::min(last, first + chunks * options_.writeback_bytes / kPageBytes);
  }
  std::vector<Io> ios = write_ios(inode, first, last);
  dirty.begin = std::min(last * kPageBytes, dirty.end);
  if (dirty.empty()) dirty = {};
  return ios;
}

// Submits at most `most` dirty bytes.
Status WriteBack::submit_dirty(Inode& inode, Tail tail, std::uint64_t most) {
  const std::vector<Io> ios = take_dirty(inode, tail, most);
  if (!ios.empty()) inode.unflushed = true;
  return submit(inode.in_flight, ios, options_.outstanding_bytes);
}

// Submits writes of a file. Waits while more than `outstanding` bytes would be in flight. A file holds a queue exactly
// as long as it has something in flight.
Status WriteBack::submit(InFlight& flight, const std::vector<Io>& ios, std::uint64_t outstanding) {
  for (const Io& io : ios) {
    while (flight.queue && flight.bytes + io.length_bytes > outstanding) take_done(flight, 1);
    if (!flight.queue) flight.queue = queues_.borrow();
    if (!flight.queue) return Status::ok();  // detached
    if (Status status = flight.queue->submit({&io, 1}); !status) {
      give_back_idle(flight);
      return status;
    }
    flight.bytes += io.length_bytes;
  }
  return Status::ok();
}

Status WriteBack::wait(InFlight& flight) {
  if (flight.queue) take_done(flight, flight.queue->pending());
  return std::exchange(flight.failed, Status::ok());
}

// REQUIRES: the file holds a queue.
void WriteBack::take_done(InFlight& flight, std::size_t at_least) {
  const Reaped reaped = reap(*flight.queue, at_least);
  flight.bytes -= reaped.bytes;
  if (flight.failed && reaped.fault != Fault::none) flight.failed = status_of(reaped.fault, "a write");
  give_back_idle(flight);
}

void WriteBack::give_back_idle(InFlight& flight) {
  if (flight.queue->pending() == 0) queues_.give_back(std::move(flight.queue));
}

// Whether the file needs further write-back: it has more dirty pages than fitted in flight, or it was closed with I/Os
// in flight.
bool WriteBack::lags(const Inode& inode) const {
  if (inode.closed && inode.in_flight.queue) return true;
  const std::lock_guard lock(inode.mutex);
  return inode.dirty.bytes() >= (inode.closed ? 1 : options_.writeback_bytes);
}

void WriteBack::enlist_once(const std::shared_ptr<Inode>& inode) {
  if (std::exchange(inode->in_backlog, true)) return;
  enlist(inode);
}

void WriteBack::enlist(const std::shared_ptr<Inode>& inode) {
  const std::lock_guard lock(backlog_mutex_);
  backlog_.push_back(inode);
  backlog_files_.store(backlog_.size(), std::memory_order_relaxed);
}

}  // namespace spillway::fs
