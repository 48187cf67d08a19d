#include "fs/volume.h"

#include <algorithm>
#include <cassert>
#include <map>
#include <mutex>
#include <utility>

#include "fs/drive_ios.h"
#include "fs/drive_space.h"
#include "fs/file_reads.h"
#include "fs/inode.h"
#include "fs/name_table.h"
#include "fs/page_cache.h"
#include "fs/passive_failure.h"
#include "fs/queue_pool.h"
#include "fs/volume_table.h"
#include "fs/write_back.h"

namespace spillway::fs {

using device::Io;
using device::Opcode;

class Volume::Impl {
 public:
  Impl(device::Device& device, const VolumeOptions& options)
      : device_(device),
        options_(options),
        queues_(device),
        cache_(options.page_cache_bytes / kPageBytes),
        space_(size_of(device, options) / kPageBytes, options),
        write_back_(queues_, options, /*virtual_time=*/device.info().time_scale == 0),
        failure_(options.passive),
        reads_(queues_, cache_, failure_, options_) {
    assert(kPageBytes % device.info().lba_bytes == 0);
  }

  // --- Names. The table's lock is not held during a wait for the drive.

  std::shared_ptr<Inode> create(const std::string& path, Cause cause) {
    write_back_.write_back_next();
    const auto [inode, old] = names_.create(path, cause);
    if (old) destroy(*old);
    if (auto* const observer = options_.observer) observer->named(inode->id, path);
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
    if (auto* const observer = options_.observer) observer->named(inode->id, path);
    if (names_.has_writer(*inode)) return Status::ok();
    // The directory has the right size. After a process was killed, the table may be older.
    const std::lock_guard lock(inode->mutex);
    if (Status status = grow(*inode, pages_for(size_bytes), Ask::exactly); !status)
      return failure_.status_for_caller(std::move(status));
    inode->size = size_bytes;
    return Status::ok();
  }

  void remove(const std::string& path) {
    if (const auto gone = names_.remove(path)) destroy(*gone);
    if (auto* const observer = options_.observer) observer->unnamed(path);
  }

  void rename(const std::string& from, const std::string& to) {
    if (const auto replaced = names_.rename(from, to)) destroy(*replaced);
    auto* const observer = options_.observer;
    if (observer == nullptr) return;
    observer->unnamed(from);
    if (const auto inode = names_.find(to)) observer->named(inode->id, to);
  }

