#include "fs/rocksdb_file_system.h"

#include <utility>
#include <vector>

#include "fs/path_key.h"

namespace spillway::fs {

using rocksdb::Env;
using rocksdb::FileOptions;
using rocksdb::FileSystem;
using rocksdb::FSReadRequest;
using rocksdb::IODebugContext;
using rocksdb::IOHandleDeleter;
using rocksdb::IOOptions;
using rocksdb::IOStatus;
using rocksdb::Slice;

namespace {

IOStatus to_rocksdb(const Status& status) {
  switch (status.fault()) {
    case Fault::none:
      return IOStatus::OK();
    case Fault::drive_full:
      return IOStatus::NoSpace(status.message());
    case Fault::stopped:
      return IOStatus::Aborted(status.message());
    default:
      return IOStatus::IOError(status.message());
  }
}

// RocksDB writes its info log past the file-system seam, and locks hold no data.
bool holds_data(const std::string& path) {
  const std::string name = base_name(path);
  return name != "LOCK" && name != "LOG" && !name.starts_with("LOG.old");
}

// Towards the host, direct I/O is off: its directory may be a tmpfs, and its time is not what is measured. Unless it
// is.
FileOptions host_options(const FileOptions& options, bool host_is_measured) {
  FileOptions host = options;
  if (host_is_measured) return host;
  host.use_direct_reads = false;
  host.use_direct_writes = false;
  return host;
}

// Compaction, and what brings spilled writes back, say at what priority they read; whoever says nothing reads for a
// user, or to recover.
Cause cause_of_read(const IOOptions& options, Cause file_cause) {
  if (options.rate_limiter_priority == Env::IO_LOW || options.rate_limiter_priority == Env::IO_USER) {
    return file_cause == Cause::spill ? Cause::spill : Cause::compaction;
  }
  return file_cause == Cause::wal || file_cause == Cause::manifest ? file_cause : Cause::user;
}

// The type of ReadAsync's callback, which RocksDB has changed between versions.
template <typename Method>
struct CallbackOf;
template <typename Class, typename Callback>
struct CallbackOf<IOStatus (Class::*)(FSReadRequest&, const IOOptions&, Callback, void*, void**, IOHandleDeleter*,
                                      IODebugContext*)> {
  using type = Callback;
};
using ReadAsyncCallback = CallbackOf<decltype(&rocksdb::FSRandomAccessFile::ReadAsync)>::type;

class WritableFile final : public rocksdb::FSWritableFileOwnerWrapper {
 public:
  WritableFile(std::unique_ptr<rocksdb::FSWritableFile> host, std::unique_ptr<File> file, bool is_table,
               const FileOptions& options, std::uint64_t offset, bool host_sync)
      : FSWritableFileOwnerWrapper(std::move(host)),
        file_(std::move(file)),
        is_table_(is_table),
        access_(options.use_direct_writes ? Access::direct : Access::buffered),
        waits_for_ranges_(options.strict_bytes_per_sync),
        host_sync_(host_sync),
        offset_(offset) {}

  // The drive comes first: where it has no space, the host's file is not to grow either.
  IOStatus Append(const Slice& data, const IOOptions& options, IODebugContext* dbg) override {
    if (Status status = charge(offset_, data.size()); !status) return to_rocksdb(status);
    return target()->Append(data, options, dbg);
  }
  IOStatus Append(const Slice& data, const IOOptions& options, const rocksdb::DataVerificationInfo& info,
                  IODebugContext* dbg) override {
    if (Status status = charge(offset_, data.size()); !status) return to_rocksdb(status);
    return target()->Append(data, options, info, dbg);
  }
  IOStatus PositionedAppend(const Slice& data, uint64_t offset, const IOOptions& options,
                            IODebugContext* dbg) override {
    if (Status status = charge(offset, data.size()); !status) return to_rocksdb(status);
    return target()->PositionedAppend(data, offset, options, dbg);
  }
  IOStatus PositionedAppend(const Slice& data, uint64_t offset, const IOOptions& options,
                            const rocksdb::DataVerificationInfo& /*info*/, IODebugContext* dbg) override {
    return PositionedAppend(data, offset, options, dbg);  // the host's file has no such method without direct I/O
  }

