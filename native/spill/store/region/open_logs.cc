#include "spill/store/region/open_logs.h"

#include <algorithm>
#include <utility>

#include "base/steps.h"
#include "spill/store/region/log_files.h"

namespace spillway::spill {

using rocksdb::IOStatus;
using rocksdb::Status;

namespace {

// Most sealed logs; a writer that would seal one more waits. Source: guess; with fewer the worst write of workload A
// waited for one (118 ms), and Linux lets a fifth of memory be dirty (vm.dirty_ratio).
constexpr std::size_t kMostSealed = 3;

Status cannot_sync() { return Status::IOError("the spill store cannot sync until it begins a generation"); }

void close(OpenLog& open) {
  if (const auto file = std::move(open.file)) file->Close({}, nullptr).PermitUncheckedError();
}

}  // namespace

OpenLogs::OpenLogs(const RegionDirectory& directory, RegionLogs& logs, DurableEnds& ends, std::uint64_t preallocation)
    : directory_(directory), logs_(logs), ends_(ends), preallocation_(preallocation) {
  thread_ = std::thread([this] { sync_sealed_in_background(); });
}

OpenLogs::~OpenLogs() {
  {
    const MutexLock lock(mutex_);
    is_stopping_ = true;
  }
  sealed_or_stopping_.notify_one();
  thread_.join();
  const MutexLock no_sync(sync_mutex_);
  while (!sealed().empty()) close_oldest_sealed();
  close_current();
}

std::shared_ptr<OpenLog> OpenLogs::current() const {
  const MutexLock lock(mutex_);
  return current_;
}

void OpenLogs::count_logs() {
  sealed_count_.store(sealed_.size(), std::memory_order_release);
  count_.store(sealed_.size() + (current_ ? 1 : 0), std::memory_order_release);
}

std::deque<std::shared_ptr<OpenLog>> OpenLogs::sealed() const {
  const MutexLock lock(mutex_);
  return sealed_;
}

void OpenLogs::begin(std::shared_ptr<OpenLog> log) {
  const MutexLock lock(mutex_);
  current_ = std::move(log);
  appended_to_ = current_.get();
  count_logs();
}

Status OpenLogs::seal() {
  if (has_failed() || sealed_count_.load(std::memory_order_acquire) >= kMostSealed) {
    const AppendWait::Measure measure(wait_);
    const MutexLock no_sync(sync_mutex_);
    const Status status = has_failed() ? replace_by_copies() : sync_sealed_to(kMostSealed - 1);
    if (!status.ok()) return status;
  }
  const std::shared_ptr<OpenLog> current = this->current();
  if (!current) return {};
  if (sync_mutex_.try_lock()) {
    const bool is_durable = sealed().empty() && current->durable == current->log->bytes;
    if (is_durable) close_current();
    sync_mutex_.unlock();
    if (is_durable) return {};
  }
  const MutexLock lock(mutex_);
  sealed_.push_back(std::move(current_));
  appended_to_ = nullptr;
  count_logs();
  sealed_or_stopping_.notify_one();
  return {};
}

void OpenLogs::sync_sealed_in_background() {
  MutexLock lock(mutex_);
  for (;;) {
    while (!is_stopping_ && (sealed_.empty() || has_failed())) sealed_or_stopping_.wait(mutex_);
    if (is_stopping_) return;
    lock.unlock();
    {
      const MutexLock no_sync(sync_mutex_);
      sync_oldest_sealed().PermitUncheckedError();  // the next append or sync returns the error
    }
    lock.lock();
  }
}

Status OpenLogs::sync() {
  const MutexLock one_at_a_time(sync_mutex_);
  for (;;) {
    std::shared_ptr<OpenLog> open;
    bool has_sealed = false;
    {
      // Both at once: the current one may be sealed at any moment.
      const MutexLock lock(mutex_);
      has_sealed = !sealed_.empty();
      open = current_;
    }
    if (has_failed()) return cannot_sync();
    if (!has_sealed) return open ? sync_file(*open) : Status::OK();
    if (Status status = sync_oldest_sealed(); !status.ok()) return status;
  }
}

Status OpenLogs::sync_sealed_to(std::size_t left) {
  while (sealed().size() > left) {
    if (Status status = sync_oldest_sealed(); !status.ok()) return status;
  }
  return has_failed() ? cannot_sync() : Status::OK();
}

Status OpenLogs::sync_oldest_sealed() {
  if (has_failed()) return cannot_sync();
  const auto sealed = this->sealed();
  if (sealed.empty()) return {};
  const auto began = AppendPacer::Clock::now();
  pacer_.sync_begins(began);
  const Status status = sync_file(*sealed.front());
  if (!status.ok()) {
    pacer_.sync_failed();
    return status;
  }
  pacer_.sync_ends(began, AppendPacer::Clock::now());
  steps::reached("spill.region.seal.synced");
  close_oldest_sealed();
  return {};
}

Status OpenLogs::sync_file(OpenLog& open) {
  const std::uint64_t end = open.log->bytes.load(std::memory_order_acquire);
  const IOStatus status = open.file->Sync({}, nullptr);
  if (status.ok()) {
    open.durable.store(end, std::memory_order_release);
    ends_.add({open.log->name.generation, open.log->name.salt, end});
  } else {
    has_failed_ = true;
  }
  return status;
}

void OpenLogs::close_oldest_sealed() {
  std::shared_ptr<OpenLog> oldest;
  {
    const MutexLock lock(mutex_);
    oldest = std::move(sealed_.front());
    sealed_.pop_front();
    count_logs();
  }
  close(*oldest);
}

void OpenLogs::close_current() {
  std::shared_ptr<OpenLog> closed;
  {
    const MutexLock lock(mutex_);
    closed = std::exchange(current_, nullptr);
    appended_to_ = nullptr;
    count_logs();
  }
  if (closed) close(*closed);
}

void OpenLogs::close_dropped(const RegionLog& log) {
  const auto current = this->current();
  const auto sealed = this->sealed();
  const bool is_current = current && current->log.get() == &log;
  if (!is_current && std::ranges::none_of(sealed, [&](const auto& open) { return open->log.get() == &log; })) return;
  const MutexLock no_sync(sync_mutex_);
  for (;;) {
    const auto left = this->sealed();
    if (left.empty() || left.front()->log->name.generation > log.name.generation) break;
    close_oldest_sealed();
  }
  if (is_current) close_current();
}

void OpenLogs::pause_after(std::uint64_t bytes) {
  std::uint64_t full = 0;
  std::uint64_t end = 0;
  if (sealed_count_.load(std::memory_order_acquire) < kMostSealed) {
    pacer_.forgive();
    return;
  }
  {
    const MutexLock lock(mutex_);
    if (sealed_.size() < kMostSealed || !current_) {
      pacer_.forgive();
      return;
    }
    full = sealed_.back()->log->bytes;  // the current log is expected to grow to this size
    end = current_->log->bytes;
  }
  const auto pause = pacer_.pause_after(bytes, end, full, AppendPacer::Clock::now());
  if (pause == AppendPacer::Clock::duration::zero()) return;
  const AppendWait::Measure measure(wait_);
  std::this_thread::sleep_for(pause);
}

// --- After a failure

Status OpenLogs::replace_by_copies() {
  for (auto sealed = this->sealed(); !sealed.empty(); sealed = this->sealed()) {
    if (Status status = replace(*sealed.front()); !status.ok()) return status;
    close_oldest_sealed();
  }
  if (const auto current = this->current()) {
    if (Status status = replace(*current); !status.ok()) return status;
  }
  close_current();
  has_failed_ = false;
  return {};
}

Status OpenLogs::replace(OpenLog& open) {
  close(open);
  std::shared_ptr<RegionLog> copy;
  if (Status status = replace_by_copy(directory_, *open.log, &copy); !status.ok()) return status;
  logs_.put(std::move(copy));
  return {};
}

Status OpenLogs::handle_failed_append(const IOStatus& failed) {
  const MutexLock no_sync(sync_mutex_);
  const std::shared_ptr<OpenLog> current = this->current();
  IOStatus status = failed;
  if (failed.IsNoSpace()) {
    // The drive is full. What it has is whole, but the beginning of what it could not take may be there.
    const RegionLog& log = *current->log;
    std::uint64_t file_bytes = 0;
    status = directory_.files().GetFileSize(log.path(), {}, &file_bytes, nullptr);
    if (status.ok() && file_bytes != log.bytes) status = truncate_to_end(*current);
    if (status.ok()) return failed;
  }
  has_failed_ = true;
  return status;
}

IOStatus OpenLogs::truncate_to_end(OpenLog& open) {
  close(open);
  std::unique_ptr<rocksdb::FSWritableFile> file;
  IOStatus status = reopen_truncated(directory_, *open.log, &file);
  if (!status.ok()) return status;
  file->SetPreallocationBlockSize(preallocation_);
  open.file = std::move(file);
  return status;
}

}  // namespace spillway::spill
