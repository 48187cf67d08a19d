#include "faults/files.h"

#include <algorithm>
#include <utility>

#include "base/async_reads.h"

namespace spillway::faults {

using rocksdb::FSReadRequest;
using rocksdb::IODebugContext;
using rocksdb::IOHandleDeleter;
using rocksdb::IOOptions;
using rocksdb::IOStatus;
using rocksdb::Slice;

namespace {

using Kind = DriveEvent::Kind;

// One file that is being written, through either of RocksDB's two classes.
class JournaledFile {
 public:
  JournaledFile(std::shared_ptr<Drive> drive, std::string name, FileId id)
      : drive_(std::move(drive)), name_(std::move(name)), id_(id) {}

  // Calls `write` with the first bytes, as many as are to be written.
  template <typename Write>
  IOStatus write(std::uint64_t offset, const Slice& data, Write write) {
    const FileFault fault = drive_->fault_of(Action::write, name_, data.size(), data.size());
    const bool fails = !fault.status.ok();
    const Slice part(data.data(), fails ? std::min<std::uint64_t>(data.size(), fault.written_first) : data.size());
    if (part.empty() && fails) return fault.status;
    const IOStatus written = drive_->change([&](DriveJournal& journal) {
      const IOStatus noted = to_io_status(journal.note_write(id_, offset, part.size()));
      return noted.ok() ? write(part) : noted;
    });
    return fails ? fault.status : written;
  }

  template <typename Truncate>
  IOStatus truncate(std::uint64_t size, Truncate truncate) {
    return drive_->change([&](DriveJournal& journal) {
      const IOStatus noted = to_io_status(journal.note_truncation(id_, size));
      return noted.ok() ? truncate() : noted;
    });
  }

  IOStatus sync() {
    std::uint64_t began = 0;
    const IOStatus begun = drive_->change([&](DriveJournal& journal) {
      began = journal.events();
      return IOStatus::OK();
    });
    if (!begun.ok()) return begun;
    const FileFault fault = drive_->fault_of(Action::sync, name_, 0);
    if (!fault.status.ok()) return fault.status;
    return drive_->change([&](DriveJournal& journal) {
      return to_io_status(journal.note({.kind = Kind::sync, .id = id_, .length = began}));
    });
  }

  IOStatus may_read(std::uint64_t bytes) const { return drive_->fault_of_read(name_, bytes); }

 private:
  const std::shared_ptr<Drive> drive_;
  const std::string name_;
  const FileId id_;
};

class WritableFile final : public rocksdb::FSWritableFileOwnerWrapper {
 public:
  WritableFile(std::unique_ptr<rocksdb::FSWritableFile> host, JournaledFile file, std::uint64_t offset)
      : FSWritableFileOwnerWrapper(std::move(host)), file_(std::move(file)), offset_(offset) {}

  IOStatus Append(const Slice& data, const IOOptions& options, IODebugContext* dbg) override {
    return file_.write(offset_, data, [&](const Slice& part) {
      offset_ += part.size();
      return target()->Append(part, options, dbg);
    });
  }
  IOStatus Append(const Slice& data, const IOOptions& options, const rocksdb::DataVerificationInfo& /*info*/,
                  IODebugContext* dbg) override {
    return Append(data, options, dbg);
  }
  IOStatus PositionedAppend(const Slice& data, uint64_t offset, const IOOptions& options,
                            IODebugContext* dbg) override {
    return file_.write(offset, data, [&](const Slice& part) {
      offset_ = offset + part.size();
      return target()->PositionedAppend(part, offset, options, dbg);
    });
  }
  IOStatus PositionedAppend(const Slice& data, uint64_t offset, const IOOptions& options,
                            const rocksdb::DataVerificationInfo& /*info*/, IODebugContext* dbg) override {
    return PositionedAppend(data, offset, options, dbg);
  }
  IOStatus Truncate(uint64_t size, const IOOptions& options, IODebugContext* dbg) override {
    return file_.truncate(size, [&] {
      offset_ = size;
      return target()->Truncate(size, options, dbg);
    });
  }
  IOStatus Sync(const IOOptions&, IODebugContext*) override { return file_.sync(); }
  IOStatus Fsync(const IOOptions&, IODebugContext*) override { return file_.sync(); }
  // Linux starts to write without waiting, so nothing becomes durable.
  IOStatus RangeSync(uint64_t, uint64_t, const IOOptions&, IODebugContext*) override {
    return strict_bytes_per_sync_ ? file_.sync() : IOStatus::OK();
  }
  // Preallocation would only use a tmpfs's memory.
  void PrepareWrite(size_t, size_t, const IOOptions&, IODebugContext*) override {}
  IOStatus Allocate(uint64_t, uint64_t, const IOOptions&, IODebugContext*) override { return IOStatus::OK(); }

 private:
  JournaledFile file_;
  std::uint64_t offset_;
};

class RandomRWFile final : public rocksdb::FSRandomRWFileOwnerWrapper {
 public:
  RandomRWFile(std::unique_ptr<rocksdb::FSRandomRWFile> host, JournaledFile file)
      : FSRandomRWFileOwnerWrapper(std::move(host)), file_(std::move(file)) {}

  IOStatus Write(uint64_t offset, const Slice& data, const IOOptions& options, IODebugContext* dbg) override {
    return file_.write(offset, data, [&](const Slice& part) { return target()->Write(offset, part, options, dbg); });
  }
  IOStatus Read(uint64_t offset, size_t n, const IOOptions& options, Slice* result, char* scratch,
                IODebugContext* dbg) const override {
    const IOStatus fault = file_.may_read(n);
    return fault.ok() ? target()->Read(offset, n, options, result, scratch, dbg) : fault;
  }
  IOStatus Sync(const IOOptions&, IODebugContext*) override { return file_.sync(); }
  IOStatus Fsync(const IOOptions&, IODebugContext*) override { return file_.sync(); }