  IOStatus Truncate(uint64_t size, const IOOptions& options, IODebugContext* dbg) override {
    const IOStatus status = target()->Truncate(size, options, dbg);
    if (!status.ok()) return status;
    offset_ = size;
    return to_rocksdb(file_->truncate(size));
  }

  IOStatus Close(const IOOptions& options, IODebugContext* dbg) override {
    const IOStatus host = target()->Close(options, dbg);
    const IOStatus drive = to_rocksdb(file_->close());
    return host.ok() ? drive : host;
  }

  IOStatus Sync(const IOOptions& options, IODebugContext* dbg) override {
    const IOStatus host = host_sync_ ? target()->Sync(options, dbg) : IOStatus::OK();
    return host.ok() ? to_rocksdb(file_->sync()) : host;
  }
  IOStatus Fsync(const IOOptions& options, IODebugContext* dbg) override {
    const IOStatus host = host_sync_ ? target()->Fsync(options, dbg) : IOStatus::OK();
    return host.ok() ? to_rocksdb(file_->sync()) : host;
  }
  IOStatus RangeSync(uint64_t offset, uint64_t nbytes, const IOOptions& options, IODebugContext* dbg) override {
    const IOStatus host = host_sync_ ? target()->RangeSync(offset, nbytes, options, dbg) : IOStatus::OK();
    if (!host.ok()) return host;
    return to_rocksdb(waits_for_ranges_ ? file_->write_out() : file_->push_out());
  }

  bool use_direct_io() const override { return access_ == Access::direct; }
  size_t GetRequiredBufferAlignment() const override { return kPageBytes; }

  void SetIOPriority(Env::IOPriority priority) override {
    FSWritableFileOwnerWrapper::SetIOPriority(priority);
    priority_ = priority;
    learn_cause();
  }
  void SetPreallocationBlockSize(size_t size) override {
    if (host_sync_) target()->SetPreallocationBlockSize(size);
    preallocates_ = size > 0;
    learn_cause();
  }
  // Space is the volume's to give; on a tmpfs the host's preallocation would cost memory.
  void PrepareWrite(size_t offset, size_t length, const IOOptions& options, IODebugContext* dbg) override {
    if (host_sync_) target()->PrepareWrite(offset, length, options, dbg);
  }
  IOStatus Allocate(uint64_t offset, uint64_t length, const IOOptions& options, IODebugContext* dbg) override {
    return host_sync_ ? target()->Allocate(offset, length, options, dbg) : IOStatus::OK();
  }

 private:
  Status charge(std::uint64_t offset, std::uint64_t length) {
    Status status = file_->write(offset, length, access_);
    if (status) offset_ = offset + length;
    return status;
  }

  void learn_cause() {
    if (is_table_) file_->set_cause(cause_of_table(priority_, preallocates_));
  }

  std::unique_ptr<File> file_;
  const bool is_table_;
  const Access access_;
  const bool waits_for_ranges_;  // FSWritableFile's own strict_bytes_per_sync_ is never set in a wrapper
  const bool host_sync_;
  std::uint64_t offset_;
  Env::IOPriority priority_ = Env::IO_TOTAL;
  bool preallocates_ = false;
};

// What the handle of a read that was begun points to.
struct AsyncRead {
  FSReadRequest answer;
  std::unique_ptr<ReadInFlight> in_flight;
  ReadAsyncCallback callback;  // empty once it was called, or shall not be
  void* argument = nullptr;