  void link(const std::string& from, const std::string& to) {
    names_.link(from, to);
    const auto inode = names_.find(to);
    if (inode && options_.observer != nullptr) options_.observer->named(inode->id, to);
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

  // Frees the pages after the first `pages`, and deallocates those that may hold data.
  void cut(Inode& inode, std::uint64_t pages) {
    const std::uint64_t held = inode.extents.pages();
    const std::uint64_t written = inode.adopted ? held : inode.written_pages;
    if (held > pages) cache_.drop(inode.id, pages, held - pages);
    std::vector<Extent> unwritten = inode.extents.cut(std::max(pages, std::min(written, held)));
    std::vector<Extent> behind = inode.extents.cut(pages);
    if (behind.empty() && unwritten.empty()) return;
    inode.written_pages = std::min(inode.written_pages, pages);
    if (options_.discard) {
      // A deallocation is advice. If the drive has failed, the next write reports it.
      (void)run(queues_, make_ios(behind, Opcode::deallocate, inode.cause, kMaxDeallocateBytes), "a deallocation");
    }
    space_.give_back(behind, inode.adopted);
    space_.give_back(unwritten, inode.adopted);
  }

  Status truncate(Inode& inode, std::uint64_t size) {
    const std::scoped_lock write_lock(inode.sync_mutex, inode.write_mutex);
    if (Status status = write_back_.wait(inode); !status) return status;
    const std::lock_guard lock(inode.mutex);
    DirtyRange& dirty = inode.dirty;
    dirty.end = std::min(dirty.end, size);
    if (dirty.begin >= dirty.end) dirty = {};
    if (size < inode.size) cut(inode, pages_for(size));
    inode.size = size;
    if (auto* const observer = options_.observer) observer->truncated(inode.id, size);
    return grow(inode, pages_for(size), Ask::exactly);
  }

  Space space() const { return space_.space(); }

  // --- Writing.

  // REQUIRES: file->write_mutex is held, file->mutex is not.
  Status write(const std::shared_ptr<Inode>& file, std::uint64_t offset, std::uint64_t length, Access access) {
    Inode& inode = *file;
    if (!inode.in_flight.failed) return std::exchange(inode.in_flight.failed, Status::ok());
    const std::uint64_t end = offset + length;
    {
      const std::lock_guard lock(inode.mutex);
      if (Status status = grow(inode, pages_for(end), Ask::in_chunks); !status) return status;
      inode.size = std::max(inode.size, end);
      if (auto* const observer = options_.observer) observer->wrote(inode.id, offset, length);
    }
    const std::uint64_t first = offset / kPageBytes;
    if (access == Access::direct) {
      cache_.drop(inode.id, first, pages_for(end) - first);
    } else {
      cache_.insert(inode.id, first, pages_for(end) - first);
    }
    return write_back_.write(file, offset, end, access);
  }

  // REQUIRES: inode.write_mutex is held, inode.mutex is not.
  void set_cause(Inode& inode, Cause cause) {
    bool is_dirty = false;
    {
      const std::lock_guard lock(inode.mutex);
      if (inode.cause == cause) return;
      is_dirty = !inode.dirty.empty();
    }
    Status status = is_dirty ? write_back_.push(inode, WriteBack::Tail::partial_page) : Status::ok();
    if (!status && inode.in_flight.failed) inode.in_flight.failed = status;  // the next write returns it
    const std::lock_guard lock(inode.mutex);
    inode.cause = cause;
  }

  WriteBack& write_back() { return write_back_; }
  FileReads& reads() { return reads_; }
  PassiveFailure& failure() { return failure_; }

  Status sync(Inode& inode) {
    auto* const observer = options_.observer;
    if (observer != nullptr) observer->sync_begins(inode.id);
    Status status = write_back_.sync(inode);
    if (status && observer != nullptr) observer->synced(inode.id);
    return status;
  }

  Status sync_all() {
    Status first;
    for (const auto& inode : names_.all()) {
      if (Status status = sync(*inode); !status && first) first = status;
    }
    return first;
  }

  // --- Closing

  void detach() {
    std::vector<std::shared_ptr<Inode>> all = names_.all();
    for (const auto& inode : all) {
      const std::lock_guard lock(inode->write_mutex);
      if (names_.is_linked(*inode))
        (void)write_back_.push(*inode, WriteBack::Tail::partial_page);  // no caller is left to return it to
    }
    queues_.shut();
    const auto rest = write_back_.take_backlog();
    all.insert(all.end(), rest.begin(), rest.end());
    for (const auto& inode : all) {
      const std::scoped_lock lock(inode->sync_mutex, inode->write_mutex);
      if (Status status = write_back_.wait(*inode); !status) inode->in_flight.failed = status;
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
  static std::uint64_t size_of(const device::Device& device, const VolumeOptions& options) {
    assert(options.size_bytes <= device.info().capacity_bytes);
    return options.size_bytes > 0 ? options.size_bytes : device.info().capacity_bytes;
  }

  // Most bytes of one deallocation. Source: Linux splits discards at 2^32 - 1 sectors or less; this is a round number
  // that fits every command's length field.
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

  // Dirty pages are discarded. Writes in flight complete before the LBAs are deallocated.
  void destroy(Inode& inode) {
    const std::scoped_lock write_lock(inode.sync_mutex, inode.write_mutex);
    (void)write_back_.wait(inode);  // its data is not needed, nor is an error
    const std::lock_guard lock(inode.mutex);
    inode.dirty = {};
    inode.size = 0;
    cut(inode, 0);
  }

  device::Device& device_;
  const VolumeOptions options_;
  QueuePool queues_;
  PageCache cache_;
  DriveSpace space_;
  NameTable names_;
  WriteBack write_back_;
  PassiveFailure failure_;
  FileReads reads_;
};

// --- File

File::File(Volume* volume, std::shared_ptr<Inode> inode, bool writer)
    : volume_(volume), inode_(std::move(inode)), writer_(writer) {}

File::~File() { (void)close(); }

Status File::write(std::uint64_t offset, std::uint64_t length, Access access) {
  assert(writer_ && !closed_);
  if (length == 0 || volume_->impl_->failure().has_failed()) return Status::ok();
  volume_->impl_->write_back().write_back_next();
  const std::lock_guard lock(inode_->write_mutex);
  return volume_->impl_->failure().status_for_caller(volume_->impl_->write(inode_, offset, length, access));
}

Status File::read(const std::vector<Range>& ranges, Access access, Cause cause) {
  if (volume_->impl_->failure().has_failed()) return Status::ok();
  return volume_->impl_->failure().status_for_caller(
      volume_->impl_->reads().read(*inode_, readahead_, ranges, access, cause));
}

Result<std::unique_ptr<ReadInFlight>> File::begin_read(const std::vector<Range>& ranges, Access access, Cause cause) {
  // After a passive volume has failed, the read has no ranges and is not charged.
  return volume_->impl_->reads().begin(
      inode_, readahead_, volume_->impl_->failure().has_failed() ? std::vector<Range>() : ranges, access, cause);
}

Status File::push_out() {
  if (volume_->impl_->failure().has_failed()) return Status::ok();
  const std::lock_guard lock(inode_->write_mutex);
  return volume_->impl_->failure().status_for_caller(
      volume_->impl_->write_back().push_what_fits(*inode_, WriteBack::Tail::whole_pages));
}

Status File::write_out() {
  if (volume_->impl_->failure().has_failed()) return Status::ok();
  return volume_->impl_->failure().status_for_caller(volume_->impl_->write_back().write_out(*inode_));
}

Status File::sync() {
  if (volume_->impl_->failure().has_failed()) return Status::ok();
  return volume_->impl_->failure().status_for_caller(volume_->impl_->sync(*inode_));
}

Status File::truncate(std::uint64_t size) {
  return volume_->impl_->failure().status_for_caller(volume_->impl_->truncate(*inode_, size));
}

Status File::close() {
  if (std::exchange(closed_, true)) return Status::ok();
  Status status;
  if (writer_) {
    const std::lock_guard lock(inode_->write_mutex);
    if (volume_->impl_->names().is_linked(*inode_)) status = volume_->impl_->write_back().close(inode_);
  }
  volume_->impl_->release(*inode_, writer_);
  return volume_->impl_->failure().status_for_caller(std::move(status));
}

std::uint64_t File::size() const {
  const std::lock_guard lock(inode_->mutex);
  return inode_->size;
}

void File::set_cause(Cause cause) {
  const std::lock_guard write_lock(inode_->write_mutex);
  volume_->impl_->set_cause(*inode_, cause);
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
  impl_->link(from, to);
  return Status::ok();
}

Status Volume::truncate(const std::string& path, std::uint64_t size_bytes) {
  const auto inode = impl_->names().find(path);
  return inode ? impl_->failure().status_for_caller(impl_->truncate(*inode, size_bytes)) : Status::ok();
}

bool Volume::knows(const std::string& path) const { return impl_->names().find(path) != nullptr; }
Space Volume::space() const { return impl_->space(); }
device::Device& Volume::device() { return impl_->device(); }
const VolumeOptions& Volume::options() const { return impl_->options(); }
Status Volume::failure() const { return impl_->failure().first(); }
void Volume::detach() { impl_->detach(); }

Status Volume::sync() { return impl_->failure().status_for_caller(impl_->sync_all()); }

std::vector<std::string> Volume::names() const {
  std::vector<std::string> names;
  impl_->names().each([&](const std::string& path, const Inode&) { names.push_back(path); });
  return names;
}

Status Volume::save(const std::string& path, const Renamed& renamed) const {
  VolumeTable table = impl_->table();
  if (renamed) rename_files(table, renamed);
  return write_table(table, path);
}

Status Volume::load(const std::string& path, const std::function<bool(const std::string&)>& exists,
                    const Renamed& renamed) {
  auto table = read_table(path);
  if (!table) return table.status();
  if (renamed) rename_files(*table, renamed);
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
