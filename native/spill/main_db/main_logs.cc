#include "spill/main_db/main_logs.h"

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <utility>

#include "base/raise.h"

namespace spillway::spill {

using rocksdb::IODebugContext;
using rocksdb::IOOptions;
using rocksdb::IOStatus;
using rocksdb::Slice;

namespace {

std::string normal(const std::string& directory) {
  std::string text = std::filesystem::path(directory).lexically_normal().string();
  while (text.size() > 1 && text.back() == '/') text.pop_back();
  return text;
}

}  // namespace

// The errors of one log.
class LogErrors {
 public:
  // RocksDB has had this error of the log.
  void add_failure(const IOStatus& why) EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    if (!has_failed_) failure_ = why;
    has_failed_ = true;
  }
  bool has_failed() const EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    return has_failed_;
  }
  IOStatus failure() const EXCLUDES(mutex_) {  // the first of them
    const MutexLock lock(mutex_);
    return failure_;
  }
  // The error of the first sync that failed.
  void set_loss(const IOStatus& why) EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    if (loss_.ok()) loss_ = why;
  }
  IOStatus loss() const EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    return loss_;
  }

 private:
  mutable Mutex mutex_;
  bool has_failed_ GUARDED_BY(mutex_) = false;
  IOStatus failure_ GUARDED_BY(mutex_);
  IOStatus loss_ GUARDED_BY(mutex_);
};

struct MainLogs::Log {
  Log(std::uint64_t which, std::string where, rocksdb::FSWritableFile* open)
      : number(which), path(std::move(where)), file(open) {}

  const std::uint64_t number;  // from 1, in the order in which RocksDB begins them
  const std::string path;
  std::atomic<std::uint64_t> appended{0};             // number of appends
  std::atomic<std::uint64_t> synced{0};               // how many of them are durable
  std::atomic<bool> is_lost{false};                   // a sync has failed, so appends before it may be lost
  std::atomic<bool> is_unreported{false};             // RocksDB has not been given that error yet
  LogErrors errors;                                   // the loss is set before `is_lost`
  Mutex closing;                                      // held while the file is synced or closed
  rocksdb::FSWritableFile* file GUARDED_BY(closing);  // null: closed
};

class MainLogs::File final : public rocksdb::FSWritableFileOwnerWrapper {
 public:
  File(std::unique_ptr<rocksdb::FSWritableFile> file, std::shared_ptr<Log> log, MainLogs& logs)
      : FSWritableFileOwnerWrapper(std::move(file)),
        log_(std::move(log)),
        logs_(logs),
        is_direct_(target()->use_direct_io()) {}
  ~File() override { logs_.close(log_); }

  bool use_direct_io() const override { return is_direct_; }  // RocksDB asks several times in each write

  IOStatus Append(const Slice& data, const IOOptions& options, IODebugContext* dbg) override {
    return append([&] { return target()->Append(data, options, dbg); });
  }
  IOStatus Append(const Slice& data, const IOOptions& options, const rocksdb::DataVerificationInfo& info,
                  IODebugContext* dbg) override {
    return append([&] { return target()->Append(data, options, info, dbg); });
  }
  IOStatus PositionedAppend(const Slice& data, std::uint64_t offset, const IOOptions& options,
                            IODebugContext* dbg) override {
    return append([&] { return target()->PositionedAppend(data, offset, options, dbg); });
  }
  IOStatus PositionedAppend(const Slice& data, std::uint64_t offset, const IOOptions& options,
                            const rocksdb::DataVerificationInfo& info, IODebugContext* dbg) override {
    return append([&] { return target()->PositionedAppend(data, offset, options, info, dbg); });
  }
  IOStatus RangeSync(std::uint64_t offset, std::uint64_t bytes, const IOOptions& options,
                     IODebugContext* dbg) override {
    IOStatus status = target()->RangeSync(offset, bytes, options, dbg);
    if (!status.ok()) logs_.lose(*log_, status, /*is_reported=*/true);
    return status;
  }
  IOStatus Sync(const IOOptions& options, IODebugContext* dbg) override {
    return sync([&] { return target()->Sync(options, dbg); });
  }
  IOStatus Fsync(const IOOptions& options, IODebugContext* dbg) override {
    return sync([&] { return target()->Fsync(options, dbg); });
  }
  IOStatus Close(const IOOptions& options, IODebugContext* dbg) override {
    logs_.close(log_);
    return target()->Close(options, dbg);
  }

 private:
  template <typename Action>
  IOStatus append(Action action) {
    // After a failed sync RocksDB must get an error, not continue.
    IOStatus status = log_->is_unreported.load(std::memory_order_acquire) ? log_->errors.loss() : action();
    if (status.ok()) {
      // RocksDB appends to a file one after the other, so nobody else counts.
      log_->appended.store(log_->appended.load(std::memory_order_relaxed) + 1, std::memory_order_release);
    } else {
      logs_.fail(*log_, status);
    }
    return status;
  }
  template <typename Action>
  IOStatus sync(Action action) {
    const MutexLock lock(log_->closing);
    const std::uint64_t appended = log_->appended.load(std::memory_order_acquire);
    IOStatus status = action();
    if (status.ok()) {
      raise_to(log_->synced, appended);
    } else {
      logs_.lose(*log_, status, /*is_reported=*/true);
    }
    return status;
  }