  void finish() {
    if (!callback) return;
    if (in_flight) answer.status = to_rocksdb(std::exchange(in_flight, nullptr)->wait());
    std::exchange(callback, nullptr)(answer, argument);
  }
  void abort() {
    callback = nullptr;
    in_flight.reset();
  }
};

class RandomAccessFile final : public rocksdb::FSRandomAccessFileOwnerWrapper {
 public:
  RandomAccessFile(std::unique_ptr<rocksdb::FSRandomAccessFile> host, std::unique_ptr<File> file, Cause cause,
                   Access access, bool caches, bool host_is_measured)
      : FSRandomAccessFileOwnerWrapper(std::move(host)),
        file_(std::move(file)),
        cause_(cause),
        access_(access),
        caches_(caches),
        host_is_measured_(host_is_measured) {}

  IOStatus Read(uint64_t offset, size_t n, const IOOptions& options, Slice* result, char* scratch,
                IODebugContext* dbg) const override {
    IOStatus status = target()->Read(offset, n, options, result, scratch, dbg);
    if (!status.ok()) return status;
    return to_rocksdb(file_->read({{offset, result->size()}}, access_, cause_of_read(options, cause_)));
  }

  IOStatus MultiRead(FSReadRequest* requests, size_t count, const IOOptions& options, IODebugContext* dbg) override {
    IOStatus status = target()->MultiRead(requests, count, options, dbg);
    if (!status.ok()) return status;
    std::vector<File::Range> ranges;
    for (size_t i = 0; i < count; ++i) {
      if (requests[i].status.ok()) ranges.push_back({requests[i].offset, requests[i].result.size()});
    }
    return to_rocksdb(file_->read(ranges, access_, cause_of_read(options, cause_)));
  }

  // The bytes are the host's and there at once; the drive's time is waited for by Poll, in any thread.
  IOStatus ReadAsync(FSReadRequest& request, const IOOptions& options, ReadAsyncCallback callback, void* argument,
                     void** handle, IOHandleDeleter* deleter, IODebugContext* dbg) override {
    auto read = std::make_unique<AsyncRead>();
    FSReadRequest& answer = read->answer;
    answer.offset = request.offset;
    answer.len = request.len;
    answer.scratch = request.scratch;
    answer.status = target()->Read(request.offset, request.len, options, &answer.result, request.scratch, dbg);
    if (answer.status.ok()) {
      auto begun = file_->begin_read({{request.offset, answer.result.size()}}, access_, cause_of_read(options, cause_));
      if (!begun) return to_rocksdb(begun.status());
      read->in_flight = std::move(*begun);
    }
    read->callback = std::move(callback);
    read->argument = argument;
    *handle = read.release();
    *deleter = [](void* one) { delete static_cast<AsyncRead*>(one); };  // NOLINT: RocksDB's to own
    return IOStatus::OK();
  }

  // Without a page cache there is no place to read ahead into: RocksDB then keeps a buffer of its own.
  IOStatus Prefetch(uint64_t offset, size_t n, const IOOptions& options, IODebugContext* dbg) override {
    if (host_is_measured_) return target()->Prefetch(offset, n, options, dbg);
    if (!caches_ || access_ == Access::direct) return IOStatus::NotSupported("Prefetch");
    return to_rocksdb(file_->read({{offset, n}}, access_, cause_of_read(options, cause_)));
  }

  bool use_direct_io() const override { return access_ == Access::direct; }
  size_t GetRequiredBufferAlignment() const override { return kPageBytes; }

 private:
  std::unique_ptr<File> file_;
  const Cause cause_;
  const Access access_;
  const bool caches_;
  const bool host_is_measured_;
};

// On a random-access file of the host, for one way of reading serves both buffered and direct callers.
class SequentialFile final : public rocksdb::FSSequentialFile {
 public:
  SequentialFile(std::unique_ptr<rocksdb::FSRandomAccessFile> host, std::unique_ptr<File> file, Cause cause,
                 Access access)
      : host_(std::move(host)), file_(std::move(file)), cause_(cause), access_(access) {}

