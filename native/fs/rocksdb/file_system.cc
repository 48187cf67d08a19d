#include "fs/rocksdb/file_system.h"

#include <utility>
#include <vector>

#include "base/async_reads.h"
#include "fs/path_key.h"
#include "fs/rocksdb/file_causes.h"
#include "fs/rocksdb/readable_files.h"
#include "fs/rocksdb/writable_files.h"
#include "spill/compat/file_syncing_wrapper.h"

namespace spillway::fs {

using rocksdb::FileOptions;
using rocksdb::FileSystem;
using rocksdb::IODebugContext;
using rocksdb::IOOptions;
using rocksdb::IOStatus;

namespace {

// RocksDB's info log does not go through its FileSystem, and lock files hold no data.
bool holds_data(const std::string& path) {
  const std::string name = base_name(path);
  return name != "LOCK" && name != "LOG" && !name.starts_with("LOG.old");
}

class Directory final : public rocksdb::FSDirectoryWrapper {
 public:
  using FSDirectoryWrapper::FSDirectoryWrapper;
  IOStatus Fsync(const IOOptions& /*options*/, IODebugContext* /*dbg*/) override { return IOStatus::OK(); }
  IOStatus FsyncWithDirOptions(const IOOptions& /*options*/, IODebugContext* /*dbg*/,
                               const rocksdb::DirFsyncOptions& /*what*/) override {
    return IOStatus::OK();
  }
};

class RocksdbFileSystem final : public spill::FileSyncingWrapper {
 public:
  RocksdbFileSystem(Volume& volume, const RocksdbFileSystemOptions& options, const std::shared_ptr<FileSystem>& host)
      : FileSyncingWrapper(host), volume_(volume), options_(options) {
    RegisterOptions(&async_reads_, nullptr);
  }

  static const char* kClassName() { return "SpillwayFileSystem"; }
  const char* Name() const override { return kClassName(); }

  IOStatus NewWritableFile(const std::string& path, const FileOptions& options,
                           std::unique_ptr<rocksdb::FSWritableFile>* result, IODebugContext* dbg) override {
    std::unique_ptr<rocksdb::FSWritableFile> host;
    IOStatus status = target()->NewWritableFile(path, host_options(options), &host, dbg);
    if (!status.ok()) return status;
    return wrap_writer(path, options, std::move(host), volume_.create(path_key(path), cause_of_name(path)), 0, result);
  }

  IOStatus ReopenWritableFile(const std::string& path, const FileOptions& options,
                              std::unique_ptr<rocksdb::FSWritableFile>* result, IODebugContext* dbg) override {
    std::unique_ptr<rocksdb::FSWritableFile> host;
    IOStatus status = target()->ReopenWritableFile(path, host_options(options), &host, dbg);
    if (!status.ok()) return status;
    uint64_t size = 0;
    status = target()->GetFileSize(path, IOOptions(), &size, dbg);
    if (!status.ok()) return status;
    return wrap_writer(path, options, std::move(host), volume_.open(path_key(path), size, cause_of_name(path), true),
                       size, result);
  }

  IOStatus ReuseWritableFile(const std::string& path, const std::string& old_path, const FileOptions& options,
                             std::unique_ptr<rocksdb::FSWritableFile>* result, IODebugContext* dbg) override {
    uint64_t size = 0;
    IOStatus status = target()->GetFileSize(old_path, IOOptions(), &size, dbg);
    if (!status.ok()) return status;
    std::unique_ptr<rocksdb::FSWritableFile> host;
    status = target()->ReuseWritableFile(path, old_path, host_options(options), &host, dbg);
    if (!status.ok()) return status;
    if (Status moved = volume_.rename(path_key(old_path), path_key(path)); !moved) return to_io_status(moved);
    return wrap_writer(path, options, std::move(host), volume_.open(path_key(path), size, cause_of_name(path), true), 0,
                       result);
  }

  IOStatus NewRandomAccessFile(const std::string& path, const FileOptions& options,
                               std::unique_ptr<rocksdb::FSRandomAccessFile>* result, IODebugContext* dbg) override {
    std::unique_ptr<rocksdb::FSRandomAccessFile> host;
    IOStatus status = target()->NewRandomAccessFile(path, host_options(options), &host, dbg);
    if (!status.ok() || !holds_data(path)) return pass(status, std::move(host), result);
    auto file = open_to_read(path);
    if (!file) return to_io_status(file.status());
    *result = make_random_access_file(std::move(host), std::move(*file), cause_of_name(path), options,
                                      volume_.options().page_cache_bytes > 0, options_.host_sync);
    return status;
  }

  IOStatus NewSequentialFile(const std::string& path, const FileOptions& options,
                             std::unique_ptr<rocksdb::FSSequentialFile>* result, IODebugContext* dbg) override {
    if (!holds_data(path)) return target()->NewSequentialFile(path, host_options(options), result, dbg);
    std::unique_ptr<rocksdb::FSRandomAccessFile> host;
    FileOptions plain = host_options(options);
    plain.use_mmap_reads = false;
    IOStatus status = target()->NewRandomAccessFile(path, plain, &host, dbg);
    if (!status.ok()) return status;
    auto file = open_to_read(path);
    if (!file) return to_io_status(file.status());
    *result = make_sequential_file(std::move(host), std::move(*file), cause_of_name(path), options);
    return status;
  }

