#include "fs/rocksdb/readable_files.h"

#include <utility>
#include <vector>

#include "base/async_reads.h"
#include "fs/rocksdb/writable_files.h"

namespace spillway::fs {

using rocksdb::Env;
using rocksdb::FileOptions;
using rocksdb::FSReadRequest;
using rocksdb::IODebugContext;
using rocksdb::IOHandleDeleter;
using rocksdb::IOOptions;
using rocksdb::IOStatus;
using rocksdb::Slice;

namespace {

// Compactions and rollbacks set a priority for their reads. Reads without one are a user's, or of a recovery.
Cause cause_of_read(const IOOptions& options, Cause file_cause) {
  if (options.rate_limiter_priority == Env::IO_LOW || options.rate_limiter_priority == Env::IO_USER) {
    return file_cause == Cause::spill ? Cause::spill : Cause::compaction;
  }
  return file_cause == Cause::wal || file_cause == Cause::manifest ? file_cause : Cause::user;
}

// The handle of a ReadAsync() points to one of these.
struct AsyncRead {
  FSReadRequest answer;
  std::unique_ptr<ReadInFlight> in_flight;
  ReadAsyncCallback callback;  // empty after it was called, or if it must not be called
  void* argument = nullptr;

  void finish() {
    if (!callback) return;
    if (in_flight) answer.status = to_io_status(std::exchange(in_flight, nullptr)->wait());
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
                   Access access, bool has_page_cache, bool host_sync)
      : FSRandomAccessFileOwnerWrapper(std::move(host)),
        file_(std::move(file)),
        cause_(cause),
        access_(access),
        has_page_cache_(has_page_cache),
        host_sync_(host_sync) {}

  IOStatus Read(uint64_t offset, size_t n, const IOOptions& options, Slice* result, char* scratch,
                IODebugContext* dbg) const override {
    IOStatus status = target()->Read(offset, n, options, result, scratch, dbg);
    if (!status.ok()) return status;
    return to_io_status(file_->read({{offset, result->size()}}, access_, cause_of_read(options, cause_)));
  }

  IOStatus MultiRead(FSReadRequest* requests, size_t count, const IOOptions& options, IODebugContext* dbg) override {
    IOStatus status = target()->MultiRead(requests, count, options, dbg);
    if (!status.ok()) return status;
    std::vector<File::Range> ranges;
    for (size_t i = 0; i < count; ++i) {
      if (requests[i].status.ok()) ranges.push_back({requests[i].offset, requests[i].result.size()});
    }
    return to_io_status(file_->read(ranges, access_, cause_of_read(options, cause_)));
  }

  // The host's file gives the bytes at once. Poll(), in any thread, waits for the drive's time.
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
      if (!begun) return to_io_status(begun.status());
      read->in_flight = std::move(*begun);
    }
    read->callback = std::move(callback);
    read->argument = argument;
    *handle = read.release();
    *deleter = [](void* one) { delete static_cast<AsyncRead*>(one); };  // NOLINT: RocksDB's to own
    return IOStatus::OK();
  }

  // Without a page cache nothing can be read ahead. RocksDB then uses a buffer of its own.
  IOStatus Prefetch(uint64_t offset, size_t n, const IOOptions& options, IODebugContext* dbg) override {
    if (host_sync_) return target()->Prefetch(offset, n, options, dbg);
    if (!has_page_cache_ || access_ == Access::direct) return IOStatus::NotSupported("Prefetch");
    return to_io_status(file_->read({{offset, n}}, access_, cause_of_read(options, cause_)));
  }

  bool use_direct_io() const override { return access_ == Access::direct; }
  size_t GetRequiredBufferAlignment() const override { return kPageBytes; }

 private:
  std::unique_ptr<File> file_;
  const Cause cause_;
  const Access access_;
  const bool has_page_cache_;
  const bool host_sync_;
};

// Uses a random-access file of the host, so that buffered and direct callers are read in the same way.
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
    return to_io_status(file_->read({{offset, result->size()}}, access_, cause_of_read(options, cause_)));
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

Access access_of(const FileOptions& options) { return options.use_direct_reads ? Access::direct : Access::buffered; }

}  // namespace

std::unique_ptr<rocksdb::FSRandomAccessFile> make_random_access_file(std::unique_ptr<rocksdb::FSRandomAccessFile> host,
                                                                     std::unique_ptr<File> file, Cause cause,
                                                                     const FileOptions& options, bool has_page_cache,
                                                                     bool host_sync) {
  return std::make_unique<RandomAccessFile>(std::move(host), std::move(file), cause, access_of(options), has_page_cache,
                                            host_sync);
}

std::unique_ptr<rocksdb::FSSequentialFile> make_sequential_file(std::unique_ptr<rocksdb::FSRandomAccessFile> host,
                                                                std::unique_ptr<File> file, Cause cause,
                                                                const FileOptions& options) {
  return std::make_unique<SequentialFile>(std::move(host), std::move(file), cause, access_of(options));
}

void finish_async_read(void* handle) { static_cast<AsyncRead*>(handle)->finish(); }

void abort_async_read(void* handle) { static_cast<AsyncRead*>(handle)->abort(); }

}  // namespace spillway::fs