  IOStatus Read(size_t n, const IOOptions& options, Slice* result, char* scratch, IODebugContext* dbg) override {
    const IOStatus status = PositionedRead(offset_, n, options, result, scratch, dbg);
    if (status.ok()) offset_ += result->size();
    return status;
  }
  IOStatus Skip(uint64_t n) override {
    offset_ += n;
    return IOStatus::OK();
  }
  IOStatus PositionedRead(uint64_t offset, size_t n, const IOOptions& options, Slice* result, char* scratch,
                          IODebugContext* dbg) override {
    IOStatus status = host_->Read(offset, n, options, result, scratch, dbg);
    if (!status.ok()) return status;
    return to_rocksdb(file_->read({{offset, result->size()}}, access_, cause_of_read(options, cause_)));
  }

  bool use_direct_io() const override { return access_ == Access::direct; }
  size_t GetRequiredBufferAlignment() const override { return kPageBytes; }

 private:
  std::unique_ptr<rocksdb::FSRandomAccessFile> host_;
  std::unique_ptr<File> file_;
  const Cause cause_;
  const Access access_;
  std::uint64_t offset_ = 0;
};

class RandomRWFile final : public rocksdb::FSRandomRWFileOwnerWrapper {
 public:
  RandomRWFile(std::unique_ptr<rocksdb::FSRandomRWFile> host, std::unique_ptr<File> file, bool host_sync)
      : FSRandomRWFileOwnerWrapper(std::move(host)), file_(std::move(file)), host_sync_(host_sync) {}

  IOStatus Write(uint64_t offset, const Slice& data, const IOOptions& options, IODebugContext* dbg) override {
    if (Status status = file_->write(offset, data.size(), Access::buffered); !status) return to_rocksdb(status);
    return target()->Write(offset, data, options, dbg);
  }
  IOStatus Read(uint64_t offset, size_t n, const IOOptions& options, Slice* result, char* scratch,
                IODebugContext* dbg) const override {
    IOStatus status = target()->Read(offset, n, options, result, scratch, dbg);
    if (!status.ok()) return status;
    return to_rocksdb(file_->read({{offset, result->size()}}, Access::buffered, Cause::user));
  }
  IOStatus Sync(const IOOptions& options, IODebugContext* dbg) override {
    const IOStatus host = host_sync_ ? target()->Sync(options, dbg) : IOStatus::OK();
    return host.ok() ? to_rocksdb(file_->sync()) : host;
  }
  IOStatus Fsync(const IOOptions& options, IODebugContext* dbg) override { return Sync(options, dbg); }
  IOStatus Close(const IOOptions& options, IODebugContext* dbg) override {
    const IOStatus host = target()->Close(options, dbg);
    const IOStatus drive = to_rocksdb(file_->close());
    return host.ok() ? drive : host;
  }

 private:
  std::unique_ptr<File> file_;
  const bool host_sync_;
};

class Directory final : public rocksdb::FSDirectoryWrapper {
 public:
  using FSDirectoryWrapper::FSDirectoryWrapper;
  IOStatus Fsync(const IOOptions& /*options*/, IODebugContext* /*dbg*/) override { return IOStatus::OK(); }
  IOStatus FsyncWithDirOptions(const IOOptions& /*options*/, IODebugContext* /*dbg*/,
                               const rocksdb::DirFsyncOptions& /*what*/) override {
    return IOStatus::OK();
  }
};

class RocksdbFileSystem final : public rocksdb::FileSystemWrapper {
 public:
  RocksdbFileSystem(Volume& volume, const RocksdbFileSystemOptions& options, const std::shared_ptr<FileSystem>& host)
      : FileSystemWrapper(host), volume_(volume), options_(options) {}

  static const char* kClassName() { return "SpillwayFileSystem"; }
  const char* Name() const override { return kClassName(); }

