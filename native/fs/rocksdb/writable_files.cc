#include "fs/rocksdb/writable_files.h"

#include <utility>

#include "fs/rocksdb/file_causes.h"

namespace spillway::fs {

using rocksdb::Env;
using rocksdb::FileOptions;
using rocksdb::IODebugContext;
using rocksdb::IOOptions;
using rocksdb::IOStatus;
using rocksdb::Slice;

IOStatus to_io_status(const Status& status) {
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

namespace {
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

  // The drive is written first: if it has no space, the host's file must not grow.
  IOStatus Append(const Slice& data, const IOOptions& options, IODebugContext* dbg) override {
    if (Status status = charge(offset_, data.size()); !status) return to_io_status(status);
    return target()->Append(data, options, dbg);
  }
  IOStatus Append(const Slice& data, const IOOptions& options, const rocksdb::DataVerificationInfo& info,
                  IODebugContext* dbg) override {
    if (Status status = charge(offset_, data.size()); !status) return to_io_status(status);
    return target()->Append(data, options, info, dbg);
  }
  IOStatus PositionedAppend(const Slice& data, uint64_t offset, const IOOptions& options,
                            IODebugContext* dbg) override {
    if (Status status = charge(offset, data.size()); !status) return to_io_status(status);
    return target()->PositionedAppend(data, offset, options, dbg);
  }
  IOStatus PositionedAppend(const Slice& data, uint64_t offset, const IOOptions& options,
                            const rocksdb::DataVerificationInfo& /*info*/, IODebugContext* dbg) override {
    return PositionedAppend(data, offset, options, dbg);  // without direct I/O the host's file has no positioned append
  }

  IOStatus Truncate(uint64_t size, const IOOptions& options, IODebugContext* dbg) override {
    const IOStatus status = target()->Truncate(size, options, dbg);
    if (!status.ok()) return status;
    offset_ = size;
    return to_io_status(file_->truncate(size));
  }

  IOStatus Close(const IOOptions& options, IODebugContext* dbg) override {
    const IOStatus host = target()->Close(options, dbg);
    const IOStatus drive = to_io_status(file_->close());
    return host.ok() ? drive : host;
  }

  IOStatus Sync(const IOOptions& options, IODebugContext* dbg) override {
    const IOStatus host = host_sync_ ? target()->Sync(options, dbg) : IOStatus::OK();
    return host.ok() ? to_io_status(file_->sync()) : host;
  }
  IOStatus Fsync(const IOOptions& options, IODebugContext* dbg) override {
    const IOStatus host = host_sync_ ? target()->Fsync(options, dbg) : IOStatus::OK();
    return host.ok() ? to_io_status(file_->sync()) : host;
  }
  IOStatus RangeSync(uint64_t offset, uint64_t nbytes, const IOOptions& options, IODebugContext* dbg) override {
    const IOStatus host = host_sync_ ? target()->RangeSync(offset, nbytes, options, dbg) : IOStatus::OK();
    if (!host.ok()) return host;
    return to_io_status(waits_for_ranges_ ? file_->write_out() : file_->push_out());
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
  // The volume allocates the space. On a tmpfs the host's preallocation would use memory.
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

class RandomRWFile final : public rocksdb::FSRandomRWFileOwnerWrapper {
 public:
  RandomRWFile(std::unique_ptr<rocksdb::FSRandomRWFile> host, std::unique_ptr<File> file, bool host_sync)
      : FSRandomRWFileOwnerWrapper(std::move(host)), file_(std::move(file)), host_sync_(host_sync) {}

  IOStatus Write(uint64_t offset, const Slice& data, const IOOptions& options, IODebugContext* dbg) override {
    if (Status status = file_->write(offset, data.size(), Access::buffered); !status) return to_io_status(status);
    return target()->Write(offset, data, options, dbg);
  }
  IOStatus Read(uint64_t offset, size_t n, const IOOptions& options, Slice* result, char* scratch,
                IODebugContext* dbg) const override {
    IOStatus status = target()->Read(offset, n, options, result, scratch, dbg);
    if (!status.ok()) return status;
    return to_io_status(file_->read({{offset, result->size()}}, Access::buffered, Cause::user));
  }
  IOStatus Sync(const IOOptions& options, IODebugContext* dbg) override {
    const IOStatus host = host_sync_ ? target()->Sync(options, dbg) : IOStatus::OK();
    return host.ok() ? to_io_status(file_->sync()) : host;
  }
  IOStatus Fsync(const IOOptions& options, IODebugContext* dbg) override { return Sync(options, dbg); }
  IOStatus Close(const IOOptions& options, IODebugContext* dbg) override {
    const IOStatus host = target()->Close(options, dbg);
    const IOStatus drive = to_io_status(file_->close());
    return host.ok() ? drive : host;
  }

 private:
  std::unique_ptr<File> file_;
  const bool host_sync_;
};

}  // namespace

std::unique_ptr<rocksdb::FSWritableFile> make_writable_file(std::unique_ptr<rocksdb::FSWritableFile> host,
                                                            std::unique_ptr<File> file, const std::string& path,
                                                            const FileOptions& options, std::uint64_t offset,
                                                            bool host_sync) {
  return std::make_unique<WritableFile>(std::move(host), std::move(file), is_table(path), options, offset, host_sync);
}

std::unique_ptr<rocksdb::FSRandomRWFile> make_random_rw_file(std::unique_ptr<rocksdb::FSRandomRWFile> host,
                                                             std::unique_ptr<File> file, bool host_sync) {
  return std::make_unique<RandomRWFile>(std::move(host), std::move(file), host_sync);
}

}  // namespace spillway::fs
