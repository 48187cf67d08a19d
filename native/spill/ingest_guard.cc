#include "spill/ingest_guard.h"

#include <rocksdb/file_system.h>

#include <mutex>
#include <set>
#include <utility>

namespace spillway::spill {

using rocksdb::IODebugContext;
using rocksdb::IOOptions;
using rocksdb::IOStatus;
using rocksdb::Slice;

namespace {

// Paths of files of which a read has failed since they were opened last.
class Failures {
 public:
  void add(const std::string& path) {
    const std::lock_guard lock(mutex_);
    paths_.insert(path);
  }
  void forget(const std::string& path) {
    const std::lock_guard lock(mutex_);
    paths_.erase(path);
  }
  bool has(const std::string& path) const {
    const std::lock_guard lock(mutex_);
    return paths_.contains(path);
  }

 private:
  mutable std::mutex mutex_;
  std::set<std::string> paths_;
};

class Reader final : public rocksdb::FSRandomAccessFileOwnerWrapper {
 public:
  Reader(std::unique_ptr<rocksdb::FSRandomAccessFile> file, std::string path, std::shared_ptr<Failures> failures)
      : FSRandomAccessFileOwnerWrapper(std::move(file)), path_(std::move(path)), failures_(std::move(failures)) {}

  IOStatus Read(std::uint64_t offset, std::size_t bytes, const IOOptions& options, Slice* result, char* scratch,
                IODebugContext* dbg) const override {
    return seen(target()->Read(offset, bytes, options, result, scratch, dbg));
  }
  IOStatus MultiRead(rocksdb::FSReadRequest* requests, std::size_t count, const IOOptions& options,
                     IODebugContext* dbg) override {
    IOStatus status = seen(target()->MultiRead(requests, count, options, dbg));
    for (std::size_t i = 0; i < count; ++i) (void)seen(requests[i].status);
    return status;
  }

 private:
  IOStatus seen(IOStatus status) const {
    if (!status.ok()) failures_->add(path_);
    return status;
  }

  const std::string path_;
  const std::shared_ptr<Failures> failures_;
};

class GuardedFileSystem final : public rocksdb::FileSystemWrapper {
 public:
  GuardedFileSystem(const std::shared_ptr<FileSystem>& target, const std::string& directory)
      : FileSystemWrapper(target), prefix_(directory + "/") {}
  const char* Name() const override { return "spillway.GuardedFileSystem"; }

  IOStatus NewRandomAccessFile(const std::string& path, const rocksdb::FileOptions& options,
                               std::unique_ptr<rocksdb::FSRandomAccessFile>* file, IODebugContext* dbg) override {
    IOStatus status = target()->NewRandomAccessFile(path, options, file, dbg);
    if (!status.ok() || !path.starts_with(prefix_)) return status;
    failures_->forget(path);
    *file = std::make_unique<Reader>(std::move(*file), path, failures_);
    return status;
  }
  IOStatus LinkFile(const std::string& from, const std::string& to, const IOOptions& options,
                    IODebugContext* dbg) override {
    if (failures_->has(from)) return IOStatus::IOError("RocksDB could not read all of " + from + " to ingest it");
    return target()->LinkFile(from, to, options, dbg);
  }

 private:
  const std::string prefix_;
  const std::shared_ptr<Failures> failures_ = std::make_shared<Failures>();
};

class GuardedEnv final : public rocksdb::EnvWrapper {
 public:
  GuardedEnv(rocksdb::Env* env, const std::string& directory) : EnvWrapper(env) {
    file_system_ = std::make_shared<GuardedFileSystem>(env->GetFileSystem(), directory);
    system_clock_ = env->GetSystemClock();
  }
  const char* Name() const override { return "spillway.GuardedEnv"; }
};

}  // namespace

std::unique_ptr<rocksdb::Env> guard_ingestion(rocksdb::Env* env, const std::string& directory) {
  return std::make_unique<GuardedEnv>(env, directory);
}

}  // namespace spillway::spill