  IOStatus NewWritableFile(const std::string& path, const FileOptions& options,
                           std::unique_ptr<rocksdb::FSWritableFile>* result, IODebugContext* dbg) override {
    std::unique_ptr<rocksdb::FSWritableFile> host;
    IOStatus status = target()->NewWritableFile(path, host_options(options, options_.host_sync), &host, dbg);
    if (!status.ok()) return status;
    return wrap_writer(path, options, std::move(host), volume_.create(path_key(path), cause_of_name(path)), 0, result);
  }

  IOStatus ReopenWritableFile(const std::string& path, const FileOptions& options,
                              std::unique_ptr<rocksdb::FSWritableFile>* result, IODebugContext* dbg) override {
    std::unique_ptr<rocksdb::FSWritableFile> host;
    IOStatus status = target()->ReopenWritableFile(path, host_options(options, options_.host_sync), &host, dbg);
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
    status = target()->ReuseWritableFile(path, old_path, host_options(options, options_.host_sync), &host, dbg);
    if (!status.ok()) return status;
    if (Status moved = volume_.rename(path_key(old_path), path_key(path)); !moved) return to_rocksdb(moved);
    return wrap_writer(path, options, std::move(host), volume_.open(path_key(path), size, cause_of_name(path), true), 0,
                       result);
  }

  IOStatus NewRandomAccessFile(const std::string& path, const FileOptions& options,
                               std::unique_ptr<rocksdb::FSRandomAccessFile>* result, IODebugContext* dbg) override {
    std::unique_ptr<rocksdb::FSRandomAccessFile> host;
    IOStatus status = target()->NewRandomAccessFile(path, host_options(options, options_.host_sync), &host, dbg);
    if (!status.ok() || !holds_data(path)) return pass(status, std::move(host), result);
    auto file = open_to_read(path);
    if (!file) return to_rocksdb(file.status());
    *result = std::make_unique<RandomAccessFile>(std::move(host), std::move(*file), cause_of_name(path),
                                                 options.use_direct_reads ? Access::direct : Access::buffered,
                                                 volume_.options().page_cache_bytes > 0, options_.host_sync);
    return status;
  }

  IOStatus NewSequentialFile(const std::string& path, const FileOptions& options,
                             std::unique_ptr<rocksdb::FSSequentialFile>* result, IODebugContext* dbg) override {
    if (!holds_data(path))
      return target()->NewSequentialFile(path, host_options(options, options_.host_sync), result, dbg);
    std::unique_ptr<rocksdb::FSRandomAccessFile> host;
    FileOptions plain = host_options(options, options_.host_sync);
    plain.use_mmap_reads = false;
    IOStatus status = target()->NewRandomAccessFile(path, plain, &host, dbg);
    if (!status.ok()) return status;
    auto file = open_to_read(path);
    if (!file) return to_rocksdb(file.status());
    *result = std::make_unique<SequentialFile>(std::move(host), std::move(*file), cause_of_name(path),
                                               options.use_direct_reads ? Access::direct : Access::buffered);
    return status;
  }

