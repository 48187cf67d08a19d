#include "fs/file_reads.h"

#include <algorithm>
#include <mutex>
#include <utility>

#include "fs/drive_ios.h"

namespace spillway::fs {

using device::Io;
using device::Opcode;

namespace {

// Pages of the first read-ahead. Each further sequential read doubles it. Source: guess, near Linux's four.
constexpr std::uint64_t kFirstReadAheadPages = 4;

bool is_dirty(const Inode& inode, std::uint64_t page) {
  const DirtyRange& dirty = inode.dirty;
  return !dirty.empty() && page >= dirty.begin / kPageBytes && page < pages_for(dirty.end);
}

}  // namespace

struct FileReads::Flight final : ReadInFlight {
  Flight(FileReads& the_reads, std::shared_ptr<Inode> the_inode) : reads(the_reads), inode(std::move(the_inode)) {}
  ~Flight() override {
    if (queue) reads.queues_.give_back_pending(std::move(queue));
  }
  Flight(const Flight&) = delete;
  Flight& operator=(const Flight&) = delete;

  Status begin(const std::vector<Io>& ios) {
    if (ios.empty()) return Status::ok();
    queue = reads.queues_.borrow();
    if (!queue) return Status::ok();  // detached
    return queue->submit(ios);
  }
  Status wait() override {
    if (!queue) return Status::ok();
    Status status = status_of(reap(*queue, queue->pending()).fault, "a read");
    reads.queues_.give_back(std::move(queue));
    if (status) reads.keep(*inode, to_keep);
    return reads.failure_.status_for_caller(std::move(status));
  }

  FileReads& reads;
  const std::shared_ptr<Inode> inode;
  std::vector<Extent> to_keep;  // to be put into the page cache
  std::unique_ptr<device::Queue> queue;
};

// I/Os for those parts of the ranges that must be read from the drive. Sets `missing` to the same as pages of the file.
std::vector<Io> FileReads::reads_of(Inode& inode, File::ReadAhead& readahead, const std::vector<File::Range>& ranges,
                                    Access access, Cause cause, std::vector<Extent>& missing) {
  std::vector<Io> ios;
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
        make_ios(inode.extents.slice(run.first_page, run.pages), Opcode::read, cause, options_.max_transfer_bytes);
    ios.insert(ios.end(), more.begin(), more.end());
  }
  return ios;
}

Status FileReads::read(Inode& inode, File::ReadAhead& readahead, const std::vector<File::Range>& ranges, Access access,
                       Cause cause) {
  std::vector<Extent> missing;
  const std::vector<Io> ios = reads_of(inode, readahead, ranges, access, cause, missing);
  if (Status status = run(queues_, ios, "a read"); !status) return status;
  if (access == Access::buffered) keep(inode, missing);
  return Status::ok();
}

Result<std::unique_ptr<ReadInFlight>> FileReads::begin(std::shared_ptr<Inode> inode, File::ReadAhead& readahead,
                                                       const std::vector<File::Range>& ranges, Access access,
                                                       Cause cause) {
  auto flight = std::make_unique<Flight>(*this, std::move(inode));
  std::vector<Extent> missing;
  const std::vector<Io> ios = reads_of(*flight->inode, readahead, ranges, access, cause, missing);
  if (access == Access::buffered) flight->to_keep = std::move(missing);
  if (Status status = failure_.status_for_caller(flight->begin(ios)); !status) return status;
  return std::unique_ptr<ReadInFlight>(std::move(flight));
}

void FileReads::keep(const Inode& inode, const std::vector<Extent>& pages) {
  for (const Extent& run : pages) cache_.insert(inode.id, run.first_page, run.pages);
}

// Appends those runs of the file's pages [first, last) that must be read from the drive. REQUIRES: inode.mutex is held.
void FileReads::collect_missing(const Inode& inode, File::ReadAhead& readahead, std::uint64_t first, std::uint64_t last,
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

}  // namespace spillway::fs
