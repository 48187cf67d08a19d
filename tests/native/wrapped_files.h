// The host's file system, except that the files it writes are `File`s, each an FSWritableFileOwnerWrapper.
#pragma once

#include <rocksdb/file_system.h>

#include <memory>
#include <string>

namespace spillway {

template <class File>
class WrappedFiles final : public rocksdb::FileSystemWrapper {
 public:
  WrappedFiles() : FileSystemWrapper(FileSystem::Default()) {}
  const char* Name() const override { return "WrappedFiles"; }
  rocksdb::IOStatus NewWritableFile(const std::string& path, const rocksdb::FileOptions& options,
                                    std::unique_ptr<rocksdb::FSWritableFile>* file,
                                    rocksdb::IODebugContext* context) override {
    const rocksdb::IOStatus status = target()->NewWritableFile(path, options, file, context);
    if (status.ok()) *file = std::make_unique<File>(std::move(*file));
    return status;
  }
};

}  // namespace spillway
