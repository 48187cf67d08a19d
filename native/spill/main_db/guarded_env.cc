#include "spill/main_db/guarded_env.h"

#include <rocksdb/file_system.h>

#include <set>
#include <utility>

#include "base/mutex.h"

namespace spillway::spill {

using rocksdb::IODebugContext;
using rocksdb::IOOptions;
using rocksdb::IOStatus;
using rocksdb::Slice;

namespace {

thread_local NoOptionsFile* no_options_file = nullptr;

bool is_new_options_file(const std::string& path, const std::string& prefix) {
  return path.starts_with(prefix) && path.ends_with(".dbtmp");
}

// Paths of files of which a read has failed since they were last opened.
class Failures {
 public:
  void add(const std::string& path) {
    const MutexLock lock(mutex_);
    paths_.insert(path);
  }
  void forget(const std::string& path) {
    const MutexLock lock(mutex_);
    paths_.erase(path);
  }
  bool has(const std::string& path) const {
    const MutexLock lock(mutex_);
    return paths_.contains(path);
  }

 private:
  mutable Mutex mutex_;
  std::set<std::string> paths_ GUARDED_BY(mutex_);
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
  GuardedFileSystem(const std::shared_ptr<FileSystem>& target, const std::string& directory, std::string options_prefix,
                    std::shared_ptr<MainLogs> logs)
      : FileSystemWrapper(target),
        prefix_(directory + "/"),
        options_prefix_(std::move(options_prefix)),
        logs_(std::move(logs)) {}
  const char* Name() const override { return "spillway.GuardedFileSystem"; }

  IOStatus NewRandomAccessFile(const std::string& path, const rocksdb::FileOptions& options,
                               std::unique_ptr<rocksdb::FSRandomAccessFile>* file, IODebugContext* dbg) override {
    IOStatus status = target()->NewRandomAccessFile(path, options, file, dbg);
    if (!status.ok() || !path.starts_with(prefix_)) return status;
    failures_->forget(path);
    *file = std::make_unique<Reader>(std::move(*file), path, failures_);
    return status;
  }
  IOStatus NewWritableFile(const std::string& path, const rocksdb::FileOptions& options,
                           std::unique_ptr<rocksdb::FSWritableFile>* file, IODebugContext* dbg) override {
    if (no_options_file == nullptr || !is_new_options_file(path, options_prefix_)) {
      return watched(target()->NewWritableFile(path, options, file, dbg), path, file);
    }
    no_options_file->note_tried();
    return IOStatus::NotSupported("Spillway keeps the OPTIONS file, which has no guard in it");
  }
  IOStatus ReuseWritableFile(const std::string& path, const std::string& old_path, const rocksdb::FileOptions& options,
                             std::unique_ptr<rocksdb::FSWritableFile>* file, IODebugContext* dbg) override {
    IOStatus status = target()->ReuseWritableFile(path, old_path, options, file, dbg);
    if (status.ok()) logs_->is_gone(old_path);
    return watched(std::move(status), path, file);
  }
  IOStatus DeleteFile(const std::string& path, const IOOptions& options, IODebugContext* dbg) override {
    IOStatus status = target()->DeleteFile(path, options, dbg);
    if (status.ok()) logs_->is_gone(path);
    return status;
  }
  IOStatus RenameFile(const std::string& from, const std::string& to, const IOOptions& options,
                      IODebugContext* dbg) override {
    IOStatus status = target()->RenameFile(from, to, options, dbg);
    if (status.ok()) logs_->is_gone(from);
    return status;
  }
  IOStatus LinkFile(const std::string& from, const std::string& to, const IOOptions& options,
                    IODebugContext* dbg) override {
    if (failures_->has(from)) return IOStatus::IOError("RocksDB could not read all of " + from + " to ingest it");
    return target()->LinkFile(from, to, options, dbg);
  }

 private:
  IOStatus watched(IOStatus status, const std::string& path, std::unique_ptr<rocksdb::FSWritableFile>* file) const {
    if (status.ok() && logs_->is_log(path)) *file = logs_->watch(path, std::move(*file));
    return status;
  }

  const std::string prefix_;
  const std::string options_prefix_;
  const std::shared_ptr<MainLogs> logs_;
  const std::shared_ptr<Failures> failures_ = std::make_shared<Failures>();
};

class GuardedEnv final : public rocksdb::EnvWrapper {
 public:
  GuardedEnv(rocksdb::Env* env, const std::string& database, const std::string& sorted_directory,
             std::shared_ptr<const UserOptions> user_options, std::shared_ptr<MainLogs> logs)
      : EnvWrapper(env),
        options_prefix_(database + "/OPTIONS-"),
        user_options_(std::move(user_options)),
        logs_(std::move(logs)) {
    file_system_ = std::make_shared<GuardedFileSystem>(env->GetFileSystem(), sorted_directory, options_prefix_, logs_);
    system_clock_ = env->GetSystemClock();
  }
  const char* Name() const override { return "spillway.GuardedEnv"; }

  rocksdb::Status GetFileSize(const std::string& path, std::uint64_t* bytes) override {
    const rocksdb::Status status = restore(path);
    return status.ok() ? EnvWrapper::GetFileSize(path, bytes) : status;
  }
  rocksdb::Status RenameFile(const std::string& from, const std::string& to) override {
    rocksdb::Status status = restore(from);
    if (status.ok()) status = EnvWrapper::RenameFile(from, to);
    if (status.ok()) logs_->is_gone(from);
    return status;
  }
  rocksdb::Status DeleteFile(const std::string& path) override {
    rocksdb::Status status = EnvWrapper::DeleteFile(path);
    if (status.ok()) logs_->is_gone(path);
    return status;
  }

 private:
  // Changes only an OPTIONS file that still has its temporary name.
  rocksdb::Status restore(const std::string& path) const {
    if (!is_new_options_file(path, options_prefix_)) return {};
    std::string text;
    rocksdb::Status status = rocksdb::ReadFileToString(target(), path, &text);
    if (!status.ok()) return status;
    const std::string restored = user_options_->restore(text);
    return restored == text ? status : rocksdb::WriteStringToFile(target(), restored, path, /*should_sync=*/true);
  }

  const std::string options_prefix_;
  const std::shared_ptr<const UserOptions> user_options_;
  const std::shared_ptr<MainLogs> logs_;
};

}  // namespace

NoOptionsFile::NoOptionsFile() { no_options_file = this; }
NoOptionsFile::~NoOptionsFile() { no_options_file = nullptr; }

std::unique_ptr<rocksdb::Env> guard_env(rocksdb::Env* env, const std::string& database,
                                        const std::string& sorted_directory,
                                        const std::shared_ptr<const UserOptions>& user_options,
                                        const std::shared_ptr<MainLogs>& main_logs) {
  return std::make_unique<GuardedEnv>(env, database, sorted_directory, user_options, main_logs);
}

}  // namespace spillway::spill