  const std::shared_ptr<Log> log_;
  MainLogs& logs_;
  const bool is_direct_;
};

MainLogs::MainLogs(std::shared_ptr<rocksdb::FileSystem> files, const std::string& directory, bool use_fsync)
    : files_(std::move(files)), directory_(directory), normal_directory_(normal(directory)), use_fsync_(use_fsync) {}

MainLogs::~MainLogs() = default;

bool MainLogs::is_log(const std::string& path) const {
  const std::size_t name = path.rfind('/') + 1;
  const std::size_t digits = path.find_first_not_of("0123456789", name);
  return digits > name && digits != std::string::npos && path.compare(digits, std::string::npos, ".log") == 0 &&
         normal(path.substr(0, name)) == normal_directory_;
}

std::unique_ptr<rocksdb::FSWritableFile> MainLogs::watch(const std::string& path,
                                                         std::unique_ptr<rocksdb::FSWritableFile> file) {
  std::shared_ptr<Log> log;
  {
    const MutexLock lock(mutex_);
    log = std::make_shared<Log>(++watched_, path, file.get());
    logs_.push_back(log);
    check_newest();
  }
  return std::make_unique<File>(std::move(file), log, *this);
}

// RocksDB closes a log that it has synced, or whose contents are all in tables. (It may also have retried a failed sync
// with success.)
void MainLogs::close(const std::shared_ptr<Log>& log) {
  {
    const MutexLock lock(log->closing);
    log->file = nullptr;
  }
  const MutexLock lock(mutex_);
  if (std::erase(logs_, log) > 0 && log->is_lost.load(std::memory_order_acquire)) lost_.push_back(log);
  check_newest();
}

void MainLogs::is_gone(const std::string& path) {
  const MutexLock lock(mutex_);
  std::erase_if(lost_, [&](const auto& log) { return log->path == path; });
}

void MainLogs::check_newest() {
  have_failed_.store(!logs_.empty() && logs_.back()->errors.has_failed(), std::memory_order_release);
}

IOStatus MainLogs::failure() const {
  const MutexLock lock(mutex_);
  return logs_.empty() ? IOStatus() : logs_.back()->errors.failure();
}

void MainLogs::fail(Log& log, const IOStatus& why) {
  const MutexLock lock(mutex_);
  log.errors.add_failure(why);
  check_newest();
}

void MainLogs::lose(Log& log, const IOStatus& why, bool is_reported) {
  const MutexLock lock(mutex_);
  if (is_reported) {
    log.errors.add_failure(why);
  } else if (!log.errors.has_failed()) {
    log.is_unreported.store(true, std::memory_order_release);
  }
  log.errors.set_loss(why);
  log.is_lost.store(true, std::memory_order_release);
  check_newest();
}

bool MainLogs::has_any() const {
  const MutexLock lock(mutex_);
  return !logs_.empty();
}

IOStatus MainLogs::sync() {
  const MutexLock one_at_a_time(syncing_);
  std::vector<std::shared_ptr<Log>> logs;
  {
    const MutexLock lock(mutex_);
    logs = logs_;
    if (!lost_.empty()) return lost_.front()->errors.loss();
  }
  for (const auto& log : logs) {
    if (IOStatus status = sync(*log); !status.ok()) return status;
  }
  if (logs.empty() || logs.back()->number <= named_) return {};
  IOStatus status = sync_names();
  if (status.ok()) named_ = logs.back()->number;
  return status;
}

IOStatus MainLogs::sync(Log& log) {
  if (log.is_lost.load(std::memory_order_acquire)) return log.errors.loss();
  const std::uint64_t appended = log.appended.load(std::memory_order_acquire);
  if (log.synced.load(std::memory_order_acquire) >= appended) return {};
  const MutexLock lock(log.closing);
  if (log.file == nullptr) return log.is_lost.load(std::memory_order_acquire) ? log.errors.loss() : IOStatus();
  IOStatus status = use_fsync_ ? log.file->Fsync({}, nullptr) : log.file->Sync({}, nullptr);
  if (status.ok() && log.is_lost.load(std::memory_order_acquire)) return log.errors.loss();
  if (status.ok()) {
    raise_to(log.synced, appended);
  } else {
    lose(log, status, /*is_reported=*/false);
  }
  return status;
}

IOStatus MainLogs::sync_names() {
  if (!opened_) {
    if (IOStatus status = files_->NewDirectory(directory_, {}, &opened_, nullptr); !status.ok()) return status;
  }
  return opened_->FsyncWithDirOptions({}, nullptr,
                                      rocksdb::DirFsyncOptions(rocksdb::DirFsyncOptions::FsyncReason::kNewFileSynced));
}

}  // namespace spillway::spill
