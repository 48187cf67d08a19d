#include "fs/rocksdb/counting_file_system.h"

#include <utility>

#include "fs/rocksdb/file_causes.h"
#include "spill/compat/file_syncing_wrapper.h"

namespace spillway::fs {

using rocksdb::Env;
using rocksdb::FileOptions;
using rocksdb::FileSystem;
using rocksdb::IODebugContext;
using rocksdb::IOOptions;
using rocksdb::IOStatus;
using rocksdb::Slice;

namespace {

class CountedFile final : public rocksdb::FSWritableFileOwnerWrapper {
 public:
  CountedFile(std::unique_ptr<rocksdb::FSWritableFile> file, WriteCounts& counts, const std::string& path)
      : FSWritableFileOwnerWrapper(std::move(file)),
        counts_(counts),
        is_table_(is_table(path)),
        cause_(cause_of_name(path)) {}

  IOStatus Append(const Slice& data, const IOOptions& options, IODebugContext* dbg) override {
    return counted(data, target()->Append(data, options, dbg));
  }
  IOStatus Append(const Slice& data, const IOOptions& options, const rocksdb::DataVerificationInfo& info,
                  IODebugContext* dbg) override {
    return counted(data, target()->Append(data, options, info, dbg));
  }
  IOStatus PositionedAppend(const Slice& data, uint64_t offset, const IOOptions& options,
                            IODebugContext* dbg) override {
    return counted(data, target()->PositionedAppend(data, offset, options, dbg));
  }
  IOStatus PositionedAppend(const Slice& data, uint64_t offset, const IOOptions& options,
                            const rocksdb::DataVerificationInfo& info, IODebugContext* dbg) override {
    return counted(data, target()->PositionedAppend(data, offset, options, info, dbg));
  }

  // RocksDB's wrapper does not forward the priority.
  void SetIOPriority(Env::IOPriority priority) override {
    FSWritableFileOwnerWrapper::SetIOPriority(priority);
    target()->SetIOPriority(priority);
    priority_ = priority;
    learn_cause();
  }
  void SetPreallocationBlockSize(size_t size) override {
    target()->SetPreallocationBlockSize(size);
    preallocates_ = size > 0;
    learn_cause();
  }

 private:
  IOStatus counted(const Slice& data, IOStatus status) {
    if (status.ok()) counts_.add(cause_, data.size());
    return status;
  }
  // RocksDB shows why it writes a table before the table's first append.
  void learn_cause() {
    if (is_table_) cause_ = cause_of_table(priority_, preallocates_);
  }

  WriteCounts& counts_;
  const bool is_table_;
  Cause cause_;
  Env::IOPriority priority_ = Env::IO_TOTAL;
  bool preallocates_ = false;
};

class CountedRandomRWFile final : public rocksdb::FSRandomRWFileOwnerWrapper {
 public:
  CountedRandomRWFile(std::unique_ptr<rocksdb::FSRandomRWFile> file, WriteCounts& counts, Cause cause)
      : FSRandomRWFileOwnerWrapper(std::move(file)), counts_(counts), cause_(cause) {}

  IOStatus Write(uint64_t offset, const Slice& data, const IOOptions& options, IODebugContext* dbg) override {
    IOStatus status = target()->Write(offset, data, options, dbg);
    if (status.ok()) counts_.add(cause_, data.size());
    return status;
  }

 private:
  WriteCounts& counts_;
  const Cause cause_;
};

class CountingFileSystem final : public spill::FileSyncingWrapper {
 public:
  CountingFileSystem(WriteCounts& counts, const std::shared_ptr<FileSystem>& files)
      : FileSyncingWrapper(files), counts_(counts) {}

  static const char* kClassName() { return "SpillwayCountingFileSystem"; }
  const char* Name() const override { return kClassName(); }

  IOStatus NewWritableFile(const std::string& path, const FileOptions& options,
                           std::unique_ptr<rocksdb::FSWritableFile>* result, IODebugContext* dbg) override {
    return counted(path, target()->NewWritableFile(path, options, result, dbg), result);
  }
  IOStatus ReopenWritableFile(const std::string& path, const FileOptions& options,
                              std::unique_ptr<rocksdb::FSWritableFile>* result, IODebugContext* dbg) override {
    return counted(path, target()->ReopenWritableFile(path, options, result, dbg), result);
  }
  IOStatus ReuseWritableFile(const std::string& path, const std::string& old_path, const FileOptions& options,
                             std::unique_ptr<rocksdb::FSWritableFile>* result, IODebugContext* dbg) override {
    return counted(path, target()->ReuseWritableFile(path, old_path, options, result, dbg), result);
  }
  IOStatus NewRandomRWFile(const std::string& path, const FileOptions& options,
                           std::unique_ptr<rocksdb::FSRandomRWFile>* result, IODebugContext* dbg) override {
    IOStatus status = target()->NewRandomRWFile(path, options, result, dbg);
    if (status.ok()) *result = std::make_unique<CountedRandomRWFile>(std::move(*result), counts_, cause_of_name(path));
    return status;
  }

 private:
  IOStatus counted(const std::string& path, IOStatus status, std::unique_ptr<rocksdb::FSWritableFile>* result) {
    if (status.ok()) *result = std::make_unique<CountedFile>(std::move(*result), counts_, path);
    return status;
  }

  WriteCounts& counts_;
};

}  // namespace

std::unique_ptr<FileSystem> make_counting_file_system(WriteCounts& counts, const std::shared_ptr<FileSystem>& files) {
  return std::make_unique<CountingFileSystem>(counts, files);
}

}  // namespace spillway::fs