  IOStatus NewRandomRWFile(const std::string& path, const FileOptions& options,
                           std::unique_ptr<rocksdb::FSRandomRWFile>* result, IODebugContext* dbg) override {
    std::unique_ptr<rocksdb::FSRandomRWFile> host;
    IOStatus status = target()->NewRandomRWFile(path, host_options(options, options_.host_sync), &host, dbg);
    if (!status.ok()) return status;
    auto file = volume_.open(path_key(path), host_size(path), cause_of_name(path), true);
    if (!file) return to_rocksdb(file.status());
    *result = std::make_unique<RandomRWFile>(std::move(host), std::move(*file), options_.host_sync);
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

  // RocksDB lists its directories when it opens a database: the moment to learn what lies there already.
  IOStatus GetChildren(const std::string& directory, const IOOptions& options, std::vector<std::string>* names,
                       IODebugContext* dbg) override {
    IOStatus status = target()->GetChildren(directory, options, names, dbg);
    if (!status.ok()) return status;
    for (const std::string& name : *names) {
      if (!is_table(name) && cause_of_name(name) == Cause::other) continue;
      const std::string path = path_key(directory + "/" + name);
      if (volume_.knows(path)) continue;
      if (Status known = volume_.adopt(path, host_size(path), cause_of_name(name)); !known) return to_rocksdb(known);
    }
    return status;
  }

  IOStatus DeleteFile(const std::string& path, const IOOptions& options, IODebugContext* dbg) override {
    IOStatus status = target()->DeleteFile(path, options, dbg);
    return status.ok() ? to_rocksdb(volume_.remove(path_key(path))) : status;
  }
  IOStatus Truncate(const std::string& path, size_t size, const IOOptions& options, IODebugContext* dbg) override {
    IOStatus status = target()->Truncate(path, size, options, dbg);
    return status.ok() ? to_rocksdb(volume_.truncate(path_key(path), size)) : status;
  }
  IOStatus RenameFile(const std::string& from, const std::string& to, const IOOptions& options,
                      IODebugContext* dbg) override {
    IOStatus status = target()->RenameFile(from, to, options, dbg);
    return status.ok() ? to_rocksdb(volume_.rename(path_key(from), path_key(to))) : status;
  }
  IOStatus LinkFile(const std::string& from, const std::string& to, const IOOptions& options,
                    IODebugContext* dbg) override {
    IOStatus status = target()->LinkFile(from, to, options, dbg);
    return status.ok() ? to_rocksdb(volume_.link(path_key(from), path_key(to))) : status;
  }

  IOStatus GetFreeSpace(const std::string& path, const IOOptions& options, uint64_t* free,
                        IODebugContext* dbg) override {
    if (options_.host_sync) return target()->GetFreeSpace(path, options, free, dbg);
    *free = volume_.space().free_bytes;
    return IOStatus::OK();
  }

  // All of them, in whose order does not matter: they are in flight together.
  IOStatus Poll(std::vector<void*>& handles, size_t /*at_least*/) override {
    for (void* handle : handles) static_cast<AsyncRead*>(handle)->finish();
    return IOStatus::OK();
  }
  IOStatus AbortIO(std::vector<void*>& handles) override {
    for (void* handle : handles) static_cast<AsyncRead*>(handle)->abort();
    return IOStatus::OK();
  }

 private:
  template <typename HostFile>
  static IOStatus pass(const IOStatus& status, std::unique_ptr<HostFile> host, std::unique_ptr<HostFile>* result) {
    *result = std::move(host);
    return status;
  }

  IOStatus wrap_writer(const std::string& path, const FileOptions& options,
                       std::unique_ptr<rocksdb::FSWritableFile> host, Result<std::unique_ptr<File>> file,
                       std::uint64_t offset, std::unique_ptr<rocksdb::FSWritableFile>* result) {
    if (!file) return to_rocksdb(file.status());
    *result = std::make_unique<WritableFile>(std::move(host), std::move(*file), is_table(path), options, offset,
                                             options_.host_sync);
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
};

}  // namespace

bool is_table(const std::string& path) { return path.ends_with(".sst") || path.ends_with(".ldb"); }

Cause cause_of_name(const std::string& path) {
  const std::string name = base_name(path);
  if (name.ends_with(".log")) return Cause::wal;
  if (name.ends_with(".blob")) return Cause::blob;
  if (name.ends_with(".spill")) return Cause::spill;
  if (name.starts_with("MANIFEST")) return Cause::manifest;
  return Cause::other;
}

Cause cause_of_table(Env::IOPriority priority, bool preallocates) {
  if (priority == Env::IO_LOW || preallocates) return Cause::compaction;
  if (priority == Env::IO_HIGH || priority == Env::IO_USER) return Cause::flush;
  return Cause::other;
}

std::unique_ptr<FileSystem> make_rocksdb_file_system(Volume& volume, const RocksdbFileSystemOptions& options,
                                                     const std::shared_ptr<FileSystem>& host) {
  return std::make_unique<RocksdbFileSystem>(volume, options, host);
}

}  // namespace spillway::fs
