#include "engine/wiredtiger/file_system.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <mutex>
#include <utility>
#include <vector>

#include "engine/wiredtiger/host_file.h"
#include "fs/path_key.h"

namespace spillway::engine {

using device::Cause;
using fs::Access;

namespace {

thread_local bool in_checkpoint = false;

// Lock files hold no data.
bool holds_data(const std::string& path) { return fs::base_name(path) != "WiredTiger.lock"; }

int sync_directory_of(const std::string& path) {
  const std::string directory = std::filesystem::path(path).parent_path().string();
  const int fd = ::open(directory.empty() ? "." : directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return errno;
  const int error = ::fsync(fd) == 0 ? 0 : errno;
  ::close(fd);
  return error;
}

struct Handle : WT_FILE_HANDLE {
  Handle() : WT_FILE_HANDLE{} {}

  std::string path;
  std::unique_ptr<HostFile> host;
  bool host_sync = false;
  Access access = Access::buffered;
  std::unique_ptr<fs::File> file;     // null: the file holds no data, or there is no volume
  fs::WriteCounts* writes = nullptr;  // null: not counted, or the file holds no data
  Failure* failure = nullptr;         // of the volume
  std::mutex mutex;                   // held while the cause may change
  Cause cause = Cause::other;         // cause of the last write; guarded by mutex
};

Handle* handle_of(WT_FILE_HANDLE* handle) { return static_cast<Handle*>(handle); }

// Runs an operation on the volume's file, if there is one and the drive works.
template <typename Operation>
void on_volume(Handle& handle, const Operation& operation) {
  if (handle.file && !handle.failure->is_there()) handle.failure->note(operation(*handle.file));
}

int fh_close(WT_FILE_HANDLE* wt_handle, WT_SESSION* /*session*/) {
  const std::unique_ptr<Handle> handle(handle_of(wt_handle));
  on_volume(*handle, [](fs::File& file) { return file.close(); });
  const int error = handle->host->close();
  std::free(handle->name);
  return error;
}

int fh_lock(WT_FILE_HANDLE* handle, WT_SESSION* /*session*/, bool lock) {
  struct flock range {};
  range.l_type = static_cast<short>(lock ? F_WRLCK : F_UNLCK);
  range.l_whence = SEEK_SET;
  range.l_len = 1;
  return ::fcntl(handle_of(handle)->host->fd(), F_SETLK, &range) == 0 ? 0 : errno;
}

int fh_read(WT_FILE_HANDLE* wt_handle, WT_SESSION* /*session*/, wt_off_t offset, std::size_t length, void* buffer) {
  Handle& handle = *handle_of(wt_handle);
  if (const int error = handle.host->read(static_cast<char*>(buffer), length, offset); error != 0) return error;
  const Cause cause = wiredtiger_cause(handle.path, in_checkpoint);
  on_volume(handle, [&](fs::File& file) {
    return file.read({{static_cast<std::uint64_t>(offset), length}}, handle.access,
                     cause == Cause::flush ? Cause::user : cause);
  });
  return 0;
}

int fh_size(WT_FILE_HANDLE* handle, WT_SESSION* /*session*/, wt_off_t* size) {
  return handle_of(handle)->host->size(size);
}

int fh_sync(WT_FILE_HANDLE* wt_handle, WT_SESSION* /*session*/) {
  Handle& handle = *handle_of(wt_handle);
  if (handle.host_sync) (void)handle.host->sync();
  on_volume(handle, [](fs::File& file) { return file.sync(); });
  return 0;
}

int fh_sync_nowait(WT_FILE_HANDLE* wt_handle, WT_SESSION* /*session*/) {
  Handle& handle = *handle_of(wt_handle);
  on_volume(handle, [](fs::File& file) { return file.push_out(); });
  return 0;
}

int resize(Handle& handle, wt_off_t size) {
  on_volume(handle, [&](fs::File& file) { return file.truncate(static_cast<std::uint64_t>(size)); });
  return handle.host->resize(size);
}

int fh_truncate(WT_FILE_HANDLE* handle, WT_SESSION* /*session*/, wt_off_t size) {
  return resize(*handle_of(handle), size);
}

// WiredTiger preallocates log files like posix_fallocate(): space is allocated, nothing is written.
int fh_extend(WT_FILE_HANDLE* wt_handle, WT_SESSION* session, wt_off_t size) {
  wt_off_t present = 0;
  if (const int error = fh_size(wt_handle, session, &present); error != 0) return error;
  if (size <= present) return 0;
  Handle& handle = *handle_of(wt_handle);
  return handle.file ? resize(handle, size) : handle.host->allocate(size);
}

int fh_write(WT_FILE_HANDLE* wt_handle, WT_SESSION* /*session*/, wt_off_t offset, std::size_t length,
             const void* buffer) {
  Handle& handle = *handle_of(wt_handle);
  on_volume(handle, [&](fs::File& file) {
    const Cause cause = wiredtiger_cause(handle.path, in_checkpoint);
    const std::lock_guard lock(handle.mutex);
    if (std::exchange(handle.cause, cause) != cause) file.set_cause(cause);
    return file.write(static_cast<std::uint64_t>(offset), length, handle.access);
  });
  const int error = handle.host->write(static_cast<const char*>(buffer), length, offset);
  if (error == 0 && handle.writes != nullptr) handle.writes->add(wiredtiger_cause(handle.path, in_checkpoint), length);
  return error;
}

class FileSystem final : public WiredtigerFileSystem {
 public:
  FileSystem(fs::Volume* volume, bool host_sync, fs::WriteCounts* writes)
      : volume_(volume), host_sync_(host_sync), writes_(writes) {
    wt_file_system_.self = this;
    wt_file_system_.fs_directory_list = [](WT_FILE_SYSTEM* wt, WT_SESSION*, const char* directory, const char* prefix,
                                           char*** names, std::uint32_t* count) {
      return of(wt).list(directory, prefix, /*one=*/false, names, count);
    };
    wt_file_system_.fs_directory_list_single = [](WT_FILE_SYSTEM* wt, WT_SESSION*, const char* directory,
                                                  const char* prefix, char*** names, std::uint32_t* count) {
      return of(wt).list(directory, prefix, /*one=*/true, names, count);
    };
    wt_file_system_.fs_directory_list_free = [](WT_FILE_SYSTEM*, WT_SESSION*, char** names, std::uint32_t count) {
      for (std::uint32_t i = 0; names != nullptr && i < count; ++i) std::free(names[i]);
      std::free(names);
      return 0;
    };
    wt_file_system_.fs_exist = [](WT_FILE_SYSTEM*, WT_SESSION*, const char* name, bool* exists) {
      struct stat seen {};
      *exists = ::stat(name, &seen) == 0;
      return *exists || errno == ENOENT ? 0 : errno;
    };
    wt_file_system_.fs_open_file = [](WT_FILE_SYSTEM* wt, WT_SESSION*, const char* name, WT_FS_OPEN_FILE_TYPE type,
                                      std::uint32_t flags,
                                      WT_FILE_HANDLE** handle) { return of(wt).open(name, type, flags, handle); };
    wt_file_system_.fs_remove = [](WT_FILE_SYSTEM* wt, WT_SESSION*, const char* name, std::uint32_t flags) {
      return of(wt).remove(name, flags);
    };
    wt_file_system_.fs_rename = [](WT_FILE_SYSTEM* wt, WT_SESSION*, const char* from, const char* to,
                                   std::uint32_t flags) { return of(wt).rename(from, to, flags); };
    wt_file_system_.fs_size = [](WT_FILE_SYSTEM*, WT_SESSION*, const char* name, wt_off_t* size) {
      struct stat seen {};
      if (::stat(name, &seen) != 0) return errno;
      *size = seen.st_size;
      return 0;
    };
    wt_file_system_.terminate = [](WT_FILE_SYSTEM*, WT_SESSION*) { return 0; };  // the engine owns it
  }

  WT_FILE_SYSTEM* wt_file_system() override { return &wt_file_system_; }
  Status failure() const override {
    const Status host = host_.failure().first();
    return host ? failure_.first() : host;
  }

 private:
  struct WtFileSystem : WT_FILE_SYSTEM {
    WtFileSystem() : WT_FILE_SYSTEM{} {}
    FileSystem* self = nullptr;
  };
  static FileSystem& of(WT_FILE_SYSTEM* wt) { return *static_cast<WtFileSystem*>(wt)->self; }

  // Names of a directory's entries, without the directory. Allocated by malloc(); WiredTiger returns them to be freed.
  int list(const char* directory, const char* prefix, bool one, char*** names, std::uint32_t* count) {
    *names = nullptr;
    *count = 0;
    std::error_code failure;
    std::vector<std::string> found;
    for (std::filesystem::directory_iterator entry(directory, failure), end; !failure && entry != end;
         entry.increment(failure)) {
      const std::string name = entry->path().filename().string();
      if (prefix != nullptr && !name.starts_with(prefix)) continue;
      found.push_back(name);
      if (one) break;
    }
    if (failure) return failure.value();
    if (found.empty()) return 0;
    *names = static_cast<char**>(std::calloc(found.size(), sizeof(char*)));
    if (*names == nullptr) return ENOMEM;
    for (const std::string& name : found) {
      (*names)[*count] = ::strdup(name.c_str());
      if ((*names)[(*count)++] == nullptr) return ENOMEM;
    }
    return 0;
  }

  int open(const char* name, WT_FS_OPEN_FILE_TYPE type, std::uint32_t flags, WT_FILE_HANDLE** opened) {
    auto handle = std::make_unique<Handle>();
    handle->path = name;
    handle->host_sync = host_sync_;
    handle->failure = &failure_;
    if ((flags & WT_FS_OPEN_DIRECTIO) != 0) handle->access = Access::direct;
    const bool is_directory = type == WT_FS_OPEN_FILE_TYPE_DIRECTORY;
    const bool reads_only = is_directory || (flags & WT_FS_OPEN_READONLY) != 0;
    int mode = O_CLOEXEC | (reads_only ? O_RDONLY : O_RDWR);
    const bool creates = (flags & WT_FS_OPEN_CREATE) != 0;
    const bool frozen = host_.failure().is_there();
    if (creates && !frozen) mode |= O_CREAT | ((flags & WT_FS_OPEN_EXCLUSIVE) != 0 ? O_EXCL : 0);
    if (volume_ == nullptr && handle->access == Access::direct) mode |= O_DIRECT;
    int fd = ::open(name, mode, 0666);
    if (fd < 0 && creates && frozen) fd = ::memfd_create("wiredtiger", MFD_CLOEXEC);
    if (fd < 0) return errno;
    handle->host = std::make_unique<HostFile>(host_, name, fd);
    int error = 0;
    const bool is_data = !is_directory && holds_data(name);
    if (is_data) handle->writes = writes_;
    if (volume_ != nullptr && is_data) error = open_on_volume(*handle, !reads_only);
    if (error == 0 && host_sync_ && !frozen && (flags & WT_FS_OPEN_DURABLE) != 0)
      error = host_.result_of(sync_directory_of(name), name);
    if (error == 0 && (handle->name = ::strdup(name)) == nullptr) error = ENOMEM;
    if (error != 0) return error;
    fill_in(*handle);
    *opened = handle.release();
    return 0;
  }

  int open_on_volume(Handle& handle, bool writer) {
    if (failure_.is_there()) return 0;
    off_t size = 0;
    if (const int error = handle.host->size(&size); error != 0) return error;
    handle.cause = wiredtiger_cause(handle.path, in_checkpoint);
    auto file = volume_->open(fs::path_key(handle.path), static_cast<std::uint64_t>(size), handle.cause, writer);
    failure_.note(file.status());
    if (file) handle.file = std::move(*file);
    return 0;
  }

  static void fill_in(Handle& handle) {
    handle.close = fh_close;
    handle.fh_extend = fh_extend;  // reads the size, then sets it: WiredTiger's lock excludes writers
    handle.fh_lock = fh_lock;
    handle.fh_read = fh_read;
    handle.fh_size = fh_size;
    handle.fh_sync = fh_sync;
    handle.fh_sync_nowait = fh_sync_nowait;
    handle.fh_truncate = fh_truncate;
    handle.fh_write = fh_write;
  }

  int remove(const char* name, std::uint32_t flags) {
    if (host_.failure().is_there()) return 0;
    if (::remove(name) != 0) return errno;
    if (volume_ != nullptr && !failure_.is_there()) failure_.note(volume_->remove(fs::path_key(name)));
    return host_sync_ && (flags & WT_FS_DURABLE) != 0 ? host_.result_of(sync_directory_of(name), name) : 0;
  }

  int rename(const char* from, const char* to, std::uint32_t flags) {
    if (host_.failure().is_there()) return 0;
    if (::rename(from, to) != 0) return errno;
    if (volume_ != nullptr && !failure_.is_there()) {
      failure_.note(volume_->rename(fs::path_key(from), fs::path_key(to)));
    }
    return host_sync_ && (flags & WT_FS_DURABLE) != 0 ? host_.result_of(sync_directory_of(to), to) : 0;
  }

  fs::Volume* const volume_;
  const bool host_sync_;
  fs::WriteCounts* const writes_;
  HostFiles host_;
  Failure failure_;
  WtFileSystem wt_file_system_;
};

}  // namespace

CheckpointThread::CheckpointThread() : before_(std::exchange(in_checkpoint, true)) {}
CheckpointThread::~CheckpointThread() { in_checkpoint = before_; }

Cause wiredtiger_cause(const std::string& path, bool by_checkpoint) {
  const std::string name = fs::base_name(path);
  if (name.starts_with("WiredTigerLog.") || name.starts_with("WiredTigerPreplog.") ||
      name.starts_with("WiredTigerTmplog."))
    return Cause::wal;
  if (name == "WiredTiger.wt" || name.starts_with("WiredTiger.turtle")) return Cause::manifest;
  // A B+tree; or a chunk of a table of type "lsm", or its Bloom filter.
  const bool is_data = name.ends_with(".wt") || name.ends_with(".lsm") || name.ends_with(".bf");
  if (is_data) return by_checkpoint ? Cause::checkpoint : Cause::flush;
  return Cause::other;
}

std::unique_ptr<WiredtigerFileSystem> make_wiredtiger_file_system(fs::Volume* volume, bool host_sync,
                                                                  fs::WriteCounts* writes) {
  return std::make_unique<FileSystem>(volume, host_sync, writes);
}

}  // namespace spillway::engine
