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

struct MainLogs::Log {
  std::string path;
  std::atomic<std::uint64_t> appended{0};  // number of appends
  std::atomic<std::uint64_t> synced{0};    // how many of them are durable
  std::atomic<bool> is_lost{false};        // a sync has failed, so appends before it may be lost
  std::atomic<bool> is_unreported{false};  // RocksDB has not been given that error yet
  IOStatus why;                            // the error of that sync; written once, before `is_lost`; guarded by mutex_
  bool has_failed = false;                 // RocksDB has had an error of this log; guarded by mutex_
  IOStatus failure;                        // the first error that RocksDB has had; guarded by mutex_
  bool is_named = false;                   // its name is durable; guarded by syncing_
  std::mutex closing;                      // held while `file` is synced or closed
  rocksdb::FSWritableFile* file = nullptr;
};

class MainLogs::File final : public rocksdb::FSWritableFileOwnerWrapper {
 public:
  File(std::unique_ptr<rocksdb::FSWritableFile> file, std::shared_ptr<Log> log, MainLogs& logs)
      : FSWritableFileOwnerWrapper(std::move(file)), log_(std::move(log)), logs_(logs) {}
  ~File() override { logs_.close(log_); }

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
    IOStatus status = log_->is_unreported.load(std::memory_order_acquire) ? logs_.error_of(*log_) : action();
    if (status.ok()) {
      log_->appended.fetch_add(1, std::memory_order_release);
    } else {
      logs_.fail(*log_, status);
    }
    return status;
  }
  template <typename Action>
  IOStatus sync(Action action) {
    const std::lock_guard lock(log_->closing);
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
  const auto log = std::make_shared<Log>();
  log->path = path;
  log->file = file.get();
  {
    const std::lock_guard lock(mutex_);
    logs_.push_back(log);
    check_newest();
  }
  return std::make_unique<File>(std::move(file), log, *this);
}

// RocksDB closes a log that it has synced, or whose contents are all in tables. (It may also have retried a failed sync
// with success.)
void MainLogs::close(const std::shared_ptr<Log>& log) {
  {
    const std::lock_guard lock(log->closing);
    log->file = nullptr;
  }
  const std::lock_guard lock(mutex_);
  if (std::erase(logs_, log) > 0 && log->is_lost.load(std::memory_order_acquire)) lost_.push_back(log);
  check_newest();
}

void MainLogs::is_gone(const std::string& path) {
  const std::lock_guard lock(mutex_);
  std::erase_if(lost_, [&](const auto& log) { return log->path == path; });
}

void MainLogs::check_newest() {
  have_failed_.store(!logs_.empty() && logs_.back()->has_failed, std::memory_order_release);
}

IOStatus MainLogs::failure() const {
  const std::lock_guard lock(mutex_);
  return logs_.empty() ? IOStatus() : logs_.back()->failure;
}

void MainLogs::fail(Log& log, const IOStatus& why) {
  const std::lock_guard lock(mutex_);
  note_failure(log, why);
  check_newest();
}

void MainLogs::note_failure(Log& log, const IOStatus& why) {
  if (!log.has_failed) log.failure = why;
  log.has_failed = true;
}

void MainLogs::lose(Log& log, const IOStatus& why, bool is_reported) {
  const std::lock_guard lock(mutex_);
  if (is_reported) {
    note_failure(log, why);
  } else if (!log.has_failed) {
    log.is_unreported.store(true, std::memory_order_release);
  }
  if (!log.is_lost.load(std::memory_order_acquire)) log.why = why;
  log.is_lost.store(true, std::memory_order_release);
  check_newest();
}

IOStatus MainLogs::error_of(const Log& log) const {
  const std::lock_guard lock(mutex_);
  return log.why;
}

bool MainLogs::has_any() const {
  const std::lock_guard lock(mutex_);
  return !logs_.empty();
}

IOStatus MainLogs::sync() {
  const std::lock_guard one_at_a_time(syncing_);
  std::vector<std::shared_ptr<Log>> logs;
  {
    const std::lock_guard lock(mutex_);
    logs = logs_;
    if (!lost_.empty()) return lost_.front()->why;
  }
  bool has_new_name = false;
  for (const auto& log : logs) {
    has_new_name = has_new_name || !log->is_named;
    if (IOStatus status = sync(*log); !status.ok()) return status;
  }
  if (!has_new_name) return {};
  IOStatus status = sync_names();
  for (const auto& log : logs) log->is_named = log->is_named || status.ok();
  return status;
}

IOStatus MainLogs::sync(Log& log) {
  if (log.is_lost.load(std::memory_order_acquire)) return error_of(log);
  const std::uint64_t appended = log.appended.load(std::memory_order_acquire);
  if (log.synced.load(std::memory_order_acquire) >= appended) return {};
  const std::lock_guard lock(log.closing);
  if (log.file == nullptr) return log.is_lost.load(std::memory_order_acquire) ? error_of(log) : IOStatus();
  IOStatus status = use_fsync_ ? log.file->Fsync({}, nullptr) : log.file->Sync({}, nullptr);
  if (status.ok() && log.is_lost.load(std::memory_order_acquire)) return error_of(log);
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