 private:
  JournaledFile file_;
};

class RandomAccessFile final : public rocksdb::FSRandomAccessFileOwnerWrapper {
 public:
  RandomAccessFile(std::unique_ptr<rocksdb::FSRandomAccessFile> host, std::shared_ptr<Drive> drive, std::string name)
      : FSRandomAccessFileOwnerWrapper(std::move(host)), drive_(std::move(drive)), name_(std::move(name)) {}

  IOStatus Read(uint64_t offset, size_t n, const IOOptions& options, Slice* result, char* scratch,
                IODebugContext* dbg) const override {
    const IOStatus fault = drive_->fault_of_read(name_, n);
    return fault.ok() ? target()->Read(offset, n, options, result, scratch, dbg) : fault;
  }
  IOStatus MultiRead(FSReadRequest* requests, size_t count, const IOOptions& options, IODebugContext* dbg) override {
    for (size_t i = 0; i < count; ++i) {
      FSReadRequest& one = requests[i];
      one.status = Read(one.offset, one.len, options, &one.result, one.scratch, dbg);
    }
    return IOStatus::OK();
  }
  IOStatus ReadAsync(FSReadRequest& request, const IOOptions& options, ReadAsyncCallback callback, void* argument,
                     void** /*handle*/, IOHandleDeleter* /*deleter*/, IODebugContext* dbg) override {
    request.status = Read(request.offset, request.len, options, &request.result, request.scratch, dbg);
    callback(request, argument);
    return IOStatus::OK();
  }

 private:
  const std::shared_ptr<Drive> drive_;
  const std::string name_;
};

class SequentialFile final : public rocksdb::FSSequentialFileOwnerWrapper {
 public:
  SequentialFile(std::unique_ptr<rocksdb::FSSequentialFile> host, std::shared_ptr<Drive> drive, std::string name)
      : FSSequentialFileOwnerWrapper(std::move(host)), drive_(std::move(drive)), name_(std::move(name)) {}

  IOStatus Read(size_t n, const IOOptions& options, Slice* result, char* scratch, IODebugContext* dbg) override {
    const IOStatus fault = drive_->fault_of_read(name_, n);
    return fault.ok() ? target()->Read(n, options, result, scratch, dbg) : fault;
  }
  IOStatus PositionedRead(uint64_t offset, size_t n, const IOOptions& options, Slice* result, char* scratch,
                          IODebugContext* dbg) override {
    const IOStatus fault = drive_->fault_of_read(name_, n);
    return fault.ok() ? target()->PositionedRead(offset, n, options, result, scratch, dbg) : fault;
  }

 private:
  const std::shared_ptr<Drive> drive_;
  const std::string name_;
};

class Directory final : public rocksdb::FSDirectoryWrapper {
 public:
  Directory(std::unique_ptr<rocksdb::FSDirectory> host, std::shared_ptr<Drive> drive, std::string name)
      : FSDirectoryWrapper(std::move(host)), drive_(std::move(drive)), name_(std::move(name)) {}

  IOStatus Fsync(const IOOptions&, IODebugContext*) override { return sync(); }
  IOStatus FsyncWithDirOptions(const IOOptions&, IODebugContext*, const rocksdb::DirFsyncOptions&) override {
    return sync();
  }

 private:
  IOStatus sync() {
    const FileFault fault = drive_->fault_of(Action::sync_directory, name_, 0);
    if (!fault.status.ok()) return fault.status;
    return drive_->change([&](DriveJournal& journal) {
      return to_io_status(journal.note({.kind = Kind::sync_directory, .path = name_}));
    });
  }

  const std::shared_ptr<Drive> drive_;
  const std::string name_;
};

}  // namespace

std::unique_ptr<rocksdb::FSWritableFile> make_writable_file(std::unique_ptr<rocksdb::FSWritableFile> host,
                                                            std::shared_ptr<Drive> drive, std::string name, FileId id,
                                                            std::uint64_t offset) {
  return std::make_unique<WritableFile>(std::move(host), JournaledFile(std::move(drive), std::move(name), id), offset);
}

std::unique_ptr<rocksdb::FSRandomRWFile> make_random_rw_file(std::unique_ptr<rocksdb::FSRandomRWFile> host,
                                                             std::shared_ptr<Drive> drive, std::string name,
                                                             FileId id) {
  return std::make_unique<RandomRWFile>(std::move(host), JournaledFile(std::move(drive), std::move(name), id));
}

std::unique_ptr<rocksdb::FSRandomAccessFile> make_random_access_file(std::unique_ptr<rocksdb::FSRandomAccessFile> host,
                                                                     std::shared_ptr<Drive> drive, std::string name) {
  return std::make_unique<RandomAccessFile>(std::move(host), std::move(drive), std::move(name));
}

std::unique_ptr<rocksdb::FSSequentialFile> make_sequential_file(std::unique_ptr<rocksdb::FSSequentialFile> host,
                                                                std::shared_ptr<Drive> drive, std::string name) {
  return std::make_unique<SequentialFile>(std::move(host), std::move(drive), std::move(name));
}

std::unique_ptr<rocksdb::FSDirectory> make_directory(std::unique_ptr<rocksdb::FSDirectory> host,
                                                     std::shared_ptr<Drive> drive, std::string name) {
  return std::make_unique<Directory>(std::move(host), std::move(drive), std::move(name));
}

}  // namespace spillway::faults