  IOStatus NewRandomRWFile(const std::string& path, const FileOptions& options,
                           std::unique_ptr<rocksdb::FSRandomRWFile>* result, IODebugContext* dbg) override {
    std::unique_ptr<rocksdb::FSRandomRWFile> host;
    IOStatus status = target()->NewRandomRWFile(path, host_options(options), &host, dbg);
    if (!status.ok()) return status;
    auto file = volume_.open(path_key(path), host_size(path), cause_of_name(path), true);
    if (!file) return to_io_status(file.status());
    *result = make_random_rw_file(std::move(host), std::move(*file), options_.host_sync);
    return status;
  }

  IOStatus NewDirectory(const std::string& path, const IOOptions& options,
                        std::unique_ptr<rocksdb::FSDirectory>* result, IODebugContext* dbg) override {
    std::unique_ptr<rocksdb::FSDirectory> host;
    IOStatus status = target()->NewDirectory(path, options, &host, dbg);
    if (!status.ok() || options_.host_sync) return pass(status, std::move(host), result);
    *result = std::make_unique<Directory>(std::move(host));
    return status;
  }

  // RocksDB lists its directories when it opens a database. Files that exist by then are adopted here.
  IOStatus GetChildren(const std::string& directory, const IOOptions& options, std::vector<std::string>* names,
                       IODebugContext* dbg) override {
    IOStatus status = target()->GetChildren(directory, options, names, dbg);
    if (!status.ok()) return status;
    for (const std::string& name : *names) {
      if (!is_table(name) && cause_of_name(name) == Cause::other) continue;
      const std::string path = path_key(directory + "/" + name);
      if (volume_.knows(path)) continue;
      if (Status known = volume_.adopt(path, host_size(path), cause_of_name(name)); !known) return to_io_status(known);
    }
    return status;
  }

  IOStatus DeleteFile(const std::string& path, const IOOptions& options, IODebugContext* dbg) override {
    IOStatus status = target()->DeleteFile(path, options, dbg);
    return status.ok() ? to_io_status(volume_.remove(path_key(path))) : status;
  }
  IOStatus Truncate(const std::string& path, size_t size, const IOOptions& options, IODebugContext* dbg) override {
    IOStatus status = target()->Truncate(path, size, options, dbg);
    return status.ok() ? to_io_status(volume_.truncate(path_key(path), size)) : status;
  }
  IOStatus RenameFile(const std::string& from, const std::string& to, const IOOptions& options,
                      IODebugContext* dbg) override {
    IOStatus status = target()->RenameFile(from, to, options, dbg);
    return status.ok() ? to_io_status(volume_.rename(path_key(from), path_key(to))) : status;
  }
  IOStatus LinkFile(const std::string& from, const std::string& to, const IOOptions& options,
                    IODebugContext* dbg) override {
    IOStatus status = target()->LinkFile(from, to, options, dbg);
    return status.ok() ? to_io_status(volume_.link(path_key(from), path_key(to))) : status;
  }

  IOStatus GetFreeSpace(const std::string& path, const IOOptions& options, uint64_t* free,
                        IODebugContext* dbg) override {
    if (options_.host_sync) return target()->GetFreeSpace(path, options, free, dbg);
    *free = volume_.space().free_bytes;
    return IOStatus::OK();
  }

  // Waits for all of them. Their order does not matter, because they are in flight together.
  IOStatus Poll(std::vector<void*>& handles, size_t /*at_least*/) override {
    for (void* handle : handles) finish_async_read(handle);
    return IOStatus::OK();
  }
  IOStatus AbortIO(std::vector<void*>& handles) override {
    for (void* handle : handles) abort_async_read(handle);
    return IOStatus::OK();
  }

 private:
  // With host_sync the host's drive is measured, so direct I/O is forwarded to it. Otherwise the host's directory may
  // be a tmpfs, which refuses direct I/O.
  FileOptions host_options(const FileOptions& options) const {
    FileOptions host = options;
    if (options_.host_sync) return host;
    host.use_direct_reads = false;
    host.use_direct_writes = false;
    return host;
  }

  template <typename HostFile>
  static IOStatus pass(const IOStatus& status, std::unique_ptr<HostFile> host, std::unique_ptr<HostFile>* result) {
    *result = std::move(host);
    return status;
  }

  IOStatus wrap_writer(const std::string& path, const FileOptions& options,
                       std::unique_ptr<rocksdb::FSWritableFile> host, Result<std::unique_ptr<File>> file,
                       std::uint64_t offset, std::unique_ptr<rocksdb::FSWritableFile>* result) {
    if (!file) return to_io_status(file.status());
    *result = make_writable_file(std::move(host), std::move(*file), path, options, offset, options_.host_sync);
    return IOStatus::OK();
  }

  Result<std::unique_ptr<File>> open_to_read(const std::string& path) {
    return volume_.open(path_key(path), host_size(path), cause_of_name(path), /*writer=*/false);
  }

  std::uint64_t host_size(const std::string& path) {
    uint64_t size = 0;
    target()->GetFileSize(path, IOOptions(), &size, nullptr).PermitUncheckedError();
    return size;
  }

  Volume& volume_;
  const RocksdbFileSystemOptions options_;
  AsyncReads async_reads_{.any_thread_may_wait = true};
};

}  // namespace

std::unique_ptr<FileSystem> make_rocksdb_file_system(Volume& volume, const RocksdbFileSystemOptions& options,
                                                     const std::shared_ptr<FileSystem>& host) {
  return std::make_unique<RocksdbFileSystem>(volume, options, host);
}

}  // namespace spillway::fs
