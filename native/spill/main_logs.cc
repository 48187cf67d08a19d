#include "spill/main_logs.h"

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <utility>

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

void raise(std::atomic<std::uint64_t>& to, std::uint64_t value) {
  std::uint64_t before = to.load(std::memory_order_relaxed);
  while (before < value && !to.compare_exchange_weak(before, value, std::memory_order_release)) {
  }
}

}  // namespace

struct MainLogs::Log {
  std::atomic<std::uint64_t> appended{0};  // how often
  std::atomic<std::uint64_t> synced{0};    // of that
  std::atomic<bool> is_unsound{false};     // a sync has failed: what it was to make durable may be lost
  bool is_named = false;                   // its name is durable; guarded by MainLogs::syncing_
  std::mutex closing;                      // held while `file` is used by who is not RocksDB
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
  IOStatus Flush(const IOOptions& options, IODebugContext* dbg) override {
    return append([&] { return target()->Flush(options, dbg); });
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
    // RocksDB does not know of it, and must not go on as if all were there.
    if (log_->is_unsound.load(std::memory_order_acquire)) return IOStatus::IOError("a sync of this log has failed");
    IOStatus status = action();
    if (status.ok()) {
      log_->appended.fetch_add(1, std::memory_order_release);
    } else {
      logs_.have_failed_.store(true, std::memory_order_release);
    }
    return status;
  }
  template <typename Action>
  IOStatus sync(Action action) {
    const std::uint64_t appended = log_->appended.load(std::memory_order_acquire);
    IOStatus status = action();
    if (status.ok()) {
      raise(log_->synced, appended);
    } else {
      logs_.have_failed_.store(true, std::memory_order_release);
    }
    return status;
  }

  const std::shared_ptr<Log> log_;
  MainLogs& logs_;
};

MainLogs::MainLogs(std::shared_ptr<rocksdb::FileSystem> files, const std::string& directory, bool use_fsync)
    : files_(std::move(files)), directory_(normal(directory)), use_fsync_(use_fsync) {}

MainLogs::~MainLogs() = default;

bool MainLogs::is_log(const std::string& path) const {
  const std::size_t name = path.rfind('/') + 1;
  const std::size_t digits = path.find_first_not_of("0123456789", name);
  return digits > name && digits != std::string::npos && path.compare(digits, std::string::npos, ".log") == 0 &&
         normal(path.substr(0, name)) == directory_;
}

std::unique_ptr<rocksdb::FSWritableFile> MainLogs::watch(std::unique_ptr<rocksdb::FSWritableFile> file) {
  const auto log = std::make_shared<Log>();
  log->file = file.get();
  {
    const std::lock_guard lock(mutex_);
    logs_.push_back(log);
  }
  have_failed_.store(false, std::memory_order_release);
  return std::make_unique<File>(std::move(file), log, *this);
}

// RocksDB closes a log that it has synced, or of which everything is in tables.
void MainLogs::close(const std::shared_ptr<Log>& log) {
  {
    const std::lock_guard lock(log->closing);
    log->file = nullptr;
  }
  const std::lock_guard lock(mutex_);
  std::erase(logs_, log);
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
  if (log.is_unsound.load(std::memory_order_acquire)) return IOStatus::IOError("a sync of RocksDB's log has failed");
  const std::uint64_t appended = log.appended.load(std::memory_order_acquire);
  if (log.synced.load(std::memory_order_acquire) >= appended) return {};
  const std::lock_guard lock(log.closing);
  if (log.file == nullptr) return {};
  IOStatus status = use_fsync_ ? log.file->Fsync({}, nullptr) : log.file->Sync({}, nullptr);
  if (status.ok()) {
    raise(log.synced, appended);
  } else {
    log.is_unsound.store(true, std::memory_order_release);
    have_failed_.store(true, std::memory_order_release);
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
